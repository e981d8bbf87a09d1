//! The latest launches.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::definition::Definition;

/// Time for which a launch is recent, and maximum number of launches kept.
const RECENT: TimeDelta = TimeDelta::minutes(15);
const MAX_LAUNCHES: usize = 64;

/// Launches, oldest first.
#[derive(Debug, Default)]
pub(super) struct RecentLaunches(VecDeque<(DateTime<Utc>, Arc<Definition>)>);

impl RecentLaunches {
    pub(super) fn push(&mut self, now: DateTime<Utc>, definition: Arc<Definition>) {
        if self.0.len() == MAX_LAUNCHES {
            self.0.pop_front();
        }
        self.0.push_back((now, definition));
    }

    /// Removes a launch that did not happen after all.
    pub(super) fn retract(&mut self, definition: &Arc<Definition>) {
        self.0.retain(|(_, launched)| !Arc::ptr_eq(launched, definition));
    }

    /// Returns the launches that are recent at `now`.
    pub(super) fn at(&self, now: DateTime<Utc>) -> Vec<(DateTime<Utc>, Arc<Definition>)> {
        self.0.iter().filter(|(at, _)| now - at < RECENT).cloned().collect()
    }
}
