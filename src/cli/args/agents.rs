//! `agents …`, `spawn`, `sessions …`: agents, and those that were started.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::span;

/// `agents …`.
#[derive(Debug, Subcommand)]
pub enum Agents {
    /// Every named agent, and where it comes from
    List,
    /// One agent: its tools, its mode, its prompt
    Show {
        /// Its name
        name: String,
    },
}

/// `spawn`.
#[derive(Debug, Args)]
pub struct SpawnArgs {
    /// What the agent is to do: its prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: String,
    /// The named agent that it runs as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Its tools.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Wall clock for its run: `10m`, `1h30m`
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
    /// The main session and every spawned agent's, newest first
    List,
    /// One session: who started it, what it may use, what came of it
    Show {
        /// Its id
        session: String,
    },
    /// Give a spawned agent's session its tool policy, once
    Patch {
        /// Its id
        session: String,
        /// What it may use.
        #[command(flatten)]
        tools: ToolArgs,
    },
    /// Have a job forget its runs so far: its session begins anew
    Reset {
        /// The job's id
        id: String,
    },
}
