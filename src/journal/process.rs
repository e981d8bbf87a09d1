//! Identifies a process, so that a later process with the same number is never mistaken for it.

use std::fs;

/// A process: its number, its boot, and its start time in that boot. No two processes share all three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// `boot id/ticks from boot to start`.
    pub start: String,
}

impl ProcessIdentity {
    /// Returns the process that has this id now; `None` if there is none, or if `/proc` cannot be read.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let ticks = start_ticks(&stat)?;
        Some(Self { pid, start: format!("{}/{ticks}", boot.trim()) })
    }

    /// Returns whether this same process still exists. A zombie does.
    #[must_use]
    pub fn is_there(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// Returns field 22 of `/proc/PID/stat` (proc(5)). Field 2, the program's name in parentheses, may hold any characters.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_program_name_does_not_shift_the_fields() {
        let rest = (3..=52).map(|field| if field == 22 { "777".to_owned() } else { field.to_string() });
        let stat = format!("41 (a) 1 2 (b)) {}", rest.collect::<Vec<_>>().join(" "));
        assert_eq!(start_ticks(&stat), Some(777));
    }

    #[test]
    fn this_process_is_there_and_its_number_alone_is_not_enough() {
        let me = ProcessIdentity::of(std::process::id()).unwrap();
        assert!(me.is_there());
        let before = ProcessIdentity { start: "other-boot/1".to_owned(), ..me };
        assert!(!before.is_there());
    }
}
