//! `routine …`, `reminder …`: the files of jobs.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{on_missed, on_overlap, span, update_mode};
use crate::definition::{OnMissed, OnOverlap};
use crate::policy::UpdateMode;

/// `routine …`.
#[derive(Debug, Subcommand)]
pub enum Routine {
    /// Make a routine
    Add(Box<RoutineAdd>),
    /// All routines
    List,
    /// One routine
    Show {
        /// Its id
        id: String,
    },
    /// Edit a routine's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Let a disabled routine fire again
    Enable {
        /// Its id
        id: String,
    },
    /// Keep a routine from firing, without losing it
    Disable {
        /// Its id
        id: String,
    },
    /// Delete a routine's file
    Cancel {
        /// Its id
        id: String,
    },
}

/// `reminder …`.
#[derive(Debug, Subcommand)]
pub enum Reminder {
    /// Make a reminder
    Add(Box<ReminderAdd>),
    /// All reminders
    List,
    /// One reminder
    Show {
        /// Its id
        id: String,
    },
    /// Edit a reminder's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Delete a reminder's file
    Cancel {
        /// Its id
        id: String,
    },
    /// Let a reminder fire so long from now instead
    Snooze {
        /// Its id
        id: String,
        /// A time from now: `20m`, `1h30m`, `2days`
        #[arg(value_parser = span)]
        span: Duration,
    },
    /// Write a reminder that has fired into reminders/ again, as it fired
    Restore {
        /// The run that it fired as, as `runs` shows it
        run: String,
        /// When it is to fire, where its own time has passed: a time from now
        #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
        span: Option<Duration>,
        /// The same as a time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
        #[arg(long, value_name = "WHEN", group = "when")]
        at: Option<String>,
    },
    /// Bring back a reminder that failed; it fires at once
    Retry {
        /// Its id
        id: String,
    },
}

/// `routine add`.
#[derive(Debug, Args)]
pub struct RoutineAdd {
    /// Minute hour day month weekday: `30 8 * * 1-5`, or `@daily`
    #[arg(long, value_name = "EXPR")]
    pub cron: String,
    /// When the previous run is still going
    #[arg(long, value_name = "WHAT", value_parser = on_overlap)]
    pub on_overlap: Option<OnOverlap>,
    /// What both kinds have.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `reminder add`.
#[derive(Debug, Args)]
pub struct ReminderAdd {
    /// Minutes from now
    #[arg(long, value_name = "MINUTES", group = "when")]
    pub delay: Option<u32>,
    /// A time from now: `20m`, `1h30m`, `2days`
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
    pub span: Option<Duration>,
    /// A time: `2026-11-22T09:00+01:00`, `tomorrow 9am`, `friday 18:30`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// How many follow-ups the agent may schedule
    #[arg(long, value_name = "N")]
    pub max_chain: Option<u32>,
    /// Which link of a chain this is
    #[arg(long, value_name = "N", hide = true)]
    pub chain_depth: Option<u32>,
    /// The chain's first link
    #[arg(long, value_name = "ID", hide = true)]
    pub chain_parent: Option<String>,
    /// What both kinds have.
    #[command(flatten)]
    pub job: JobArgs,
}

/// What a new job of either kind can be told.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: String,
    /// Run in a fork of its own instead of the main session
    #[arg(long)]
    pub background: bool,
    /// A fresh session without the main session's history
    #[arg(long)]
    pub isolated: bool,
    /// What `edit` can change of it.
    #[command(flatten)]
    pub terms: Terms,
    /// At most so many US dollars
    #[arg(long, value_name = "USD")]
    pub max_cost_usd: Option<f64>,
    /// At most so many tokens of thinking
    #[arg(long, value_name = "TOKENS", conflicts_with = "no_thinking")]
    pub thinking: Option<u32>,
    /// No thinking
    #[arg(long)]
    pub no_thinking: bool,
    /// Skills whose text it is given: folders of skills/
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub skills: Option<Vec<String>>,
    /// IANA zone of its times, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// What happens to times that were missed: latest, all, skip
    #[arg(long, value_name = "WHAT", value_parser = on_missed)]
    pub on_missed: Option<OnMissed>,
    /// Extra attempts after a failure that may pass
    #[arg(long, value_name = "N")]
    pub retry: Option<u32>,
    /// The job whose run made it
    #[arg(long, value_name = "ID", hide = true)]
    pub created_by: Option<String>,
}

/// What a job can be told when it is made, and told anew by `edit`.
#[derive(Debug, Default, PartialEq, Args)]
pub struct Terms {
    /// One line for lists
    #[arg(short, long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Model alias or full name
    #[arg(long)]
    pub model: Option<String>,
    /// The named agent that it runs as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only these tools exist for it; '' for none
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allowed_tools: Option<Vec<String>>,
    /// Everything the main session has, except these
    #[arg(long, visible_alias = "disallowed-tools", value_name = "PATTERN", num_args = 1..)]
    pub blocked_tools: Option<Vec<String>>,
    /// How it reports to the main session
    #[arg(long, value_name = "MODE", value_parser = update_mode)]
    pub update_main_session: Option<UpdateMode>,
    /// It may not reach you directly
    #[arg(long)]
    pub no_ping: bool,
    /// Its programs have no network
    #[arg(long)]
    pub no_network: bool,
    /// Wall clock for the whole run: `10m`, `1h30m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub timeout: Option<Duration>,
    /// At most so many turns of the model
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
}

/// What `edit` can set without an editor. An empty text takes the line out of the file.
#[derive(Debug, Default, PartialEq, Args)]
pub struct Changes {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// A routine's times: `30 8 * * 1-5`, or `@daily`
    #[arg(long, value_name = "EXPR")]
    pub cron: Option<String>,
    /// A reminder's time from now: `20m`, `1h30m`
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
    pub span: Option<Duration>,
    /// A reminder's time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// What `add` sets too.
    #[command(flatten)]
    pub terms: Terms,
}
