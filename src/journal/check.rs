//! Checks the journal's file without changing it.

use super::rows::Columns as _;
use super::{JournalError, JournalReader};

impl JournalReader {
    /// Returns the faults that SQLite finds in the file, at most ten lines. Empty if there are none, or no journal yet.
    ///
    /// # Errors
    /// Fails when the file cannot be read at all.
    pub fn damage(&self) -> Result<Vec<String>, JournalError> {
        let found = self.all("PRAGMA integrity_check(10)", &[], |row| row.get::<String>(0))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// Returns the time of the latest claim; `None` if nothing was claimed yet.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_claim(&self) -> Result<Option<chrono::DateTime<chrono::Utc>>, JournalError> {
        let found = self.all("SELECT max(claimed) AS at FROM occurrence", &[], |row| row.maybe_at("at"))?;
        Ok(found.into_iter().next().flatten())
    }
}
