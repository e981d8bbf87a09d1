//! Whether the journal's file is whole, without changing anything of it.

use super::rows::Columns as _;
use super::{JournalError, JournalReader};

impl JournalReader {
    /// What SQLite finds wrong with the file, at most ten lines; empty: nothing, or there is no journal yet.
    ///
    /// # Errors
    /// When it cannot be read at all.
    pub fn damage(&self) -> Result<Vec<String>, JournalError> {
        let found = self.all("PRAGMA integrity_check(10)", &[], |row| row.get::<String>(0))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// The latest time that something was recorded at, as far as runs go; `None`: nothing has run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn last_claim(&self) -> Result<Option<chrono::DateTime<chrono::Utc>>, JournalError> {
        let found = self.all("SELECT max(claimed) AS at FROM occurrence", &[], |row| row.maybe_at("at"))?;
        Ok(found.into_iter().next().flatten())
    }
}
