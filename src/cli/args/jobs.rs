//! `routine …`, `reminder …`, `webhook …`: the files of jobs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::fields::{Edit, FieldFlags, NewReminder, NewRoutine};
use super::values::{from_now, snooze};

/// `routine …`.
#[derive(Debug, Subcommand)]
pub enum Routine {
    /// Create a routine
    Add(Box<RoutineAdd>),
    /// List all routines
    List,
    /// Show routines
    Show {
        /// The routines' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Edit a routine's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        #[arg(id = "job", value_name = "ID")]
        id: String,
        /// The fields to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Enable disabled routines
    Enable {
        /// The routines' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Disable routines, without deleting them
    Disable {
        /// The routines' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Delete routines' files
    Cancel {
        /// The routines' ids; for a file with an error, its name
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// `reminder …`.
#[derive(Debug, Subcommand)]
pub enum Reminder {
    /// Create a reminder
    Add(Box<ReminderAdd>),
    /// List all reminders
    List,
    /// Show reminders
    Show {
        /// The reminders' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Edit a reminder's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        #[arg(id = "job", value_name = "ID")]
        id: String,
        /// The fields to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Delete reminders' files
    Cancel {
        /// The reminders' ids; for a file with an error, its name
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Postpone reminders, or fire them once more
    Snooze {
        /// The reminders' ids, including those of fired reminders
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// A time from now: `20m`, `1h30m`, `2days`, `90` (minutes)
        #[arg(value_parser = snooze)]
        span: Duration,
    },
    /// Write fired reminders into reminders/ again, as they fired
    Restore {
        /// The runs of the reminders, as `runs` shows them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// The time from now at which to fire, if their own time has passed
        #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = from_now, group = "when")]
        span: Option<Duration>,
        /// The date and time at which to fire: `2026-11-22T09:00+01:00`, `tomorrow 9am`
        #[arg(long, value_name = "WHEN", group = "when")]
        at: Option<String>,
    },
    /// Bring back failed reminders; they fire at once
    Retry {
        /// The reminders' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// `webhook …`. `edit`, `pause` and `resume` accept a webhook's id, too.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// List all webhooks
    List,
    /// Show webhooks
    Show {
        /// The webhooks' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// A prompt. Without one, an editor opens, on a terminal.
#[derive(Debug, Args)]
pub struct Text {
    /// The task of the agent; `-` reads it from standard input; without one, $VISUAL or $EDITOR opens
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// The task of the agent, as a flag
    #[arg(short, long, value_name = "TEXT", conflicts_with = "text")]
    pub message: Option<String>,
    /// The task of the agent, from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "message"])]
    pub file: Option<PathBuf>,
}

/// `routine add`.
#[derive(Debug, Args)]
pub struct RoutineAdd {
    /// The agent's task: the prompt.
    #[command(flatten)]
    pub text: Text,
    /// The fields of the file.
    #[command(flatten)]
    pub fields: FieldFlags<NewRoutine>,
}

/// `reminder add`.
#[derive(Debug, Args)]
pub struct ReminderAdd {
    /// The text of the reminder, or the agent's task.
    #[command(flatten)]
    pub text: Text,
    /// Minutes from now
    #[arg(long, value_name = "MINUTES", group = "when")]
    pub delay: Option<u32>,
    /// A time from now: `20m`, `1h30m`, `2days`, `90` (minutes)
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = from_now, group = "when")]
    pub span: Option<Duration>,
    /// A time: `tonight`, `tomorrow 9am`, `friday 18:30`, `2026-11-22T09:00+01:00`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// The fields of the file.
    #[command(flatten)]
    pub fields: FieldFlags<NewReminder>,
}

/// The fields that `edit` sets without an editor. An empty text removes the field from the file.
#[derive(Debug, Args)]
pub struct Changes {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// A reminder's time from now: `20m`, `1h30m`, `90` (minutes)
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = from_now, group = "when")]
    pub span: Option<Duration>,
    /// A reminder's time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// The fields of the file.
    #[command(flatten)]
    pub fields: FieldFlags<Edit>,
}
