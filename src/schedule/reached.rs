//! How far the wall clock has come, and whether one that went back is taken for right.
//!
//! A clock that is set back was ahead until then, or is behind from now on (a battery that is empty, a clock that
//! another system keeps in local time) and will be set right: nothing tells which. While it is behind what it has shown,
//! what falls due before that was not missed: else it would run again, or as a backlog, once the clock is right. The
//! price is paid where it had been ahead: what is missed then does not run late. So such a clock is taken for right where
//! that is likely. Pure but for steady time.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// One that goes back so soon after it went forwards, and no further than it came from, was ahead.
const UNDONE: Duration = Duration::from_secs(60 * 60);

/// One that has been behind for so long is right.
const BELIEVED: Duration = Duration::from_secs(24 * 60 * 60);

/// What was set back by less is there again soon: until then nothing falls due that had done so before.
const LITTLE: TimeDelta = TimeDelta::hours(1);

/// See the module's head.
#[derive(Debug)]
pub(super) struct Reached {
    /// The latest time that it has shown.
    shown: DateTime<Utc>,
    /// How far it had come before it was set forwards beyond that, or the service was down, and when it was.
    step: Option<(DateTime<Utc>, Instant)>,
    /// Since when it is behind `shown`.
    behind: Option<Instant>,
}

impl Reached {
    /// At a start; `known`: how far it had come in earlier lives.
    pub(super) fn new(known: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Self {
        let mut reached = Self { shown: known.unwrap_or(now), step: None, behind: None };
        reached.look(now, now - reached.shown);
        reached
    }

    /// The latest time that it has shown.
    pub(super) fn shown(&self) -> DateTime<Utc> {
        self.shown
    }

    /// The latest time that it has shown or, had it not been set back, would have.
    pub(super) fn latest(&self) -> DateTime<Utc> {
        let behind = self.behind.map_or(Duration::ZERO, |since| since.elapsed());
        self.shown + TimeDelta::from_std(behind).unwrap_or_default()
    }

    /// Whether it is so far behind that it cannot be waited until it is there again.
    pub(super) fn is_far_behind(&self, now: DateTime<Utc>) -> bool {
        self.shown - now > LITTLE
    }

    /// Takes in what it shows now, and by how much it was set since the last look. Whether it is behind, and from now on
    /// taken for right.
    pub(super) fn look(&mut self, now: DateTime<Utc>, set: TimeDelta) -> bool {
        let recent = self.step.filter(|(_, since)| since.elapsed() <= UNDONE);
        if now >= self.shown {
            let latest = self.latest();
            if now > latest && set > TimeDelta::zero() {
                // Of several steps the first counts.
                self.step = recent.or_else(|| Some((latest.max(now - set), Instant::now())));
            }
            self.shown = now;
            self.behind = None;
            return false;
        }
        if self.behind.is_none() && set < TimeDelta::zero() {
            // The last look may be long ago: so far it had come when it was set back.
            self.shown = self.shown.max(now - set);
        }
        let behind = *self.behind.get_or_insert_with(Instant::now);
        let undone = set < TimeDelta::zero() && recent.is_some_and(|(from, _)| from <= now);
        let believed = undone || behind.elapsed() >= BELIEVED;
        if believed {
            self.shown = now;
            self.behind = None;
        }
        believed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    /// A clock that is at each of these minutes, one minute after the other, and whether it is taken for right there.
    async fn check(known: Option<i64>, start: i64, looks: &[(i64, bool)]) {
        let mut reached = Reached::new(known.map(at), at(start));
        let mut last = start;
        for (shows, believed) in looks {
            tokio::time::advance(Duration::from_secs(60)).await;
            let set = TimeDelta::minutes(shows - last - 1);
            last = *shows;
            assert_eq!(reached.look(at(*shows), set), *believed, "{known:?}, {start}, {looks:?}: at {shows}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_is_undone_was_one_ahead_and_a_dip_is_not() {
        // Ahead for a moment, while it runs and at a start.
        check(None, 100, &[(900, false), (102, true), (103, false)]).await;
        check(Some(100), 900, &[(901, false), (102, true), (103, false)]).await;
        // In two steps each.
        check(None, 100, &[(500, false), (900, false), (600, true), (104, true), (105, false)]).await;
        // Behind, and right again: while it runs, at a start, several times.
        check(None, 900, &[(100, false), (902, false), (200, false), (904, false)]).await;
        check(Some(900), 100, &[(101, false), (902, false), (200, false), (904, false)]).await;
        check(Some(900), 100, &[(200, false), (150, false), (904, false)]).await;
        // Behind what was known before it went ahead.
        check(Some(100), 900, &[(50, false), (51, false)]).await;
        // The very first start knows nothing that it could have come from.
        check(None, 900, &[(100, false), (101, false)]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_stays_behind_for_a_day_is_right() {
        let mut reached = Reached::new(Some(at(100_000)), at(0));
        for minute in 1..24 * 60 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert!(!reached.look(at(minute), TimeDelta::zero()), "{minute}");
        }
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(reached.look(at(24 * 60), TimeDelta::zero()));
        assert_eq!(reached.latest(), at(24 * 60));
        // A step of more than an hour ago is not undone any more.
        let mut reached = Reached::new(Some(at(0)), at(900));
        tokio::time::advance(Duration::from_secs(61 * 60)).await;
        assert!(!reached.look(at(961), TimeDelta::zero()));
        assert!(!reached.look(at(500), TimeDelta::minutes(-461)));
    }
}
