//! Giving up root's privileges (capabilities), for good, for what lives in a domain.
//!
//! Landlock says nothing about them, and some lead around it: with `CAP_PERFMON` the environment of every process can
//! be read (seen on Linux 6.18, the service's own with its secrets among them), with `CAP_DAC_READ_SEARCH` a file can be
//! opened without a path. A service that does not run as root has none, and nothing changes.
//!
//! Source: capabilities(7), and `may_access_mm` in the kernel's `kernel/fork.c`.

use rustix::io;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, remove_capability_from_bounding_set, set_capabilities,
};

/// Gives them up for the calling thread and what it starts; whether none can come back. One that is left in the
/// bounding set comes back when root executes a program; taking it out needs a privilege of its own.
///
/// # Errors
/// When the kernel refuses; the privileges are then still there.
pub(crate) fn drop_all() -> io::Result<bool> {
    for one in every() {
        // Refused to whoever lacks the privilege to do it: what counts is what is left.
        let _refused = remove_capability_from_bounding_set(one);
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // A number that this kernel does not know is an error, and nothing that could come back.
    let left = every().any(|one| capability_is_in_bounding_set(one).unwrap_or(false));
    Ok(!left || !geteuid().is_root())
}

/// All that a kernel may have, those without a name yet too.
fn every() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_nothing_comes_back() {
        // Privileges belong to a thread; this one ends with them.
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
