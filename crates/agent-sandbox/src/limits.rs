//! Limits on what one process of a job may take (setrlimit(2)), and who ends first when memory runs out.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bytes that one file may grow to.
const FILE: u64 = 4 << 30;

/// Bytes of private memory of one process.
const MEMORY: u64 = 8 << 30;

/// Sets the limits for the calling process and all that it starts. Those that are lower already stay.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn apply() -> io::Result<()> {
    for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, FILE), (Resource::Data, MEMORY)] {
        let now = getrlimit(resource);
        let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
        setrlimit(resource, Rlimit { current: least(now.current), maximum: least(now.maximum) })?;
    }
    Ok(())
}

/// When memory runs out, the kernel ends the calling process and what it starts before anything else of this user.
pub(crate) fn end_first() {
    // A kernel without it ends whatever it chooses: nothing else depends on this.
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}
