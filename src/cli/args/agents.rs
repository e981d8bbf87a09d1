//! `agents …`, `spawn`, `sessions …`: named agents and spawned agents.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::span;

/// `agents …`.
#[derive(Debug, Subcommand)]
pub enum Agents {
    /// List the named agents, and where each comes from
    List,
    /// Show an agent: its tools, its mode, its prompt
    Show {
        /// The agent's name
        name: String,
    },
}

/// `spawn`.
#[derive(Debug, Args)]
pub struct SpawnArgs {
    /// The task of the agent: its prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: String,
    /// The named agent to run as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The tools of the agent.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Maximum duration of the run: `10m`, `1h30m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub timeout: Option<Duration>,
}

/// The tools of a spawned agent.
#[derive(Debug, Args)]
pub struct ToolArgs {
    /// Only these of its caller's tools; '' for none. Replaces `allow` of the settings
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allow: Option<Vec<String>>,
    /// Not these, whatever is allowed. Added to `deny` of the settings
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub deny: Option<Vec<String>>,
}

/// `sessions …`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List the main session, the conversations before it, and the sessions of spawned agents, newest first
    List,
    /// Continue an earlier conversation as the main session
    Resume {
        /// The session's id, or the beginning of it
        session: String,
    },
    /// Show a session: its caller, its tools, its outcome
    Show {
        /// The session's id
        session: String,
    },
    /// Set the tool policy of a spawned agent's session, once
    Patch {
        /// The session's id
        session: String,
        /// The tools of the session.
        #[command(flatten)]
        tools: ToolArgs,
    },
    /// Reset a job's session, so that it forgets its runs so far
    Reset {
        /// The job's id
        id: String,
    },
}
