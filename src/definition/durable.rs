//! Atomic and durable file writes: a text is written to a temporary file, synced, then renamed.
//!
//! A reader sees the old text or the new one, never a part. After a write returns, a power cut does not undo it. A
//! killed writer leaves a hidden `.tmp` file that nothing reads; [`sweep`] removes it.
//!
//! Two processes of this program that change the same folder wait for each other ([`lock`]). A person's editor does not wait: its
//! change is found by comparing what was there.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::{Builder, NamedTempFile};

/// Prefix of a temporary file's name.
const PREFIX: &str = ".ollim-";
const SUFFIX: &str = ".tmp";

/// Maximum age of an empty temporary file that its writer may still be about to lock.
const JUST_MADE: Duration = Duration::from_secs(60);

/// Maximum time a writer waits for another one. A writer that was stopped in between must not stop all others.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// Writes a file that must not exist. If two writers race, one gets [`io::ErrorKind::AlreadyExists`].
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    staged(path, content)?.persist_noclobber(path).map_err(|error| error.error)?;
    fail_point!(Placed);
    sync_folder(path)
}

/// Replaces the content of a file, or creates it. An existing file keeps its permissions.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let staged = staged(path, content)?;
    match fs::metadata(path) {
        Ok(about) => staged.as_file().set_permissions(about.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    staged.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Replaces the content of a file if it is still `old`. Returns `false` if it is not, or the file is gone; it then stays as it is. The
/// file keeps its permissions.
pub(crate) fn replace_unchanged(path: &Path, old: &[u8], content: &[u8]) -> io::Result<bool> {
    match exchange_unchanged(path, old, content) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => Ok(false),
        replaced => replaced,
    }
}

fn exchange_unchanged(path: &Path, old: &[u8], content: &[u8]) -> io::Result<bool> {
    // Staging takes as long as the disk needs for a sync.
    let staged = staged(path, content)?;
    let locked = lock(folder(path))?;
    if fs::read(path)? != old {
        return Ok(false);
    }
    staged.as_file().set_permissions(fs::metadata(path)?.permissions())?;
    let exchange = || renameat_with(CWD, staged.path(), CWD, path, RenameFlags::EXCHANGE);
    match exchange() {
        Ok(()) => {}
        // Some file systems cannot exchange files.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if fs::read(path)? != old {
                return Ok(false);
            }
            staged.persist(path).map_err(|error| error.error)?;
            return locked.sync_all().map(|()| true);
        }
        Err(error) => return Err(error.into()),
    }
    fail_point!(Placed);
    // The previous file now has the temporary name.
    let is_unchanged = fs::read(staged.path())? == old;
    if !is_unchanged {
        exchange()?;
    }
    locked.sync_all().map(|()| is_unchanged)
}

/// The outcome of [`remove_unchanged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemovedUnchanged {
    /// The file was removed. If there is one now, it is another.
    Removed,
    /// There was none.
    Missing,
    /// It contains something else, and is kept.
    Changed,
}

/// Removes a file if it is still `old`. Otherwise it stays.
pub(crate) fn remove_unchanged(path: &Path, old: &[u8]) -> io::Result<RemovedUnchanged> {
    let locked = match lock(folder(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RemovedUnchanged::Missing),
        locked => locked?,
    };
    match fs::read(path) {
        Ok(now) if now == old => {}
        Ok(_) => return Ok(RemovedUnchanged::Changed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RemovedUnchanged::Missing),
        Err(error) => return Err(error),
    }
    // Moved away first: whoever writes it in this moment writes a new file, or has written the moved one.
    let aside = Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder(path))?.into_temp_path();
    match fs::rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RemovedUnchanged::Missing),
        moved => moved?,
    }
    let is_unchanged = fs::read(&aside)? == old;
    if is_unchanged {
        aside.close()?;
        fail_point!(Removed);
    } else {
        match renameat_with(CWD, &*aside, CWD, path, RenameFlags::NOREPLACE) {
            // A newer file is there.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => {
                // It must not be removed with the temporary name.
                let kept = aside.keep().map_err(|error| error.error)?;
                fs::rename(kept, path).map_err(|_| error)?;
            }
        }
    }
    locked.sync_all()?;
    Ok(if is_unchanged { RemovedUnchanged::Removed } else { RemovedUnchanged::Changed })
}

/// Removes a file. Returns `false` if it did not exist.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => {
            fail_point!(Removed);
            sync_folder(path).map(|()| true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the temporary files that killed writers left in a folder. Returns their number.
pub(crate) fn sweep(folder: &Path, now: SystemTime) -> io::Result<usize> {
    let mut swept = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_staged = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !is_staged || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // The writer may have renamed the file in between.
        let Ok(file) = File::open(entry.path()) else { continue };
        let about = file.metadata()?;
        let age = now.duration_since(about.modified()?).unwrap_or_default();
        if file.try_lock().is_err() || (about.len() == 0 && age < JUST_MADE) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Ok(()) => swept += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(swept)
}

/// Returns the error of a temporary file without its name, which `tempfile` adds to the text. A person knows only the file that it stands
/// for.
pub(crate) fn cause(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let (cause, _path) = text.split_once(" at path ").unwrap_or((&text, ""));
    io::Error::new(error.kind(), cause)
}

fn staged(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file =
        Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder(path)).map_err(|error| cause(&error))?;
    // The lock lasts while this process lives, and makes [`sweep`] skip the file. Without file locks, `sweep` removes nothing.
    let _held = file.as_file().try_lock();
    file.write_all(content)?;
    file.as_file().sync_all()?;
    fail_point!(try Staged);
    Ok(file)
}

/// Opens a folder and locks it until the file is dropped. Without file locks, or after [`LOCK_WAIT`], it is returned unlocked.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    let end = Instant::now() + LOCK_WAIT;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < end {
        thread::sleep(LOCK_RETRY);
    }
    Ok(file)
}

/// Syncs the folder, without which a rename or a removal is not durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_error_leaves_the_temporary_file_s_name_out() {
        let error = NamedTempFile::new_in("/nowhere/at/all").unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
        assert_eq!(cause(&error).to_string(), "No such file or directory (os error 2)");
    }

    #[test]
    fn of_many_writers_one_wins_and_nothing_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tea.md");
        let won: Vec<bool> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn({
                        let path = path.clone();
                        move || write_new(&path, format!("{n}").repeat(5000).as_bytes())
                    })
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| match writer.join().unwrap() {
                    Ok(()) => true,
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
                        false
                    }
                })
                .collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), winner.to_string().repeat(5000));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tea.md");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(replace_unchanged(&path, b"old", b"newer").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        replace(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(remove(&path).unwrap());
        assert!(!remove(&path).unwrap());
    }

    /// Writers, a person with an editor, and somebody who removes the file: each change is either there, or was refused.
    #[test]
    fn of_changes_at_the_same_time_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tea.md");
        fs::write(&path, "").unwrap();
        let append = |word: &str| loop {
            let old = fs::read(&path).unwrap();
            if replace_unchanged(&path, &old, &[&old, word.as_bytes()].concat()).unwrap() {
                return;
            }
        };
        std::thread::scope(|scope| {
            for writer in ["a", "b", "c", "d"] {
                scope.spawn(move || (0..50).for_each(|_| append(writer)));
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|word| text.matches(word).count()), [50; 4], "{text}");
        assert_eq!(remove_unchanged(&path, b"another").unwrap(), RemovedUnchanged::Changed);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(remove_unchanged(&path, text.as_bytes()).unwrap(), RemovedUnchanged::Removed);
        assert!(!replace_unchanged(&path, text.as_bytes(), b"it comes back").unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_a_live_ones_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let left = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        left(".ollim-abc123.tmp", "half a te");
        left(".ollim-def456.tmp", "");
        left("tea.md", "tea");
        left(".ollim-note", "a person's own");
        let live = staged(&dir.path().join("new.md"), b"new").unwrap();
        assert_eq!(sweep(dir.path(), now).unwrap(), 1);
        assert!(live.path().exists(), "it is being written");
        assert_eq!(sweep(dir.path(), now + 2 * JUST_MADE).unwrap(), 1, "the empty one");
        live.persist(dir.path().join("new.md")).unwrap();
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".ollim-note", "new.md", "tea.md"]);
        assert_eq!(sweep(&dir.path().join("nowhere"), now).unwrap(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write_new(&dir.path().join("nowhere/tea.md"), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
