//! The only module that reads the time.
//!
//! All others take a [`Clock`]. `Utc::now` appears only here, which clippy's `disallowed-methods` enforces. A test
//! clock follows tokio's paused time, so a test can simulate a year in milliseconds.

mod alarm;
mod wake;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, TimeZone, Timelike as _, Utc};
use tokio::sync::watch;
use tokio::time::Instant;

pub use alarm::Alarm;
pub use wake::Waker;

/// Maximum wait that is slept in one piece. At the largest rate at which a clock is slewed (500 ppm, adjtimex(2)), its
/// end is off by at most 5 ms.
const ONE_PIECE: Duration = Duration::from_secs(10);

/// Rounds up to the next whole second, so that the result is never earlier than `at`.
#[must_use]
pub fn whole_second<Z: TimeZone>(at: DateTime<Z>) -> DateTime<Z> {
    let up = if at.nanosecond() == 0 { at } else { at + TimeDelta::seconds(1) };
    up.with_nanosecond(0).unwrap_or(up)
}

/// A wall clock, which also sleeps until a time. Cheap to clone; clones share one time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Simulated(Arc<Simulated>),
}

#[derive(Debug)]
struct Simulated {
    base: DateTime<Utc>,
    start: Instant,
    /// Milliseconds by which the wall clock was set forward (or, negative, back).
    shift: AtomicI64,
    /// Milliseconds that the machine has slept.
    slept: AtomicI64,
    /// Number of times the clock was set.
    jumps: watch::Sender<u64>,
    /// The time at which the machine is to wake.
    wakes_at: Mutex<Option<DateTime<Utc>>>,
}

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Creates a clock that reads `base` now and advances with tokio's time, paused time included. Must be called
    /// within a tokio runtime.
    #[must_use]
    pub fn simulated(base: DateTime<Utc>) -> Self {
        Self(Source::Simulated(Arc::new(Simulated {
            base,
            start: Instant::now(),
            shift: AtomicI64::new(0),
            slept: AtomicI64::new(0),
            jumps: watch::Sender::new(0),
            wakes_at: Mutex::default(),
        })))
    }

    /// Sets a simulated wall clock forward (or, negative, back) without time passing, like an NTP step or a person with
    /// `date`. Does nothing to the system clock.
    pub fn jump(&self, by: TimeDelta) {
        if let Source::Simulated(simulated) = &self.0 {
            simulated.shift.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
            simulated.jumps.send_modify(|count| *count += 1);
        }
    }

    /// Lets a simulated machine sleep: only the wall clock advances.
    pub fn sleep(&self, time: TimeDelta) {
        if let Source::Simulated(simulated) = &self.0 {
            simulated.slept.fetch_add(time.num_milliseconds(), Ordering::SeqCst);
        }
        self.jump(time);
    }

    /// Returns how long the machine has slept since it was started.
    fn slept(&self) -> TimeDelta {
        match &self.0 {
            Source::System => {
                let awake = monotonic_micros();
                TimeDelta::microseconds(micros(rustix::time::ClockId::Boottime) - awake)
            }
            Source::Simulated(simulated) => TimeDelta::milliseconds(simulated.slept.load(Ordering::SeqCst)),
        }
    }

    /// Returns an alarm that wakes at times of this clock, and when the clock is set. Must be called within a tokio runtime.
    #[must_use]
    pub fn alarm(&self) -> Alarm {
        Alarm::of(self)
    }

    /// Returns a waker, which wakes the machine from sleep.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::of(self)
    }

    /// Returns the time at which a simulated machine is to wake from sleep.
    #[must_use]
    pub fn wakes_at(&self) -> Option<DateTime<Utc>> {
        match &self.0 {
            Source::Simulated(simulated) => *simulated.wakes_at.lock().unwrap_or_else(PoisonError::into_inner),
            Source::System => None,
        }
    }

    /// Returns the current time.
    #[must_use]
    #[allow(clippy::disallowed_methods)]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            #[cfg(not(feature = "failpoints"))]
            Source::System => Utc::now(),
            #[cfg(feature = "failpoints")]
            Source::System => Utc::now() + crate::failpoints::ahead(),
            Source::Simulated(simulated) => {
                let passed = TimeDelta::from_std(simulated.start.elapsed()).unwrap_or(TimeDelta::MAX);
                simulated.base + passed + TimeDelta::milliseconds(simulated.shift.load(Ordering::SeqCst))
            }
        }
    }

    /// Returns the time left until `at`; zero if it has passed.
    #[must_use]
    pub fn until(&self, at: DateTime<Utc>) -> Duration {
        (at - self.now()).to_std().unwrap_or(Duration::ZERO)
    }

    /// Returns when to look at the clock again while waiting for `at`. A near time is the time itself. A far time is a
    /// little before, since a slewed wall clock and the monotonic clock drift apart. Waking does not prove that `at`
    /// has come: compare [`Clock::now`].
    fn recheck_at(&self, at: DateTime<Utc>) -> Instant {
        let left = self.until(at);
        let step = if left <= ONE_PIECE { left } else { left - left / 100 };
        // A timer counts whole milliseconds. A century is as good as never, and does not overflow.
        Instant::now() + step.min(Duration::from_secs(100 * 365 * 86_400))
    }

    /// Waits until the wall clock reads `at` or later, even if the clock is set in between.
    pub async fn sleep_until(&self, at: DateTime<Utc>) {
        let mut alarm = self.alarm();
        while self.now() < at {
            alarm.wait(Some(at)).await;
        }
    }
}

/// Returns microseconds of the monotonic clock, which all programs of this machine share: since the boot, without sleep.
#[must_use]
pub fn monotonic_micros() -> i64 {
    micros(rustix::time::ClockId::Monotonic)
}

/// Returns the time since the boot, including sleep.
#[must_use]
pub fn since_boot() -> std::time::Duration {
    let micros = micros(rustix::time::ClockId::Boottime);
    std::time::Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn micros(clock: rustix::time::ClockId) -> i64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Measures how far the wall clock and the monotonic clock have drifted apart.
#[derive(Debug)]
pub struct Drift {
    wall: DateTime<Utc>,
    steady: Instant,
    slept: TimeDelta,
    /// Time that the machine slept between the last two looks.
    asleep: TimeDelta,
}

impl Drift {
    /// Starts measuring.
    #[must_use]
    pub fn new(clock: &Clock) -> Self {
        Self { wall: clock.now(), steady: Instant::now(), slept: clock.slept(), asleep: TimeDelta::zero() }
    }

    /// Returns how far the wall clock was set since the last look, forward or (negative) back; `None` if it was not
    /// set. Slewing is not a jump, but over a long wait it can add up to a small result.
    pub fn measure(&mut self, clock: &Clock) -> Option<TimeDelta> {
        let mut now = Self::new(clock);
        now.asleep = now.slept - self.slept;
        let steady = TimeDelta::from_std(now.steady - self.steady).unwrap_or(TimeDelta::MAX);
        let jump = (now.wall - self.wall) - steady;
        *self = now;
        (jump.abs() > alarm::TOLERANCE).then_some(jump)
    }

    /// Whether the machine's sleep explains most of a forward `jump`, the result of the last look.
    #[must_use]
    pub fn was_asleep(&self, jump: TimeDelta) -> bool {
        jump > TimeDelta::zero() && self.asleep * 2 > jump
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    fn noon() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn sleeping_never_ends_early() {
        let clock = Clock::simulated(noon());
        for ahead in [1, 999, 10_001, 86_400_000, 400 * 86_400_000] {
            let at = clock.now() + TimeDelta::milliseconds(ahead);
            clock.sleep_until(at).await;
            assert!(clock.now() >= at, "{ahead} ms");
            assert!(clock.now() - at < TimeDelta::milliseconds(2), "{ahead} ms");
        }
    }

    /// With a wall clock that runs 500 ppm fast, one long sleep of a day would end 43 s late.
    #[tokio::test(start_paused = true)]
    async fn a_long_wait_looks_again_before_its_end() {
        let clock = Clock::simulated(noon());
        let wait = |seconds| clock.recheck_at(noon() + TimeDelta::seconds(seconds)) - Instant::now();
        assert_eq!(wait(10), Duration::from_secs(10));
        assert_eq!(wait(86_400), Duration::from_secs(85_536));
        assert_eq!(wait(-5), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn sleeping_follows_a_clock_that_is_set() {
        let clock = Clock::simulated(noon());
        let (setter, at) = (clock.clone(), noon() + TimeDelta::hours(2));
        let sleeper = tokio::spawn(async move { clock.sleep_until(at).await });
        let before = Instant::now();
        tokio::time::sleep(Duration::from_secs(60)).await;
        setter.jump(TimeDelta::hours(-1));
        tokio::time::sleep(Duration::from_secs(60)).await;
        setter.jump(TimeDelta::hours(3));
        sleeper.await.unwrap();
        assert_eq!(before.elapsed(), Duration::from_secs(120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_is_noticed_and_measured() {
        let clock = Clock::simulated(noon());
        let (mut alarm, mut drift) = (clock.alarm(), Drift::new(&clock));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(drift.measure(&clock), None);
        clock.jump(TimeDelta::minutes(-5));
        alarm.wait(None).await;
        assert_eq!(drift.measure(&clock), Some(TimeDelta::minutes(-5)));
        assert!(!drift.was_asleep(TimeDelta::minutes(-5)), "no sleep sets a clock back");
        assert_eq!(drift.measure(&clock), None);
    }

    /// The kernel's timer exists here, stays silent while nobody sets the clock, and never wakes early.
    #[tokio::test]
    async fn the_systems_clock_wakes_at_its_moments_and_is_quiet_otherwise() {
        let clock = Clock::system();
        let mut alarm = clock.alarm();
        assert!(format!("{alarm:?}").contains("Kernel"));
        for ahead in [None, Some(TimeDelta::hours(1)), Some(TimeDelta::days(400_000))] {
            let at = ahead.map(|ahead| clock.now() + ahead);
            tokio::select! {
                biased;
                () = alarm.wait(at) => panic!("nobody set the clock"),
                () = tokio::task::yield_now() => {}
            }
        }
        for ahead in [-1_000_000, 0, 300, 5_000, 20_000] {
            let at = clock.now() + TimeDelta::microseconds(ahead);
            while clock.now() < at {
                alarm.wait(Some(at)).await;
            }
            // A time in the past never blocks, however often it is awaited.
            alarm.wait(Some(at)).await;
            alarm.wait(Some(at)).await;
            assert!(clock.now() >= at);
        }
        alarm.wait(Some(DateTime::<Utc>::MIN_UTC)).await;
    }
}
