//! What a named agent may do, as the engine needs it: the part of an agent's file that is policy.

use serde::Serialize;

use crate::ToolPattern;
use crate::client_tools::{BLOCKED, names_of};

/// Tools that no subagent has, whatever any file says: they recurse, or talk to a person who is not there, or are
/// the client's own schedulers. Names of renamed tools stand beside the new ones.
pub fn blocked_for_subagents() -> impl Iterator<Item = &'static str> {
    BLOCKED.iter().flat_map(|tool| names_of(tool))
}

/// The tools that write files: what a read-only agent never has.
pub const WRITING_TOOLS: &[&str] = &["Write", "Edit", "NotebookEdit"];

/// What happens to a call that no list says no to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum PermissionMode {
    /// What a pattern grants, and read-only calls, pass. The rest is put to the person where a person is there, and
    /// is a no in a fork.
    #[default]
    #[serde(rename = "default")]
    Default,
    /// What the lists let through passes; nobody is asked.
    #[serde(rename = "dontAsk")]
    DontAsk,
}

/// The rules of one named agent. They only ever take away from what the job has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRules {
    /// The name that the client gives as a call's `agent_type`.
    pub name: String,
    /// The tools it has; `None`: all that the job has. Never empty.
    pub tools: Option<Vec<ToolPattern>>,
    /// Tools taken away from it.
    pub disallowed: Vec<ToolPattern>,
    /// It may only read: no tool that writes, and of Bash only lines whose every simple command reads. Then
    /// `disallowed` holds [`WRITING_TOOLS`].
    pub read_only: bool,
    /// What happens to the rest.
    pub permission_mode: PermissionMode,
}
