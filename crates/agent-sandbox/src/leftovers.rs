//! Removal of folders that hostile programs have filled.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::token;

/// Removes a folder and its contents, or a file or link in its place, even if a hostile program left folders without permissions,
/// or folders deeper than a path can express. To be called when no process of the run is left.
///
/// Every folder is moved into a new one of our own beside it before it is emptied. So no path is longer than two names, and no name
/// can be occupied.
///
/// # Errors
/// The first error. Everything else is removed.
pub fn remove(folder: &Path) -> io::Result<()> {
    let beside = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match folder.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A program may have put a link in the folder's place. Its target is not the run's.
        Ok(found) if !found.is_dir() => return fs::remove_file(folder),
        _ => {}
    }
    let top = beside.join(format!(".removing-{}", token::random()?));
    fs::create_dir(&top)?;
    let mut removing = RemovalQueue { top: &top, moved: 0, removed: 0 };
    let mut done = removing.take(folder);
    while removing.removed < removing.moved {
        done = done.and(removing.empty_next());
    }
    // This fails if something could not be removed.
    done.and(fs::remove_dir(&top))
}

/// Folders that wait in `top`, named by number.
struct RemovalQueue<'a> {
    top: &'a Path,
    moved: u64,
    removed: u64,
}

impl RemovalQueue<'_> {
    /// Moves a folder into the queue.
    fn take(&mut self, folder: &Path) -> io::Result<()> {
        // Moving a folder writes its `..` entry.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        fs::rename(folder, self.top.join(self.moved.to_string()))?;
        self.moved += 1;
        Ok(())
    }

    /// Empties and removes the oldest folder of the queue. Its subfolders join the queue.
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
    fn a_link_in_the_place_of_a_folder_is_removed_and_its_target_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        for kept in ["one", "other"].map(|name| target.join(name)) {
            fs::write(&kept, "x").unwrap();
            for to in [&target, &kept] {
                std::os::unix::fs::symlink(to, &link).unwrap();
                remove(&link).unwrap();
                assert!(link.symlink_metadata().is_err() && kept.exists());
            }
        }
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    }

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
        // Names that the implementation might use itself, and that cannot be moved over.
        for n in 0..20 {
            fs::create_dir_all(top.join(format!(".removed-{n}/{n}/x"))).unwrap();
        }
        // Far deeper than a path can express: build from the inside, moving each level below the next.
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
