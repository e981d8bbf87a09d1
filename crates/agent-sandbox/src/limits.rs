//! What a run may take from the machine.
//!
//! Where a control group is delegated to the service (cgroups(7)), the kernel holds memory, processes and processor time of the
//! whole run ([`crate::cgroup`]). Everywhere the runner looks twice a second whether the run has taken more than it may, and ends
//! it ([`crate::watch`]). A single process has limits of its own besides (setrlimit(2)).

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Descriptors that a program starts with; it may raise the number itself.
const DESCRIPTORS: u64 = 1024;

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
        let descriptors = getrlimit(Resource::Nofile);
        // What select(2) can tell apart, as everybody starts with.
        let current = descriptors.current.map_or(DESCRIPTORS, |current| current.min(DESCRIPTORS));
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..descriptors })?;
        for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, self.disk), (Resource::Data, self.memory)] {
            let now = getrlimit(resource);
            let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
            setrlimit(resource, Rlimit { current: least(now.current), maximum: least(now.maximum) })?;
        }
        Ok(())
    }
}

/// As many descriptors as the system allows, for the calling process: the runner, which holds those of every program that is about
/// to start. A process that starts sets its own.
pub(crate) fn many_descriptors() {
    let now = getrlimit(Resource::Nofile);
    // It goes on with those that it has.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

/// When memory runs out, the kernel ends the calling process and what it starts before anything else of this user.
pub(crate) fn end_first() {
    // A kernel without it ends whatever it chooses: nothing else depends on this.
    let _ = std::fs::write("/proc/self/oom_score_adj", "900");
}
