//! Small values that outlive the service: the main session's id, whether a person has paused everything.

use super::database::Connection;
use super::outbox::insert_message;
use super::{Journal, JournalError, NewMessage};

/// Key of the time since which a person has paused everything, on all hosts.
pub const PAUSED: &str = "paused";

impl Journal {
    /// Returns the value of `key`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>, JournalError> {
        self.writer.read(move |connection| get(connection, key)).await
    }

    /// Changes the value of `key` in one commit, so that nobody changes it in between. `change` may be called more
    /// than once. It returns the new value and an answer, and the answer is returned; `None` changes nothing.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn change_setting<T: Send + 'static>(
        &self,
        key: &'static str,
        mut change: impl FnMut(Option<&str>) -> Option<(String, T)> + Send + 'static,
    ) -> Result<Option<T>, JournalError> {
        let silent = move |kept: Option<&str>| change(kept).map(|(value, answer)| (value, Vec::new(), answer));
        self.change_setting_and_tell(key.to_owned(), silent).await
    }

    /// As [`Self::change_setting`]. Records the messages that `change` returns in the same commit.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn change_setting_and_tell<T: Send + 'static>(
        &self,
        key: String,
        mut change: impl FnMut(Option<&str>) -> Option<(String, Vec<NewMessage>, T)> + Send + 'static,
    ) -> Result<Option<T>, JournalError> {
        let clock = self.clock.clone();
        let (newest, answer) = self
            .writer
            .commit(move |connection| {
                let kept = get(connection, &key)?;
                let Some((value, messages, answer)) = change(kept.as_deref()) else { return Ok((0, None)) };
                set(connection, &key, &value)?;
                let mut newest = 0;
                for message in messages {
                    newest = insert_message(connection, &message, clock.now())?;
                }
                Ok((newest, Some(answer)))
            })
            .await?;
        self.announce(newest);
        Ok(answer)
    }

    /// Sets the value of `key`; `None` deletes it.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_setting(&self, key: impl Into<String>, value: Option<String>) -> Result<(), JournalError> {
        let key = key.into();
        self.writer
            .commit(move |connection| match &value {
                Some(value) => set(connection, &key, value),
                None => delete(connection, &key),
            })
            .await
    }
}

/// Returns the value of `key`.
pub(super) fn get(connection: &Connection, key: &str) -> Result<Option<String>, JournalError> {
    connection.one("SELECT value FROM setting WHERE key = ?1", [key], |row| row.get(0))
}

/// Sets the value of `key`.
pub(super) fn set(connection: &Connection, key: &str, value: &str) -> Result<(), JournalError> {
    let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    connection.execute(sql, [key, value])?;
    Ok(())
}

/// Deletes the value of `key`.
pub(super) fn delete(connection: &Connection, key: &str) -> Result<(), JournalError> {
    connection.execute("DELETE FROM setting WHERE key = ?1", [key])?;
    Ok(())
}

/// Returns between which two keys those lie that begin with `prefix` and a blank.
pub(super) fn range(prefix: &str) -> [String; 2] {
    // `!` follows the blank in ASCII.
    [format!("{prefix} "), format!("{prefix}!")]
}
