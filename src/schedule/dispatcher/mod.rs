//! The dispatcher: its state, its loop, and how it ends. What it does on each event is in the files beside this one.

mod cleanup;
mod clock_set;
mod definitions;
mod due;
mod ended;
mod last_look;
mod launch;
mod recovery;
mod requests;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command::{Activity, CancelError, Command, Schedule};
use super::files::Files;
use super::job::Launcher;
use super::open::{Cause, OpenOnes, Stage};
use super::queue::Queue;
use super::reached::Reached;
use crate::clock::{Alarm, Clock, Drift};
use crate::definition::{Definition, DefinitionId};
use crate::journal::{Journal, JournalError, Recorded, RunState, Streak};

pub use definitions::occurrences;

use cleanup::Cleaned;
use definitions::{Entry, Seen};
use due::Claimed;
use ended::{Ended, Finished};
use last_look::Found;
use launch::Again;

/// A claim that took longer than this was held up by the disk: what fell due meanwhile was missed.
const HELD_UP: Duration = Duration::from_secs(5);

/// So long a launch is among the recent ones, and so many are kept.
const RECENT: TimeDelta = TimeDelta::minutes(15);
const RECENT_ONES: usize = 64;

/// How long runs have to be gone after they were told to end. A client is asked to break off, then to leave, then
/// killed: together longer than ten seconds.
const TOLD_WAIT: Duration = Duration::from_secs(20);

/// How long the ends of runs that were cut off have to be recorded.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// So long after its grace the schedule has ended at the latest.
pub const LONGEST_END: Duration = TOLD_WAIT.saturating_add(LAST_WAIT);

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

/// What something that the dispatcher has started reports back.
enum Event {
    Recovered(Result<recovery::Found, JournalError>),
    Seen(Result<Vec<Seen>, JournalError>),
    Known(Result<Vec<DefinitionId>, JournalError>),
    Claimed(Claimed),
    Again(Again),
    Found(Found),
    Ended(Box<Ended>),
    Finished(Box<Finished>),
    Cleaned(Cleaned),
    Recorded(Result<Option<Recorded>, JournalError>),
    Noted(Result<(), JournalError>),
    /// The file of what was about to be launched says something else by now.
    Changed(u64),
    /// A definition's file is really gone.
    Gone(DefinitionId),
}

/// How far its end has come, and until when that is waited for.
#[derive(Clone, Copy)]
enum Stopping {
    /// What is going may finish.
    Grace(Instant),
    /// It was told to end.
    Told(Instant),
    /// It was cut off, and its end is being recorded.
    CutOff(Instant),
}

/// Decides when definitions fire. See the module's head.
pub struct Dispatcher {
    clock: Clock,
    drift: Drift,
    reached: Reached,
    alarm: Alarm,
    journal: Journal,
    launcher: Arc<dyn Launcher>,
    files: Arc<dyn Files>,
    commands: mpsc::UnboundedReceiver<Command>,
    activity: watch::Sender<Activity>,
    tasks: JoinSet<Event>,

    definitions: HashMap<DefinitionId, Entry>,
    queue: Queue,
    /// Definitions of which an occurrence is being claimed: they are not in the queue meanwhile.
    claiming: HashSet<DefinitionId>,
    open: OpenOnes,
    /// When attempts that wait for another try are due.
    retries: BTreeSet<(Instant, u64)>,
    /// Reminders whose outcome is recorded and whose file is still to be dealt with.
    uncleaned: HashMap<DefinitionId, Recorded>,
    /// When dealing with a file is tried again.
    cleanups: BTreeSet<(Instant, DefinitionId)>,
    /// Reminders whose file could not be dealt with, and the last pause before it is tried again.
    stuck: HashMap<DefinitionId, Duration>,
    streaks: HashMap<DefinitionId, Streak>,
    /// Reminders that were disabled when an earlier life saw them last.
    were_disabled: HashSet<DefinitionId>,

    /// What was launched last, oldest first.
    recent: VecDeque<(DateTime<Utc>, Arc<Definition>)>,

    max_concurrent_runs: usize,
    /// What fell due before then was missed.
    able_since: DateTime<Utc>,
    /// What an earlier life left has been taken up.
    recovered: bool,
    recovering: bool,
    /// What is to be taken up.
    found: Option<recovery::Found>,
    /// How many answers of the journal to sightings are awaited.
    seeing: usize,
    /// Those that came before anything was taken up.
    seen_early: Vec<Seen>,
    /// What a person decided before that; it is obeyed afterwards.
    early: Vec<Command>,
    /// Who waits for the end of a run to be recorded.
    cancelling: HashMap<u64, Vec<oneshot::Sender<Result<RunState, CancelError>>>>,
    paused: Option<DateTime<Utc>>,
    waiting_for_login: Option<DateTime<Utc>>,
    /// The person was told that there is no login, in this life or an earlier one, and not yet that it is back.
    told_of_login: bool,
    stopping: Option<Stopping>,
    /// Cuts off every attempt that is going, whether it listens or not.
    cut_off: CancellationToken,
    /// Every handle was dropped.
    abandoned: bool,
    fault: Option<ScheduleError>,
}

impl Dispatcher {
    /// A dispatcher and the handle to talk to it. Nothing happens before [`Self::run`], and nothing fires before the
    /// first [`Schedule::replace`]. Must be called within a tokio runtime.
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
            reached: Reached::new(journal.accounted(), clock.now()),
            alarm: clock.alarm(),
            journal,
            launcher,
            files,
            commands,
            activity,
            tasks: JoinSet::new(),
            definitions: HashMap::new(),
            queue: Queue::default(),
            claiming: HashSet::new(),
            open: OpenOnes::default(),
            retries: BTreeSet::new(),
            uncleaned: HashMap::new(),
            cleanups: BTreeSet::new(),
            stuck: HashMap::new(),
            streaks: HashMap::new(),
            recent: VecDeque::new(),
            were_disabled: HashSet::new(),
            max_concurrent_runs: max_concurrent_runs.max(1),
            able_since: clock.now(),
            recovered: false,
            recovering: false,
            found: None,
            seeing: 0,
            seen_early: Vec::new(),
            early: Vec::new(),
            cancelling: HashMap::new(),
            paused: None,
            waiting_for_login: None,
            told_of_login: false,
            stopping: None,
            cut_off: CancellationToken::new(),
            abandoned: false,
            fault: None,
        };
        (Schedule { commands: sender, activity: watching }, dispatcher)
    }

    /// Runs until it is told to stop and everything is recorded. Dropped in the middle, it leaves everything as a
    /// killed process would.
    ///
    /// # Errors
    /// [`ScheduleError`]: a fault that another start may mend. What was going is then found as interrupted.
    pub async fn run(mut self) -> Result<(), ScheduleError> {
        loop {
            self.look_at_the_clock();
            if self.is_dispatching() {
                self.claim_due();
            }
            self.try_again_due();
            self.clean_up_due();
            self.launch_waiting();
            self.announce();
            if self.is_over() {
                self.tasks.shutdown().await;
                return self.fault.map_or(Ok(()), Err);
            }
            let wake = self.next_look();
            let due = self.queue.first().filter(|_| self.is_dispatching());
            tokio::select! {
                command = self.commands.recv(), if !self.abandoned => match command {
                    Some(command) => self.obey_all(command),
                    None => {
                        self.abandoned = true;
                        self.end_now();
                    }
                },
                Some(ended) = self.tasks.join_next() => self.take_in(ended),
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
                () = self.alarm.wait(due) => {}
            }
        }
    }

    fn obey_all(&mut self, first: Command) {
        self.obey(first);
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command);
        }
    }

    fn take_in(&mut self, ended: Result<Event, JoinError>) {
        let fault = match ended {
            Ok(Event::Recovered(found)) => self.on_recovered(found),
            Ok(Event::Seen(seen)) => self.on_seen(seen),
            Ok(Event::Known(known)) => self.on_known(known),
            Ok(Event::Claimed(claimed)) => self.on_claimed(claimed),
            Ok(Event::Again(again)) => self.on_again(again),
            Ok(Event::Found(found)) => self.on_found(&found),
            Ok(Event::Ended(ended)) => self.on_ended(*ended),
            Ok(Event::Finished(finished)) => self.on_finished(*finished),
            Ok(Event::Cleaned(cleaned)) => {
                self.on_cleaned(cleaned);
                Ok(())
            }
            Ok(Event::Recorded(recorded)) => recorded.map(|recorded| {
                if let Some(recorded) = recorded {
                    self.clean_up(recorded);
                }
            }),
            Ok(Event::Noted(noted)) => noted,
            Ok(Event::Changed(number)) => {
                self.on_changed(number);
                Ok(())
            }
            Ok(Event::Gone(id)) => {
                self.on_gone(id);
                Ok(())
            }
            Err(error) => {
                self.fail(ScheduleError::Panic(error));
                Ok(())
            }
        };
        if let Err(error) = fault {
            self.fail(error.into());
        }
    }

    /// Ends at once, leaving what is going to the next life.
    fn fail(&mut self, fault: ScheduleError) {
        tracing::error!(error = %fault, "the schedule ends");
        self.fault.get_or_insert(fault);
        self.end_now();
    }

    fn is_dispatching(&self) -> bool {
        self.recovered && self.paused.is_none() && self.waiting_for_login.is_none() && self.stopping.is_none()
    }

    /// When there is something to do, apart from what falls due, though nothing happens.
    fn next_look(&self) -> Option<Instant> {
        let retry = self.retries.first().filter(|_| self.stopping.is_none()).map(|(at, _)| *at);
        let cleanup = self.cleanups.first().map(|(at, _)| *at);
        let stop = self.stopping.map(|(Stopping::Grace(at) | Stopping::Told(at) | Stopping::CutOff(at))| at);
        [retry, cleanup, stop].into_iter().flatten().min()
    }

    fn stop(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match &mut self.stopping {
            None => self.stopping = Some(Stopping::Grace(until)),
            Some(Stopping::Grace(at)) => *at = until.min(*at),
            Some(Stopping::Told(_) | Stopping::CutOff(_)) => {}
        }
    }

    /// Waits for nothing but records: what is going is cut off in the middle, as when the process is killed.
    fn end_now(&mut self) {
        if !matches!(self.stopping, Some(Stopping::CutOff(_))) {
            self.stopping = Some(Stopping::CutOff(Instant::now() + LAST_WAIT));
            self.end_all();
            self.cut_off.cancel();
        }
    }

    /// Whether all is done. Ends what is going when its grace is over.
    fn is_over(&mut self) -> bool {
        let Some(stopping) = self.stopping else { return false };
        // Records and files are seen through; what only waits is left to the next life.
        if self.tasks.is_empty() {
            return true;
        }
        let now = Instant::now();
        match stopping {
            Stopping::Grace(at) | Stopping::Told(at) | Stopping::CutOff(at) if now < at => return false,
            Stopping::Grace(_) => {
                self.stopping = Some(Stopping::Told(now + TOLD_WAIT));
                self.end_all();
            }
            Stopping::Told(_) => {
                tracing::warn!("runs that were told to end did not; they are cut off");
                self.end_now();
            }
            Stopping::CutOff(_) => return true,
        }
        false
    }

    fn end_all(&mut self) {
        let going: Vec<u64> = self.open.iter().map(|(number, _)| number).collect();
        for number in going {
            self.end(number, Cause::Stopping);
        }
    }

    /// Tells a going attempt to end.
    fn end(&mut self, number: u64, why: Cause) {
        if let Some(open) = self.open.get_mut(number)
            && let Stage::Going { cancel, cause, .. } = &mut open.stage
        {
            cause.get_or_insert(why);
            cancel.cancel();
        }
    }

    fn announce(&self) {
        let now = Activity {
            loaded: self.recovered,
            open: self.open.len() + self.claiming.len(),
            next: self.queue.first(),
            paused: self.paused.is_some(),
            waiting_for_login: self.waiting_for_login.is_some(),
        };
        self.activity.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    /// Starts something that the journal is to do and of which only a fault matters.
    fn note<F>(&mut self, work: F)
    where
        F: Future<Output = Result<(), JournalError>> + Send + 'static,
    {
        self.tasks.spawn(async move { Event::Noted(work.await) });
    }

    fn streak(&self, id: &DefinitionId) -> Streak {
        self.streaks.get(id).cloned().unwrap_or_else(|| Streak::none(id.clone()))
    }

    fn keep_streak(&mut self, streak: &Streak) {
        if *streak == Streak::none(streak.id.clone()) {
            self.streaks.remove(&streak.id);
        } else {
            self.streaks.insert(streak.id.clone(), streak.clone());
        }
    }
}
