//! Records why an occurrence that is due cannot begin: the journal keeps what the schedule sees, so that `why` has not to guess.

use super::super::active::{ActiveOccurrence, Priority};
use super::Dispatcher;
use crate::definition::Mode;
use crate::journal::{DelayCause, EventKind};

impl Dispatcher {
    /// Records what each waiting occurrence waits for, where that is something else than before.
    pub(super) fn note_delays(&mut self) {
        if !self.phase.is_running() {
            return;
        }
        let now = self.active.waiting();
        let changed: Vec<(u64, DelayCause)> = now
            .filter_map(|(number, active)| {
                let by = self.delayed_by(number, active)?;
                (active.delayed_by != Some(by)).then_some((number, by))
            })
            .collect();
        for (number, by) in changed {
            self.note_delay(number, by);
        }
    }

    /// Records what an occurrence waits for.
    pub(super) fn note_delay(&mut self, number: u64, by: DelayCause) {
        if let Some(active) = self.active.get_mut(number) {
            active.delayed_by = Some(by);
            self.journal.record(&active.run, EventKind::Delayed { by, until: None, what: None });
        }
    }

    /// What keeps a waiting occurrence from beginning. `None`: nothing that lasts.
    fn delayed_by(&self, number: u64, active: &ActiveOccurrence) -> Option<DelayCause> {
        let id = &active.occurrence.id;
        let definition = self.definitions.definition(id)?;
        let is_scheduled = active.priority == Priority::Scheduled;
        if active.unmet.is_some() {
            return active.delayed_by.or(Some(DelayCause::Requires));
        } else if active.awaits_agent {
            return Some(DelayCause::Agent);
        } else if self.gate.paused.is_some() && active.priority != Priority::ByHand {
            return Some(DelayCause::Paused);
        } else if self.gate.waiting_for_login.is_some() && is_scheduled && !definition.is_without_agent() {
            return Some(DelayCause::Login);
        } else if self.definitions.claiming.contains(id) {
            return None;
        } else if self.is_behind(number, id) {
            return Some(DelayCause::EarlierRun);
        } else if self.launcher.tells_only(definition) {
            return None;
        } else if definition.mode == Mode::Foreground {
            return (self.active.running(true) > 0).then_some(DelayCause::MainSession);
        } else if self.active.running(false) >= self.max_concurrent_runs {
            return Some(DelayCause::Slot);
        }
        definition.is_made_by_run().then_some(DelayCause::SlotOfJobs)
    }
}
