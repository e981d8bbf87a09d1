//! What the schedule needs of definition files: the last look before one fires, and what happens to a reminder's after
//! its outcome is recorded.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use async_trait::async_trait;

use super::following::Following;
use crate::definition::{self, DefinitionId};
use crate::home::Home;
use crate::schedule::{Files, Look, Removal};

/// The data folder's files.
pub struct HomeFiles {
    home: Home,
    /// Set when it is there: what follows the folders needs the schedule, which needs these.
    following: OnceLock<Following>,
}

impl HomeFiles {
    pub(super) fn new(home: Home) -> Self {
        Self { home, following: OnceLock::new() }
    }

    /// From now on this one is asked. Before it is there, nothing has been loaded that could fire.
    pub(super) fn ask(&self, following: Following) {
        // The first one stays: a service follows its folders once.
        self.following.get_or_init(|| following);
    }
}

#[async_trait]
impl Files for HomeFiles {
    fn is_there(&self, file: &Path) -> bool {
        fs::symlink_metadata(self.home.root().join(file)).is_ok()
    }

    fn look(&self, file: &Path, text: &str) -> Look {
        match definition::read_text(&self.home, file) {
            Ok(Some(now)) if now == text => Look::AsRead,
            Ok(Some(_)) | Err(_) => Look::Changed,
            Ok(None) => Look::Gone,
        }
    }

    async fn reread(&self, id: &DefinitionId, file: &Path) {
        if let Some(following) = self.following.get() {
            following.reread_one(id, file.to_owned()).await;
        }
    }

    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal> {
        match definition::remove_unchanged(&self.home, file, fired) {
            Ok(true) => Ok(Removal::Removed),
            Ok(false) => Ok(Removal::Changed),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn move_to_failed(&self, file: &Path, reason: &str) -> io::Result<()> {
        definition::move_to_failed(&self.home, file, reason).map(drop).map_err(io::Error::other)
    }
}
