//! The dispatcher: its state and its loop. How it reacts to each event is in the files beside this one.

mod cleanup;
mod clock_jumps;
mod due;
mod ended;
mod following;
mod launch;
mod phase;
mod pre_launch;
mod recovery;
mod requests;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::active::ActiveOccurrences;
use super::command::{Activity, Command, Schedule};
use super::definitions::{Definitions, Observed};
use super::files::Files;
use super::gate::Gate;
use super::job::Launcher;
use super::recent::RecentLaunches;
use super::wall_clock::WallClock;
use crate::clock::{Alarm, Clock, Drift};
use crate::definition::DefinitionId;
use crate::journal::{Journal, JournalError, Recorded};

pub use phase::LONGEST_END;

use cleanup::{Cleaned, Cleanups};
use due::Claimed;
use ended::{Ended, Finished};
use launch::NextAttempt;
use phase::Phase;
use pre_launch::FileFound;
use recovery::Found;

/// Why the dispatcher ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The journal failed in a way that does not pass.
    #[error("the schedule cannot go on without its journal; start the service again")]
    Journal(#[from] JournalError),
    /// A fault of our own. The next start goes on from the journal.
    #[error("a fault of ollim-bot itself; start the service again, and please report it")]
    Panic(#[source] JoinError),
}

/// What a task that the dispatcher has spawned reports back.
enum Event {
    Recovered(Result<Box<Found>, JournalError>),
    Observed(Result<Vec<Observed>, JournalError>),
    Claimed(Claimed),
    NextAttempt(NextAttempt),
    FileFound(FileFound),
    Ended(Box<Ended>),
    Finished(Box<Finished>),
    Cleaned(Cleaned),
    /// A reminder's record was fetched, to clean up its file.
    Recorded(Result<Option<Recorded>, JournalError>),
    Noted(Result<(), JournalError>),
    /// The pre-launch check of an occurrence found another file than was read.
    FileChanged(u64),
    /// A definition's file does not exist any more.
    Gone(DefinitionId),
}

/// Decides when definitions fire. See the head of the module `schedule`.
pub struct Dispatcher {
    clock: Clock,
    drift: Drift,
    wall_clock: WallClock,
    alarm: Alarm,
    journal: Journal,
    launcher: Arc<dyn Launcher>,
    files: Arc<dyn Files>,
    commands: mpsc::UnboundedReceiver<Command>,
    activity: watch::Sender<Activity>,
    tasks: JoinSet<Event>,
    phase: Phase,
    gate: Gate,
    definitions: Definitions,
    active: ActiveOccurrences,
    max_concurrent_runs: usize,
    recent: RecentLaunches,
    cleanups: Cleanups,
    /// Cuts off every running attempt, whether it listens or not.
    cut_off: CancellationToken,
}

impl Dispatcher {
    /// Creates a dispatcher and the handle to talk to it. Nothing happens before [`Self::run`], and nothing fires before
    /// the first [`Schedule::replace`]. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(
        clock: &Clock,
        journal: Journal,
        launcher: Arc<dyn Launcher>,
        files: Arc<dyn Files>,
        max_concurrent_runs: usize,
    ) -> (Schedule, Self) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (activity, watching) = watch::channel(Activity::default());
        let dispatcher = Self {
            clock: clock.clone(),
            drift: Drift::new(clock),
            wall_clock: WallClock::new(journal.accounted(), clock.now()),
            alarm: clock.alarm(),
            journal,
            launcher,
            files,
            commands,
            activity,
            tasks: JoinSet::new(),
            phase: Phase::default(),
            gate: Gate::new(clock.now()),
            definitions: Definitions::default(),
            active: ActiveOccurrences::default(),
            max_concurrent_runs: max_concurrent_runs.max(1),
            recent: RecentLaunches::default(),
            cleanups: Cleanups::default(),
            cut_off: CancellationToken::new(),
        };
        (Schedule { commands: sender, activity: watching }, dispatcher)
    }

    /// Runs until it is stopped and everything is recorded. Dropped in the middle, it leaves everything as a killed
    /// process would.
    ///
    /// # Errors
    /// [`ScheduleError`]: a fault that another start may mend. The next process finds running attempts as interrupted.
    pub async fn run(mut self) -> Result<(), ScheduleError> {
        loop {
            self.look_at_the_clock();
            if self.is_claiming() {
                self.claim_due();
            }
            self.begin_due_retries();
            self.clean_up_due();
            self.launch_waiting();
            self.announce();
            let abandoned = self.commands.is_closed() && self.commands.is_empty();
            if abandoned {
                self.end_now();
            }
            if self.is_over() {
                self.tasks.shutdown().await;
                return self.phase.outcome();
            }
            let wake = self.next_wake();
            let due = self.definitions.next_due().filter(|_| self.is_claiming());
            tokio::select! {
                command = self.commands.recv(), if !abandoned => {
                    command.into_iter().for_each(|command| self.obey(command));
                    self.obey_waiting();
                }
                Some(ended) = self.tasks.join_next() => self.take_in(ended),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = self.alarm.wait(due) => {}
            }
        }
    }

    /// Obeys all commands that have come.
    fn obey_waiting(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command);
        }
    }

    fn take_in(&mut self, event: Result<Event, JoinError>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.fail(ScheduleError::Panic(error)),
        };
        let done = match event {
            Event::Recovered(found) => self.on_recovered(found),
            Event::Observed(observed) => self.on_observed(observed),
            Event::Claimed(claimed) => self.on_claimed(claimed),
            Event::NextAttempt(next) => self.on_next_attempt(next),
            Event::FileFound(found) => return self.on_file_found(&found),
            Event::Ended(ended) => self.on_ended(*ended),
            Event::Finished(finished) => self.on_finished(*finished),
            Event::Cleaned(cleaned) => return self.on_cleaned(cleaned),
            Event::Recorded(recorded) => recorded.map(|recorded| {
                if let Some(recorded) = recorded {
                    self.clean_up(recorded, None);
                }
            }),
            Event::Noted(noted) => noted,
            Event::FileChanged(number) => return self.on_file_changed(number),
            Event::Gone(id) => return self.on_gone(vec![id]),
        };
        if let Err(error) = done {
            self.fail(error.into());
        }
    }

    /// Whether what falls due is claimed.
    fn is_claiming(&self) -> bool {
        self.phase.is_running() && self.gate.is_open()
    }

    /// When there is something to do besides what falls due, though no event comes.
    fn next_wake(&self) -> Option<Instant> {
        let retry = self.active.next_retry().filter(|_| self.phase.is_running());
        [retry, self.cleanups.next(), self.phase.deadline()].into_iter().flatten().min()
    }

    fn announce(&self) {
        self.activity.send_if_modified(|last| {
            let now = Activity {
                loaded: last.loaded || self.phase.is_running(),
                active: self.active.len() + self.definitions.claims(),
                next: self.definitions.next_due(),
                paused: self.gate.paused().is_some(),
                waiting_for_login: self.gate.waiting_for_login().is_some(),
            };
            std::mem::replace(last, now) != now
        });
    }

    /// Spawns something for the journal to do. Only a fault of it matters.
    fn note<F>(&mut self, work: F)
    where
        F: Future<Output = Result<(), JournalError>> + Send + 'static,
    {
        self.tasks.spawn(async move { Event::Noted(work.await) });
    }
}
