//! What the person is to be told: kept here until the channel has delivered it, so that no crash loses a word.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::sync::watch;

use super::events::{EventKind, NewEvent, insert_event};
use super::rows::{Columns, ms};
use super::runs::mark;
use super::{Journal, JournalError, Message, RunId};
use crate::definition::DefinitionId;

/// A message to the person that is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The run it comes from, if it comes from one.
    pub run: Option<RunId>,
    /// The definition it comes from, if it comes from one.
    pub id: Option<DefinitionId>,
    /// The text, as the person reads it.
    pub text: String,
}

impl Journal {
    /// Records a message and returns its number. One that comes from a run is an effect of it, marked in the same
    /// commit.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when its run is not going: then nothing is recorded.
    pub async fn message(&self, message: NewMessage) -> Result<i64, JournalError> {
        let (clock, run) = (self.clock.clone(), message.run.clone());
        let number = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                if let Some(run) = &message.run {
                    mark(connection, run, "message", now)?;
                }
                insert_message(connection, &message, now)
            })
            .await?;
        if let Some(run) = run {
            self.marked_now(&run);
        }
        self.announce(number);
        Ok(number)
    }

    /// Records a message unless `key` has a value, and keeps `value` under it, in one commit. Returns whether it did.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn message_once(
        &self,
        key: &'static str,
        value: String,
        message: NewMessage,
    ) -> Result<bool, JournalError> {
        let clock = self.clock.clone();
        let number = self
            .writer
            .commit(move |connection| {
                let new = connection
                    .prepare_cached("INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING")?
                    .execute([key, value.as_str()])?;
                if new == 0 { Ok(0) } else { insert_message(connection, &message, clock.now()) }
            })
            .await?;
        self.announce(number);
        Ok(number > 0)
    }

    /// Counts a message that was held back for an empty budget. The next message that is recorded says how many were.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn hold_back(&self) -> Result<(), JournalError> {
        self.writer
            .commit(|connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO setting (key, value) VALUES (?1, '1')
                         ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
                    )?
                    .execute([HELD_BACK])?;
                Ok(())
            })
            .await
    }

    /// What is still to be delivered, oldest first, at most `limit`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn undelivered(&self, limit: u32) -> Result<Vec<Message>, JournalError> {
        self.writer
            .commit(move |connection| {
                let mut query = connection.prepare_cached(
                    "SELECT number, at, run, id, text, delivered FROM message
                     WHERE delivered IS NULL ORDER BY number LIMIT ?1",
                )?;
                let mut rows = query.query([limit])?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(read_message(row)?);
                }
                Ok(found)
            })
            .await
    }

    /// The channel has delivered this one.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn delivered(&self, number: i64) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                connection
                    .prepare_cached("UPDATE message SET delivered = ?2 WHERE number = ?1 AND delivered IS NULL")?
                    .execute(params![number, ms(clock.now())])?;
                Ok(())
            })
            .await
    }

    /// The newest message's number, and each newer one as it is recorded: what wakes the channel.
    #[must_use]
    pub fn newest_message(&self) -> watch::Receiver<i64> {
        self.newest.subscribe()
    }

    pub(super) fn announce(&self, number: i64) {
        self.newest.send_if_modified(|newest| {
            let newer = number > *newest;
            *newest = number.max(*newest);
            newer
        });
    }
}

pub(super) fn newest(connection: &Connection) -> Result<i64, JournalError> {
    Ok(connection.query_row("SELECT coalesce(max(number), 0) FROM message", [], |row| row.get(0))?)
}

/// The setting that counts messages that were held back since the last one.
const HELD_BACK: &str = "held_back";

/// What the next message says of those that were held back before it. They are forgotten.
fn held_back(connection: &Connection) -> Result<Option<String>, JournalError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM setting WHERE key = ?1")?
        .query_row([HELD_BACK], |row| row.get(0))
        .optional()?;
    if found.is_some() {
        connection.prepare_cached("DELETE FROM setting WHERE key = ?1")?.execute([HELD_BACK])?;
    }
    Ok(found.map(|count| match count {
        1 => "1 message was held back: budget".to_owned(),
        count => format!("{count} messages were held back: budget"),
    }))
}

pub(super) fn insert_message(
    connection: &Connection,
    message: &NewMessage,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let text = match held_back(connection)? {
        Some(held) => format!("{}\n\n{held}", message.text.trim_end()),
        None => message.text.clone(),
    };
    connection.prepare_cached("INSERT INTO message (at, run, id, text) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        ms(now),
        message.run.as_ref().map(RunId::as_str),
        message.id.as_ref().map(DefinitionId::as_str),
        text,
    ])?;
    let number = connection.last_insert_rowid();
    let (run, id) = (message.run.as_ref().map(RunId::as_str), message.id.as_ref().map(DefinitionId::as_str));
    let kind = EventKind::Message { message: number, text: message.text.clone() };
    insert_event(connection, NewEvent { run, id, kind }, now)?;
    Ok(number)
}

pub(super) fn read_message(row: &Row<'_>) -> Result<Message, JournalError> {
    Ok(Message {
        number: row.get("number")?,
        at: row.at("at")?,
        run: row.get::<_, Option<String>>("run")?.map(RunId::new),
        id: row.get::<_, Option<String>>("id")?.map(DefinitionId::new),
        text: row.get("text")?,
        delivered: row.maybe_at("delivered")?,
    })
}
