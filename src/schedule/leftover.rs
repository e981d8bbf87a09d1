//! Ends processes that an attempt of the previous process left running. Normally there are none: the wrapper
//! around each client ends its process tree when the service dies.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::journal::ProcessIdentity;

/// Ends the process and its group, if it is still the recorded process. Returns whether it was. Never signals a later process
/// with the same number: it opens a descriptor first, then compares the start time, and sends the signal to the descriptor.
pub(super) fn end(process: &ProcessIdentity) -> bool {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    if !process.is_there() {
        return false;
    }
    // While the leader exists, no other group can take its number. If the process is not a leader, there is no such group.
    if let Err(error) = kill_process_group(pid, Signal::KILL)
        && error != Errno::SRCH
    {
        tracing::warn!(pid = process.pid, %error, "a leftover process group could not be ended");
    }
    match pidfd_send_signal(&descriptor, Signal::KILL) {
        Ok(()) => true,
        Err(error) => {
            if error != Errno::SRCH {
                tracing::warn!(pid = process.pid, %error, "a leftover process could not be ended");
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").process_group(0).stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn the_recorded_process_is_ended() {
        let mut child = sleeper();
        let process = ProcessIdentity::of(child.id()).unwrap();
        assert!(end(&process));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(!end(&process), "it is gone");
    }

    #[test]
    fn another_process_with_the_same_number_is_left_alone() {
        let mut child = sleeper();
        let before = ProcessIdentity { pid: child.id(), start: "an-earlier-boot/1".to_owned() };
        assert!(!end(&before));
        assert!(child.try_wait().unwrap().is_none(), "it was touched");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!end(&ProcessIdentity { pid: 0, start: String::new() }));
        assert!(!end(&ProcessIdentity { pid: u32::MAX, start: String::new() }));
    }
}
