//! What happened, in the order in which it did: the one stream that `runs show`, `runs follow`, channels and pages read.
//!
//! The journal records an event in the commit of what it tells of, so that no event is without its fact and no fact
//! without its event. A reader keeps the number of the last event that it has read; nothing is kept for it here, so a slow
//! one loses nothing and holds nobody up.

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::rows::{Columns, ms};
use super::{DelayCause, Journal, JournalError, JournalReader, RunId, RunState};
use crate::agent::Observation;
use crate::definition::DefinitionId;

/// How many events are read at once.
const BATCH: u32 = 200;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up over the whole journal.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The run that it belongs to, if it belongs to one.
    pub run: Option<RunId>,
    /// The definition that it belongs to, if it belongs to one.
    pub id: Option<DefinitionId>,
    /// What it was.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A run was launched.
    RunStarted {
        /// 1 for the first.
        attempt: u32,
        /// When it was to run.
        scheduled: DateTime<Utc>,
    },
    /// What the client was given to do.
    Prompt {
        /// The whole prompt.
        text: String,
    },
    /// The person is sent a message.
    Message {
        /// Its number.
        message: i64,
        /// Its text.
        text: String,
    },
    /// The main session is told of something.
    Update {
        /// The report.
        text: String,
    },
    /// The run did something beside its calls: it made the next check of its chain, started an agent, was refused a program.
    Note {
        /// A sentence.
        text: String,
    },
    /// An attempt is over, or an occurrence was skipped.
    RunEnded {
        /// How.
        outcome: RunState,
        /// Why it did not do its work.
        error: Option<String>,
        /// When its occurrence is tried again, if it is.
        retry_at: Option<DateTime<Utc>>,
    },
    /// Its occurrence could not begin at its time, or was missed.
    Delayed {
        /// Why.
        by: DelayCause,
        /// Until when nothing could begin, where that is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// What exactly, in words, where there is more to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        what: Option<String>,
    },
    /// The person has asked for the run, by a channel.
    Requested {
        /// The channel.
        channel: String,
    },
    /// The clock was set, or the machine slept.
    ClockSet {
        /// By how much, forwards or (negative) back.
        seconds: i64,
        /// The machine slept for that time.
        slept: bool,
    },
    /// A reminder falls due at another time than before.
    DueMoved {
        /// When it was due.
        from: DateTime<Utc>,
        /// When it is.
        to: DateTime<Utc>,
    },
    /// Deliveries to a webhook were refused.
    DeliveryRefused {
        /// What they were answered; of several the last.
        status: u16,
        /// Why, in the same words.
        why: String,
        /// How many.
        times: u64,
        /// What was delivered by whoever had signed it, up to 2 KB of it; `None`: nobody had, or it was no text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<String>,
        /// When the last of several came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<DateTime<Utc>>,
    },
    /// A definition came to be in force, or is in force in another form.
    DefinitionChanged,
    /// A definition is no longer in force.
    DefinitionRemoved,
    /// Something is wrong with a file.
    Problem {
        /// The file, relative to the data folder.
        file: String,
        /// What is wrong; empty: it was put right.
        text: String,
    },
    /// The run said and did more than is recorded.
    Cut,
    /// A part of what the model says, while it says it: told to who talks with the bot, and never recorded. An
    /// [`Observation::Said`] with the whole follows.
    Letters {
        /// The part.
        text: String,
    },
    /// What the client was seen to do.
    #[serde(untagged)]
    Observed(Observation),
}

/// Which events are asked for. The default: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventFilter {
    /// Only this run's.
    pub run: Option<RunId>,
    /// Only messages to the person.
    pub messages: bool,
    /// Whoever asks is a person who talks with the bot at a terminal.
    pub chat: bool,
}

/// An event that is to be recorded.
pub(super) struct NewEvent<'a> {
    pub run: Option<&'a str>,
    pub id: Option<&'a str>,
    pub kind: EventKind,
}

impl Journal {
    /// Records what is seen of a run, in its order, without waiting for the commit. It tells of something that has
    /// happened already, so nothing depends on it.
    pub fn record(&self, run: &RunId, kind: EventKind) {
        let (run, now) = (run.clone(), self.clock.now());
        self.writer.enqueue(move |connection| {
            insert_event(connection, NewEvent { run: Some(run.as_str()), id: None, kind: kind.clone() }, now)
        });
    }

    /// The same of something that belongs to no run.
    pub fn record_apart(&self, id: Option<&DefinitionId>, kind: EventKind) {
        let (id, now) = (id.cloned(), self.clock.now());
        self.writer.enqueue(move |connection| {
            let id = id.as_ref().map(DefinitionId::as_str);
            insert_event(connection, NewEvent { run: None, id, kind: kind.clone() }, now)
        });
    }

    /// The number of the newest event, and each newer one when it is on the disk.
    #[must_use]
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        self.writer.newest_event()
    }

    /// The oldest events after `number`, a batch at most. Returns at once.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, JournalError> {
        let filter = filter.clone();
        self.writer.commit(move |connection| select(connection, number, &filter)).await
    }
}

impl JournalReader {
    /// The oldest events after `number`, a batch at most.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, JournalError> {
        self.connection().map_or(Ok(Vec::new()), |connection| select(connection, number, filter))
    }
}

/// The newest event's number; 0: there is none.
pub(super) fn newest(connection: &Connection) -> Result<i64, JournalError> {
    connection.last_number("event")
}

/// Records an event. One of a run is also one of its definition.
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
    // Two statements, so that a run's events are found by their index.
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
