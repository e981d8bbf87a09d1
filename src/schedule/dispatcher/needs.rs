//! Jobs whose requirements the machine does not meet. They wait, claimed, and are skipped after too long a wait.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use super::super::active::Priority;
use super::super::conclusion::failure_buttons;
use super::super::job::Approval;
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{DelayCause, EventKind, Finish, NewMessage, RunId, RunState};

/// Time between checks of the requirements.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum wait if the file does not set one.
const DEFAULT_WAIT: Duration = Duration::from_secs(6 * 60 * 60);

impl Dispatcher {
    /// Makes an occurrence wait for its requirements and records that, or skips it after its maximum wait. The wait
    /// counts from the claim, so a restart changes nothing. For a retry it counts from when that was to begin.
    pub(super) fn on_unmet(&mut self, number: u64, why: &'static str) {
        let Some(running) = self.active.get(number).and_then(|active| active.running()) else { return };
        let (cause, definition) = (running.cause, running.definition.clone());
        self.recent.retract(&definition);
        self.waits_again(number, cause, false);
        if !self.stop_probing(number) {
            return;
        }
        let now = self.clock.now();
        let Some(active) = self.active.get_mut(number) else { return };
        let longest = definition.requires_for.unwrap_or(DEFAULT_WAIT);
        let is_first = active.attempt == 1;
        let since = *active.unmet_since.get_or_insert(if is_first { active.claimed } else { now });
        let waited = (now - since).max(TimeDelta::zero()).to_std().unwrap_or_default();
        let left = longest.saturating_sub(waited);
        let run = active.run.clone();
        if !left.is_zero() {
            let again = Instant::now() + POLL_INTERVAL.min(left);
            active.unmet = Some(again);
            self.gate.needs_again = Some(self.gate.needs_again.map_or(again, |first| first.min(again)));
            if active.delayed_by.replace(DelayCause::Requires) != Some(DelayCause::Requires) {
                let what = Some(why.to_owned());
                self.journal.record(&run, EventKind::Delayed { by: DelayCause::Requires, until: None, what });
            }
            let journal = self.journal.clone();
            self.note(async move { journal.note_waiting(&run, why).await });
            return;
        }
        self.skip_unstarted(number, &definition, format!("{why}, for {}", humantime::format_duration(longest)));
    }

    /// Makes an occurrence wait for approval, or skips it. `answers`: number of the person's answers before the check.
    pub(super) fn on_unapproved(&mut self, number: u64, approval: Approval, answers: u64) {
        let Some(running) = self.active.get(number).and_then(|active| active.running()) else { return };
        let (cause, definition) = (running.cause, running.definition.clone());
        self.recent.retract(&definition);
        self.waits_again(number, cause, false);
        if !self.stop_probing(number) {
            return;
        }
        match approval {
            Approval::Granted => {
                if let Some(active) = self.active.get_mut(number) {
                    active.is_approved = true;
                }
            }
            Approval::Refused(why) => self.skip_unstarted(number, &definition, why),
            Approval::Waits(until) | Approval::AskedLater(until) => {
                // An answer or an edit that came meanwhile may concern this occurrence.
                let is_current =
                    self.definitions.definition(&definition.id).is_some_and(|now| Arc::ptr_eq(now, &definition));
                let is_news = self.answers != answers || !is_current;
                let again = if is_news { Instant::now() } else { self.retry_instant(until) };
                let Some(active) = self.active.get_mut(number) else { return };
                (active.may_be_asked_about, active.is_approved) = (true, false);
                active.unmet = Some(again);
                self.gate.needs_again = Some(self.gate.needs_again.map_or(again, |first| first.min(again)));
                let run = active.run.clone();
                if active.delayed_by.replace(DelayCause::Approval) != Some(DelayCause::Approval) {
                    self.journal.record(&run, EventKind::Delayed { by: DelayCause::Approval, until: None, what: None });
                }
                let journal = self.journal.clone();
                let what = match approval {
                    Approval::AskedLater(_) => {
                        "you are asked about it once you have answered about others of its maker (`ollim-bot questions`)"
                    }
                    _ => "it waits for your yes (`ollim-bot questions`)",
                };
                self.note(async move { journal.note_waiting(&run, what).await });
            }
        }
    }

    /// Makes occurrences that wait for an answer check it, since one was given. The run that the person has refused needs no check, and
    /// so no slot.
    pub(super) fn recheck_answers(&mut self, refused: Option<(RunId, String)>) {
        self.answers += 1;
        if let Some((run, why)) = refused
            && let Some(number) = self.active.numbers(|active| active.run == run).pop()
            && let Some(active) = self.active.get_mut(number)
        {
            active.refused = Some(why);
            if active.is_idle() {
                self.close_refused(number);
            }
        }
        for number in self.active.numbers(|active| active.unmet.is_some() && active.may_be_asked_about) {
            if let Some(active) = self.active.get_mut(number) {
                active.unmet = None;
            }
        }
    }

    /// Makes occurrences check their requirements and approval again, since the file was edited or is gone.
    pub(super) fn recheck_edited(&mut self, id: &DefinitionId) {
        let waiting: Vec<u64> = self.active.of(id).filter(|(_, one)| one.unmet.is_some()).map(|(n, _)| n).collect();
        for number in waiting {
            if let Some(active) = self.active.get_mut(number) {
                active.unmet = None;
            }
        }
    }

    /// Lets others probe for a login, since this one cannot begin. Returns `false` if it is gone, or is being ended.
    fn stop_probing(&mut self, number: u64) -> bool {
        let Some(active) = self.active.get_mut(number).filter(|active| active.is_idle()) else { return false };
        if active.priority == Priority::LoginProbe {
            active.priority = Priority::Scheduled;
            self.ensure_login_probe();
        }
        true
    }

    /// Skips an idle occurrence if the person has refused it.
    pub(super) fn close_refused(&mut self, number: u64) {
        let Some(active) = self.active.get_mut(number) else { return };
        let Some(why) = active.refused.take() else { return };
        match self.definitions.definition(&active.occurrence.id).cloned() {
            Some(definition) => self.skip_unstarted(number, &definition, why),
            None => self.record(number, Finish::closed(RunState::Skipped, Some(why))),
        }
    }

    /// Skips an occurrence, and notifies the person if it is a reminder. One that has failed before counts as failed.
    pub(super) fn skip_unstarted(&mut self, number: u64, definition: &Definition, why: String) {
        let Some(active) = self.active.get(number) else { return };
        let run = active.run.clone();
        if active.attempt > 1 {
            return self.give_up(number, why);
        }
        let mut finish = Finish::closed(RunState::Skipped, Some(why.clone()));
        if definition.kind() == Kind::Reminder {
            let id = &definition.id;
            let text = format!(
                "reminder {id} was skipped: {why}. Its file is kept in reminders/failed/; `ollim-bot reminder retry {id}` brings it back."
            );
            let message = NewMessage::of_run(&run, definition, text);
            finish.messages.push(message.with_buttons(failure_buttons(Kind::Reminder)));
        }
        self.record(number, finish);
    }

    /// Makes occurrences with missing requirements check them again, if it is time.
    pub(super) fn recheck_requirements(&mut self) {
        let now = Instant::now();
        if self.gate.needs_again.is_none_or(|again| again > now) {
            return;
        }
        for number in self.active.numbers(|active| active.unmet.is_some_and(|again| again <= now)) {
            if let Some(active) = self.active.get_mut(number) {
                active.unmet = None;
            }
        }
        self.gate.needs_again = self.active.iter().filter_map(|(_, active)| active.unmet).min();
    }
}
