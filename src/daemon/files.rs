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
        match fs::read(self.0.root().join(file)) {
            Ok(text) if text != fired.as_bytes() => return Ok(Removal::Changed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removal::Removed),
            Err(error) => return Err(error),
        }
        definition::remove(&self.0, file).map(|_| Removal::Removed).map_err(io::Error::other)
    }

    fn move_to_failed(&self, file: &Path, reason: &str) -> io::Result<()> {
        definition::move_to_failed(&self.0, file, reason).map(drop).map_err(io::Error::other)
    }
}
