//! A mark on every process of a run. It identifies the processes when no runner holds the run's tree any more.
//!
//! The mark is a limit that a process inherits, may not raise, and that a filter ([`crate::seccomp`]) keeps it from lowering: the hard
//! limit of realtime processor time (`RLIMIT_RTTIME`). It restricts no job, since it is thousands of years, and no job may run in real
//! time. A process cannot escape it by clearing its environment, by a new session, or by losing its parent.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::domain::resolved;

/// The bit set in every mark. No realistic limit is that long.
const MARKED: u64 = 1 << 62;

/// The mark of a run's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Hash of the folder that the runs of one service share.
    folder: u64,
    /// Hash of the run's name.
    run: u64,
}

impl Mark {
    /// Returns the mark of the run with this folder, which lies in the folder of all runs.
    pub(crate) fn of(run: &Path) -> Self {
        let name = run.file_name().unwrap_or_default();
        Self { folder: folder(run.parent().unwrap_or(run)), run: number(name.as_bytes()) }
    }

    /// Puts the mark on the calling process and its descendants.
    pub(crate) fn set(self) {
        let limit = Some(MARKED | self.folder << 31 | self.run);
        let current = getrlimit(Resource::Rttime).current.filter(|current| *current < MARKED).or(limit);
        // This fails inside another run, whose mark stays: that run's runner ends the process.
        let _ = setrlimit(Resource::Rttime, Rlimit { current, maximum: limit });
    }

    /// Returns whether a process has the mark.
    pub(crate) fn is_on(self, pid: u32) -> bool {
        read(pid) == Some(self)
    }
}

/// Returns whether a process belongs to a run whose folder lies in one of `folders`.
pub(crate) fn is_below(folders: &[PathBuf], pid: u32) -> bool {
    read(pid).is_some_and(|mark| folders.iter().any(|runs| folder(runs) == mark.folder))
}

/// Reads the mark of a process.
fn read(pid: u32) -> Option<Mark> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

/// Parses `/proc/PID/limits`, see proc(5).
fn parse(limits: &str) -> Option<Mark> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let hard: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    (hard >> 62 == 1).then_some(Mark { folder: hard >> 31 & 0x7fff_ffff, run: hard & 0x7fff_ffff })
}

fn folder(runs: &Path) -> u64 {
    number(resolved(runs).as_os_str().as_bytes())
}

/// Hashes to 31 bits, equal in every version of this program (FNV-1a).
fn number(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_shows_is_the_mark_again() {
        let mark = Mark::of(Path::new("/nowhere/runs/4f2a"));
        let hard = MARKED | mark.folder << 31 | mark.run;
        let limits = |hard: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max realtime priority     0                    0\n\
                 Max realtime timeout      unlimited            {hard}            us\n"
            )
        };
        assert_eq!(parse(&limits(&hard.to_string())), Some(mark));
        for other in ["unlimited", "200000", "9223372036854775808"] {
            assert_eq!(parse(&limits(other)), None, "{other}");
        }
        assert_ne!(Mark::of(Path::new("/nowhere/runs/4f2b")), mark);
        assert_ne!(Mark::of(Path::new("/elsewhere/runs/4f2a")).folder, mark.folder);
    }
}
