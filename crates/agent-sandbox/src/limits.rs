//! What a run may take from the machine.
//!
//! Where a control group is delegated to the service (cgroups(7)), the kernel holds memory, processes and processor time of the
//! whole run ([`crate::cgroup`]). Everywhere the runner looks twice a second whether the run has taken more than it may, and ends
//! it ([`crate::watch`]). A single process has limits of its own besides (setrlimit(2)).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Descriptors that a program starts with (what select(2) can tell apart), and to how many it may raise that itself. The kernel
/// counts some things for all processes of a user together, such as descriptors that are being sent, and holds the sum against
/// each process's own limit: the service's and the runner's is higher.
const DESCRIPTORS: u64 = 1024;
const MOST_DESCRIPTORS: u64 = 4096;

/// Signals that wait, of all processes of the user together, beyond which a program can send itself no more.
const SIGNALS: u64 = 1024;

/// What all processes of one run may take together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory. The data of one process may not grow beyond it either.
    pub memory: u64,
    /// Processes and threads at a time.
    pub processes: u32,
    /// Bytes in the run's own folder, and of one file anywhere.
    pub disk: u64,
    /// Processors: 0.5 is half of one. `None`: as many as there are. Held by a control group only.
    pub cpus: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 8 << 30, processes: 1024, disk: 4 << 30, cpus: None }
    }
}

impl Limits {
    /// Sets what holds for each process, for the calling one and all that it starts. What is lower already stays.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let most = [
            (Resource::Nofile, DESCRIPTORS, MOST_DESCRIPTORS),
            (Resource::Core, 0, 0),
            // Those that wait are counted for all processes of a user.
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

/// As many descriptors as the system allows, for the calling process: the service, and the runner, which holds those of every
/// program that is about to start. A process that starts sets its own.
pub fn many_descriptors() {
    let now = getrlimit(Resource::Nofile);
    // It goes on with those that it has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

/// When memory runs out, the kernel ends the calling process and what it starts before anything else of this user.
pub(crate) fn end_first() {
    // A kernel without it ends whatever it chooses: nothing else depends on this.
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}
