//! Records why a due occurrence cannot begin. The journal keeps the schedule's own view, so that `why` need not guess.

use super::super::active::{ActiveOccurrence, Priority};
use super::Dispatcher;
use crate::definition::Mode;
use crate::journal::{DelayCause, EventKind};

impl Dispatcher {
    /// Records why each waiting occurrence waits, if the reason has changed.
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

    /// Records why an occurrence waits.
    pub(super) fn note_delay(&mut self, number: u64, by: DelayCause) {
        let Some(active) = self.active.get_mut(number) else { return };
        let before = active.delayed_by.replace(by);
        self.journal.record(&active.run, EventKind::Delayed { by, until: None, what: None });
        if matches!(before, Some(DelayCause::Requires | DelayCause::Approval)) {
            // The record names what it waited for until now.
            let (journal, run) = (self.journal.clone(), active.run.clone());
            self.note(async move { journal.note_waiting(&run, by.waits_for()).await });
        }
    }

    /// Returns why a waiting occurrence cannot begin. `None` if no lasting reason exists.
    fn delayed_by(&self, number: u64, active: &ActiveOccurrence) -> Option<DelayCause> {
        let id = &active.occurrence.id;
        let definition = self.definitions.definition(id)?;
        let is_scheduled = active.priority == Priority::Scheduled;
        if active.unmet.is_some() {
            return active.delayed_by.or(Some(DelayCause::Requires));
        } else if active.awaits_agent {
            let lacks_login = self.gate.agent_missing.is_some_and(|missing| missing.lacks_login);
            return Some(if lacks_login { DelayCause::Login } else { DelayCause::Agent });
        } else if self.gate.paused.is_some() && active.priority != Priority::ByHand {
            return Some(DelayCause::Paused);
        } else if self.gate.waiting_for_login.is_some() && is_scheduled && !definition.is_without_agent() {
            return Some(DelayCause::Login);
        } else if self.definitions.claiming.contains(id) {
            return None;
        } else if self.is_behind(number, id) {
            return Some(DelayCause::EarlierRun);
        } else if self.launcher.is_message_only(definition) {
            return None;
        } else if definition.mode == Mode::Foreground {
            return self.active.is_conversation_busy(definition).then_some(DelayCause::MainSession);
        } else if self.active.running_in_background() >= self.max_concurrent_runs {
            return Some(DelayCause::Slot);
        }
        definition.is_made_by_run().then_some(DelayCause::SlotOfJobs)
    }
}
