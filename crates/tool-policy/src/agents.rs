//! The policy part of a named agent's file.

use serde::Serialize;

use crate::ToolPattern;
use crate::client_tools::{BLOCKED, names_of};

/// Returns the tools that no subagent has, whatever its file grants: they recurse, talk to a person who is not there, or are
/// the client's own schedulers. Renamed tools are listed under both names.
pub fn blocked_for_subagents() -> impl Iterator<Item = &'static str> {
    BLOCKED.iter().flat_map(|tool| names_of(tool))
}

/// The tools that write files. A read-only agent never has them.
pub const WRITING_TOOLS: &[&str] = &["Write", "Edit", "NotebookEdit"];

/// The treatment of calls that no list denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum PermissionMode {
    /// Calls that a pattern grants and read-only calls pass. Others are put to the person if one is present, and are denied in
    /// a fork.
    #[default]
    #[serde(rename = "default")]
    Default,
    /// Calls that the lists let through pass, and nobody is asked.
    #[serde(rename = "dontAsk")]
    DontAsk,
}

/// The rules of one named agent. They only restrict the rules of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRules {
    /// The agent's name, which the client sends as a call's `agent_type`.
    pub name: String,
    /// The agent's tools, or `None` for all tools of the job. Never empty.
    pub tools: Option<Vec<ToolPattern>>,
    /// Tools denied to the agent.
    pub disallowed: Vec<ToolPattern>,
    /// Whether the agent may only read: no tool that writes, and of Bash only lines whose every simple command reads. Then
    /// `disallowed` contains [`WRITING_TOOLS`].
    pub read_only: bool,
    /// The treatment of other calls.
    pub permission_mode: PermissionMode,
}
