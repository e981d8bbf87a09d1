//! From waiting to going: slots and order.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::job::{Job, attempt};
use super::super::missed::late_line;
use super::super::open::Stage;
use super::ended::Ended;
use super::last_look::Verdict;
use super::{Dispatcher, Event, RECENT_ONES};
use crate::agent::{AttemptEnd, AttemptReport};
use crate::definition::{Definition, Mode};
use crate::journal::{JournalError, Occurrence, RunId, RunState};

/// No pause between two attempts is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(900);

/// A further attempt was begun in the journal.
pub(super) struct Again {
    number: u64,
    occurrence: Occurrence,
    run: Result<RunId, JournalError>,
}

impl Dispatcher {
    /// Launches what waits, in due order, as far as there are slots. Turns of the main session have a slot of their
    /// own: forks never hold them up, nor they the forks.
    pub(super) fn launch_waiting(&mut self) {
        if self.stopping.is_some() || !self.recovered {
            return;
        }
        let held = self.paused.is_some() || self.waiting_for_login.is_some();
        loop {
            let (background, turns) = (self.open.background() < self.max_concurrent_runs, self.open.turns() < 1);
            if !background && !turns {
                return;
            }
            let next = self.open.waiting().find(|(number, open)| {
                let id = &open.occurrence.id;
                let foreground =
                    self.definitions.get(id).is_some_and(|entry| entry.loaded.definition.mode == Mode::Foreground);
                (if foreground { turns } else { background })
                    && (!held || (open.probe && self.paused.is_none()) || open.by_hand)
                    && !self.open.is_behind(*number, id)
                    // A newer one of it may be the end of this one.
                    && !self.claiming.contains(id)
            });
            let Some((number, _)) = next else { return };
            match self.last_look(number) {
                Verdict::Launch(definition, text) => self.launch(number, definition, text),
                Verdict::Close(why) => self.close_unlaunched(number, why),
                Verdict::Missing => self.look_for_file(number),
            }
        }
    }

    fn launch(&mut self, number: u64, definition: Arc<Definition>, text: Arc<str>) {
        let now = self.clock.now();
        let looked_at = self.look_at_file(number, &definition, &text);
        let Some(open) = self.open.get_mut(number) else { return };
        let cancel = CancellationToken::new();
        let job = Job {
            run: open.run.clone(),
            definition: Arc::clone(&definition),
            occurrence: open.occurrence.clone(),
            attempt: open.attempt,
            late: late_line(open.occurrence.at, definition.zone, now),
            cut_off: open.cut_off,
            by_hand: open.by_hand,
            cancel: cancel.clone(),
        };
        let foreground = definition.mode == Mode::Foreground;
        open.file.clone_from(&definition.file);
        open.text = Arc::clone(&text);
        open.fired = Some(Arc::clone(&definition));
        if self.recent.len() == RECENT_ONES {
            self.recent.pop_front();
        }
        self.recent.push_back((now, definition));
        self.open.set_stage(number, Stage::Going { cancel, cause: None, since: now, foreground });
        let (journal, launcher) = (self.journal.clone(), Arc::clone(&self.launcher));
        let cut_off = self.cut_off.clone();
        self.tasks.spawn(async move {
            if !looked_at.await {
                return Event::Changed(number);
            }
            let run = job.run.clone();
            fail_point!(BeforeLaunch);
            let report = match journal.launching(&run, text).await {
                Ok(()) => {
                    let (kind, id, attempt_number) = (job.definition.kind(), &job.definition.id, job.attempt);
                    tracing::info!(%run, %kind, %id, attempt = attempt_number, late = job.late.is_some(), "started");
                    fail_point!(Launched);
                    let report = tokio::select! {
                        biased;
                        report = attempt(&*launcher, job) => report,
                        () = cut_off.cancelled() => AttemptReport::bare(AttemptEnd::Cancelled),
                    };
                    journal.effect(&run).await.map(|effect| (report, effect.is_some()))
                }
                Err(error) => Err(error),
            };
            Event::Ended(Box::new(Ended { number, report }))
        });
    }

    /// Begins further attempts whose time has come.
    pub(super) fn try_again_due(&mut self) {
        if self.stopping.is_some() || !self.recovered {
            return;
        }
        let now = Instant::now();
        while let Some((_, number)) = self.retries.first().copied().filter(|(at, _)| *at <= now) {
            self.retries.pop_first();
            if self.open.get(number).is_some_and(|open| matches!(open.stage, Stage::RetryAt(_))) {
                self.begin_again(number);
            }
        }
    }

    /// Begins another attempt in the journal; it then waits for its slot.
    pub(super) fn begin_again(&mut self, number: u64) {
        let Some(open) = self.open.get(number) else { return };
        let (journal, last, occurrence) = (self.journal.clone(), open.run.clone(), open.occurrence.clone());
        self.open.expect(&occurrence);
        self.open.set_stage(number, Stage::Recording);
        self.tasks.spawn(async move {
            fail_point!(BeforeAgain);
            let run = journal.attempt_again(&last).await;
            fail_point!(AgainRecorded);
            Event::Again(Again { number, occurrence, run })
        });
    }

    pub(super) fn on_again(&mut self, again: Again) -> Result<(), JournalError> {
        self.open.arrived(&again.occurrence);
        let Some(run) = self.unless_lost(again.number, again.run)? else { return Ok(()) };
        if let Some(open) = self.open.get_mut(again.number) {
            open.cut_off = open.state == RunState::Interrupted;
            open.run = run;
            open.attempt += 1;
            open.state = RunState::Claimed;
            self.open.set_stage(again.number, Stage::Waiting);
            self.close_superseded(again.number);
        }
        Ok(())
    }

    /// Lets what waits for another try go at once: the login is back, or a person says so.
    pub(super) fn try_all_again(&mut self) {
        let waiting: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| open.probe && matches!(open.stage, Stage::RetryAt(_)))
            .map(|(number, _)| number)
            .collect();
        let now = Instant::now();
        for number in waiting {
            self.retry_at(number, now);
        }
    }

    /// Puts an open occurrence aside until `at`.
    pub(super) fn retry_at(&mut self, number: u64, at: Instant) {
        if let Some(Stage::RetryAt(old)) = self.open.get(number).map(|open| &open.stage) {
            self.retries.remove(&(*old, number));
        }
        self.retries.insert((at, number));
        self.open.set_stage(number, Stage::RetryAt(at));
    }

    /// The moment of steady time at which the wall clock, left alone, will read `at`; not far ahead, wherever the clock
    /// was when `at` was recorded.
    pub(super) fn instant(&self, at: DateTime<Utc>) -> Instant {
        Instant::now() + self.clock.until(at).min(LONGEST_PAUSE)
    }
}
