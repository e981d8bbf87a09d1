//! What the schedule needs of definition files: the pre-launch check, and the cleanup of a reminder's file after its outcome
//! is recorded.

use std::io;
use std::path::Path;

use async_trait::async_trait;

use crate::definition::DefinitionId;

/// What became of a file that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed,
    /// Somebody has changed it since it fired: it was left as it is.
    Changed,
}

/// Acts on definition files. Paths are relative to the data folder, as in [`crate::definition::Definition::file`].
/// What is not async is called on blocking threads. A file that is not there is success.
#[async_trait]
pub trait Files: Send + Sync {
    /// Whether there is such a file, valid or not.
    fn is_there(&self, file: &Path) -> bool;

    /// Whether a file exists and still holds `text`.
    fn is_unchanged(&self, file: &Path, text: &str) -> bool;

    /// Reads a definition's file again. When this returns, the schedule has been told what holds for the definition now,
    /// whether that was news or not.
    async fn reread(&self, id: &DefinitionId, file: &Path);

    /// Removes a completed reminder's file, unless its text is no longer `fired`.
    ///
    /// # Errors
    /// When it cannot be read or removed; it is then tried again.
    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal>;

    /// Moves a reminder's file to `reminders/failed/`, with the reason in its frontmatter.
    ///
    /// # Errors
    /// When it cannot be written or moved; it is then tried again.
    fn move_to_failed(&self, file: &Path, reason: &str) -> io::Result<()>;
}
