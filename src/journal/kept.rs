//! What a channel must know after a restart: which messages show turns, and what came in that is not heard yet.

use super::database::{Connection, params};
use super::{Journal, JournalError};
use crate::definition::DefinitionId;

/// A message of a channel's that shows how a turn goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The turn.
    pub turn: DefinitionId,
    /// What the channel's service calls the message.
    pub message: String,
}

/// What the settings that hold statuses begin with; the channel and the turn follow.
const STATUS: &str = "status";

/// The same of what came in and is not heard yet; the channel and a name follow.
const UNHEARD: &str = "unheard";

impl Journal {
    /// A channel shows a turn by this message.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn shows_turn(&self, channel: &str, turn: &DefinitionId, message: String) -> Result<(), JournalError> {
        self.keep(key(STATUS, channel, turn.as_str()), message).await?;
        // The turn may be over already.
        self.rerouted();
        Ok(())
    }

    /// The message that showed a turn does so no more.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn hides_turn(&self, channel: &str, turn: &DefinitionId) -> Result<(), JournalError> {
        self.let_go(key(STATUS, channel, turn.as_str())).await
    }

    /// Messages of a channel's that show turns which are over, and in whose place no answer of the channel's will come. `all`: nothing
    /// runs any more, so that each is over.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn left_statuses(&self, channel: &str, all: bool) -> Result<Vec<Status>, JournalError> {
        let channel = channel.to_owned();
        self.writer
            .commit(move |connection| {
                let mut left = Vec::new();
                for (turn, message) in kept(connection, STATUS, &channel)? {
                    if !answer_waits(connection, &turn, &channel)? && (all || is_over(connection, &turn)?) {
                        left.push(Status { turn: DefinitionId::new(turn), message });
                    }
                }
                Ok(left)
            })
            .await
    }

    /// Keeps what came in by a channel until it is heard.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn keep_unheard(&self, channel: &str, name: &str, what: String) -> Result<(), JournalError> {
        self.keep(key(UNHEARD, channel, name), what).await
    }

    /// What came in by a channel and is not heard yet, with its names.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn unheard(&self, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
        let channel = channel.to_owned();
        self.writer.commit(move |connection| kept(connection, UNHEARD, &channel)).await
    }

    /// It is heard.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn is_heard(&self, channel: &str, name: &str) -> Result<(), JournalError> {
        self.let_go(key(UNHEARD, channel, name)).await
    }

    async fn keep(&self, key: String, value: String) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "INSERT INTO setting (key, value) VALUES (?1, ?2)
                         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    [&key, &value],
                )?;
                Ok(())
            })
            .await
    }

    async fn let_go(&self, key: String) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM setting WHERE key = ?1", [&key])?;
                Ok(())
            })
            .await
    }
}

/// No channel's name has a blank in it.
fn key(what: &str, channel: &str, name: &str) -> String {
    format!("{what} {channel} {name}")
}

/// What is kept of a channel's, by its names.
fn kept(connection: &Connection, what: &str, channel: &str) -> Result<Vec<(String, String)>, JournalError> {
    let prefix = key(what, channel, "");
    // `!` is what follows a blank.
    let end = format!("{what} {channel}!");
    let sql = "SELECT key, value FROM setting WHERE key > ?1 AND key < ?2 ORDER BY key";
    connection.all(sql, [&prefix, &end], |row| {
        let key: String = row.get(0)?;
        Ok((key.strip_prefix(&prefix).unwrap_or_default().to_owned(), row.get(1)?))
    })
}

/// The message by which a channel shows a turn.
pub(super) fn status(
    connection: &Connection,
    channel: &str,
    turn: &DefinitionId,
) -> Result<Option<String>, JournalError> {
    let sql = "SELECT value FROM setting WHERE key = ?1";
    connection.one(sql, [&key(STATUS, channel, turn.as_str())], |row| row.get(0))
}

/// A message of the turn's has taken the place of the one that showed it.
pub(super) fn replaced(connection: &Connection, channel: &str, message: i64) -> Result<(), JournalError> {
    connection.execute(
        "DELETE FROM setting WHERE key IN (SELECT ?1 || id FROM message WHERE number = ?2 AND id IS NOT NULL)",
        params![key(STATUS, channel, ""), message],
    )?;
    Ok(())
}

/// Whether some channel shows some turn.
pub(super) fn any_status(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM setting WHERE key > ?1 AND key < ?2)";
    connection.row(sql, [&format!("{STATUS} "), &format!("{STATUS}!")], |row| row.get(0))
}

fn answer_waits(connection: &Connection, turn: &str, channel: &str) -> Result<bool, JournalError> {
    connection.row(
        "SELECT EXISTS (SELECT 1 FROM message m WHERE m.id = ?1 AND m.delivered IS NULL
                AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message = m.number))
             OR EXISTS (SELECT 1 FROM message m JOIN delivery d ON d.message = m.number
                WHERE m.id = ?1 AND d.channel = ?2 AND d.state = 'waiting')",
        [turn, channel],
        |row| row.get(0),
    )
}

/// Whether it has its outcome, or is not known any more.
fn is_over(connection: &Connection, turn: &str) -> Result<bool, JournalError> {
    connection.row(
        "SELECT EXISTS (SELECT 1 FROM occurrence WHERE id = ?1 AND outcome IS NOT NULL)
             OR NOT EXISTS (SELECT 1 FROM session WHERE id = ?1)",
        [turn],
        |row| row.get(0),
    )
}
