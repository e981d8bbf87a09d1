//! The schedule's interface to definition files: the pre-launch check, and the cleanup of a reminder's file after
//! its outcome is recorded.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::definition::DefinitionId;

/// The outcome of removing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The file is gone.
    Removed,
    /// The file has changed since the reminder fired, so it was left as it is.
    Changed,
}

/// Acts on definition files, and on definitions of the database by the paths that stand for them. Paths are relative to the data folder, as in [`crate::definition::Definition::file`].
/// Synchronous methods are called on blocking threads. A file that is missing in its folder counts as success.
#[async_trait]
pub trait Files: Send + Sync {
    /// Returns whether the file exists, valid or not, or may come back with its folder.
    fn is_there(&self, file: &Path) -> bool;

    /// Returns whether the file exists and still holds `text`.
    fn is_unchanged(&self, file: &Path, text: &str) -> bool;

    /// Reads a definition's file again. Before this returns, it sends the current definition to the schedule, even
    /// if nothing has changed.
    async fn reread(&self, id: &DefinitionId, file: &Path);

    /// Like [`Self::reread`], for files that the schedule has removed, moved away, or found changed. A file that is put back at once looks
    /// like one that has stayed. Definitions of the database report each change by themselves.
    async fn reread_cleaned(&self, cleaned: Vec<(DefinitionId, PathBuf)>);

    /// Removes a completed reminder's file, unless its text differs from `fired`.
    ///
    /// # Errors
    /// Fails when the file cannot be read or removed. The caller tries again.
    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal>;

    /// Moves the file of a reminder that was due at `at` to `reminders/failed/`, with the reason in its frontmatter. Returns whether there
    /// was one. One with another time by now is of another occurrence, and stays.
    ///
    /// # Errors
    /// Fails when the file cannot be written or moved. The caller tries again.
    fn move_to_failed(&self, file: &Path, at: DateTime<Utc>, reason: &str) -> io::Result<bool>;
}
