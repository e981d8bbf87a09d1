//! Removal of folders that hostile programs have filled.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::token;

/// Opens a folder, and no link in its place.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a folder and its contents, or a file or link in its place, even if a hostile program left folders without permissions,
/// or folders deeper than a path can express.
///
/// Every folder is moved into a new one of our own beside it before it is emptied. So no path is longer than two names, and no name
/// can be occupied. Every step is made from an open folder and follows no link, so a process that is left can put nothing else in a
/// folder's place.
///
/// # Errors
/// The first error. Everything else is removed.
pub fn remove(folder: &Path) -> io::Result<()> {
    let (Some(beside), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let beside = match openat(CWD, beside, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    match unlinkat(&beside, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(error) if is_folder(error) => {}
        Err(error) => return Err(error.into()),
    }
    let top = format!(".removing-{}", token::random()?);
    mkdirat(&beside, &top, Mode::RWXU)?;
    let mut removing = RemovalQueue { top: openat(&beside, &top, FOLDER, Mode::empty())?, moved: 0, removed: 0 };
    let mut done = removing.take(beside.as_fd(), name);
    while removing.removed < removing.moved {
        done = done.and(removing.empty_next());
    }
    // This fails if something could not be removed.
    done.and(unlinkat(&beside, &top, AtFlags::REMOVEDIR)).map_err(io::Error::from)
}

/// Folders that wait in `top`, named by number.
struct RemovalQueue {
    top: OwnedFd,
    moved: u64,
    removed: u64,
}

impl RemovalQueue {
    /// Moves a folder into the queue.
    fn take(&mut self, parent: BorrowedFd<'_>, name: impl Arg + Copy) -> rustix::io::Result<()> {
        let folder = match openat(parent, name, OFlags::PATH | FOLDER, Mode::empty()) {
            // Something else has taken its place.
            Err(Errno::NOTDIR | Errno::LOOP) => return unlinkat(parent, name, AtFlags::empty()),
            opened => opened?,
        };
        // Moving a folder writes its `..` entry. A descriptor of this kind has no other way to its mode.
        chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::RWXU)?;
        renameat(parent, name, &self.top, self.moved.to_string())?;
        self.moved += 1;
        Ok(())
    }

    /// Empties and removes the oldest folder of the queue. Its subfolders join the queue.
    fn empty_next(&mut self) -> rustix::io::Result<()> {
        let name = self.removed.to_string();
        self.removed += 1;
        let folder = match openat(&self.top, &name, FOLDER, Mode::empty()) {
            // What was moved here was no folder any more.
            Err(Errno::NOTDIR | Errno::LOOP) => return unlinkat(&self.top, &name, AtFlags::empty()),
            opened => opened?,
        };
        let mut done = Ok(());
        let mut entries = Dir::read_from(&folder)?;
        while let Some(entry) = entries.read() {
            done = done.and(self.remove_entry(folder.as_fd(), entry?.file_name()));
        }
        done.and(unlinkat(&self.top, &name, AtFlags::REMOVEDIR))
    }

    fn remove_entry(&mut self, folder: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
        if [c".", c".."].contains(&name) {
            return Ok(());
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Err(error) if is_folder(error) => self.take(folder, name),
            removed => removed,
        }
    }
}

/// Returns whether an entry was not removed since it is a folder. Linux says the first, POSIX the second.
fn is_folder(error: Errno) -> bool {
    matches!(error, Errno::ISDIR | Errno::PERM)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicBool, Ordering};

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

    /// A process that is left switches folders and links to another one while they are removed.
    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        fs::create_dir_all(precious.join("deep")).unwrap();
        fs::write(precious.join("deep/file"), "x").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o755)).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = folder.path().join("link");
                while !over.load(Ordering::Relaxed) {
                    for n in 0..200 {
                        let victim = folder.path().join(format!("run/{n}"));
                        // Any of these may be gone already.
                        let _ = std::os::unix::fs::symlink(&precious, &link);
                        let _ = fs::remove_dir(&victim).and_then(|()| fs::rename(&link, &victim));
                    }
                }
            });
            for _ in 0..50 {
                for n in 0..200 {
                    // A link may be there.
                    let _ = fs::create_dir_all(folder.path().join(format!("run/{n}")));
                }
                // It may come too late for an entry.
                let _ = remove(&folder.path().join("run"));
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read(precious.join("deep/file")).unwrap(), b"x");
        assert_eq!(precious.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    }
}
