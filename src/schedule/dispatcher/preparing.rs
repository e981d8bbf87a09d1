//! Slow work that is done a moment before an occurrence falls due, so that its run begins at once.

use chrono::{DateTime, TimeDelta, Utc};

use super::Dispatcher;

/// Time before an occurrence falls due at which the launcher gets ready for it. That takes some milliseconds, and more on a busy machine. What
/// is ready for an earlier occurrence is not there for this one, so the time is short.
const LEAD: TimeDelta = TimeDelta::milliseconds(100);

/// Maximum number of occurrences of one moment that are looked at.
const MAX_SEEN: usize = 16;

impl Dispatcher {
    /// Has the launcher get ready if an occurrence that starts processes falls due in a moment, at `due`. Returns when to look again.
    pub(super) fn prepare(&mut self, due: DateTime<Utc>) -> DateTime<Utc> {
        if self.prepared == Some(due) {
            return due;
        }
        if self.clock.now() < due - LEAD {
            return due - LEAD;
        }
        self.prepared = Some(due);
        let mut first = self.definitions.upcoming(MAX_SEEN).into_iter();
        if first.any(|(at, definition)| at <= due && !self.launcher.is_message_only(&definition)) {
            self.launcher.get_ready();
        }
        due
    }
}
