//! Small facts that outlive the service: the main session's id, whether a person has paused it.

use super::{Journal, JournalError};

impl Journal {
    /// What is kept under `key`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>, JournalError> {
        self.writer
            .commit(move |connection| {
                connection.one("SELECT value FROM setting WHERE key = ?1", [key], |row| row.get(0))
            })
            .await
    }

    /// Keeps `value` under `key`; `None` forgets it.
    ///
    /// # Errors
    /// When the commit cannot be made.
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
