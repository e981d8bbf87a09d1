//! Small facts that outlive the service: the main session's id, whether a person has paused it.

use rusqlite::OptionalExtension;

use super::{Journal, JournalError};

impl Journal {
    /// What is kept under `key`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>, JournalError> {
        self.writer
            .commit(move |connection| {
                Ok(connection
                    .prepare_cached("SELECT value FROM setting WHERE key = ?1")?
                    .query_row([key], |row| row.get(0))
                    .optional()?)
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
                    Some(value) => connection
                        .prepare_cached(
                            "INSERT INTO setting (key, value) VALUES (?1, ?2)
                             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        )?
                        .execute([key, value])?,
                    None => connection.prepare_cached("DELETE FROM setting WHERE key = ?1")?.execute([key])?,
                };
                Ok(())
            })
            .await
    }
}
