//! Converts between Rust values and columns.

use std::path::PathBuf;

use super::database::Row;
use chrono::{DateTime, Utc};

use super::{JournalError, RunId, RunState};
use crate::definition::{DefinitionId, Kind};

/// Milliseconds since 1970.
pub(super) fn ms(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis()
}

/// Reads a time from a column.
pub(super) fn time(ms: i64) -> Result<DateTime<Utc>, JournalError> {
    DateTime::from_timestamp_millis(ms).ok_or_else(|| JournalError::Unreadable(format!("the time {ms}")))
}

/// Reads a time from a column that may be empty.
pub(super) fn maybe_time(ms: Option<i64>) -> Result<Option<DateTime<Utc>>, JournalError> {
    ms.map(time).transpose()
}

impl RunState {
    /// Returns the word for the state in the journal and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }

    /// Returns whether an attempt in this state has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Claimed | Self::Running)
    }

    /// Returns whether the run was completed or skipped.
    #[must_use]
    pub fn is_well(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

impl std::fmt::Display for RunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a state from a column.
pub(super) fn state(word: &str) -> Result<RunState, JournalError> {
    use RunState::{Cancelled, Claimed, Completed, Failed, Interrupted, Running, Skipped, TimedOut};
    [Claimed, Running, Completed, Failed, TimedOut, Cancelled, Interrupted, Skipped]
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| JournalError::Unreadable(format!("the state `{word}`")))
}

/// Reads a kind from a column.
pub(super) fn kind(word: &str) -> Result<Kind, JournalError> {
    [Kind::Routine, Kind::Reminder, Kind::Webhook, Kind::Session]
        .into_iter()
        .find(|kind| kind.to_string() == word)
        .ok_or_else(|| JournalError::Unreadable(format!("the kind `{word}`")))
}

/// Columns that more than one query reads.
pub(super) trait Columns {
    fn id(&self, column: &str) -> Result<DefinitionId, JournalError>;
    fn run(&self, column: &str) -> Result<RunId, JournalError>;
    fn at(&self, column: &str) -> Result<DateTime<Utc>, JournalError>;
    fn maybe_at(&self, column: &str) -> Result<Option<DateTime<Utc>>, JournalError>;
    fn path(&self, column: &str) -> Result<PathBuf, JournalError>;
}

impl Columns for Row<'_> {
    fn id(&self, column: &str) -> Result<DefinitionId, JournalError> {
        Ok(DefinitionId::new(self.get::<String>(column)?))
    }
    fn run(&self, column: &str) -> Result<RunId, JournalError> {
        Ok(RunId::new(self.get::<String>(column)?))
    }
    fn at(&self, column: &str) -> Result<DateTime<Utc>, JournalError> {
        time(self.get(column)?)
    }
    fn maybe_at(&self, column: &str) -> Result<Option<DateTime<Utc>>, JournalError> {
        maybe_time(self.get(column)?)
    }
    fn path(&self, column: &str) -> Result<PathBuf, JournalError> {
        Ok(PathBuf::from(self.get::<String>(column)?))
    }
}
