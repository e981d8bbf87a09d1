//! Everything that is seen from outside: the real binary, real files, real processes, the real agent client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod support;

mod architecture;
mod cli;
mod cli_fork;
mod crash;
mod first_start;
mod following;
mod many;
mod misbehaving;
mod policy_corpus;
mod problems;
mod restrictions;
mod samples;
