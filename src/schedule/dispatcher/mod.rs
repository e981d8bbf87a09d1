//! The dispatcher: its state and its loop. The files beside this one hold its reactions to each event.

mod agent;
mod cleanup;
mod clock_jumps;
mod delayed;
mod deliveries;
mod due;
mod ended;
mod following;
mod launch;
mod needs;
mod occasions;
mod phase;
mod pre_launch;
mod preparing;
mod pushed;
mod recovery;
mod requests;
mod sharing;
mod waking;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::active::ActiveOccurrences;
use super::command::{Activity, Command, Inbox};
use super::definitions::Definitions;
use super::files::Files;
use super::gate::Gate;
use super::job::Launcher;
use super::recent::RecentLaunches;
use super::self_triggered::SelfTriggered;
use super::sharing::Sharing;
use super::wall_clock::WallClock;
use crate::clock::{Alarm, Clock, Drift, Waker};
use crate::definition::DefinitionId;
use crate::journal::{ConcludedReminder, ConsecutiveFailures, Journal, JournalError};

pub use phase::LONGEST_END;
pub use waking::cannot_wake;

use cleanup::{CleanedFiles, Cleanup};
use phase::Phase;
use preparing::PreparedMoment;

/// Why the dispatcher ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The journal failed in a way that does not pass.
    #[error("the schedule cannot go on without its journal; start the service again")]
    Journal(#[from] JournalError),
    /// A bug in this program. The next start continues from the journal.
    #[error("a fault of ollim-bot itself; start the service again, and please report it")]
    Panic(#[source] JoinError),
}

/// The dispatcher's reaction to the result of a spawned task.
type Reaction = Box<dyn FnOnce(&mut Dispatcher) -> Result<(), JournalError> + Send>;

/// Decides when definitions fire. See the head of the module `schedule`.
pub struct Dispatcher {
    clock: Clock,
    drift: Drift,
    wall_clock: WallClock,
    alarm: Alarm,
    /// Wakes the machine; `None`: no definition has asked for it yet.
    waker: Option<Waker>,
    journal: Journal,
    launcher: Arc<dyn Launcher>,
    files: Arc<dyn Files>,
    commands: mpsc::UnboundedReceiver<Command>,
    activity: watch::Sender<Activity>,
    tasks: JoinSet<Reaction>,
    phase: Phase,
    /// The fault that ends the schedule, if nobody asked for its end.
    fault: Option<ScheduleError>,
    gate: Gate,
    definitions: Definitions,
    active: ActiveOccurrences,
    max_concurrent_runs: usize,
    /// Number of failures after which the person is notified, unless the definition says otherwise.
    alert_after: u32,
    recent: RecentLaunches,
    /// The moment that the launcher is ready for.
    prepared: PreparedMoment,
    /// The time of the next claim, for which the dispatcher waits.
    waits_for: Option<DateTime<Utc>>,
    self_triggered: SelfTriggered,
    /// Number of answers from the person to questions.
    answers: u64,
    cleanups: HashMap<DefinitionId, Cleanup>,
    /// Files to read again after a cleanup.
    cleaned: CleanedFiles,
    /// The hosts that share the work.
    sharing: Sharing,
    /// What is due although no host may run it, as far as the person was told.
    without_host: BTreeSet<DefinitionId>,
    /// This host's and the main host's names and time zones at the last look, if they differ.
    other_zone: Option<[(String, String); 2]>,
    /// Tasks that wait for occurrences of other hosts. The schedule ends without them.
    tasks_of_others: JoinSet<Result<Option<ConcludedReminder>, JournalError>>,
    /// Whether this host had the main session at the last look.
    was_main: bool,
    /// Whether this host's clock was wrong at the last look; `None`: there was none.
    clock_was_wrong: Option<bool>,
    /// Whether a definition without a file here may belong to another host.
    others_have_files: bool,
    /// Number of times that a person has paused or resumed everything here.
    decided: u64,
    /// When the journal was last asked about a pause, while this host and the others disagree.
    pause_looked: Option<Instant>,
    /// Whether that answer is pending.
    pause_asking: bool,
    /// Consecutive failures, as last read from the shared journal.
    failing_by_journal: Vec<ConsecutiveFailures>,
    /// Cuts off every running attempt, whether or not it reacts to cancellation.
    cut_off: CancellationToken,
}

impl Dispatcher {
    /// Gives each host that shares the journal its own files: a definition missing here does not count as removed.
    #[must_use]
    pub fn with_files_of_its_own(self) -> Self {
        Self { others_have_files: self.sharing.is_shared(), ..self }
    }

    /// Makes a dispatcher. Nothing happens before [`Self::run`], and nothing fires before the first
    /// [`Schedule::replace`]. Must be called within a tokio runtime.
    ///
    /// [`Schedule::replace`]: super::Schedule::replace
    #[must_use]
    pub fn new(
        inbox: Inbox,
        clock: &Clock,
        journal: Journal,
        launcher: Arc<dyn Launcher>,
        files: Arc<dyn Files>,
    ) -> Self {
        let Inbox { commands, activity, max_concurrent_runs } = inbox;
        Self {
            clock: clock.clone(),
            drift: Drift::new(clock),
            wall_clock: WallClock::new(journal.watermark(), clock.now()),
            alarm: clock.alarm(),
            was_main: true,
            clock_was_wrong: None,
            others_have_files: false,
            tasks_of_others: JoinSet::new(),
            sharing: Sharing::new(journal.hosts()),
            without_host: BTreeSet::new(),
            other_zone: None,
            waker: None,
            journal,
            launcher,
            files,
            commands,
            activity,
            tasks: JoinSet::new(),
            phase: Phase::Starting { recovering: false, deferred: Vec::new() },
            fault: None,
            gate: Gate::new(clock.now()),
            definitions: Definitions::default(),
            active: ActiveOccurrences::default(),
            max_concurrent_runs: max_concurrent_runs.max(1),
            alert_after: 1,
            recent: RecentLaunches::default(),
            prepared: PreparedMoment::default(),
            waits_for: None,
            self_triggered: SelfTriggered::default(),
            answers: 0,
            decided: 0,
            pause_looked: None,
            pause_asking: false,
            failing_by_journal: Vec::new(),
            cleanups: HashMap::new(),
            cleaned: CleanedFiles::default(),
            cut_off: CancellationToken::new(),
        }
    }

    /// Runs until it is stopped and everything is recorded. If the future is dropped, it leaves everything as a
    /// killed process would.
    ///
    /// # Errors
    /// [`ScheduleError`]: a fault that a new start may cure. The next process finds running attempts as interrupted.
    pub async fn run(mut self) -> Result<(), ScheduleError> {
        loop {
            self.check_clock();
            self.check_suspended();
            self.sync_pause();
            if self.phase.is_running() && self.gate.paused.is_none() {
                self.claim_due();
            }
            self.begin_due_retries();
            self.recheck_agent();
            self.recheck_requirements();
            self.clean_up_due();
            self.launch_waiting();
            self.note_delays();
            self.announce();
            self.set_waker();
            let abandoned = self.commands.is_closed() && self.commands.is_empty();
            if abandoned {
                self.end_now();
            }
            if self.is_over() {
                self.tasks.shutdown().await;
                return self.fault.map_or(Ok(()), Err);
            }
            let wake = self.next_wake();
            // A host with a wrong clock looks again when the state of the hosts changes.
            let due = self.next_claim().filter(|_| self.sharing.has_correct_time());
            let due = due.map(|due| due + self.sharing.waits());
            self.waits_for = due.filter(|due| *due > self.clock.now());
            let due = due.map(|due| self.prepare(due));
            tokio::select! {
                command = self.commands.recv(), if !abandoned => {
                    command.into_iter().for_each(|command| self.handle(command));
                    self.handle_waiting();
                }
                Some(ended) = self.tasks.join_next() => self.finish_task(ended),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = self.alarm.wait(due) => {}
                () = self.sharing.changed() => self.on_hosts_changed(),
                Some(Ok(recorded)) = self.tasks_of_others.join_next() => self.on_recorded_elsewhere(recorded),
            }
        }
    }

    /// Obeys all commands in the channel.
    fn handle_waiting(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.handle(command);
        }
    }

    fn finish_task(&mut self, done: Result<Reaction, JoinError>) {
        match done {
            Ok(react) => {
                if let Err(error) = react(self) {
                    self.fail(error.into());
                }
            }
            Err(error) => self.fail(ScheduleError::Panic(error)),
        }
    }

    /// Spawns a task. Calls `react` with its result when it ends. An error of `react` ends the schedule.
    fn spawn<T, R>(&mut self, task: impl Future<Output = T> + Send + 'static, react: R)
    where
        T: Send + 'static,
        R: FnOnce(&mut Self, T) -> Result<(), JournalError> + Send + 'static,
    {
        self.tasks.spawn(async move {
            let result = task.await;
            Box::new(move |dispatcher: &mut Self| react(dispatcher, result)) as Reaction
        });
    }

    /// Spawns work for the journal whose result matters only if it is an error.
    fn note(&mut self, task: impl Future<Output = Result<(), JournalError>> + Send + 'static) {
        self.spawn(task, |_, noted| noted);
    }

    /// Returns when the next occurrence is claimed. Without a login, only those that are delivered as written are claimed.
    fn next_claim(&self) -> Option<DateTime<Utc>> {
        match &self.gate {
            _ if !self.phase.is_running() => None,
            gate if gate.is_open() => self.definitions.next_due(),
            gate if gate.paused.is_none() => self.definitions.next_plain_due(),
            _ => None,
        }
    }

    /// Returns when to wake for work other than due occurrences, without an event.
    fn next_wake(&self) -> Option<Instant> {
        let retries = self.active.retries().next().filter(|_| self.phase.is_running()).map(|(at, _)| at);
        let cleanups = self.cleanups.values().filter_map(|cleanup| cleanup.retry_at);
        let agents = self.gate.agent_missing.filter(|_| self.phase.is_running()).map(|missing| missing.next_check);
        let needs = self.gate.needs_again.filter(|_| self.phase.is_running());
        retries
            .into_iter()
            .chain(cleanups)
            .chain(agents)
            .chain(needs)
            .chain(self.next_pause_sync())
            .chain(self.phase.deadline())
            .min()
    }

    fn announce(&self) {
        self.activity.send_if_modified(|last| {
            let now = Activity {
                loaded: last.loaded || self.phase.is_running(),
                active: self.active.len() + self.definitions.claiming.len(),
                running: self.active.running(),
                next: self.definitions.next_due(),
                paused: self.gate.paused.is_some(),
                waiting_for_login: self.gate.waits_for_login().is_some(),
                waiting_for_agent: self.gate.waits_for_agent().is_some(),
            };
            std::mem::replace(last, now) != now
        });
    }
}
