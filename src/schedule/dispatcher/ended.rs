//! Ends attempts: the outcome is recorded first, then acted upon.

use super::super::active::{ActiveOccurrence, LastAttempt, Priority, Stage};
use super::super::command::CancelError;
use super::super::conclusion::{
    AttemptData, LOGIN_BUTTONS, LOGIN_PROBE, buttons_of, conclude, failure_buttons, given_up,
};
use super::Dispatcher;
use super::recovery::NO_LOGIN;
use crate::agent::{AttemptEnd, AttemptReport, FailureClass};
use crate::definition::{Kind, maker_in};
use crate::journal::{AfterAttempt, ConcludedReminder, Finish, JournalError, NewMessage, RunState, Subject};

impl Dispatcher {
    /// Concludes an ended attempt. `had_side_effect`: whether any attempt of its occurrence had one.
    pub(super) fn on_ended(&mut self, number: u64, report: AttemptReport, had_side_effect: bool) {
        let Some(active) = self.active.get_mut(number) else { return };
        active.had_side_effect |= had_side_effect;
        let Some(active) = self.active.get(number) else { return };
        let Some(running) = active.running() else { return };
        let login = login(&report);
        let attempted = AttemptData {
            run: &active.run,
            definition: &running.definition,
            failures: active.failures,
            had_side_effect: active.had_side_effect,
            cause: running.cause,
            stopping: self.phase.is_stopping(),
            consecutive_failures: self.definitions.failures(&running.definition.id),
            alert_after: self.alert_after,
            now: self.clock.now(),
            chance: random_fraction(),
        };
        let mut finish = conclude(&attempted, report);
        // A turn of the main session, or of a fork. Its answer goes to the person, in the same commit as the outcome.
        if (running.foreground || running.definition.kind() == Kind::Session && running.definition.id.is_turn())
            && finish.state == RunState::Completed
        {
            let answer = finish.answer.clone().filter(|answer| !answer.trim().is_empty());
            let message = |text| NewMessage::said_by(&active.run, &running.definition, text);
            finish.messages.extend(answer.map(|text| message(text).with_buttons(buttons_of(&running.definition))));
        }
        match login {
            Some(false) if finish.class.is_some() => self.login_is_missing(number, &mut finish),
            Some(true) => self.login_works(&mut finish),
            _ => {}
        }
        self.record(number, finish);
    }

    /// Gives up an idle occurrence. It counts as a failure like any other.
    pub(super) fn give_up(&mut self, number: u64, why: String) {
        let Some(active) = self.active.get(number) else { return };
        let (id, kind) = (&active.occurrence.id, active.occurrence.kind);
        let finish = match self.definitions.definition(id) {
            Some(definition) => given_up(
                &AttemptData {
                    run: &active.run,
                    definition,
                    failures: active.failures,
                    had_side_effect: active.had_side_effect,
                    cause: None,
                    stopping: false,
                    consecutive_failures: self.definitions.failures(id),
                    alert_after: self.alert_after,
                    now: self.clock.now(),
                    chance: 0.0,
                },
                why,
            ),
            // The definition's file is gone or not valid. The person is notified of the run all the same.
            None => {
                let text = format!("{kind} {id} failed: {why}.");
                let subject = Subject::job_with(id, maker_in(&active.text));
                let message = NewMessage { run: Some(active.run.clone()), ..NewMessage::about(subject, text) };
                let message = message.with_buttons(failure_buttons(kind));
                Finish { messages: vec![message], ..Finish::closed(RunState::Failed, Some(why)) }
            }
        };
        self.record(number, finish);
    }

    /// Has the journal record an end, then acts upon it.
    pub(super) fn record(&mut self, number: u64, mut finish: Finish) {
        self.add_followers(number, &mut finish);
        self.note_run(number);
        let Some(active) = self.active.get(number) else { return };
        let (journal, run) = (self.journal.clone(), active.run.clone());
        // Counted at once, since the next occurrence may end before this is on the disk.
        if let Some(failures) = &finish.consecutive_failures {
            let was_paused = self.definitions.is_paused(&failures.id);
            self.definitions.set_failures(failures);
            if was_paused && failures.paused.is_none() {
                // A person fired it, and it works again.
                self.end_pause(&failures.id);
            }
        }
        let over = matches!(finish.after, AfterAttempt::Closed);
        self.active.set_stage(number, if over { Stage::Closing } else { Stage::Recording });
        self.begin_claims(&finish.followers);
        let (recorded, claimed, asked) = (finish.clone(), finish.followers.clone(), self.asked());
        let task = async move {
            fail_point!(BeforeOutcome);
            let result = journal.finish(&run, recorded).await;
            fail_point!(OutcomeRecorded);
            result
        };
        self.spawn(task, move |this, result| {
            this.end_claims(&claimed);
            if let Some(followers) = this.ignore_unknown_run(number, result)? {
                this.on_recorded(number, finish);
                let (claims, answers) = followers.into_iter().unzip();
                this.on_claimed(claims, answers, asked, None);
            }
            Ok(())
        });
    }

    fn on_recorded(&mut self, number: u64, finish: Finish) {
        let Some(active) = self.active.get_mut(number) else { return };
        active.answer_cancellers(&Ok(finish.state));
        let id = &active.occurrence.id;
        tracing::info!(run = %active.run, %id, state = %finish.state, error = finish.error, "ended");
        match finish.after {
            AfterAttempt::RetryAt(at) => {
                active.last = LastAttempt::Failed(finish.state);
                active.last_error.clone_from(&finish.error);
                // An occurrence that found no login has not failed at its own work.
                if finish.class != Some("not_logged_in") {
                    active.failures += 1;
                    active.failure = finish.error;
                }
                let at = self.retry_instant(at);
                self.active.set_stage(number, Stage::RetryAt(at));
                self.close_superseded(number);
            }
            AfterAttempt::Open => drop(self.active.remove(number)),
            AfterAttempt::Closed => {
                if let Some(active) = self.active.remove(number) {
                    self.after_outcome(active, finish.state, finish.error);
                }
            }
        }
        self.ensure_login_probe();
    }

    /// Drops a run that the journal does not know as running: the file was replaced while open, and its new
    /// content counts. Returns every other error.
    pub(super) fn ignore_unknown_run<T>(
        &mut self,
        number: u64,
        result: Result<T, JournalError>,
    ) -> Result<Option<T>, JournalError> {
        let run = match result {
            Err(JournalError::NotGoing(run)) => run,
            other => return other.map(Some),
        };
        tracing::error!(%run, "the journal does not know this run as running; it is let go");
        if let Some(mut active) = self.active.remove(number) {
            active.answer_cancellers(&Err(CancelError::NotGoing(run)));
        }
        Ok(None)
    }

    /// Acts on the outcome of an occurrence.
    fn after_outcome(&mut self, active: ActiveOccurrence, outcome: RunState, error: Option<String>) {
        let ActiveOccurrence { occurrence, file, text, .. } = active;
        // A routine that this failure has suppressed leaves the queue.
        self.definitions.enqueue(&occurrence.id);
        if matches!(occurrence.kind, Kind::Reminder | Kind::Session) {
            self.self_triggered.forget(&occurrence.id);
        }
        match occurrence.kind {
            Kind::Routine | Kind::Webhook => {}
            Kind::Reminder => {
                let (file_was_done, ran_early) = (false, false);
                let concluded = ConcludedReminder { occurrence, file, text, outcome, error, file_was_done, ran_early };
                self.clean_up(concluded, false);
            }
            // A session has no file to remove, and never runs again.
            Kind::Session => drop(self.definitions.remove(&occurrence.id)),
        }
    }

    /// Makes other occurrences wait until this one has found a login.
    fn login_is_missing(&mut self, number: u64, finish: &mut Finish) {
        let now = self.clock.now();
        if let Some(active) = self.active.get_mut(number).filter(|active| active.priority == Priority::Scheduled) {
            active.priority = Priority::LoginProbe;
        }
        if self.gate.login_missing(now) {
            self.note_login_notified(Some(now.to_rfc3339()));
            let error = finish.error.as_deref().unwrap_or_default();
            let (why, hint) = error.split_once('\n').unwrap_or((error, ""));
            let job =
                self.active.get(number).map(|active| format!("{} {}", active.occurrence.kind, active.occurrence.id));
            let again = match (&finish.after, job) {
                (AfterAttempt::RetryAt(_), Some(job)) => {
                    format!("; {job} is tried again every {} minutes", LOGIN_PROBE.as_secs() / 60)
                }
                (_, Some(job)) => format!("; {job} is not tried again"),
                _ => String::new(),
            };
            let why = why.trim_end_matches('.');
            let text = format!("Jobs for the agent wait: {why}{again}.\n{hint}");
            finish.messages.push(NewMessage::of_service(text.trim_end().to_owned()).with_buttons(LOGIN_BUTTONS));
        }
    }

    fn login_works(&mut self, finish: &mut Finish) {
        if self.gate.stop_waiting_for_login(self.clock.now()) {
            self.retry_login_probes();
        }
        self.gate.agent_missing = None;
        self.release_for_agent();
        if std::mem::take(&mut self.gate.login_notified) {
            self.note_login_notified(None);
            let text = "The agent client is logged in again; the jobs that waited go on.".to_owned();
            finish.messages.push(NewMessage::of_service(text));
        }
    }

    /// Ends the wait if no occurrence probes for a login any more. Then the next due occurrence does.
    pub(super) fn ensure_login_probe(&mut self) {
        if self.gate.waiting_for_login.is_some()
            && !self.active.iter().any(|(_, active)| active.priority != Priority::Scheduled)
        {
            self.gate.stop_waiting_for_login(self.clock.now());
        }
    }

    /// Records when the person was notified of the missing login, so that the next process does not repeat it.
    fn note_login_notified(&mut self, since: Option<String>) {
        let journal = self.journal.clone();
        self.note(async move { journal.set_setting(NO_LOGIN, since).await });
    }
}

/// Returns whether an end shows that the client is logged in, or that it is not. `None` if it shows neither.
fn login(report: &AttemptReport) -> Option<bool> {
    use FailureClass::{ErrorResult, Garbage, NotDelivered, NotLoggedIn, Overloaded, SurfaceMismatch};
    // A client without a model has no login.
    if report.client.as_ref().is_some_and(|client| !client.is_agent) {
        return None;
    }
    match &report.end {
        AttemptEnd::Completed => Some(true),
        AttemptEnd::Failed(failure) => match failure.class {
            NotLoggedIn => Some(false),
            Overloaded | ErrorResult | Garbage | NotDelivered | SurfaceMismatch => Some(true),
            _ => None,
        },
        AttemptEnd::TimedOut(_) | AttemptEnd::Cancelled | AttemptEnd::Refused(_) | AttemptEnd::Skipped(_) => None,
    }
}

/// Returns a number from 0 to 1 for the jitter, which need not be unpredictable.
fn random_fraction() -> f64 {
    use std::hash::BuildHasher;
    let word = std::hash::RandomState::new().hash_one(0u8);
    f64::from(u32::try_from(word >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
