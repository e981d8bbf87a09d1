//! What hostile programs leave behind, and the end of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::token;

/// Removes a folder and all that is in it, whatever a hostile program made there: closed folders, and folders deeper than a path
/// can say. To be called when nothing of the run is left.
///
/// Every folder is moved into a new one of our own beside it before it is emptied. So no path is longer than two names, and no name
/// can be taken.
///
/// # Errors
/// The first thing that could not be removed; the rest is.
pub fn remove(folder: &Path) -> io::Result<()> {
    let beside = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
    if matches!(folder.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    let top = beside.join(format!(".removing-{}", token::random()?));
    fs::create_dir(&top)?;
    let mut removing = Removing { top: &top, moved: 0, removed: 0 };
    let mut done = removing.take(folder);
    while removing.removed < removing.moved {
        done = done.and(removing.empty_next());
    }
    // It holds what could not be removed, if anything.
    done.and(fs::remove_dir(&top))
}

/// Folders that wait in `top` under their numbers.
struct Removing<'a> {
    top: &'a Path,
    moved: u64,
    removed: u64,
}

impl Removing<'_> {
    /// Moves a folder among those that wait.
    fn take(&mut self, folder: &Path) -> io::Result<()> {
        // To move a folder is to write its `..`.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        fs::rename(folder, self.top.join(self.moved.to_string()))?;
        self.moved += 1;
        Ok(())
    }

    /// Removes the one that waits longest, with its files. The folders in it wait from now on.
    fn empty_next(&mut self) -> io::Result<()> {
        let folder = self.top.join(self.removed.to_string());
        self.removed += 1;
        let mut done = Ok(());
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let removed = match entry.file_type()?.is_dir() {
                true => self.take(&entry.path()),
                false => fs::remove_file(entry.path()),
            };
            done = done.and(removed);
        }
        done.and(fs::remove_dir(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        fs::write(&kept, "x").unwrap();
        let top = folder.path().join("run");
        fs::create_dir_all(top.join("closed/within")).unwrap();
        fs::write(top.join("closed/within/file"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, top.join("link")).unwrap();
        for mode in ["closed/within", "closed"] {
            fs::set_permissions(top.join(mode), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Names that one could think we use ourselves, and that cannot be moved over.
        for n in 0..20 {
            fs::create_dir_all(top.join(format!(".removed-{n}/{n}/x"))).unwrap();
        }
        // Far deeper than a path can say: what is deep is made first, and moved below the next.
        let name = "d".repeat(200);
        let mut inner = top.join("0");
        fs::create_dir_all(&inner).unwrap();
        for level in 1..100 {
            let outer = top.join(level.to_string());
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join(&name)).unwrap();
            inner = outer;
        }
        remove(&top).unwrap();
        assert!(kept.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        remove(&top).unwrap();
    }
}
