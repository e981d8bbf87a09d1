//! Starts processes of our own, and waits as long as the machine has none to spare.
//!
//! A job can use up all pids of the machine for some seconds, until the watch of its limits ends it. Other jobs then start late instead
//! of failing.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Maximum wait for a free pid. Between two checks of a run's limits lie half a second, and a check can take as long as 15 seconds while
/// its processes fork without pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls `start` until it succeeds, or fails for another reason than that the machine has no process to spare.
///
/// # Errors
/// The last error of `start`.
pub(crate) async fn patiently<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let begin = Instant::now();
    loop {
        match start() {
            Err(error) if waits(&error, begin) => tokio::time::sleep(PAUSE).await,
            started => return started,
        }
    }
}

/// Starts `command` as [`patiently`] does, from a stage without a runtime. Returns its pid.
pub(crate) fn blocking(command: &mut Command) -> io::Result<u32> {
    let begin = Instant::now();
    loop {
        match command.spawn() {
            Err(error) if waits(&error, begin) => std::thread::sleep(PAUSE),
            started => return started.map(|child| child.id()),
        }
    }
}

fn waits(error: &io::Error, begin: Instant) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::AGAIN.raw_os_error()) && begin.elapsed() < LONGEST
}

/// Makes the kernel send `signal` to the calling stage when its parent ends. Returns whether the parent, whose pid the stage has as a
/// word of its command line, is still there.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn ends_with_parent(parent: &str, signal: Signal) -> io::Result<bool> {
    set_parent_process_death_signal(Some(signal))?;
    // The parent may have ended before the signal was set.
    Ok(getppid().is_some_and(|pid| pid.to_string() == parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_without_a_free_process_delays_a_start_and_other_errors_end_it() {
        let again = || io::Error::from(rustix::io::Errno::AGAIN);
        let mut left = vec![Ok(7), Err(again()), Err(again())];
        assert_eq!(patiently(|| left.pop().unwrap()).await.unwrap(), 7);
        let mut left = vec![Ok(7), Err(io::ErrorKind::NotFound.into()), Err(again())];
        assert_eq!(patiently(|| left.pop().unwrap()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
