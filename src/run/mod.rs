//! One attempt of one occurrence, from the claim to the report: prompt, policy, client, tools.

pub mod chain;
pub mod client_environment;
pub mod converse;
pub mod delegation;
pub mod dry_run;
mod events;
mod expected;
pub mod folder;
pub mod follow_up;
mod fork_turns;
pub mod forks;
pub mod gate;
mod host;
pub mod kernel_support;
pub mod nearby_jobs;
pub mod prompt;
pub mod questions;
pub mod restrictions;
pub mod runner;
pub mod sandbox;
pub mod setup;
pub mod spawn;
pub mod system_prompt;
pub mod tokens;
mod tools;
