//! Runs an agent client, and each program that the client's shell starts, in a kernel sandbox of its own.
//!
//! # Theory of operation
//!
//! The service starts a *runner* ([`runner`]) for each run and tells it over a socket which client to start. The runner holds the
//! whole process tree and ends it when the client ends or the service does. Its parent, the *reaper*, ends the tree if the runner is
//! killed. The *exec stage* enters the client's [`Domain`] and becomes the client.
//!
//! The client is given a shell of ours. It becomes the real bash inside a domain without power: only bash, filters, wrappers and
//! the *trampoline* may be executed, and files are open only where the job's rules say. `PATH` leads to a [`farm`]: a folder with
//! a link to the trampoline under each program's name. So each program that a line starts reaches the *broker*, a part of the
//! runner, with its real arguments, folder, environment and descriptors. The broker asks the service ([`Judge`]), and the program
//! is refused, runs in the shell's domain, or is started by a *launcher* in a domain of its own. Nothing is concluded from the
//! text of a line.
//!
//! ```text
//! service ──socket── reaper ─ runner (broker) ─┬─ exec stage → client ── shell → bash ─┬─ filter
//!                                              │                                        └─ trampoline (waits)
//!                                              └─ launcher → program
//! ```
//!
//! All of these are stages of one small program, which [`stage`] enters before anything else is done.
//!
#![doc = include_str!("../README.md")]

mod broker;
mod capture;
pub mod cgroup;
mod children;
mod descriptors;
pub mod domain;
mod exec_stage;
pub mod farm;
pub mod folders;
mod judge;
mod launch;
pub mod leftovers;
mod limits;
mod mark;
pub mod mounts;
pub mod prespawn;
mod privileges;
mod program;
mod reaper;
pub mod relay;
pub mod runner;
pub mod seccomp;
pub mod shell;
pub mod stamped;
mod start;
pub mod system;
pub mod token;
mod trampoline;
pub mod tree;
mod usage;
mod watch;
mod wire;

pub use capture::{SentLaunch, Stream, capture, capture_until, end_leftovers, listen_until};
pub use domain::{Attributes, Domain, DomainError, Network, SandboxStatus, probe, resolved, without};
pub use exec_stage::{CANNOT_START, NO_DOMAIN};
pub use judge::{Judge, answer};
pub use launch::{Launch, Secret, ShellService, send};
pub use limits::{Limits, many_descriptors};
pub use watch::Bounds;
pub use wire::{Answer, ShellSpec, Start, reachable};

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// The variable that tells a client's shell the broker's socket.
pub const SOCKET_VARIABLE: &str = "AGENT_SANDBOX_SOCKET";

/// The variable that tells it the token of its run.
pub const TOKEN_VARIABLE: &str = "AGENT_SANDBOX_TOKEN";

/// Enters a hidden stage of the program if the name under which it was executed, or its command line (with the program's name),
/// asks for one. Must be called before anything else: a stage has one thread, and reads no settings and no files of the person.
#[must_use]
pub fn stage(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    // Use the path that was executed, not the first argument, which the caller chooses freely.
    let executed = Path::new(std::ffi::OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()));
    let folder = executed.parent().and_then(Path::file_name).unwrap_or_default();
    if folder == shell::FOLDER {
        return Some(shell::run(args.skip(1).collect()));
    }
    if [farm::FOLDER, farm::JUDGED, farm::OVERLAY, farm::GUARD].iter().any(|farm| folder == *farm) {
        return Some(trampoline::run(args.collect()));
    }
    match args.nth(1)?.to_str()? {
        reaper::COMMAND => Some(reaper::run()),
        runner::COMMAND => Some(runner::run(args)),
        exec_stage::COMMAND => Some(exec_stage::run(args)),
        program::COMMAND => Some(program::run(args)),
        _ => None,
    }
}
