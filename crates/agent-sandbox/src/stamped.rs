//! Values that depend on folders or files, cached until one of these changes, and for a few seconds at most: the mode of a file may
//! change without a trace in its folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a value is used without another look.
const LONGEST: Duration = Duration::from_secs(5);

/// A cached value with the stamp under which it was computed, and the time.
#[derive(Debug)]
pub struct Stamped<T>(Mutex<Option<(String, Instant, T)>>);

impl<T: Clone> Stamped<T> {
    /// Creates an empty cache.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the cached value if it has this stamp. Otherwise computes it; concurrent callers wait.
    pub fn get(&self, stamp: String, compute: impl FnOnce() -> T) -> T {
        self.get_at(Instant::now(), stamp, compute)
    }

    fn get_at(&self, now: Instant, stamp: String, compute: impl FnOnce() -> T) -> T {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((same, since, value)) if *same == stamp && now.duration_since(*since) < LONGEST => value.clone(),
            _ => known.insert((stamp, now, compute())).2.clone(),
        }
    }
}

impl<T: Clone> Default for Stamped<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a stamp of paths: each with its inode and the time of its last change, and `more`. The inode tells apart folders that
/// a link leads to in turn, such as those of Nix, which all have the same time.
#[must_use]
pub fn stamp(paths: &[impl AsRef<Path>], more: &str) -> String {
    let line = |path: &Path| {
        let facts = path.metadata().map(|facts| (facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec()));
        format!("{} {:?}\n", path.display(), facts.ok())
    };
    paths.iter().map(|path| line(path.as_ref())).chain([format!("{more}\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    #[test]
    fn a_value_is_computed_again_when_a_path_changes() {
        let (folder, known) = (tempfile::tempdir().unwrap(), Stamped::new());
        let read = |computed: &str| known.get(stamp(&[folder.path()], ""), || computed.to_owned());
        assert_eq!(["first", "second"].map(read), ["first", "first"]);
        let changed = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::open(folder.path()).unwrap().set_modified(changed).unwrap();
        assert_eq!(read("third"), "third");
    }

    #[test]
    fn a_value_is_computed_again_after_a_while() {
        let (now, known) = (Instant::now(), Stamped::new());
        let read = |after: u64, computed: &'static str| {
            known.get_at(now + Duration::from_secs(after), "the same".to_owned(), || computed)
        };
        assert_eq!(
            [read(0, "first"), read(4, "second"), read(5, "third"), read(9, "fourth")],
            ["first", "first", "third", "third"]
        );
    }

    #[test]
    fn a_link_to_another_folder_of_the_same_time_changes_the_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| folder.path().join(name));
        let stamped = |target: &PathBuf| {
            std::fs::create_dir(target).unwrap();
            std::fs::File::open(target).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            let _ = std::fs::remove_file(&link);
            symlink(target, &link).unwrap();
            stamp(&[&link], "")
        };
        assert_ne!(stamped(&one), stamped(&other));
    }
}
