//! A process tree, and the end of it.
//!
//! Each command of the client is a session of its own, so neither a process group nor a session holds the tree.
//! Parentage does, as long as the root is a child subreaper: whoever loses its parent becomes the root's own
//! child. All are stopped before any is killed, so that nothing can outrun its end by forking, and each is reached by a
//! pidfd, so that a number that was used again never hits a stranger.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A live process as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    /// Clock ticks since boot: with the pid it names one process for ever.
    started: u64,
    ended: bool,
}

/// Stops, then kills every process below `root`, whichever can be reached. Gives how many there were; zombies
/// are not counted. What a process forked while it was being stopped may be left for the next call.
pub fn kill_below(root: u32) -> usize {
    let mut stopped: BTreeMap<(u32, u64), OwnedFd> = BTreeMap::new();
    // Each pass finds at least one more or is the last one; the bound is against a tree that cannot be stopped.
    for _ in 0..100 {
        let before = stopped.len();
        for process in below(root, &processes()) {
            let name = (process.pid, process.started);
            if process.ended || stopped.contains_key(&name) {
                continue;
            }
            if let Some(handle) = reach(process) {
                // It may end by itself at any moment; then there is nothing to stop.
                let _ = pidfd_send_signal(&handle, Signal::STOP);
                stopped.insert(name, handle);
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    for handle in stopped.values() {
        // As above.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    stopped.len()
}

/// A handle on exactly this process; `None`: it has ended.
fn reach(process: Process) -> Option<OwnedFd> {
    let handle = pidfd_open(Pid::from_raw(i32::try_from(process.pid).ok()?)?, PidfdFlags::empty()).ok()?;
    (read(process.pid)?.started == process.started).then_some(handle)
}

fn below(root: u32, all: &[Process]) -> Vec<Process> {
    let mut known = BTreeSet::from([root]);
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

fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(pid: u32) -> Option<Process> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `/proc/PID/stat`, see proc(5). The name, in parentheses, may hold anything, parentheses and spaces too.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
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
            assert_eq!(process, Some(Process { pid: 9, parent: 7, started: 4242, ended: false }), "{name}");
        }
        assert_eq!(parse(9, "9 (sh) S"), None);
    }

    #[test]
    fn a_tree_is_followed_down_to_its_leaves() {
        let one = |pid, parent| Process { pid, parent, started: 1, ended: false };
        let all = [one(5, 4), one(2, 1), one(4, 3), one(3, 1), one(6, 2), one(1, 1)];
        let mut pids: Vec<u32> = below(3, &all).iter().map(|one| one.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4, 5]);
        assert!(below(6, &all).is_empty());
    }
}
