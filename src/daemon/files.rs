//! What the schedule needs done with a reminder's file after its outcome is recorded.

use std::fs;
use std::io;
use std::path::Path;

use crate::definition;
use crate::home::Home;
use crate::schedule::{Files, Removal};

/// The data folder's files.
pub struct HomeFiles(pub Home);

impl Files for HomeFiles {
    fn is_there(&self, file: &Path) -> bool {
        fs::symlink_metadata(self.0.root().join(file)).is_ok()
    }

    fn remove(&self, file: &Path, fired: &str) -> io::Result<Removal> {
        match definition::remove_unchanged(&self.0, file, fired) {
            Ok(true) => Ok(Removal::Removed),
            Ok(false) => Ok(Removal::Changed),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn move_to_failed(&self, file: &Path, reason: &str) -> io::Result<()> {
        definition::move_to_failed(&self.0, file, reason).map(drop).map_err(io::Error::other)
    }
}
