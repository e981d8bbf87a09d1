//! Limits of a run.
//!
//! If a control group is delegated to the service (cgroups(7)), the kernel limits memory, processes and processor time of the
//! whole run ([`crate::cgroup`]). In any case the runner checks twice a second whether the run has exceeded a limit, and ends
//! it ([`crate::watch`]). It also checks when the machine has many more processes than a moment ago. Each process also has its own
//! limits (setrlimit(2)).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Number of descriptors that a program starts with (as many as select(2) supports), and the maximum to which it may raise that. The
/// kernel counts some things for all processes of a user together, such as descriptors in transit, and compares the sum with each
/// process's own limit: the service's and the runner's is higher.
const DESCRIPTORS: u64 = 1024;
const MAX_DESCRIPTORS: u64 = 4096;

/// Maximum number of pending signals, of all processes of the user together. At the limit a program can queue no more.
const SIGNALS: u64 = 1024;

/// Limits of all processes of one run together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, in bytes. Also the limit of each process's data.
    pub memory: u64,
    /// Number of processes and threads at a time.
    pub processes: u32,
    /// Size of the run's own folder, and of any one file, in bytes.
    pub disk: u64,
    /// Number of processors: 0.5 is half of one. `None`: no limit. Enforced only by a control group.
    pub cpus: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 8 << 30, processes: 1024, disk: 4 << 30, cpus: None }
    }
}

impl Limits {
    /// Sets the limits of each process, for the calling one and its descendants. Lower limits stay in force.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let most = [
            (Resource::Nofile, DESCRIPTORS, MAX_DESCRIPTORS),
            (Resource::Core, 0, 0),
            // The kernel counts pending signals for all processes of a user.
            (Resource::Sigpending, SIGNALS, SIGNALS),
            (Resource::Fsize, self.disk, self.disk),
            (Resource::Data, self.memory, self.memory),
        ];
        for (resource, current, maximum) in most {
            let now = getrlimit(resource);
            let least = |limit: Option<u64>, most: u64| Some(limit.map_or(most, |limit| limit.min(most)));
            setrlimit(resource, Rlimit { current: least(now.current, current), maximum: least(now.maximum, maximum) })?;
        }
        Ok(())
    }
}

/// Raises the limit of descriptors to the maximum for the calling process: the service, and the runner, which holds those of every
/// program that is about to start. A started program sets its own limit.
pub fn many_descriptors() {
    let now = getrlimit(Resource::Nofile);
    // On failure the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

/// Makes the kernel end the calling process and its descendants before others of this user when memory runs out.
pub(crate) fn end_first() {
    // A kernel without this setting chooses freely. Nothing else depends on it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}
