//! What happened, durably: one row per occurrence, one per attempt, and what the person is to be told.
//!
//! SQLite in `state/journal.db`. A claim is committed before anything is spawned, an outcome before a
//! reminder's file is removed. Knows definitions by id only; knows nothing of clients or channels.

use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::definition::{DefinitionId, Kind};

/// One attempt's identity: 8 hex digits, unique in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// `text` as it stands in the journal.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A definition and one time at which it falls due: what the journal is unique by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Occurrence {
    /// Whose occurrence.
    pub id: DefinitionId,
    /// Routine or reminder.
    pub kind: Kind,
    /// The scheduled time, to the millisecond.
    pub at: DateTime<Utc>,
}

/// How an attempt stands or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Claimed; nothing has been started.
    Claimed,
    /// A client is going.
    Running,
    /// It did its work.
    Completed,
    /// It ended without doing it; the record says why.
    Failed,
    /// It went over its time.
    TimedOut,
    /// A person ended it.
    Cancelled,
    /// The service ended while it was going.
    Interrupted,
    /// It never started; the record says why.
    Skipped,
}

/// A tool call that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool's name.
    pub tool: String,
    /// Its input as the agent sent it.
    pub input: serde_json::Value,
    /// The layer that said no (see [`crate::policy::Layer`]), `client` where the client itself did.
    pub layer: String,
    /// The rule, where one matched.
    pub rule: Option<String>,
    /// The sentence that the agent was given.
    pub reason: String,
}

/// One attempt, as `runs` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// The attempt's id.
    pub run: RunId,
    /// The definition's id.
    pub id: DefinitionId,
    /// Routine or reminder.
    pub kind: Kind,
    /// When it was to run.
    pub scheduled: DateTime<Utc>,
    /// When the client was started; `None`: it never was.
    pub started: Option<DateTime<Utc>>,
    /// When it ended; `None`: it is going.
    pub ended: Option<DateTime<Utc>>,
    /// How it stands or ended.
    pub outcome: RunState,
    /// 1 for the first.
    pub attempt: u32,
    /// From the scheduled time to the claim, in milliseconds.
    pub late_ms: Option<i64>,
    /// As the client reports it, in US dollars.
    pub cost_usd: Option<f64>,
    /// As the client reports it.
    pub turns: Option<u32>,
    /// Refused calls, in order.
    pub denials: Vec<Denial>,
    /// Why it failed, was skipped or was cut off.
    pub error: Option<String>,
    /// The client's own transcript, where there is one.
    pub transcript: Option<PathBuf>,
    /// The file's text when it fired.
    pub definition: Option<String>,
}

/// Something the person is to be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Counts up from 1 over the whole journal.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The run it came from, if it came from one.
    pub run: Option<RunId>,
    /// The definition it came from, if it came from one.
    pub id: Option<DefinitionId>,
    /// The text, as the person reads it.
    pub text: String,
    /// When the channel had delivered it; `None`: not yet.
    pub delivered: Option<DateTime<Utc>>,
}
