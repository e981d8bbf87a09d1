//! Tracks the latest time that the wall clock has shown, and whether the clock is behind it.
//!
//! A machine without a battery-backed clock starts in the past and is corrected later. While its clock is behind a
//! time shown before, occurrences due until that time were not missed: they would run again, or as a backlog, once
//! the clock is corrected. A clock that is still behind after a day is trusted, since it was ahead before. Pure
//! but for steady time.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// A clock that has been behind for this long is trusted.
const TRUSTED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The wall clock: see the module's documentation.
#[derive(Debug)]
pub(super) struct WallClock {
    /// The latest time that the clock has shown.
    shown: DateTime<Utc>,
    /// When the clock was first seen behind `shown`.
    behind: Option<Instant>,
}

impl WallClock {
    /// `known`: the latest time that previous processes have recorded.
    pub(super) fn new(known: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Self {
        let mut clock = Self { shown: known.unwrap_or(now), behind: None };
        clock.record(now, TimeDelta::zero());
        clock
    }

    /// Returns the latest time that the clock has shown.
    pub(super) fn shown(&self) -> DateTime<Utc> {
        self.shown
    }

    /// Returns the latest time that the clock has shown, or would have shown if it had not been set back.
    pub(super) fn latest(&self) -> DateTime<Utc> {
        let behind = self.behind.map_or(Duration::ZERO, |since| since.elapsed());
        self.shown + TimeDelta::from_std(behind).unwrap_or_default()
    }

    /// Records the time, and by how much the clock was set since the last look. Returns whether the clock is
    /// behind and is trusted from now on.
    pub(super) fn record(&mut self, now: DateTime<Utc>, set: TimeDelta) -> bool {
        if now < self.shown {
            if self.behind.is_none() {
                // The last look may be long ago. The clock had come this far when it was set back.
                self.shown = self.shown.max(now - set);
            }
            if self.behind.get_or_insert_with(Instant::now).elapsed() < TRUSTED_AFTER {
                return false;
            }
        }
        let trusted = now < self.shown;
        self.shown = now;
        self.behind = None;
        trusted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_behind_keeps_the_latest_time() {
        // (known, times shown minute by minute) → the latest time at the end
        for (known, shown, expected) in [
            (None, &[900, 901][..], 901),
            (None, &[900, 100, 101], 902),
            (None, &[900, 100, 902], 902),
            (Some(900), &[100, 101], 901),
            (Some(900), &[100, 101, 902], 902),
            (Some(900), &[100, 200, 150, 904], 904),
        ] {
            let mut clock = WallClock::new(known.map(at), at(shown[0]));
            for pair in shown.windows(2) {
                tokio::time::advance(Duration::from_secs(60)).await;
                assert!(!clock.record(at(pair[1]), TimeDelta::minutes(pair[1] - pair[0] - 1)));
            }
            assert_eq!(clock.latest(), at(expected), "{known:?} {shown:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_stays_behind_for_a_day_is_right() {
        let mut clock = WallClock::new(Some(at(100_000)), at(0));
        for minute in 1..24 * 60 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert!(!clock.record(at(minute), TimeDelta::zero()), "{minute}");
        }
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(clock.record(at(24 * 60), TimeDelta::zero()));
        assert_eq!(clock.latest(), at(24 * 60));
    }
}
