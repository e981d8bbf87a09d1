//! What a job may do: decided here, in one place, and held by the agent's client, its shell and the kernel.
//!
//! Pure: no I/O save resolving symlinks of paths a call names, no async, no clock. Knows nothing of definitions,
//! runs or clients. Every function is total: what cannot be understood is denied, never a panic.

mod agents;
mod attenuate;
mod background;
mod broad;
mod call;
mod command;
mod fetch;
mod git;
mod grants;
mod includes;
mod known;
mod layers;
mod lists;
mod misread;
mod options;
mod own;
mod path;
mod pattern;
mod program;
mod programs;
mod reads;
mod rule;
mod spawn;
mod surface;
mod web;
mod wildcard;

pub use agents::{AgentRules, PermissionMode, WRITING_TOOLS, blocked_for_subagents};
pub use attenuate::{Widening, attenuate, covers, demand, overlaps};
pub use background::{BgForkConfig, BothLists, JobNetwork, UpdateMode};
pub use broad::{denylist_warnings, warnings};
pub use call::on_one_line;
pub use grants::{common, without};
pub use includes::includes;
pub use layers::Policy;
pub use misread::together;
pub use path::Places;
pub use pattern::{PatternError, ToolPattern};
pub use program::{Executes, Place, ProgramDecision, ProgramStart, Rights, ShellRights, Writes};
pub use programs::free_programs;
pub use reads::may_change_files;
pub use spawn::SpawnTools;
pub use surface::{PathGrants, PolicyEntry};

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

/// One call that an agent wants to make.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The client's name of the tool: `Bash`, `Read`, `mcp__discord__ping_user`, …
    pub tool: String,
    /// The tool's input as the client sent it, e.g. `{"command": "ls"}`.
    pub input: Value,
    /// The client's working folder when the call was made (absolute).
    pub cwd: PathBuf,
    /// For a subagent's calls: its type (`Explore`). `None`: the job's own session.
    pub agent_type: Option<String>,
}

/// May it run?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// It does not.
    Deny,
}

/// Which layer decided. In order: the first that says no wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Blocked for every fork, whatever a file says (and the protected places, and unreadable input).
    System,
    /// A rule of `disallowed_tools`.
    DisallowedTools,
    /// `allowed_tools`: granted by a rule of it, or not named by any.
    AllowedTools,
    /// The permission mode, where nothing above said no.
    PermissionMode,
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Allow or deny.
    pub verdict: Verdict,
    /// The layer that decided.
    pub layer: Layer,
    /// The rule that decided, as it is written in the file; `None` where no rule matched.
    pub rule: Option<String>,
    /// A sentence for the agent and the log: what was denied by what, and what to do instead.
    pub reason: String,
    /// For a program's start: its words, as they were judged. Empty otherwise.
    pub commands: Vec<String>,
    /// Whether the call can only read (used by retries: a run cut off before its first effect may run again).
    pub read_only: bool,
}

/// What the main session may do where `main_tools` is not configured: work on the desk, the web, its skills and
/// agents, and our own tools.
#[must_use]
pub fn default_main_tools() -> Vec<ToolPattern> {
    [
        "Bash",
        "Read",
        "Edit",
        "Glob",
        "Grep",
        "WebFetch",
        "WebSearch",
        "Skill",
        "Agent",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "mcp__discord",
    ]
    .into_iter()
    .map(ToolPattern::bare)
    .collect()
}

#[cfg(test)]
mod tests;
