//! Gives up root's privileges (capabilities) permanently for processes in a domain.
//!
//! Landlock does not restrict them, and some bypass it: with `CAP_PERFMON` a process can read the environment of every other one
//! (seen on Linux 6.18 with the service's own and its secrets), and with `CAP_DAC_READ_SEARCH` it can open a file without a path.
//! A service that does not run as root has none, and nothing changes.
//!
//! Source: capabilities(7), and `may_access_mm` in the kernel's `kernel/fork.c`.

use rustix::io;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, remove_capability_from_bounding_set, set_capabilities,
};

/// Gives up all privileges for the calling thread and its descendants. Returns whether none can come back. One that is left in the
/// bounding set comes back when root executes a program. Removing it there needs a privilege of its own.
///
/// # Errors
/// If the kernel refuses. The privileges then remain.
pub(crate) fn drop_all() -> io::Result<bool> {
    for one in every() {
        // This fails without the privilege for it. Only what is left counts.
        let _refused = remove_capability_from_bounding_set(one);
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // A number unknown to this kernel is an error. Such a privilege cannot come back.
    let left = every().any(|one| capability_is_in_bounding_set(one).unwrap_or(false));
    Ok(!left || !geteuid().is_root())
}

/// Returns all capabilities that a kernel may have, including those without a name yet.
fn every() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_nothing_comes_back() {
        // Privileges belong to a thread, and this one ends with the test.
        let sets = std::thread::spawn(|| {
            assert_eq!(drop_all(), Ok(true));
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = sets.join().unwrap();
        let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(of(set), "0000000000000000", "{set}");
        }
        if geteuid().is_root() {
            assert_eq!(of("CapBnd:"), "0000000000000000");
        }
    }
}
