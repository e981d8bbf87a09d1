//! A wall clock that is set, and a machine that has slept: what of it was missed, and what is looked at again.

use chrono::{DateTime, TimeDelta, Utc};

use super::Dispatcher;
use crate::definition::DefinitionId;

/// After a forward jump, what fell due this shortly before the new time is still on time. It keeps a clock that was
/// slewed for long, and so strays from steady time, from looking like a jump over the very moment that was waited for.
const JUST_DUE: TimeDelta = TimeDelta::seconds(2);

impl Dispatcher {
    /// Notices that the wall clock was set, or that the machine slept.
    pub(super) fn look_at_the_clock(&mut self) {
        let jump = self.drift.look(&self.clock).unwrap_or_default();
        let (now, before) = (self.clock.now(), self.reached.shown());
        let right = self.reached.look(now, jump);
        if jump > TimeDelta::zero() {
            tracing::info!(seconds = jump.num_seconds(), "the clock went forwards, or the machine slept");
            // What it had shown before it fell behind is not just due now.
            self.able_since = self.able_since.max(now - JUST_DUE).max(before.min(now));
        } else if jump < TimeDelta::zero() {
            tracing::warn!(seconds = jump.num_seconds(), "the clock was set back");
            self.able_since = self.able_since.min(now);
            if self.reached.is_far_behind(now) {
                self.wind_back(now);
            }
        }
        if right {
            self.take_for_right(now);
        }
    }

    /// The clock went back: what was accounted for ahead of it is looked at again when it falls due; the journal knows
    /// what has a record.
    fn wind_back(&mut self, now: DateTime<Utc>) {
        let ahead: Vec<DefinitionId> = self
            .definitions
            .iter_mut()
            .filter_map(|(id, entry)| {
                let accounted = entry.accounted.as_mut().filter(|accounted| **accounted > now)?;
                *accounted = now;
                Some(id.clone())
            })
            .collect();
        for id in ahead {
            self.arm(&id);
        }
    }

    /// The clock is behind, and taken for right: from now on what falls due and cannot run was missed.
    fn take_for_right(&mut self, now: DateTime<Utc>) {
        let journal = self.journal.clone();
        self.note(async move { journal.wound_back().await });
        for entry in self.definitions.values_mut() {
            entry.settled = entry.settled.min(now);
        }
        self.wind_back(now);
    }
}
