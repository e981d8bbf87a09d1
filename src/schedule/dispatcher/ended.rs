//! After an attempt: its outcome is recorded first, and acted upon once it is.

use std::time::Duration;

use tokio::time::Instant;

use super::super::active::{ActiveOccurrence, LastAttempt, Priority, Stage};
use super::super::command::CancelError;
use super::super::conclusion::{Attempted, Conclusion, conclude, given_up};
use super::recovery::NO_LOGIN;
use super::{Dispatcher, Event};
use crate::agent::{AttemptEnd, AttemptReport, FailureClass};
use crate::definition::Kind;
use crate::journal::{After, Finish, JournalError, NewMessage, Recorded, RunState};

/// An attempt is over: its report, and whether its occurrence has had a side effect.
pub(super) struct Ended {
    pub(super) number: u64,
    pub(super) report: Result<(AttemptReport, bool), JournalError>,
}

/// The end of an attempt is recorded.
pub(super) struct Finished {
    number: u64,
    finish: Finish,
    retry_in: Option<Duration>,
    result: Result<(), JournalError>,
}

impl Dispatcher {
    pub(super) fn on_ended(&mut self, ended: Ended) -> Result<(), JournalError> {
        let number = ended.number;
        let Some((report, had_side_effect)) = self.unless_lost(number, ended.report)? else { return Ok(()) };
        let Some(active) = self.active.get_mut(number) else { return Ok(()) };
        active.had_side_effect |= had_side_effect;
        let Some(active) = self.active.get(number) else { return Ok(()) };
        let Some(running) = active.running() else { return Ok(()) };
        let login = login(&report.end);
        let attempted = Attempted {
            run: &active.run,
            definition: &running.definition,
            failures: active.failures,
            had_side_effect: active.had_side_effect,
            cause: running.cause,
            stopping: self.phase.is_stopping(),
            streak: self.definitions.failures(&running.definition.id),
            now: self.clock.now(),
            chance: chance(),
        };
        let Conclusion { mut finish, retry_in, not_logged_in } = conclude(&attempted, report);
        // A turn of the main session: its answer is for the person, and is in the same commit as its outcome.
        if running.foreground && finish.state == RunState::Completed {
            let answer = finish.answer.clone().filter(|answer| !answer.trim().is_empty());
            let (run, id) = (active.run.clone(), active.occurrence.id.clone());
            finish.messages.extend(answer.map(|text| NewMessage { run: Some(run), id: Some(id), text }));
        }
        match login {
            Some(false) if not_logged_in => self.login_is_missing(number, &mut finish),
            Some(true) => self.login_works(&mut finish),
            _ => {}
        }
        self.record(number, finish, retry_in);
        Ok(())
    }

    /// Gives up an idle occurrence: it has failed, and that counts as any other failure.
    pub(super) fn give_up(&mut self, number: u64, why: String) {
        let Some(active) = self.active.get(number) else { return };
        let (id, kind) = (&active.occurrence.id, active.occurrence.kind);
        let finish = match self.definitions.definition(id) {
            Some(definition) => given_up(
                &Attempted {
                    run: &active.run,
                    definition,
                    failures: active.failures,
                    had_side_effect: active.had_side_effect,
                    cause: None,
                    stopping: false,
                    streak: self.definitions.failures(id),
                    now: self.clock.now(),
                    chance: 0.0,
                },
                why,
            ),
            // Its file is gone or not valid: the person hears of the run all the same.
            None => {
                let text = format!("{kind} {id} failed: {why}.");
                let message = NewMessage { run: Some(active.run.clone()), id: Some(id.clone()), text };
                Finish { messages: vec![message], ..Finish::closed(RunState::Failed, Some(why)) }
            }
        };
        self.record(number, finish, None);
    }

    /// Has the journal record an end. What follows from it comes with [`Event::Finished`].
    pub(super) fn record(&mut self, number: u64, finish: Finish, retry_in: Option<Duration>) {
        let Some(active) = self.active.get(number) else { return };
        let (journal, run) = (self.journal.clone(), active.run.clone());
        // Counted at once: the next occurrence may end before this is on the disk.
        if let Some(failures) = &finish.streak {
            let was_paused = self.definitions.is_paused(&failures.id);
            self.definitions.set_failures(failures);
            if was_paused && failures.paused.is_none() {
                // It was fired by hand, and works again.
                self.end_pause(&failures.id);
            }
        }
        self.active.set_stage(number, Stage::Recording);
        self.tasks.spawn(async move {
            fail_point!(BeforeOutcome);
            let result = journal.finish(&run, finish.clone()).await;
            fail_point!(OutcomeRecorded);
            Event::Finished(Box::new(Finished { number, finish, retry_in, result }))
        });
    }

    pub(super) fn on_finished(&mut self, finished: Finished) -> Result<(), JournalError> {
        let Finished { number, finish, retry_in, result } = finished;
        if self.unless_lost(number, result)?.is_none() {
            return Ok(());
        }
        let Some(active) = self.active.get_mut(number) else { return Ok(()) };
        active.answer_cancellers(&Ok(finish.state));
        let id = &active.occurrence.id;
        tracing::info!(run = %active.run, %id, state = %finish.state, error = finish.error, "ended");
        match finish.after {
            After::RetryAt(_) => {
                active.last = LastAttempt::Failed(finish.state);
                // One that found no login has not failed at its own work.
                if finish.class != Some("not_logged_in") {
                    active.failures += 1;
                    active.failure = finish.error;
                }
                self.active.set_stage(number, Stage::RetryAt(Instant::now() + retry_in.unwrap_or_default()));
                self.close_superseded(number);
            }
            After::Open => drop(self.active.remove(number)),
            After::Closed => {
                if let Some(active) = self.active.remove(number) {
                    self.after_outcome(active, finish.state, finish.error);
                }
            }
        }
        self.ensure_login_probe();
        Ok(())
    }

    /// Lets a run go that the journal does not know as running: its file was replaced under us, and what it says now
    /// counts. Every other fault is the schedule's own.
    pub(super) fn unless_lost<T>(
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

    /// An occurrence has its outcome.
    fn after_outcome(&mut self, active: ActiveOccurrence, outcome: RunState, error: Option<String>) {
        let ActiveOccurrence { occurrence, file, text, .. } = active;
        // A routine that this failure has paused leaves the queue.
        self.definitions.enqueue(&occurrence.id, None);
        match occurrence.kind {
            Kind::Routine => {}
            Kind::Reminder => self.clean_up(Recorded { occurrence, file, text, outcome, error }, None),
            // It has no file to remove, and never runs again.
            Kind::Session => drop(self.definitions.remove(&occurrence.id)),
        }
    }

    /// Others wait until this occurrence has found a login.
    fn login_is_missing(&mut self, number: u64, finish: &mut Finish) {
        let now = self.clock.now();
        if let Some(active) = self.active.get_mut(number).filter(|active| active.priority == Priority::Scheduled) {
            active.priority = Priority::LoginProbe;
        }
        if self.gate.login_missing(now) {
            self.note_login_notified(Some(now.to_rfc3339()));
            let why = finish.error.clone().unwrap_or_default();
            let text = format!("The agent client is not logged in; jobs wait until it is. {why}");
            finish.messages.push(NewMessage { run: None, id: None, text });
        }
    }

    fn login_works(&mut self, finish: &mut Finish) {
        if self.gate.stop_waiting_for_login(self.clock.now()) {
            self.retry_login_probes();
        }
        if self.gate.login_works() {
            self.note_login_notified(None);
            let text = "The agent client is logged in again; the jobs that waited go on.".to_owned();
            finish.messages.push(NewMessage { run: None, id: None, text });
        }
    }

    /// If no occurrence is left that probes for a login, the next that is due does.
    fn ensure_login_probe(&mut self) {
        if self.gate.waiting_for_login().is_some()
            && !self.active.iter().any(|(_, active)| active.priority != Priority::Scheduled)
        {
            self.gate.stop_waiting_for_login(self.clock.now());
        }
    }

    /// Records since when the person knows that there is no login, so that the next process does not repeat it.
    fn note_login_notified(&mut self, since: Option<String>) {
        let journal = self.journal.clone();
        self.note(async move { journal.set_setting(NO_LOGIN, since).await });
    }
}

/// Whether an end shows that the client is logged in, or that it is not. `None`: it shows nothing.
fn login(end: &AttemptEnd) -> Option<bool> {
    use FailureClass::{ErrorResult, Garbage, NotLoggedIn, Overloaded, SurfaceMismatch};
    match end {
        AttemptEnd::Completed => Some(true),
        AttemptEnd::Failed(failure) => match failure.class {
            NotLoggedIn => Some(false),
            Overloaded | ErrorResult | Garbage | SurfaceMismatch => Some(true),
            _ => None,
        },
        AttemptEnd::TimedOut(_) | AttemptEnd::Cancelled => None,
    }
}

/// 0 to 1, for a jitter that nobody has to be unable to guess.
fn chance() -> f64 {
    use std::hash::BuildHasher;
    let word = std::hash::RandomState::new().hash_one(0u8);
    f64::from(u32::try_from(word >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
