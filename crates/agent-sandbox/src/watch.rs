//! Looks whether a run has taken more than it may.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, access, chmod, open, openat2, statat};
use serde::{Deserialize, Serialize};
use tokio::time::Interval;

use crate::cgroup;
use crate::limits::Limits;
use crate::usage::{self, TooMany, Usage};

/// Between two looks at the processes.
const PROCESSES: Duration = Duration::from_millis(500);

/// Between two looks at the files.
const FILES: Duration = Duration::from_secs(2);

/// Before the first look at either. A look takes its time, a run has hardly begun, and its first program would wait for it.
const FIRST: Duration = Duration::from_millis(100);

/// Descriptors that all processes of a run have open.
const MOST_OPEN: usize = 20_000;

/// Files and folders in a run's folder.
const MOST_FILES: u64 = 200_000;

/// The longest path in it that is looked at. The kernel takes 4,096 bytes.
const LONGEST_PATH: usize = 3000;

/// What holds a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// What it may take.
    pub limits: Limits,
    /// Its own folder.
    pub folder: PathBuf,
    /// Its control group; `None`: there is none, and only the watch holds it.
    pub group: Option<PathBuf>,
}

/// Waits until the processes below the calling one, or the run's folder, have more than they may. Gives a sentence that says what.
pub(crate) async fn exceeded(bounds: &Bounds) -> String {
    // A folder and its files can take long to be looked at; processes are looked at meanwhile.
    tokio::select! {
        what = processes_exceeded(bounds) => what,
        what = files_exceeded(bounds) => what,
    }
}

async fn processes_exceeded(bounds: &Bounds) -> String {
    let mut ticks = every(PROCESSES);
    loop {
        ticks.tick().await;
        // Where they cannot be listed now, they are at the next look.
        if let Ok(used) = usage::below(std::process::id(), bounds.limits.memory, bounds.limits.processes.into())
            && let Some(what) = too_many(bounds, used)
        {
            return what;
        }
    }
}

async fn files_exceeded(bounds: &Bounds) -> String {
    let mut ticks = every(FILES);
    let mut closed = BTreeSet::new();
    loop {
        ticks.tick().await;
        let (folder, most) = (bounds.folder.clone(), bounds.limits.disk);
        let look = move || match usage::open_below(std::process::id(), MOST_OPEN) {
            Ok(open) => (too_much(&folder, open.nameless, most), open.closed),
            Err(TooMany) => (Some(format!("it had more than {MOST_OPEN} descriptors open at once")), BTreeSet::new()),
        };
        // A panic in there would be one of the standard library.
        let Ok((what, closed_now)) = tokio::task::spawn_blocking(look).await else { continue };
        if let Some(what) = what.or_else(|| still_closed(&closed, &closed_now)) {
            return what;
        }
        closed = closed_now;
    }
}

/// Whether a process is closed at two looks, one after the other. At one look many an honest one is: while it becomes a program.
fn still_closed(before: &BTreeSet<(u32, u64)>, now: &BTreeSet<(u32, u64)>) -> Option<String> {
    before.intersection(now).next().map(|(pid, _)| {
        format!(
            "process {pid} of it executes a file that cannot be read, so what it takes cannot be counted; let the service's user \
             read the file"
        )
    })
}

fn every(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

fn too_many(bounds: &Bounds, used: Usage) -> Option<String> {
    let Limits { memory, processes, .. } = bounds.limits;
    let ended = bounds.group.as_deref().map_or(0, cgroup::ended_for_memory);
    if ended > 0 {
        return Some(format!(
            "it took more memory than `limits.memory` allows ({}): the kernel ended a process of it",
            ByteSize(memory)
        ));
    }
    if used.memory > memory {
        return Some(format!(
            "it took {} of memory, and `limits.memory` allows {}",
            ByteSize(used.memory),
            ByteSize(memory)
        ));
    }
    (used.threads > u64::from(processes)).then(|| {
        format!("it had {} processes and threads at once, and `limits.processes` allows {processes}", used.threads)
    })
}

/// Whether a folder, with the `bytes` that are kept without a name, holds more than `most` bytes, or more files than any run needs.
fn too_much(folder: &Path, mut bytes: u64, most: u64) -> Option<String> {
    let too_many_bytes = || {
        let most = ByteSize(most);
        format!("it kept more than `limits.disk` allows ({most}) in its own folder and in open files without a name")
    };
    if bytes > most {
        return Some(too_many_bytes());
    }
    let mut files = 0;
    let Ok(root) = open(folder, OFlags::PATH | FOLDER, Mode::empty()) else { return None };
    let mut folders = vec![PathBuf::from(".")];
    while let Some(folder) = folders.pop() {
        if folder.as_os_str().len() > LONGEST_PATH {
            return Some("it made folders in its own folder that lie deeper than anything can reach".into());
        }
        // Otherwise it is gone.
        let Ok(mut entries) = listed(&root, &folder) else { continue };
        while let Some(Ok(entry)) = entries.read() {
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let facts = entries.fd().and_then(|folder| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
            let Ok(facts) = facts else { continue };
            files += 1;
            bytes += u64::try_from(facts.st_blocks).unwrap_or_default() * 512;
            if bytes > most {
                return Some(too_many_bytes());
            }
            if files > MOST_FILES {
                return Some(format!("it made more than {MOST_FILES} files in its own folder"));
            }
            if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
                folders.push(folder.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
    None
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// What lies in a folder below `root`. The job may put another file or a link in the place of any of them meanwhile: nothing of
/// the path is a link, and what is done is done to the folder that was found.
fn listed(root: &OwnedFd, folder: &Path) -> rustix::io::Result<Dir> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let found = openat2(root, folder, OFlags::PATH | FOLDER, Mode::empty(), beneath)?;
    let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Closed by its mode, which would hide what is in it from us alone.
    if access(&itself, Access::READ_OK | Access::EXEC_OK).is_err() {
        chmod(&itself, Mode::RWXU)?;
    }
    Dir::new(open(&itself, OFlags::RDONLY | FOLDER, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::process::geteuid;
    use rustix::thread::{Uid, set_thread_res_uid};

    use super::*;

    #[test]
    fn what_is_counted_is_what_lies_there() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 100_000]).unwrap();
        // What a link leads to lies elsewhere.
        symlink("/usr", deep.join("usr")).unwrap();
        assert_eq!(too_much(folder.path(), 0, 1_000_000), None);
        for (nameless, most) in [(0, 50_000), (950_000, 1_000_000), (2_000_000, 1_000_000)] {
            assert!(too_much(folder.path(), nameless, most).unwrap().contains("limits.disk"));
        }
    }

    /// A user that is not root, who alone is held by modes, for the calling thread.
    fn as_nobody(folder: &Path) {
        if geteuid().is_root() {
            let nobody = Uid::from_raw(65534);
            std::os::unix::fs::chown(folder, Some(65534), None).unwrap();
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
    }

    #[test]
    fn a_folder_that_is_closed_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let found = std::thread::spawn(move || {
            as_nobody(&path);
            [0o000, 0o400, 0o100].map(|mode| {
                let closed = path.join(format!("{mode:o}"));
                fs::create_dir(&closed).unwrap();
                fs::write(closed.join("file"), vec![1; 100_000]).unwrap();
                fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
                let found = too_much(&path, 0, 50_000);
                fs::remove_dir_all(&closed).unwrap();
                (mode, found.is_some())
            })
        });
        assert_eq!(found.join().unwrap(), [(0o000, true), (0o400, true), (0o100, true)]);
    }

    #[test]
    fn what_stands_in_the_place_of_a_folder_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let modes = std::thread::spawn(move || {
            as_nobody(&path);
            let [own, precious] = ["own", "precious"].map(|name| path.join(name));
            fs::create_dir(&own).unwrap();
            fs::create_dir_all(precious.join("below")).unwrap();
            symlink(&precious, own.join("swapped")).unwrap();
            for folder in [precious.join("below"), precious.clone()] {
                fs::set_permissions(folder, fs::Permissions::from_mode(0o200)).unwrap();
            }
            let root = open(&own, OFlags::PATH | FOLDER, Mode::empty()).unwrap();
            for name in ["swapped", "swapped/below", "../precious", "/usr"] {
                assert!(listed(&root, Path::new(name)).is_err(), "{name}");
            }
            let mode = fs::metadata(&precious).unwrap().permissions().mode() & 0o777;
            fs::set_permissions(&precious, fs::Permissions::from_mode(0o700)).unwrap();
            let below = precious.join("below");
            let below_mode = fs::metadata(&below).unwrap().permissions().mode() & 0o777;
            fs::set_permissions(&below, fs::Permissions::from_mode(0o700)).unwrap();
            [mode, below_mode]
        });
        assert_eq!(modes.join().unwrap(), [0o200; 2]);
    }

    #[test]
    fn a_process_that_is_closed_for_a_moment_ends_no_run() {
        let seen = |processes: &[(u32, u64)]| processes.iter().copied().collect();
        let check = |before: &[(u32, u64)], now: &[(u32, u64)]| still_closed(&seen(before), &seen(now));
        for (before, now) in
            [(&[][..], &[(7, 1)][..]), (&[(7, 1)], &[]), (&[(7, 1)], &[(8, 1)]), (&[(7, 1)], &[(7, 2)])]
        {
            assert_eq!(check(before, now), None, "{before:?} {now:?}");
        }
        assert!(check(&[(7, 1), (8, 1)], &[(6, 1), (8, 1)]).unwrap().contains("process 8 of it"));
    }

    #[test]
    fn the_runs_own_limits_are_named() {
        let limits = Limits { memory: 10, processes: 3, disk: 1, cpus: None };
        let bounds = Bounds { limits, folder: "/".into(), group: None };
        let check = |memory, threads, words: Option<&str>| match (too_many(&bounds, Usage { memory, threads }), words) {
            (None, None) => {}
            (Some(said), Some(words)) => assert!(said.contains(words), "{said}"),
            (said, words) => panic!("{said:?}, not {words:?}"),
        };
        check(10, 3, None);
        check(11, 3, Some("limits.memory"));
        check(10, 4, Some("limits.processes"));
    }
}
