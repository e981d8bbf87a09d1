//! Everything that is seen from outside: the real binary, real files, real processes, the real agent client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod support;

mod agent_jobs;
mod agents;
mod architecture;
mod beside;
mod chains;
mod claude;
mod cli;
mod cli_edit;
mod cli_fork;
mod cli_read;
mod cli_service;
mod cli_waiting;
mod cli_write;
mod crash;
mod cron_reference;
mod default_build;
mod definitions;
mod disk;
mod docs_policy;
mod first_start;
mod following;
mod foreground;
mod fork_reach;
mod hand_over;
mod identity;
mod inside;
mod journal_versions;
mod main_session;
mod many;
mod misbehaving;
mod policy_corpus;
mod problems;
mod reach;
mod reloading;
mod restrictions;
mod samples;
mod shell_fuzz;
mod shutdown;
mod skills;
mod spawning;
mod storm;
mod wrapper;
