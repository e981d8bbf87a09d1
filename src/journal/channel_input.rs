//! Input of the person through channels: messages and pressed buttons.

use super::database::params;

use super::outbox::{MESSAGE, read_message};
use super::rows::ms;
use super::{Journal, JournalError, JournalReader, Message, settings};
use crate::definition::DefinitionId;

/// Prefix of the keys that hold the first times of strangers. The channel and the service's id of the stranger follow.
const STRANGER: &str = "stranger";

/// Maximum number of remembered strangers of a channel.
const MAX_STRANGERS: i64 = 1000;

/// Prefix of the keys that hold the numbers of inputs that were too long to be taken. The channel follows.
const NOT_TAKEN: &str = "too-long";

/// Input through one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelInput {
    /// The channel's name.
    pub channel: String,
    /// Number of inputs from anyone but the owner.
    pub strangers: u64,
    /// Number of inputs that were too long to be taken.
    pub not_taken: u64,
}

impl Journal {
    /// Returns a message by its number; `None` if there is none.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn sent_message(&self, number: i64) -> Result<Option<Message>, JournalError> {
        self.writer
            .read(move |connection| {
                let sql = format!("SELECT {MESSAGE} FROM message m WHERE number = ?1");
                connection.one(&sql, [number], read_message)
            })
            .await
    }

    /// Returns a fork's messages that have a rich form, such as its card and its questions.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn messages_of_fork(&self, fork: &DefinitionId) -> Result<Vec<Message>, JournalError> {
        let fork = fork.clone();
        self.writer
            .read(move |connection| {
                let sql = format!("SELECT {MESSAGE} FROM message m WHERE id = ?1 AND rich IS NOT NULL ORDER BY number");
                connection.all(&sql, [fork.as_str()], read_message)
            })
            .await
    }

    /// Returns the message with this id at a channel's service. A message sent in parts has the ids of all parts,
    /// separated by blanks. Returns `None` for a digest, since it holds several messages.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn message_sent_as(&self, channel: &str, external: &str) -> Result<Option<Message>, JournalError> {
        let (channel, external) = (channel.to_owned(), external.to_owned());
        self.writer
            .read(move |connection| {
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

    /// Returns each channel that has delivered a message, with the message's id at its service.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn delivered_by(&self, message: i64) -> Result<Vec<(String, String)>, JournalError> {
        self.writer
            .read(move |connection| {
                let sql = "SELECT channel, external FROM delivery
                     WHERE message = ?1 AND state = 'delivered' AND external IS NOT NULL ORDER BY channel";
                connection.all(sql, [message], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .await
    }

    /// Records that a button was pressed. Returns whether this is the first time.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Deletes the record of a pressed button, since its action was not done.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn unpress(&self, message: i64, place: usize) -> Result<(), JournalError> {
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM press WHERE message = ?1 AND place = ?2", params![message, place])?;
                Ok(())
            })
            .await
    }

    /// Records the last processed message of a channel, by the id at its service.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_channel_cursor(&self, channel: &str, last: &str) -> Result<(), JournalError> {
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

    /// Returns the last processed message of a channel, by the id at its service.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn channel_cursor(&self, channel: &str) -> Result<Option<String>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .read(move |connection| {
                Ok(connection
                    .one("SELECT last FROM hearing WHERE channel = ?1", [&channel], |row| row.get(0))?
                    .flatten())
            })
            .await
    }

    /// Counts an input from anyone but the owner. Returns whether it is the first from `by`. After a
    /// thousand strangers none is the first any more.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn record_stranger(&self, channel: &str, by: &str) -> Result<bool, JournalError> {
        let (channel, key) = (channel.to_owned(), format!("{STRANGER} {channel} {by}"));
        let now = ms(self.clock.now()).to_string();
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO hearing (channel, strangers) VALUES (?1, 1)
                         ON CONFLICT (channel) DO UPDATE SET strangers = hearing.strangers + excluded.strangers",
                    [&channel],
                )?;
                let sql = "SELECT count(*) FROM setting WHERE key > ?1 AND key < ?2";
                let known: i64 =
                    connection.row(sql, settings::range(&format!("{STRANGER} {channel}")), |row| row.get(0))?;
                if known >= MAX_STRANGERS {
                    return Ok(false);
                }
                let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
                Ok(connection.execute(sql, [&key, &now])? > 0)
            })
            .await
    }

    /// Counts an input that was too long to be taken.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn record_not_taken(&self, channel: &str) -> Result<(), JournalError> {
        let one_more = |kept: Option<&str>| {
            let before: u64 = kept.and_then(|kept| kept.parse().ok()).unwrap_or(0);
            Some((before.saturating_add(1).to_string(), Vec::new(), ()))
        };
        self.change_setting_and_tell(format!("{NOT_TAKEN} {channel}"), one_more).await.map(drop)
    }
}

impl JournalReader {
    /// Returns the input through each channel, by its name.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn channel_inputs(&self) -> Result<Vec<ChannelInput>, JournalError> {
        let mut inputs = self.all("SELECT channel, strangers FROM hearing ORDER BY channel", &[], |row| {
            let strangers: i64 = row.get("strangers")?;
            let strangers = u64::try_from(strangers).unwrap_or(0);
            Ok(ChannelInput { channel: row.get("channel")?, strangers, not_taken: 0 })
        })?;
        let [prefix, end] = settings::range(NOT_TAKEN);
        let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
        let counted: Vec<(String, String)> = self.all(sql, &[&prefix, &end], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (key, count) in counted {
            let (channel, not_taken) = (key.strip_prefix(&prefix).unwrap_or_default(), count.parse().unwrap_or(0));
            match inputs.iter_mut().find(|input| input.channel == channel) {
                Some(input) => input.not_taken = not_taken,
                None => inputs.push(ChannelInput { channel: channel.to_owned(), strangers: 0, not_taken }),
            }
        }
        Ok(inputs)
    }
}
