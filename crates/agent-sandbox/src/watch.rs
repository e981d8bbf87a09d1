//! Watches whether a run exceeds its limits.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, access, chmod, open, openat2, statat};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::cgroup;
use crate::limits::Limits;
use crate::usage::{self, TooManyDescriptors, Usage};

/// Interval between two checks of the processes.
const PROCESSES: Duration = Duration::from_millis(500);

/// Interval between two checks of how many processes the machine has.
const BRIEF: Duration = Duration::from_millis(50);

/// Minimum number of new processes and threads on the machine that lead to a check.
const SURGE: u64 = 32;

/// Interval between two checks of the files.
const FILES: Duration = Duration::from_secs(2);

/// Delay of the first check. A check takes time, and the run's first program would wait for it.
const FIRST: Duration = Duration::from_millis(100);

/// Maximum number of open descriptors of all processes of a run.
const MAX_OPEN: usize = 20_000;

/// Maximum number of files and folders in a run's folder.
const MAX_FILES: u64 = 200_000;

/// Maximum length of a checked path in the run's folder, in bytes. The kernel accepts 4,096.
const LONGEST_PATH: usize = 3000;

/// The limits of a run and the objects that they apply to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The limits.
    pub limits: Limits,
    /// The run's own folder.
    pub folder: PathBuf,
    /// The run's control group, or `None` if only the watch enforces the limits.
    pub group: Option<PathBuf>,
}

/// The watch of a run. Its threads exist before the run's first process: later the machine may have none to spare.
pub(crate) struct Watch {
    begins: Vec<mpsc::Sender<()>>,
    exceeded: UnboundedReceiver<String>,
}

impl Watch {
    /// Starts the threads, which wait for [`Self::exceeded`].
    ///
    /// # Errors
    /// If the machine has no threads to spare.
    pub(crate) fn start(bounds: &Bounds) -> io::Result<Self> {
        let (tell, exceeded) = unbounded_channel();
        // A check of the files can take long, so the processes are checked meanwhile.
        let begins = [processes_exceeded, files_exceeded].map(|wait| {
            let (begin, begins) = mpsc::channel();
            let (bounds, tell) = (bounds.clone(), tell.clone());
            std::thread::Builder::new().spawn(move || {
                if begins.recv().is_ok() {
                    // The run may be over.
                    let _ = tell.send(wait(&bounds));
                }
            })?;
            Ok(begin)
        });
        Ok(Self { begins: begins.into_iter().collect::<io::Result<_>>()?, exceeded })
    }

    /// Waits until the processes below the calling one, or the run's folder, exceed a limit. Returns a sentence that names it.
    pub(crate) async fn exceeded(mut self) -> String {
        // The threads wait for this.
        for begin in &self.begins {
            // A thread that has ended has reported why.
            let _ = begin.send(());
        }
        match self.exceeded.recv().await {
            Some(what) => what,
            None => std::future::pending().await,
        }
    }
}

fn processes_exceeded(bounds: &Bounds) -> String {
    let Limits { memory, processes, .. } = bounds.limits;
    let mut pause = FIRST;
    loop {
        until_surge(pause, processes);
        pause = PROCESSES;
        // If the processes cannot be listed now, the next check tries again.
        let used = usage::below(std::process::id(), memory, processes.into());
        if let Some(what) = used.ok().and_then(|used| too_many(bounds, used)) {
            return what;
        }
    }
}

/// Sleeps until the machine has many more processes and threads than now: half as many as the run may have. Thousands can be started
/// between two checks, and a check takes as long as there are processes.
fn until_surge(longest: Duration, limit: u32) {
    let begin = Instant::now();
    let most = processes_of_machine().saturating_add(u64::from(limit / 2).max(SURGE));
    while let left = longest.saturating_sub(begin.elapsed())
        && !left.is_zero()
        && processes_of_machine() <= most
    {
        std::thread::sleep(BRIEF.min(left));
    }
}

/// Returns the number of processes and threads of the machine; 0 if the kernel does not say.
fn processes_of_machine() -> u64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    number_of_processes(&text).unwrap_or_default()
}

/// Parses the fourth field of `/proc/loadavg`, see proc(5): the runnable ones, a slash, and all.
fn number_of_processes(text: &str) -> Option<u64> {
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn files_exceeded(bounds: &Bounds) -> String {
    let mut closed = BTreeSet::new();
    let mut pause = FIRST;
    loop {
        std::thread::sleep(pause);
        pause = FILES;
        let open = match usage::open_below(std::process::id(), MAX_OPEN) {
            Ok(open) => open,
            Err(TooManyDescriptors) => return format!("it had more than {MAX_OPEN} descriptors open at once"),
        };
        let what = too_much(&bounds.folder, open.nameless, bounds.limits.disk);
        if let Some(what) = what.or_else(|| still_closed(&closed, &open.closed)) {
            return what;
        }
        closed = open.closed;
    }
}

/// Finds a process that was closed at two checks in a row. At a single check an honest one may be: while it becomes a program.
fn still_closed(before: &BTreeSet<(u32, u64)>, now: &BTreeSet<(u32, u64)>) -> Option<String> {
    before.intersection(now).next().map(|(pid, _)| {
        format!(
            "process {pid} of it executes a file that cannot be read, so what it takes cannot be counted; let the service's user \
             read the file"
        )
    })
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

/// Returns a sentence if a folder together with `bytes` of nameless files exceeds `most` bytes, or has too many files.
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
        // Otherwise the folder is gone.
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
            if files > MAX_FILES {
                return Some(format!("it made more than {MAX_FILES} files in its own folder"));
            }
            if FileType::from_raw_mode(facts.st_mode) == FileType::Directory {
                folders.push(folder.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
    None
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Lists a folder below `root`. The job may replace any part by a file or a link meanwhile, so links in the path are refused, and all
/// operations apply to the folder that was found.
fn listed(root: &OwnedFd, folder: &Path) -> rustix::io::Result<Dir> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let found = openat2(root, folder, OFlags::PATH | FOLDER, Mode::empty(), beneath)?;
    let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
    // The folder's mode denies access, which would hide its contents.
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
    fn the_machine_says_how_many_processes_it_has() {
        assert_eq!(number_of_processes("0.55 1.43 3.79 2/311 12344\n"), Some(311));
        assert_eq!(number_of_processes("0.55 1.43"), None);
        assert!(processes_of_machine() > 1);
    }

    #[test]
    fn what_is_counted_is_what_lies_there() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 100_000]).unwrap();
        // The target of a link is outside and does not count.
        symlink("/usr", deep.join("usr")).unwrap();
        assert_eq!(too_much(folder.path(), 0, 1_000_000), None);
        for (nameless, most) in [(0, 50_000), (950_000, 1_000_000), (2_000_000, 1_000_000)] {
            assert!(too_much(folder.path(), nameless, most).unwrap().contains("limits.disk"));
        }
    }

    /// Switches the calling thread from root to a user whom file modes restrict.
    fn as_unprivileged(folder: &Path) {
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
            as_unprivileged(&path);
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
            as_unprivileged(&path);
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
