//! What the schedule needs of definition files: the pre-launch check, and the cleanup of a reminder's file.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use async_trait::async_trait;

use super::following::Following;
use crate::definition::{self, DefinitionId};
use crate::home::Home;
use crate::schedule::{Files, Removal};

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

    fn is_unchanged(&self, file: &Path, text: &str) -> bool {
        definition::read_text(&self.home, file).is_ok_and(|now| now.is_some_and(|now| now == text))
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
