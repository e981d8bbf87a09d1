//! The ping budget: how many messages background jobs may send the person, all together.
//!
//! The state is two values in the journal; what has come back since is computed when it is read.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::journal::{Journal, JournalError};

/// A full budget.
pub const CAPACITY: u32 = 5;

/// After this long, one more comes back.
pub const REFILL: TimeDelta = TimeDelta::minutes(90);

/// What is left, and from when the next refill counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingBudget {
    left: u32,
    since: DateTime<Utc>,
}

impl PingBudget {
    /// A full budget.
    #[must_use]
    pub fn full(now: DateTime<Utc>) -> Self {
        Self { left: CAPACITY, since: now }
    }

    /// A budget with `left` pings, at most [`CAPACITY`].
    #[must_use]
    pub fn with(left: u32, now: DateTime<Utc>) -> Self {
        Self { left: left.min(CAPACITY), since: now }
    }

    /// The state at `now` of what the journal keeps; full where it keeps none.
    #[must_use]
    pub fn stored(text: Option<&str>, now: DateTime<Utc>) -> Self {
        let kept = text.and_then(|text| serde_json::from_str::<Self>(text).ok());
        kept.map_or_else(|| Self::full(now), |kept| kept.at(now))
    }

    /// The state at `now`, with what has come back. A clock set back starts the current refill anew.
    #[must_use]
    pub fn at(self, now: DateTime<Utc>) -> Self {
        let passed = now - self.since;
        if passed < TimeDelta::zero() {
            return Self { since: now, ..self };
        }
        let gained = passed.num_seconds() / REFILL.num_seconds();
        let left = u32::try_from(gained).unwrap_or(u32::MAX).saturating_add(self.left);
        if left >= CAPACITY {
            return Self::full(now);
        }
        let whole = i32::try_from(gained).map_or(TimeDelta::zero(), |count| REFILL * count);
        Self { left, since: self.since + whole }
    }

    /// Takes one at `now`; `None` when there is none.
    #[must_use]
    pub fn take(self, now: DateTime<Utc>) -> Option<Self> {
        let current = self.at(now);
        current.left.checked_sub(1).map(|left| Self { left, ..current })
    }

    /// Pings left, as of the last [`at`](Self::at).
    #[must_use]
    pub fn left(self) -> u32 {
        self.left
    }

    /// When the next one comes back; `None` when it is full.
    #[must_use]
    pub fn next(self) -> Option<DateTime<Utc>> {
        (self.left < CAPACITY).then(|| self.since + REFILL)
    }
}

/// Where the journal keeps it.
pub const SETTING: &str = "ping_budget";

/// The budget in the journal. Clones share it; one reader and writer at a time.
#[derive(Clone)]
pub struct SharedBudget {
    journal: Journal,
}

impl SharedBudget {
    /// The budget that `journal` keeps; full where it keeps none.
    #[must_use]
    pub fn new(journal: Journal) -> Self {
        Self { journal }
    }

    /// The state at `now`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn read(&self, now: DateTime<Utc>) -> Result<PingBudget, JournalError> {
        let stored = self.journal.setting(SETTING).await?;
        Ok(PingBudget::stored(stored.as_deref(), now))
    }

    /// Takes one at `now`; `false` when there is none.
    ///
    /// # Errors
    /// When the journal cannot be read or written: then nothing is taken.
    pub async fn take(&self, now: DateTime<Utc>) -> Result<bool, JournalError> {
        // In one commit, since other hosts may take from it, too.
        let taken = self.journal.change_setting(SETTING, move |stored| {
            let left = PingBudget::stored(stored, now).take(now)?;
            Some((serde_json::to_string(&left).ok()?, ()))
        });
        Ok(taken.await?.is_some())
    }

    /// Sets what is left, at most [`CAPACITY`].
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn set(&self, left: u32, now: DateTime<Utc>) -> Result<PingBudget, JournalError> {
        let budget = PingBudget::with(left, now);
        self.journal.set_setting(SETTING, serde_json::to_string(&budget).ok()).await.map(|()| budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    #[test]
    fn comes_back_one_at_a_time_up_to_the_capacity() {
        let check = |left: u32, minutes: i64, expect: (u32, Option<i64>)| {
            let budget = PingBudget::with(left, at(0)).at(at(minutes));
            assert_eq!((budget.left(), budget.next()), (expect.0, expect.1.map(at)), "{left} after {minutes} min");
        };
        check(5, 0, (5, None));
        check(0, 89, (0, Some(90)));
        check(0, 90, (1, Some(180)));
        check(0, 200, (2, Some(270)));
        check(3, 180, (5, None));
        check(0, 100_000_000, (5, None));
        check(2, -60, (2, Some(30)));
    }

    #[test]
    fn taking_keeps_what_has_already_come_back_of_the_next_one() {
        let mut budget = PingBudget::full(at(0));
        for _ in 0..5 {
            budget = budget.take(at(10)).unwrap();
        }
        assert_eq!(budget.take(at(10)), None);
        assert_eq!(budget.next(), Some(at(100)));
        assert_eq!(budget.take(at(100)).unwrap().left(), 0);
    }
}
