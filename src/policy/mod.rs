//! The permissions of a job: the engine of the crate `tool-policy`, configured for this program.
//!
//! Knows nothing of definitions, runs or clients.

mod background;
mod bot;

pub use background::{AskDefault, AskTerms, BgForkConfig, BothLists, ChildError, JobNetwork, UpdateMode, attenuate};
pub use bot::{BOT, SERVER, background, default_main_tools, help_pattern, main_session};
pub(crate) use bot::{OWN_SERVER, own_tool};
pub use tool_policy::{
    AgentRules, AttenuationError, Decision, DelegablePatterns, Executes, Layer, Location, PathRoots, PatternError,
    PermissionMode, Policy, PolicyEntry, ProgramDecision, ProgramStart, Rights, ShellRights, ToolCall, ToolLists,
    ToolPattern, Verdict, WRITING_TOOLS, Writes, blocked_for_subagents, free_programs, on_one_line,
};
