//! Reacts to a wall clock that was set, to a machine that slept, and to a service that was suspended.

use chrono::{DateTime, TimeDelta, Utc};

use super::Dispatcher;
use crate::journal::{DelayCause, EventKind};
use crate::schedule::missed::is_late;

/// After a forward jump, occurrences due within this time before now are still on time. Otherwise a clock that was
/// slewed for long, and so differs from steady time, could seem to jump over the very moment of an occurrence.
const JUST_DUE: TimeDelta = TimeDelta::seconds(2);

impl Dispatcher {
    /// Compares the wall clock with steady time.
    pub(super) fn check_clock(&mut self) {
        let jump = self.drift.measure(&self.clock).unwrap_or_default();
        let (now, shown) = (self.clock.now(), self.wall_clock.shown());
        let trusted = self.wall_clock.record(now, jump);
        let slept = self.drift.was_asleep(jump);
        if jump.num_seconds() != 0 {
            self.journal.record_apart(None, EventKind::ClockSet { seconds: jump.num_seconds(), slept });
        }
        if jump > TimeDelta::zero() {
            tracing::info!(seconds = jump.num_seconds(), "the clock went forwards, or the machine slept");
            // A clock that was behind has shown all times until `shown` before.
            let by = if slept { DelayCause::Slept } else { DelayCause::ClockForward };
            self.gate.not_eligible_until((now - JUST_DUE).max(shown.min(now)), by);
        } else if jump < TimeDelta::zero() {
            tracing::warn!(seconds = jump.num_seconds(), "the clock was set back");
            self.gate.eligible_since = self.gate.eligible_since.min(now);
            self.definitions.fire_again_after(now);
        }
        if trusted {
            self.trust_clock(now);
        }
    }

    /// Notices that this process did not run while an occurrence fell due, although the clocks went on: it was stopped by a signal, or its
    /// container or virtual machine was.
    pub(super) fn check_suspended(&mut self) {
        let (due, now) = (self.waits_for.take(), self.clock.now());
        if due.is_some_and(|due| is_late(due, now)) {
            tracing::warn!("the service was suspended while jobs fell due");
            self.gate.not_eligible_until(now - JUST_DUE, DelayCause::Suspended);
        }
    }

    /// Trusts a clock that is behind. From now on, occurrences that fall due and cannot run count as missed.
    fn trust_clock(&mut self, now: DateTime<Utc>) {
        // The other hosts have clocks of their own.
        if !self.sharing.is_shared() {
            let journal = self.journal.clone();
            self.note(async move { journal.rewind_watermarks().await });
        }
        self.definitions.rewind(now);
    }
}
