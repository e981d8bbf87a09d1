//! Wakes the machine from sleep with a `timerfd` whose clock advances during sleep (`CLOCK_REALTIME_ALARM`, timerfd_create(2)).
//!
//! When the machine goes to sleep, the kernel programs the hardware clock (RTC) with the timer's time. Nobody reads the timer: a
//! task that waits for the time has its own [`Alarm`](super::Alarm). The timer needs the privilege `CAP_WAKE_ALARM`.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use chrono::{DateTime, Utc};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::alarm::timespec;
use super::{Clock, Simulated, Source};

/// The kernel's folder of hardware clocks.
const CLOCKS: &str = "/sys/class/rtc";

const NO_CLOCK: &str = "this machine has no clock that wakes it (/sys/class/rtc)";

/// Wakes the machine at a time. Created by [`Clock::waker`].
#[derive(Debug)]
pub struct Waker {
    by: By,
    set: Option<DateTime<Utc>>,
}

#[derive(Debug)]
enum By {
    Kernel(OwnedFd),
    Nobody(Errno),
    Simulated(Arc<Simulated>),
}

impl Waker {
    pub(super) fn of(clock: &Clock) -> Self {
        let by = match &clock.0 {
            Source::Simulated(simulated) => By::Simulated(Arc::clone(simulated)),
            Source::System => {
                let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
                timerfd_create(TimerfdClockId::RealtimeAlarm, flags).map_or_else(By::Nobody, By::Kernel)
            }
        };
        Self { by, set: None }
    }

    /// Returns why the machine will not wake, as a sentence without its full stop; `None` if it will.
    #[must_use]
    pub fn cannot(&self) -> Option<String> {
        match &self.by {
            By::Nobody(Errno::PERM) => Some("the service lacks the privilege CAP_WAKE_ALARM".to_owned()),
            By::Nobody(error) => Some(format!("the kernel has no timer for that: {error}")),
            By::Kernel(_) => Self::lacks_clock(),
            By::Simulated(_) => None,
        }
    }

    /// Returns why no process can wake the machine, if it has no clock for that.
    #[must_use]
    pub fn lacks_clock() -> Option<String> {
        (!has_waking_clock(Path::new(CLOCKS))).then(|| NO_CLOCK.to_owned())
    }

    /// Sets the time at which the machine wakes; `None` for never.
    pub fn set(&mut self, at: Option<DateTime<Utc>>) {
        if self.set == at {
            return;
        }
        self.set = at;
        match &self.by {
            By::Kernel(fd) => {
                let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
                let once = Itimerspec { it_interval: zero, it_value: at.map_or(zero, timespec) };
                if let Err(error) = timerfd_settime(fd, TimerfdTimerFlags::ABSTIME, &once) {
                    tracing::warn!(%error, "the machine will not be woken");
                }
            }
            By::Nobody(_) => {}
            By::Simulated(simulated) => {
                *simulated.wakes_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
            }
        }
    }
}

/// Whether one of the clocks may wake the machine.
fn has_waking_clock(clocks: &Path) -> bool {
    let may_wake = |clock: &Path| {
        std::fs::read_to_string(clock.join("device/power/wakeup")).is_ok_and(|said| said.trim() == "enabled")
    };
    std::fs::read_dir(clocks).into_iter().flatten().flatten().any(|clock| may_wake(&clock.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_may_wake_the_machine_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let say = |clock: &str, word: &str| {
            let power = folder.path().join(clock).join("device/power");
            std::fs::create_dir_all(&power).unwrap();
            std::fs::write(power.join("wakeup"), word).unwrap();
        };
        assert!(!has_waking_clock(&folder.path().join("none")));
        say("rtc0", "disabled\n");
        assert!(!has_waking_clock(folder.path()));
        say("rtc1", "enabled\n");
        assert!(has_waking_clock(folder.path()));
    }
}
