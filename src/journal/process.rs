//! Naming a process so that a later one with the same number is never taken for it.

use std::fs;

/// A process: its number, and when it was started in which boot. Two processes never share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// `boot id/ticks from boot to start`.
    pub start: String,
}

impl ProcessIdentity {
    /// The process that has this number now; `None`: none has, or `/proc` does not tell.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let ticks = start_ticks(&stat)?;
        Some(Self { pid, start: format!("{}/{ticks}", boot.trim()) })
    }

    /// Whether this very process is still there (a zombie is).
    #[must_use]
    pub fn is_there(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// Field 22 of `/proc/PID/stat` (proc(5)). Field 2 is the program's name in brackets, which may hold anything.
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
