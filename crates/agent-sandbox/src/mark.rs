//! A mark on every process of a run, by which it is found when nobody holds the run's tree any more.
//!
//! It is a limit that a process inherits, may not raise, and that a filter ([`crate::seccomp`]) keeps it from lowering: the hard limit
//! of processor time in real time (`RLIMIT_RTTIME`), which takes nothing from anybody: it is thousands of years, and no job may run
//! in real time. So neither an environment that was cleared, nor a session of its own, nor a parent that is gone hides a process.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::domain::resolved;

/// Set in every mark. No limit that anybody sets for its own sake is so long.
const MARKED: u64 = 1 << 62;

/// The mark of a run's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// What the runs of one service have in common.
    folder: u64,
    /// Which run.
    run: u64,
}

impl Mark {
    /// That of the run whose own folder this is: a folder in the folder of all runs.
    pub(crate) fn of(run: &Path) -> Self {
        let name = run.file_name().unwrap_or_default();
        Self { folder: folder(run.parent().unwrap_or(run)), run: number(name.as_bytes()) }
    }

    /// Puts it on the calling process and all that it starts.
    pub(crate) fn set(self) {
        let limit = Some(MARKED | self.folder << 31 | self.run);
        let current = getrlimit(Resource::Rttime).current.filter(|current| *current < MARKED).or(limit);
        // Refused inside another run, whose mark it keeps: that run's runner ends it.
        let _ = setrlimit(Resource::Rttime, Rlimit { current, maximum: limit });
    }

    /// Whether a process has it.
    pub(crate) fn is_on(self, pid: u32) -> bool {
        read(pid) == Some(self)
    }
}

/// Whether a process is of a run whose folder lies in this one.
pub(crate) fn is_below(runs: &Path, pid: u32) -> bool {
    let folder = folder(runs);
    read(pid).is_some_and(|mark| mark.folder == folder)
}

/// The mark of a process.
fn read(pid: u32) -> Option<Mark> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

/// `/proc/PID/limits`, see proc(5).
fn parse(limits: &str) -> Option<Mark> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let hard: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    (hard >> 62 == 1).then_some(Mark { folder: hard >> 31 & 0x7fff_ffff, run: hard & 0x7fff_ffff })
}

fn folder(runs: &Path) -> u64 {
    number(resolved(runs).as_os_str().as_bytes())
}

/// 31 bits, the same in every version of this program (FNV-1a).
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
