//! Finds and ends the processes of a tree.
//!
//! Each command of the client is its own session, so neither a process group nor a session covers the tree.
//! Parentage does, as long as the root is a child subreaper: a process that loses its parent becomes the root's own
//! child. All processes are stopped before any is killed, so that none can escape by forking. Each is signalled through a
//! pidfd, so that a reused pid never hits a stranger.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::mark::{self, Mark};
use crate::runner;

/// Maximum duration of [`end_all`], and the pause between two passes.
const LONGEST: Duration = Duration::from_secs(20);
const BETWEEN_PASSES: Duration = Duration::from_millis(5);

/// Time in which a run's own runner ends it, when the service or the reaper has been killed: it can do that exactly. On a busy machine it
/// takes seconds.
const RUNNER_ENDS: Duration = Duration::from_secs(10);

/// Number of passes without a find after which nothing is left. Processes that fork and end without pause are missed by some.
const EMPTY_PASSES: u32 = 10;

/// A live process as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    /// Start time in clock ticks since boot. Together with the pid it identifies a process forever.
    started: u64,
    ended: bool,
    group: i32,
    session: i32,
    threads: u64,
}

/// Returns the parent of a process, its parent, and so on. Empty if there is no such process.
///
/// # Errors
/// If a process cannot be read.
pub(crate) fn ancestors(pid: u32) -> io::Result<Vec<u32>> {
    let mut above = Vec::new();
    let mut next = pid;
    // No tree is deeper than the number of pids. A loop is only possible if pids are reused meanwhile.
    while above.len() < 1 << 22
        && let Some(process) = read(next)?
        && process.parent > 0
    {
        above.push(process.parent);
        next = process.parent;
    }
    Ok(above)
}

/// Returns the processes below `root` with their numbers of threads. Ended processes that are not reaped yet count as one thread, since
/// they occupy a pid too.
///
/// # Errors
/// If processes cannot be listed.
pub(crate) fn numbers_below(root: u32) -> io::Result<Vec<(u32, u64)>> {
    let all = processes()?;
    Ok(below(&[root], &all).into_iter().map(|process| (process.pid, process.threads.max(1))).collect())
}

/// Returns the executables of the processes below the children of `root`. An unreadable one is an empty path.
///
/// # Errors
/// If processes cannot be listed.
pub fn programs_below(root: u32) -> io::Result<Vec<PathBuf>> {
    let all = processes()?;
    let alive = below(&[root], &all).into_iter().filter(|process| !process.ended && process.parent != root);
    Ok(alive.map(|process| std::fs::read_link(format!("/proc/{}/exe", process.pid)).unwrap_or_default()).collect())
}

/// Returns when a process started, in clock ticks since boot, or `None` if it has ended. Start and pid identify it forever.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    read(pid).ok().flatten().filter(|process| !process.ended).map(|process| process.started)
}

/// Stops, then kills every process below `root` that can be reached. Returns how many were seen, without zombies. Processes forked
/// while their parent was being stopped may be left for the next call.
///
/// # Errors
/// If processes cannot be listed. Nothing is known then.
pub fn kill_below(root: u32) -> io::Result<usize> {
    let own_session = read(root)?.map(|root| root.session);
    stop_groups_of_children(root, own_session);
    kill(own_session, || Ok(below(&[root], &processes()?)))
}

/// Stops the groups of the children of `root`. Processes that lose their parents are among these, so a tree that multiplies faster than
/// all processes can be listed stops here. What is missed is found by the list.
fn stop_groups_of_children(root: u32, own_session: Option<i32>) {
    let mut groups: BTreeSet<i32> = BTreeSet::new();
    for thread in std::fs::read_dir(format!("/proc/{root}/task")).into_iter().flatten().flatten() {
        // A kernel without this file leaves them to the list.
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            // The child may have ended.
            let Ok(Some(child)) = read(child) else { continue };
            stop_group(child, own_session, &mut groups);
        }
    }
}

/// Ends what the killed runner of the run with this folder left behind. Returns the number of processes.
///
/// # Errors
/// If processes cannot be listed, or do not end.
pub fn end_run(folder: &Path) -> io::Result<usize> {
    let mark = Mark::of(folder);
    end_all(|pid| mark.is_on(pid))
}

/// Ends what the killed runners of all runs with folders in these ones left behind. Returns the number of processes.
///
/// # Errors
/// As [`end_run`].
pub fn end_runs(folders: &[PathBuf]) -> io::Result<usize> {
    end_all(|pid| mark::is_below(folders, pid))
}

fn end_all(is_left: impl Fn(u32) -> bool) -> io::Result<usize> {
    let own = std::process::id();
    let own_session = read(own)?.map(|own| own.session);
    let left = || Ok(processes()?.into_iter().filter(|one| one.pid != own && !one.ended && is_left(one.pid)).collect());
    let found: Vec<Process> = left()?;
    if found.is_empty() {
        return Ok(0);
    }
    let (begin, mut ended, mut empty) = (Instant::now(), 0, 0);
    while begin.elapsed() < LONGEST {
        let found: Vec<Process> = left()?;
        let runner_ends = begin.elapsed() < RUNNER_ENDS && found.iter().any(|one| is_runner(one.pid));
        let seen = if runner_ends { found.len() } else { kill(own_session, left)? };
        ended = seen.max(ended);
        empty = if seen == 0 { empty + 1 } else { 0 };
        if empty == EMPTY_PASSES {
            return Ok(ended);
        }
        std::thread::sleep(BETWEEN_PASSES);
    }
    Err(io::Error::other("processes of a run that was cut off do not end"))
}

/// Returns whether a process is a run's runner by its command line. A process of a run can pretend that, and gains [`RUNNER_ENDS`].
fn is_runner(pid: u32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(runner::COMMAND.as_bytes())
}

/// Stops, then kills the processes that `find` returns. `own_session`: the session whose groups may contain other processes.
fn kill(own_session: Option<i32>, find: impl Fn() -> io::Result<Vec<Process>>) -> io::Result<usize> {
    let mut seen: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut stopped: BTreeMap<(u32, u64), OwnedFd> = BTreeMap::new();
    let mut groups: BTreeSet<i32> = BTreeSet::new();
    // Each pass finds at least one more process or is the last. The bound guards against a tree that cannot be stopped.
    for _ in 0..100 {
        let before = seen.len();
        for process in find()? {
            let name = (process.pid, process.started);
            if stopped.contains_key(&name) {
                continue;
            }
            stop_group(process, own_session, &mut groups);
            if process.ended {
                continue;
            }
            seen.insert(name);
            match reach(process) {
                Ok(Some(handle)) => {
                    // The process may end by itself at any moment.
                    let _ = pidfd_send_signal(&handle, Signal::STOP);
                    stopped.insert(name, handle);
                }
                Ok(None) => {}
                // Out of descriptors: kill these first, and the rest in the next call.
                Err(error) if stopped.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        if seen.len() == before {
            break;
        }
    }
    for handle in stopped.values() {
        // The process may have ended.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    // Processes that end faster than they are found are still in a group of their parents.
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // The group may be empty.
        let _ = kill_process_group(group, Signal::KILL);
    }
    Ok(seen.len())
}

/// Stops the group of a process, if it is not in `stopped` yet, unless its session is `own_session`.
///
/// A group lies within its session, and every session but this process's own contains only processes to kill. One call stops the whole
/// group, which then forks no more, however many processes it has. An ended process that nobody has reaped yet is still in its group:
/// so processes that end faster than they are found cannot hide.
fn stop_group(process: Process, own_session: Option<i32>, stopped: &mut BTreeSet<i32>) {
    if Some(process.session) != own_session
        && stopped.insert(process.group)
        && let Some(group) = Pid::from_raw(process.group)
    {
        // The group may be empty.
        let _ = kill_process_group(group, Signal::STOP);
    }
}

/// Opens a handle on exactly this process. Returns `None` if it has ended.
fn reach(process: Process) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        handle => handle?,
    };
    Ok(read(process.pid)?.filter(|now| now.started == process.started).map(|_| handle))
}

fn below(roots: &[u32], all: &[Process]) -> Vec<Process> {
    let mut known: BTreeSet<u32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let next: Vec<Process> =
            all.iter().filter(|one| known.contains(&one.parent) && !known.contains(&one.pid)).copied().collect();
        if next.is_empty() {
            return found;
        }
        known.extend(next.iter().map(|one| one.pid));
        found.extend(next);
    }
}

fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.extend(read(pid)?);
        }
    }
    Ok(found)
}

/// Reads a process. Returns `None` if it has ended.
fn read(pid: u32) -> io::Result<Option<Process>> {
    // The kernel returns all of it at once, and it is shorter: a name and some fifty numbers.
    let mut stat = [0; 2048];
    let length = std::fs::File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut stat));
    match length {
        Ok(length) => Ok(parse(pid, &String::from_utf8_lossy(stat.get(..length).unwrap_or_default()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses `/proc/PID/stat`, see proc(5). The name in parentheses may contain anything, even parentheses and spaces.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_hide_a_process() {
        let tail = "S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 1";
        for name in ["(sh)", "(a b)", "() Z 1 1)", "(\n)"] {
            let process = parse(9, &format!("9 {name} {tail}"));
            assert_eq!(
                process,
                Some(Process { pid: 9, parent: 7, started: 4242, ended: false, group: 1, session: 1, threads: 1 }),
                "{name}"
            );
        }
        assert_eq!(parse(9, "9 (sh) S"), None);
    }

    #[test]
    fn a_tree_is_followed_down_to_its_leaves() {
        let one = |pid, parent| Process { pid, parent, started: 1, ended: false, group: 1, session: 1, threads: 1 };
        let all = [one(5, 4), one(2, 1), one(4, 3), one(3, 1), one(6, 2), one(1, 1)];
        let mut pids: Vec<u32> = below(&[3], &all).iter().map(|one| one.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4, 5]);
        assert!(below(&[6], &all).is_empty());
    }
}
