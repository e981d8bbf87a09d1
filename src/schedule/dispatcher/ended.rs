//! After an attempt: its outcome is recorded, and only then acted upon.

use std::time::Duration;

use tokio::time::Instant;

use super::super::command::CancelError;
use super::super::conclusion::{Attempted, Conclusion, conclude, given_up};
use super::super::open::{Open, Stage};
use super::Dispatcher;
use super::Event;
use super::recovery::NO_LOGIN;
use crate::agent::{AttemptEnd, AttemptReport, FailureClass};
use crate::definition::Kind;
use crate::journal::{After, Finish, JournalError, NewMessage, Recorded, RunState};

/// An attempt is over: its report, and whether its occurrence has had an effect.
pub(super) struct Ended {
    pub(super) number: u64,
    pub(super) report: Result<(AttemptReport, bool), JournalError>,
}

/// An end is recorded.
pub(super) struct Finished {
    number: u64,
    finish: Finish,
    retry_in: Option<Duration>,
    result: Result<(), JournalError>,
}

impl Dispatcher {
    pub(super) fn on_ended(&mut self, ended: Ended) -> Result<(), JournalError> {
        let number = ended.number;
        let Some((report, touched)) = self.unless_lost(number, ended.report)? else { return Ok(()) };
        let now = self.clock.now();
        if let Some(open) = self.open.get_mut(number) {
            open.touched |= touched;
        }
        let Some(open) = self.open.get(number) else { return Ok(()) };
        let Open { run, fired: Some(definition), stage: Stage::Going { cause, foreground, .. }, .. } = open else {
            return Ok(());
        };
        let login = login(&report.end);
        let foreground = *foreground;
        let attempted = Attempted {
            run: &run.clone(),
            definition: &definition.clone(),
            failures: open.failures,
            touched: open.touched,
            cause: *cause,
            stopping: self.stopping.is_some(),
            streak: self.streak(&definition.id),
            now,
            chance: chance(),
        };
        let Conclusion { mut finish, retry_in, not_logged_in } = conclude(&attempted, report);
        match login {
            Some(false) if not_logged_in => self.wait_for_login(number, &mut finish),
            Some(true) => self.login_is_back(&mut finish),
            _ => {}
        }
        // A turn of the main session: its answer is for the person. In the same commit as its outcome, it is told once.
        let told = foreground && finish.state == RunState::Completed;
        if let Some(answer) = finish.answer.clone().filter(|answer| told && !answer.trim().is_empty()) {
            let Some(open) = self.open.get(number) else { return Ok(()) };
            let (run, id) = (Some(open.run.clone()), Some(open.occurrence.id.clone()));
            finish.messages.push(NewMessage { run, id, text: answer });
        }
        self.record(number, finish, retry_in);
        Ok(())
    }

    /// Tells those who wait for the end of a run.
    fn answer_cancelling(&mut self, number: u64, answer: &Result<RunState, CancelError>) {
        for reply in self.cancelling.remove(&number).unwrap_or_default() {
            // Who asked may have gone away.
            let _gone = reply.send(answer.clone());
        }
    }

    /// Gives up an occurrence that has no attempt going: it has failed, and that counts as any other failure.
    pub(super) fn give_up(&mut self, number: u64, why: String) {
        let Some(open) = self.open.get(number) else { return };
        let (id, kind) = (&open.occurrence.id, open.occurrence.kind);
        let finish = match self.definitions.get(id) {
            Some(entry) => given_up(
                &Attempted {
                    run: &open.run,
                    definition: &entry.loaded.definition,
                    failures: open.failures,
                    touched: open.touched,
                    cause: None,
                    stopping: false,
                    streak: self.streak(id),
                    now: self.clock.now(),
                    chance: 0.0,
                },
                why,
            ),
            // Its file is not there, or not valid: the person hears of the run all the same.
            None => {
                let text = format!("{kind} {id} failed: {why}.");
                let message = NewMessage { run: Some(open.run.clone()), id: Some(id.clone()), text };
                Finish { messages: vec![message], ..Finish::closed(RunState::Failed, Some(why)) }
            }
        };
        self.record(number, finish, None);
    }

    /// Records an end; what follows comes with the journal's answer.
    pub(super) fn record(&mut self, number: u64, finish: Finish, retry_in: Option<Duration>) {
        let Some(open) = self.open.get(number) else { return };
        let (journal, run) = (self.journal.clone(), open.run.clone());
        // The next occurrence may end before this is on the disk, and has to know of it.
        if let Some(streak) = &finish.streak {
            let was_paused = self.streak(&streak.id).paused.is_some();
            self.keep_streak(streak);
            if was_paused && streak.paused.is_none() {
                // It was fired by hand, and works again: as when a person resumes it.
                self.end_pause(&streak.id);
            }
        }
        self.open.set_stage(number, Stage::Recording);
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
        self.answer_cancelling(number, &Ok(finish.state));
        let Some(open) = self.open.get_mut(number) else { return Ok(()) };
        tracing::info!(run = %open.run, id = %open.occurrence.id, state = %finish.state, error = finish.error, "ended");
        match finish.after {
            After::RetryAt(_) => {
                open.state = finish.state;
                // One that found no login has not failed at its own work.
                if finish.class != Some("not_logged_in") {
                    open.failures += 1;
                    open.failure = finish.error;
                }
                self.retry_at(number, Instant::now() + retry_in.unwrap_or_default());
                self.close_superseded(number);
            }
            After::Open => {
                self.open.remove(number);
            }
            After::Closed => {
                if let Some(open) = self.open.remove(number) {
                    self.after_outcome(open, finish.state, finish.error);
                }
            }
        }
        self.someone_must_try_the_login();
        Ok(())
    }

    /// A run that the journal does not know as going (its file was replaced under us) cannot be recorded: it is let
    /// go, and what the journal says counts. Every other fault is the schedule's own.
    pub(super) fn unless_lost<T>(
        &mut self,
        number: u64,
        result: Result<T, JournalError>,
    ) -> Result<Option<T>, JournalError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(JournalError::NotGoing(run)) => {
                tracing::error!(%run, "the journal does not know this run as going; it is let go");
                self.open.remove(number);
                self.answer_cancelling(number, &Err(CancelError::NotGoing(run)));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// An occurrence has its outcome.
    fn after_outcome(&mut self, open: Open, outcome: RunState, error: Option<String>) {
        // A routine that was paused by this failure leaves the queue.
        self.arm(&open.occurrence.id);
        if open.occurrence.kind == Kind::Session {
            // It has no file that would be removed, and runs never again.
            self.let_go(&open.occurrence.id);
        }
        if open.occurrence.kind == Kind::Reminder {
            self.clean_up(Recorded { occurrence: open.occurrence, file: open.file, text: open.text, outcome, error });
        }
    }

    /// Nobody else need try until this one has found a login.
    fn wait_for_login(&mut self, number: u64, finish: &mut Finish) {
        if let Some(open) = self.open.get_mut(number) {
            open.probe = true;
        }
        if self.waiting_for_login.is_some() {
            return;
        }
        self.waiting_for_login = Some(self.clock.now());
        if self.told_of_login {
            return;
        }
        self.tell_of_login(true);
        let why = finish.error.clone().unwrap_or_default();
        finish.messages.push(NewMessage {
            run: None,
            id: None,
            text: format!("The agent client is not logged in; jobs wait until it is. {why}"),
        });
    }

    /// If the one that was to try the login is gone, whoever is due next tries it.
    fn someone_must_try_the_login(&mut self) {
        if self.waiting_for_login.is_some() && !self.open.iter().any(|(_, open)| open.probe) {
            self.waiting_for_login = None;
            self.able_since = self.clock.now();
        }
    }

    /// The person is told that there is no login, or that it is back: once, however often the service is started.
    fn tell_of_login(&mut self, missing: bool) {
        self.told_of_login = missing;
        let (journal, since) = (self.journal.clone(), missing.then(|| self.clock.now().to_rfc3339()));
        self.note(async move { journal.set_setting(NO_LOGIN, since).await });
    }

    fn login_is_back(&mut self, finish: &mut Finish) {
        if self.waiting_for_login.take().is_some() {
            self.able_since = self.clock.now();
            self.try_all_again();
        }
        if self.told_of_login {
            self.tell_of_login(false);
            let text = "The agent client is logged in again; the jobs that waited go on.".to_owned();
            finish.messages.push(NewMessage { run: None, id: None, text });
        }
    }
}

/// Whether an end shows that the client is logged in (or that it is not); `None`: it shows nothing.
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
