//! Noticing that the wall clock was set, or that the machine slept, within a second of it.
//!
//! On Linux the kernel says so at once: a `timerfd` with `TFD_TIMER_CANCEL_ON_SET` (timerfd_create(2)) costs
//! nothing while nothing happens. Where there is none, wall and monotonic time are compared every second.
//! A notice may be spurious; a jump is never missed. How far the clock went is for the listener to measure.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::{Clock, Drift, Simulated, Source};

/// The year 9999: far enough that the timer itself never fires, near enough for every kernel.
const NEVER: i64 = 253_402_300_799;

/// Less than this between wall and monotonic time is slewing, not a jump.
pub(super) const TOLERANCE: TimeDelta = TimeDelta::milliseconds(500);

/// Notices of wall-clock jumps. Made by [`Clock::jumps`].
#[derive(Debug)]
pub struct Jumps(Watch);

#[derive(Debug)]
enum Watch {
    /// The kernel cancels the timer when the clock is set or the machine wakes.
    Kernel(AsyncFd<OwnedFd>),
    /// Looks every second.
    Compare(Clock, Drift),
    /// A simulated clock counts its jumps. The clock is kept so that its sender lives.
    Simulated(watch::Receiver<u64>, Arc<Simulated>),
}

impl Jumps {
    pub(super) fn of(clock: &Clock) -> Self {
        Self(match &clock.0 {
            Source::Simulated(simulated) => Watch::Simulated(simulated.jumps.subscribe(), Arc::clone(simulated)),
            Source::System => match kernel_timer() {
                Ok(timer) => Watch::Kernel(timer),
                Err(error) => {
                    tracing::debug!(%error, "no timerfd: the clock is compared every second instead");
                    Watch::Compare(clock.clone(), Drift::new(clock))
                }
            },
        })
    }

    /// Waits until the wall clock was set, or may have been. Safe to drop and call again.
    pub async fn next(&mut self) {
        match &mut self.0 {
            Watch::Kernel(timer) => {
                if let Err(error) = cancelled(timer).await {
                    tracing::warn!(%error, "the clock's timer failed: the clock is compared every second instead");
                    let clock = Clock::system();
                    let drift = Drift::new(&clock);
                    self.0 = Watch::Compare(clock, drift);
                }
            }
            Watch::Compare(clock, drift) => loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if drift.look(clock).is_some() {
                    return;
                }
            },
            Watch::Simulated(count, _clock) => {
                // The sender lives in the clock that this watch holds, so this only ends with a jump.
                let _closed = count.changed().await;
            }
        }
    }
}

// `AsyncFd::new` is deprecated because a type's descriptor could change while it is registered. An `OwnedFd`'s cannot,
// and the function that replaces it is unsafe.
#[allow(deprecated)]
fn kernel_timer() -> std::io::Result<AsyncFd<OwnedFd>> {
    let fd = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    arm(&fd)?;
    AsyncFd::new(fd)
}

fn arm(fd: &OwnedFd) -> rustix::io::Result<()> {
    let never = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: NEVER, tv_nsec: 0 },
    };
    timerfd_settime(fd, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &never).map(|_| ())
}

async fn cancelled(timer: &AsyncFd<OwnedFd>) -> std::io::Result<()> {
    loop {
        let mut ready = timer.readable().await?;
        let mut count = [0u8; 8];
        match rustix::io::read(timer.get_ref(), &mut count) {
            Err(Errno::AGAIN | Errno::INTR) => ready.clear_ready(),
            Ok(_) | Err(Errno::CANCELED) => {
                ready.clear_ready();
                arm(timer.get_ref())?;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}
