//! `routine …`, `reminder …`, `webhook …`: the files of jobs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::fields::{Edit, FieldFlags, NewReminder, NewRoutine};
use super::values::minutes;

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
        #[arg(id = "job", value_name = "ID")]
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Let disabled routines fire again
    Enable {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Keep routines from firing, without losing them
    Disable {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Delete routines' files
    Cancel {
        /// Their ids; of a file with an error, its name
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
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
        #[arg(id = "job", value_name = "ID")]
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Delete reminders' files
    Cancel {
        /// Their ids; of a file with an error, its name
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Let reminders fire so long from now instead, or once more
    Snooze {
        /// Their ids; one that has fired comes back
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// A time from now: `20m`, `1h30m`, `2days`, `90` (minutes)
        #[arg(value_parser = minutes)]
        span: Duration,
    },
    /// Write reminders that have fired into reminders/ again, as they fired
    Restore {
        /// The runs that they fired as, as `runs` shows them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// When they are to fire, where their own time has passed: a time from now
        #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = minutes, group = "when")]
        span: Option<Duration>,
        /// The same as a time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
        #[arg(long, value_name = "WHEN", group = "when")]
        at: Option<String>,
    },
    /// Bring back reminders that failed; they fire at once
    Retry {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// `webhook …`. `edit`, `pause` and `resume` take a webhook's id, too.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// All webhooks
    List,
    /// One webhook
    Show {
        /// Its id
        id: String,
    },
}

/// A prompt. None: an editor, on a terminal.
#[derive(Debug, Args)]
pub struct Text {
    /// What the agent is to do; `-`: standard input; without one $VISUAL or $EDITOR opens
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// The same as a flag
    #[arg(short, long, value_name = "TEXT", conflicts_with = "text")]
    pub message: Option<String>,
    /// The same, from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "message"])]
    pub file: Option<PathBuf>,
}

/// `routine add`.
#[derive(Debug, Args)]
pub struct RoutineAdd {
    /// What the agent is to do: the prompt.
    #[command(flatten)]
    pub text: Text,
    /// The fields of its file.
    #[command(flatten)]
    pub fields: FieldFlags<NewRoutine>,
}

/// `reminder add`.
#[derive(Debug, Args)]
pub struct ReminderAdd {
    /// What you are reminded of, or what the agent is to do.
    #[command(flatten)]
    pub text: Text,
    /// Minutes from now
    #[arg(long, value_name = "MINUTES", group = "when")]
    pub delay: Option<u32>,
    /// A time from now: `20m`, `1h30m`, `2days`, `90` (minutes)
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = minutes, group = "when")]
    pub span: Option<Duration>,
    /// A time: `2026-11-22T09:00+01:00`, `tomorrow 9am`, `friday 18:30`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// The fields of its file.
    #[command(flatten)]
    pub fields: FieldFlags<NewReminder>,
}

/// What `edit` can set without an editor. An empty text takes the line out of the file.
#[derive(Debug, Args)]
pub struct Changes {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// A reminder's time from now: `20m`, `1h30m`, `90` (minutes)
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = minutes, group = "when")]
    pub span: Option<Duration>,
    /// A reminder's time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// The fields of its file.
    #[command(flatten)]
    pub fields: FieldFlags<Edit>,
}
