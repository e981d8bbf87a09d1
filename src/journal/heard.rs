//! What the person has said and pressed by channels.

use super::database::params;

use super::outbox::{MESSAGE, read_message};
use super::rows::ms;
use super::{Journal, JournalError, JournalReader, Message};
use crate::definition::DefinitionId;

/// What has come in by a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardBy {
    /// The channel's name.
    pub channel: String,
    /// How often others than the owner have said or pressed something.
    pub strangers: u64,
}

impl Journal {
    /// A message with what channels made of it; `None`: there is none of this number.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn sent_message(&self, number: i64) -> Result<Option<Message>, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = format!("SELECT {MESSAGE} FROM message m WHERE number = ?1");
                connection.one(&sql, [number], read_message)
            })
            .await
    }

    /// The messages with buttons that are a fork's own: its card, and what it was asked.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn messages_of_fork(&self, fork: &DefinitionId) -> Result<Vec<Message>, JournalError> {
        let fork = fork.clone();
        self.writer
            .commit(move |connection| {
                let sql = format!("SELECT {MESSAGE} FROM message m WHERE id = ?1 AND rich IS NOT NULL ORDER BY number");
                connection.all(&sql, [fork.as_str()], read_message)
            })
            .await
    }

    /// The message that a channel's service calls so. One that was sent in parts has all their names, with blanks between. Of a
    /// digest, which is several messages in one, none is meant.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn message_sent_as(&self, channel: &str, external: &str) -> Result<Option<Message>, JournalError> {
        let (channel, external) = (channel.to_owned(), external.to_owned());
        self.writer
            .commit(move |connection| {
                let sql = format!(
                    "SELECT {MESSAGE} FROM message m JOIN delivery d ON d.message = m.number
                     WHERE d.channel = ?1 AND (d.external = ?2 OR replace(' ' || d.external || ' ', ' ' || ?2 || ' ', '') <> ' ' || d.external || ' ')
                     ORDER BY m.number DESC LIMIT 2"
                );
                let mut found = connection.all(&sql, params![channel, external], read_message)?;
                Ok(found.pop().filter(|_| found.is_empty()))
            })
            .await
    }

    /// Where a message is: each channel that has delivered it, with what its service calls it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn delivered_by(&self, message: i64) -> Result<Vec<(String, String)>, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = "SELECT channel, external FROM delivery
                     WHERE message = ?1 AND state = 'delivered' AND external IS NOT NULL ORDER BY channel";
                connection.all(sql, [message], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .await
    }

    /// Records that a button was pressed. Returns whether it is the first time.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn press(&self, message: i64, place: usize, channel: &str) -> Result<bool, JournalError> {
        let (channel, clock) = (channel.to_owned(), self.clock.clone());
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        self.writer
            .commit(move |connection| {
                let new = connection.execute(
                    "INSERT INTO press (message, place, at, channel) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                    params![message, place, ms(clock.now()), channel],
                )?;
                Ok(new > 0)
            })
            .await
    }

    /// Forgets that a button was pressed: what it was to do was not done.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn unpress(&self, message: i64, place: usize) -> Result<(), JournalError> {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM press WHERE message = ?1 AND place = ?2", params![message, place])?;
                Ok(())
            })
            .await
    }

    /// A channel's service calls the last message that was heard so.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn heard(&self, channel: &str, last: &str) -> Result<(), JournalError> {
        let (channel, last) = (channel.to_owned(), last.to_owned());
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO hearing (channel, last) VALUES (?1, ?2)
                         ON CONFLICT (channel) DO UPDATE SET last = excluded.last",
                    [&channel, &last],
                )?;
                Ok(())
            })
            .await
    }

    /// What a channel's service calls the last message that was heard.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last_heard(&self, channel: &str) -> Result<Option<String>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .commit(move |connection| {
                Ok(connection
                    .one("SELECT last FROM hearing WHERE channel = ?1", [&channel], |row| row.get(0))?
                    .flatten())
            })
            .await
    }

    /// Counts so much that others than the owner have said or pressed.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn count_strangers(&self, channel: &str, more: u64) -> Result<(), JournalError> {
        let (channel, more) = (channel.to_owned(), i64::try_from(more).unwrap_or(i64::MAX));
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO hearing (channel, strangers) VALUES (?1, ?2)
                         ON CONFLICT (channel) DO UPDATE SET strangers = hearing.strangers + excluded.strangers",
                    params![channel, more],
                )?;
                Ok(())
            })
            .await
    }
}

impl JournalReader {
    /// What has come in by each channel, by its name.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn heard_by(&self) -> Result<Vec<HeardBy>, JournalError> {
        self.all("SELECT channel, strangers FROM hearing ORDER BY channel", &[], |row| {
            let strangers: i64 = row.get("strangers")?;
            Ok(HeardBy { channel: row.get("channel")?, strangers: u64::try_from(strangers).unwrap_or(0) })
        })
    }
}
