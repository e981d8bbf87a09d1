#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::too_many_lines, reason = "a test is read from top to bottom"))]

mod agents;
mod application;
mod attenuation;
mod client_tools;
mod command_rule;
mod describe;
mod fetch;
mod options;
mod path;
mod pattern;
mod pattern_lists;
mod policy;
mod programs;
mod request;
mod rule;
mod rule_set;
mod start;
mod tool_lists;
mod url_host;
mod visible;
mod warnings;
mod wildcard;

pub use agents::{AgentRules, PermissionMode, WRITING_TOOLS, blocked_for_subagents};
pub use application::{Application, ReadLink};
pub use attenuation::{Granted, Parent, Widening};
pub use path::PathRoots;
pub use pattern::{PatternError, ToolPattern};
pub use policy::{JobRules, Policy};
pub use programs::free_programs;
pub use request::on_one_line;
pub use start::{Executes, Location, ProgramDecision, ProgramStart, Rights, ShellRights, Writes};
pub use tool_lists::ToolLists;
pub use visible::PolicyEntry;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call that an agent wants to make.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The client's name of the tool: `Bash`, `Read`, `mcp__chat__send`, …
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
    /// It waits for the person, who says which of the two.
    Ask,
}

/// Which layer decided. In order: the first that says no wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Blocked for every fork, whatever a file says (and the protected places, and unreadable input).
    System,
    /// A rule of `disallowed_tools`.
    DisallowedTools,
    /// `allowed_tools`: granted by a rule of it, or not named by any.
    AllowedTools,
    /// A rule of `ask_tools`: the person is asked.
    AskTools,
    /// The permission mode, where nothing above said no.
    PermissionMode,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::DisallowedTools => "disallowed_tools",
            Self::AllowedTools => "allowed_tools",
            Self::AskTools => "ask_tools",
            Self::PermissionMode => "permission_mode",
        })
    }
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Allow, deny or ask.
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

#[cfg(test)]
mod tests;
