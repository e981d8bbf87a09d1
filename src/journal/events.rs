//! Everything that happened, in order: the one stream that `runs show`, `runs follow`, channels and pages read.
//!
//! The journal records an event and its fact in one commit, so neither exists without the other. Each reader keeps
//! the number of the last event that it has read. The journal keeps nothing for readers, so a slow reader loses
//! nothing and blocks nobody.

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::rows::{Columns, ms};
use super::{DelayCause, Journal, JournalError, JournalReader, RunId, RunState};
use crate::agent::Observation;
use crate::definition::DefinitionId;

/// The table of the events.
pub(super) const TABLE: &str = "event";

/// Maximum number of events in one read.
const BATCH: u32 = 200;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the event, rising over the whole journal.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The run that it belongs to, if any.
    pub run: Option<RunId>,
    /// The definition that it belongs to, if any.
    pub id: Option<DefinitionId>,
    /// The kind of event, with its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The beginning of the note that a line was not allowed to start a program; a `: ` and the reason follow.
pub const PROGRAM_REFUSED: &str = "a program was refused";

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A run was launched.
    RunStarted {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The scheduled time.
        scheduled: DateTime<Utc>,
    },
    /// The client was given its prompt.
    Prompt {
        /// The whole prompt.
        text: String,
    },
    /// A message to the person was recorded.
    Message {
        /// Its number.
        message: i64,
        /// Its text.
        text: String,
    },
    /// A report for the main session was recorded.
    Update {
        /// The report.
        text: String,
    },
    /// The run did something other than a call: it created the next check of its chain, started an agent, was refused a program.
    Note {
        /// A sentence.
        text: String,
    },
    /// An attempt ended, or an occurrence was skipped.
    RunEnded {
        /// The outcome.
        outcome: RunState,
        /// Why the work was not done.
        error: Option<String>,
        /// When the occurrence is retried, if it is.
        retry_at: Option<DateTime<Utc>>,
    },
    /// The occurrence could not begin at its time, or was missed.
    Delayed {
        /// The cause.
        by: DelayCause,
        /// When the cause ended, if it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// Details in words, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        what: Option<String>,
    },
    /// The person asked for the run through a channel.
    Requested {
        /// The channel.
        channel: String,
    },
    /// The clock was set, or the machine slept.
    ClockSet {
        /// The change in seconds; negative: backwards.
        seconds: i64,
        /// Whether the machine slept during that time.
        slept: bool,
    },
    /// A reminder's due time has changed.
    DueMoved {
        /// The previous due time.
        from: DateTime<Utc>,
        /// The new due time.
        to: DateTime<Utc>,
    },
    /// Deliveries to a webhook were refused.
    DeliveryRefused {
        /// The HTTP status of the answer; of several, the last.
        status: u16,
        /// The reason, in the words of the answer.
        why: String,
        /// Number of deliveries.
        times: u64,
        /// Up to 2 KB of the delivered text, if its signature was valid; `None`: it was not, or it was no text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<String>,
        /// When the last of several came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<DateTime<Utc>>,
    },
    /// A definition came into force, or changed.
    DefinitionChanged,
    /// A definition is no longer in force.
    DefinitionRemoved,
    /// A file has a problem.
    Problem {
        /// The file, relative to the data folder.
        file: String,
        /// The problem; empty: it was solved.
        text: String,
    },
    /// The run said and did more than was recorded.
    Cut,
    /// A part of the model's text while the model writes it. Sent only to a person who chats with the bot, never
    /// recorded. An [`Observation::Said`] with the whole text follows.
    Letters {
        /// The part.
        text: String,
    },
    /// An observed action of the client.
    #[serde(untagged)]
    Observed(Observation),
}

/// A selection of events. The default: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventFilter {
    /// Only events of this run.
    pub run: Option<RunId>,
    /// Only messages to the person.
    pub messages: bool,
    /// Whether the reader is a person who chats with the bot at a terminal.
    pub chat: bool,
}

/// An event to record.
pub(super) struct NewEvent<'a> {
    pub run: Option<&'a str>,
    pub id: Option<&'a str>,
    pub kind: EventKind,
}

impl Journal {
    /// Records an observation of a run, in order, without waiting for the commit. It reports something past, so
    /// nothing depends on it.
    pub fn record(&self, run: &RunId, kind: EventKind) {
        let (run, now) = (run.clone(), self.clock.now());
        self.writer.enqueue(move |connection| {
            insert_event(connection, NewEvent { run: Some(run.as_str()), id: None, kind: kind.clone() }, now)
        });
    }

    /// Like [`Self::record`], for something that belongs to no run.
    pub fn record_apart(&self, id: Option<&DefinitionId>, kind: EventKind) {
        let (id, now) = (id.cloned(), self.clock.now());
        self.writer.enqueue(move |connection| {
            let id = id.as_ref().map(DefinitionId::as_str);
            insert_event(connection, NewEvent { run: None, id, kind: kind.clone() }, now)
        });
    }

    /// Returns the number of the newest event, updated once a newer one is on the disk.
    #[must_use]
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        self.writer.newest_event()
    }

    /// Returns the oldest events after `number`, at most one batch. Does not wait for new ones.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, JournalError> {
        let filter = filter.clone();
        self.writer.commit(move |connection| select(connection, number, &filter)).await
    }
}

impl JournalReader {
    /// Returns the oldest events after `number`, at most one batch.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, JournalError> {
        self.connection().map_or(Ok(Vec::new()), |connection| select(connection, number, filter))
    }
}

/// Returns the number of the newest event; 0 if there is none.
pub(super) fn newest(connection: &Connection) -> Result<i64, JournalError> {
    connection.last_number(TABLE)
}

/// Records an event. An event of a run belongs to its definition, too.
pub(super) fn insert_event(
    connection: &Connection,
    event: NewEvent<'_>,
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    let data = serde_json::to_value(&event.kind).map_err(|error| JournalError::Unreadable(error.to_string()))?;
    connection.execute(
        "INSERT INTO event (at, run, id, kind, data) VALUES (?1, ?2,
               coalesce(?3, (SELECT o.id FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE r.run = ?2)),
               ?4, ?5)",
        params![ms(now), event.run, event.id, data["event"].as_str(), data.to_string()],
    )?;
    Ok(())
}

fn select(connection: &Connection, number: i64, filter: &EventFilter) -> Result<Vec<Event>, JournalError> {
    let kind = filter.messages.then_some("message");
    let run = filter.run.as_ref().map(RunId::as_str);
    // Two statements, so that the index finds a run's events.
    let mut values: Vec<&dyn ToValue> = vec![&number, &kind, &BATCH];
    values.extend(run.as_ref().map(|run| run as &dyn ToValue));
    let of_run = if run.is_some() { " AND run = ?4" } else { "" };
    let sql = format!(
        "SELECT number, at, run, id, data FROM event
         WHERE number > ?1 AND (kind = ?2 OR ?2 IS NULL) {of_run} ORDER BY number LIMIT ?3"
    );
    connection.all(&sql, &values[..], event)
}

pub(super) fn event(row: &Row<'_>) -> Result<Event, JournalError> {
    let data: String = row.get("data")?;
    Ok(Event {
        number: row.get("number")?,
        at: row.at("at")?,
        run: row.get::<Option<String>>("run")?.map(RunId::new),
        id: row.get::<Option<String>>("id")?.map(DefinitionId::new),
        kind: serde_json::from_str(&data).map_err(|error| JournalError::Unreadable(format!("an event: {error}")))?,
    })
}
