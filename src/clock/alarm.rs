//! Wakes at a time of the wall clock, and within a second after the clock was set or the machine has slept.
//!
//! On Linux the kernel does both: a `timerfd` on the wall clock with `TFD_TIMER_CANCEL_ON_SET` (timerfd_create(2)) is
//! free while idle, follows slewing, and wakes within microseconds. tokio's timer counts whole milliseconds of the
//! monotonic clock, and so does the wait beneath it, which makes it one to two milliseconds late. Without a timerfd,
//! tokio's timer is used, and the wall clock is compared with the monotonic clock every second.
//!
//! Waking may be spurious; a jump is never missed. The caller reads the time after waking.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::{Clock, Drift, Simulated, Source};

/// The year 9999: the timer never fires, and every kernel accepts it.
const NEVER: Timespec = Timespec { tv_sec: 253_402_300_799, tv_nsec: 0 };

/// A smaller difference between the wall clock and the monotonic clock is slewing, not a jump.
pub(super) const TOLERANCE: TimeDelta = TimeDelta::milliseconds(500);

/// Wakes the task that waits for it. Created by [`Clock::alarm`].
#[derive(Debug)]
pub struct Alarm {
    clock: Clock,
    by: By,
}

#[derive(Debug)]
enum By {
    /// The kernel cancels the timer when the clock is set or the machine wakes.
    Kernel(Timer),
    /// Compares the clocks every second.
    Compare(Drift),
    /// A simulated clock counts its jumps. Holding the clock keeps the sender alive.
    Simulated(watch::Receiver<u64>, Arc<Simulated>),
}

impl Alarm {
    pub(super) fn of(clock: &Clock) -> Self {
        let by = match &clock.0 {
            Source::Simulated(simulated) => By::Simulated(simulated.jumps.subscribe(), Arc::clone(simulated)),
            Source::System => match Timer::new() {
                Ok(timer) => By::Kernel(timer),
                Err(error) => {
                    tracing::debug!(%error, "no timerfd: the clock is compared every second instead");
                    By::Compare(Drift::new(clock))
                }
            },
        };
        Self { clock: clock.clone(), by }
    }

    /// Waits until the wall clock reads `at`, if given, or was set. Cancel safe.
    pub async fn wait(&mut self, at: Option<DateTime<Utc>>) {
        match &mut self.by {
            By::Kernel(timer) => {
                // The kernel ignores the offset of a clock that a test has set ahead.
                #[cfg(feature = "failpoints")]
                let at = at.map(|at| at - crate::failpoints::ahead());
                if let Err(error) = timer.wait(at).await {
                    tracing::warn!(%error, "the clock's timer failed: the clock is compared every second instead");
                    self.by = By::Compare(Drift::new(&self.clock));
                }
            }
            By::Compare(drift) => {
                tokio::select! {
                    () = until(&self.clock, at) => {}
                    () = set(&self.clock, drift) => {}
                }
            }
            By::Simulated(count, _clock) => {
                tokio::select! {
                    () = until(&self.clock, at) => {}
                    // The channel cannot close, since this alarm holds the sender. So only a jump ends this.
                    _closed = count.changed() => {}
                }
            }
        }
    }
}

async fn until(clock: &Clock, at: Option<DateTime<Utc>>) {
    match at {
        Some(at) => tokio::time::sleep_until(clock.recheck_at(at)).await,
        None => std::future::pending().await,
    }
}

async fn set(clock: &Clock, drift: &mut Drift) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if drift.measure(clock).is_some() {
            return;
        }
    }
}

/// The kernel's timer, and the time for which it is armed; `None` if it may have fired.
#[derive(Debug)]
struct Timer {
    fd: AsyncFd<OwnedFd>,
    armed: Option<Timespec>,
}

impl Timer {
    // `AsyncFd::new` is deprecated because a type's descriptor could change while it is registered. That of an
    // `OwnedFd` cannot, and the successor is `unsafe`.
    #[allow(deprecated)]
    fn new() -> std::io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let mut timer = Self { fd: AsyncFd::new(fd)?, armed: None };
        // Armed before the first wait, so that a clock that is set until then is noticed.
        timer.arm(NEVER)?;
        Ok(timer)
    }

    fn arm(&mut self, at: Timespec) -> rustix::io::Result<()> {
        if self.armed != Some(at) {
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            // Arming again discards an unread cancellation, and returns `ECANCELED` instead.
            match timerfd_settime(self.fd.get_ref(), flags, &once) {
                Ok(_) => {}
                Err(Errno::CANCELED) => {
                    self.armed = None;
                    return Err(Errno::CANCELED);
                }
                Err(error) => return Err(error),
            }
            self.armed = Some(at);
        }
        Ok(())
    }

    async fn wait(&mut self, at: Option<DateTime<Utc>>) -> std::io::Result<()> {
        match self.arm(at.map_or(NEVER, timespec)) {
            Ok(()) => {}
            Err(Errno::CANCELED) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        loop {
            let mut ready = self.fd.readable().await?;
            let mut count = [0u8; 8];
            match rustix::io::read(self.fd.get_ref(), &mut count) {
                Err(Errno::AGAIN | Errno::INTR) => ready.clear_ready(),
                Ok(_) | Err(Errno::CANCELED) => {
                    ready.clear_ready();
                    self.armed = None;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Converts a time for the kernel. The minimum is 1 s, since zero disarms a timer.
pub(super) fn timespec(at: DateTime<Utc>) -> Timespec {
    let seconds = at.timestamp().clamp(1, NEVER.tv_sec);
    Timespec { tv_sec: seconds, tv_nsec: i64::from(at.timestamp_subsec_nanos().min(999_999_999)) }
}
