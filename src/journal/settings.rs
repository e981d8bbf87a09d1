//! Small values that outlive the service: the main session's id, whether a person has paused everything.

use super::{Journal, JournalError};

/// Key of the time since which a person has paused everything, on all hosts.
pub const PAUSED: &str = "paused";

impl Journal {
    /// Returns the value of `key`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>, JournalError> {
        self.writer
            .commit(move |connection| {
                connection.one("SELECT value FROM setting WHERE key = ?1", [key], |row| row.get(0))
            })
            .await
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
        self.writer
            .commit(move |connection| {
                let kept: Option<String> =
                    connection.one("SELECT value FROM setting WHERE key = ?1", [key], |row| row.get(0))?;
                let Some((value, answer)) = change(kept.as_deref()) else { return Ok(None) };
                let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value";
                connection.execute(sql, [key, &value])?;
                Ok(Some(answer))
            })
            .await
    }

    /// Sets the value of `key`; `None` deletes it.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_setting(&self, key: &'static str, value: Option<String>) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                match &value {
                    Some(value) => connection.execute(
                        "INSERT INTO setting (key, value) VALUES (?1, ?2)
                             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        [key, value],
                    )?,
                    None => connection.execute("DELETE FROM setting WHERE key = ?1", [key])?,
                };
                Ok(())
            })
            .await
    }
}
