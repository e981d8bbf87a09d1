//! The ping budget: how many messages all background jobs together may send the person.
//!
//! The journal stores two values. Refills since then are computed when the budget is read.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::journal::{Journal, JournalError};

/// A full budget.
pub const CAPACITY: u32 = 5;

/// Time until one more ping is refilled.
pub const REFILL: TimeDelta = TimeDelta::minutes(90);

/// The number of pings left, and the time from which the next refill counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingBudget {
    left: u32,
    since: DateTime<Utc>,
}

impl PingBudget {
    /// Creates a full budget.
    #[must_use]
    pub fn full(now: DateTime<Utc>) -> Self {
        Self { left: CAPACITY, since: now }
    }

    /// Creates a budget with `left` pings, at most [`CAPACITY`].
    #[must_use]
    pub fn with(left: u32, now: DateTime<Utc>) -> Self {
        Self { left: left.min(CAPACITY), since: now }
    }

    /// Returns the state at `now` of the stored budget; full if none is stored.
    #[must_use]
    pub fn stored(text: Option<&str>, now: DateTime<Utc>) -> Self {
        let kept = text.and_then(|text| serde_json::from_str::<Self>(text).ok());
        kept.map_or_else(|| Self::full(now), |kept| kept.at(now))
    }

    /// Returns the state at `now`, with refills. If the clock was set back, the current refill starts anew.
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

    /// Takes one ping at `now`; `None` if there is none left.
    #[must_use]
    pub fn take(self, now: DateTime<Utc>) -> Option<Self> {
        let current = self.at(now);
        current.left.checked_sub(1).map(|left| Self { left, ..current })
    }

    /// Returns the pings left, as of the last [`at`](Self::at).
    #[must_use]
    pub fn left(self) -> u32 {
        self.left
    }

    /// Returns the time of the next refill; `None` if the budget is full.
    #[must_use]
    pub fn next(self) -> Option<DateTime<Utc>> {
        (self.left < CAPACITY).then(|| self.since + REFILL)
    }
}

/// The journal's setting that stores it.
pub const SETTING: &str = "ping_budget";

/// The budget in the journal. Clones share it.
#[derive(Clone)]
pub struct SharedBudget {
    journal: Journal,
}

impl SharedBudget {
    /// Creates the budget that `journal` stores; full if it stores none.
    #[must_use]
    pub fn new(journal: Journal) -> Self {
        Self { journal }
    }

    /// Returns the state at `now`.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn read(&self, now: DateTime<Utc>) -> Result<PingBudget, JournalError> {
        let stored = self.journal.setting(SETTING).await?;
        Ok(PingBudget::stored(stored.as_deref(), now))
    }

    /// Takes one ping at `now`; returns `false` if there is none left.
    ///
    /// # Errors
    /// If the journal cannot be read or written. Then nothing is taken.
    pub async fn take(&self, now: DateTime<Utc>) -> Result<bool, JournalError> {
        // In one commit, since other hosts may take pings, too.
        let taken = self.journal.change_setting(SETTING, move |stored| {
            let left = PingBudget::stored(stored, now).take(now)?;
            Some((serde_json::to_string(&left).ok()?, ()))
        });
        Ok(taken.await?.is_some())
    }

    /// Sets the number of pings left, at most [`CAPACITY`].
    ///
    /// # Errors
    /// If the journal cannot be written.
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
