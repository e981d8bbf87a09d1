//! Agent clients: `claude` over its control protocol, and `notify`, which needs no model.
//!
//! A client is started with a [`Request`], which cannot be made without a policy, and talks back through a
//! [`RunHost`]. Nothing here names a routine, a reminder or a channel.
//!
//! A `claude` never runs bare: [`wrapper`] holds its whole process tree and ends it when the run or the service
//! ends, [`wall`] keeps the tree out of the person's files. Both are stages of our own binary, entered through
//! [`stage`].

pub mod claude;
mod client;
mod launch;
mod notify;
mod privileges;
mod second_stage;
pub mod sockets;
mod tools;
mod tree;
pub mod wall;
pub mod wrapper;

pub use self::notify::Notify;
pub use claude::Claude;
pub use client::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, Request, RunHost, SessionId,
    SessionMode, ToolAnswer,
};
pub use tools::{ServeTools, ToolPipe};
pub use wall::Wall;

use std::ffi::OsString;
use std::process::ExitCode;

/// Enters a hidden stage of the binary when the command line (with the program's name) asks for one. The binary
/// calls this before anything else: a stage has one thread, and reads no settings and no files of the person.
#[must_use]
pub fn stage(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match args.nth(1)?.to_str()? {
        wrapper::COMMAND => Some(wrapper::run()),
        second_stage::COMMAND => Some(second_stage::run(args)),
        _ => None,
    }
}
