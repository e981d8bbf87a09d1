//! The one place that reads the time.
//!
//! Everything takes a [`Clock`]; `Utc::now` appears only here (clippy's `disallowed-methods` holds it).
//! A test clock follows tokio's paused time, so a test can live through a year in milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// Wall-clock time, and sleeping until a moment of it. Cheap to clone; clones share one time.
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
    /// Milliseconds by which the wall clock was set, forwards or back.
    shift: AtomicI64,
}

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that reads `base` now and advances with tokio's time, paused time included.
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn simulated(base: DateTime<Utc>) -> Self {
        Self(Source::Simulated(Arc::new(Simulated { base, start: Instant::now(), shift: AtomicI64::new(0) })))
    }

    /// Sets a simulated wall clock forwards (or, negative, back) without any time passing: what an NTP step
    /// or a person with `date` does. The system clock is never changed.
    pub fn jump(&self, by: TimeDelta) {
        if let Source::Simulated(simulated) = &self.0 {
            simulated.shift.fetch_add(by.num_milliseconds(), Ordering::SeqCst);
        }
    }

    /// The time now.
    #[must_use]
    #[allow(clippy::disallowed_methods)]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            Source::System => Utc::now(),
            Source::Simulated(simulated) => {
                let passed = TimeDelta::from_std(simulated.start.elapsed()).unwrap_or(TimeDelta::MAX);
                simulated.base + passed + TimeDelta::milliseconds(simulated.shift.load(Ordering::SeqCst))
            }
        }
    }

    /// How long from now until `at`; zero when it has passed.
    #[must_use]
    pub fn until(&self, at: DateTime<Utc>) -> Duration {
        (at - self.now()).to_std().unwrap_or(Duration::ZERO)
    }
}
