//! The queue: an ordered set, so that waiting costs the same for one definition as for 100,000.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::definition::DefinitionId;

/// Definitions by their next due time. To remove one, the caller has to know its time.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeSet<(DateTime<Utc>, DefinitionId)>);

impl Queue {
    pub(super) fn insert(&mut self, due: DateTime<Utc>, id: DefinitionId) {
        self.0.insert((due, id));
    }

    pub(super) fn remove(&mut self, due: DateTime<Utc>, id: &DefinitionId) {
        self.0.remove(&(due, id.clone()));
    }

    /// Returns when the first definition falls due.
    pub(super) fn first(&self) -> Option<DateTime<Utc>> {
        self.0.first().map(|(due, _)| *due)
    }

    /// Removes all due definitions and returns them in order.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>) -> Vec<DefinitionId> {
        let mut due = Vec::new();
        while self.0.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.0.pop_first().map(|(_, id)| id));
        }
        due
    }

    /// Returns the next `count` definitions, in order.
    pub(super) fn next(&self, count: usize) -> Vec<(DateTime<Utc>, DefinitionId)> {
        self.0.iter().take(count).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Everything due is taken, in order, and nothing else.
        #[test]
        fn takes_exactly_what_is_due(times in proptest::collection::vec(0i64..100, 0..50), now in 0i64..100) {
            let at = |ms| DateTime::from_timestamp_millis(ms).unwrap();
            let mut queue = Queue::default();
            for (n, ms) in times.iter().enumerate() {
                queue.insert(at(*ms), DefinitionId::new(format!("{n:02}")));
            }
            let taken = queue.take_due(at(now));
            let mut expected: Vec<_> = times.iter().enumerate().filter(|(_, ms)| **ms <= now).collect();
            expected.sort_by_key(|(n, ms)| (**ms, *n));
            prop_assert_eq!(taken, expected.iter().map(|(n, _)| DefinitionId::new(format!("{n:02}"))).collect::<Vec<_>>());
            prop_assert_eq!(queue.first(), times.iter().filter(|ms| **ms > now).min().map(|ms| at(*ms)));
        }
    }
}
