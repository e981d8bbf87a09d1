//! The file operations of the schedule: the pre-launch check, and the cleanup of a reminder's file.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::pushed::PushedDefinitions;
use crate::definition::{self, DefinitionId, pushed_id};
use crate::home::Home;
use crate::schedule::{Files, LiveDefinitions, Removal, due_at};

/// The data folder's files, and the definitions of the database.
pub(super) struct HomeFiles {
    pub(super) home: Home,
    pub(super) definitions: LiveDefinitions,
    pub(super) pushed: PushedDefinitions,
}

#[async_trait]
impl Files for HomeFiles {
    fn is_there(&self, file: &Path) -> bool {
        if pushed_id(file).is_some() {
            return self.pushed.is_there(file);
        }
        // A data folder that is moved away may come back with its files.
        !definition::is_gone(&self.home, file).is_ok_and(|gone| gone)
    }

    fn is_unchanged(&self, file: &Path, text: &str) -> bool {
        if pushed_id(file).is_some() {
            return self.pushed.is_unchanged(file, text);
        }
        definition::read_text(&self.home, file).is_ok_and(|now| now.is_some_and(|now| now == text))
    }

    async fn reread(&self, id: &DefinitionId, file: &Path) {
        if pushed_id(file).is_some() {
            if let Err(error) = self.pushed.load_one(id).await {
                tracing::warn!(%id, %error, "a definition of the database could not be read again");
            }
            return;
        }
        self.definitions.reread_one(id, file.to_owned()).await;
    }

    async fn reread_cleaned(&self, mut cleaned: Vec<(DefinitionId, PathBuf)>) {
        cleaned.retain(|(_, file)| pushed_id(file).is_none());
        self.definitions.reread_each(cleaned).await;
    }

    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal> {
        if pushed_id(file).is_some() {
            return self.pushed.remove(file, fired);
        }
        match definition::remove_unchanged(&self.home, file, fired) {
            Ok(true) => Ok(Removal::Removed),
            Ok(false) => Ok(Removal::Changed),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn move_to_failed(&self, file: &Path, at: DateTime<Utc>, reason: &str) -> io::Result<bool> {
        if pushed_id(file).is_some() {
            return self.pushed.move_to_failed(file, at, reason);
        }
        let defaults = self.definitions.blocking_defaults();
        let moved = definition::move_to_failed(&self.home, file, reason, &defaults, |found| due_at(found) == Some(at));
        moved.map(|moved| moved.is_some()).map_err(io::Error::other)
    }
}
