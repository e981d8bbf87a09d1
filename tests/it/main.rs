//! Everything that is seen from outside: the real binary, real files, real processes, the real agent client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod support;

mod architecture;
mod claude;
mod cli;
mod cli_fork;
mod cli_read;
mod cli_service;
mod cli_write;
mod crash;
mod first_start;
mod following;
mod foreground;
mod inside;
mod many;
mod misbehaving;
mod policy_shell;
mod problems;
mod restrictions;
mod samples;
mod shutdown;
mod wrapper;
