#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::too_many_lines, reason = "a test is read from top to bottom"))]

mod agents;
mod apart;
mod application;
mod attenuation;
mod choice;
mod client_tools;
mod code_on_input;
mod command_rule;
mod containers;
mod denial;
mod describe;
mod expression;
mod fetch;
mod further;
mod harmless;
mod hosts;
mod operands;
mod options;
mod passed_on;
mod path;
mod pattern;
mod pattern_lists;
mod policy;
mod programs;
mod request;
mod restraints;
mod rule;
mod rule_set;
mod spellings;
mod start;
mod tool_lists;
mod url_host;
mod visible;
mod warnings;
mod wildcard;

pub use agents::{AgentRules, PermissionMode, WRITING_TOOLS, blocked_for_subagents};
pub use application::{Application, ReadLink};
pub use attenuation::{AttenuationError, DelegablePatterns, Parent};
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

/// A tool call that an agent wants to make.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The client's name of the tool: `Bash`, `Read`, `mcp__chat__send`, …
    pub tool: String,
    /// The tool's input as the client sent it, e.g. `{"command": "ls"}`.
    pub input: Value,
    /// The client's working folder when the call was made (absolute).
    pub cwd: PathBuf,
    /// The type of the calling subagent (`Explore`), or `None` for the job's own session.
    pub agent_type: Option<String>,
}

/// The decision on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The call does not run.
    Deny,
    /// The call waits for the person's decision.
    Ask,
}

/// The layer that decided. The layers are in order, and the first that denies wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Blocks for every fork, whatever a file says. Includes protected places and unreadable input.
    System,
    /// A rule of `disallowed_tools`.
    DisallowedTools,
    /// A rule of `allowed_tools` that grants, or the absence of one.
    AllowedTools,
    /// A rule of `ask_tools`, under which the person is asked.
    AskTools,
    /// The permission mode, if no layer above denied.
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
    /// The verdict.
    pub verdict: Verdict,
    /// The layer that decided.
    pub layer: Layer,
    /// The rule that decided, as written in the file, or `None` if no rule matched.
    pub rule: Option<String>,
    /// A sentence for the agent and the log: the denied call, the cause, and an alternative.
    pub reason: String,
    /// The judged words, for the start of a program. Empty otherwise.
    pub commands: Vec<String>,
    /// Whether the call can only read. Retries use this: a run that was cut off before its first effect may run again.
    pub read_only: bool,
}

#[cfg(test)]
mod tests;
