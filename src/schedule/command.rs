//! The handle by which the rest of the daemon talks to the dispatcher, and its commands and answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{JournalError, Occasion, RunId, RunState};

/// A valid definition and its file's text.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the file says.
    pub definition: Arc<Definition>,
    /// The file as it is.
    pub text: Arc<str>,
}

/// Why a definition cannot be fired by hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FireError {
    /// There is no such definition, or its file is not valid.
    #[error("there is no definition `{0}` that could fire")]
    NotFound(DefinitionId),
    /// It is running, or claimed and waiting.
    #[error("{id} is going already (run {run})")]
    Going {
        /// Which.
        id: DefinitionId,
        /// Its run.
        run: RunId,
    },
    /// An occurrence of it is being claimed.
    #[error("{0} is falling due at this moment")]
    FallingDue(DefinitionId),
    /// Only other hosts that share the journal may run it.
    #[error("{id} does not run on this host: {why}")]
    Elsewhere {
        /// Which.
        id: DefinitionId,
        /// Why not here.
        why: String,
    },
    /// A reminder that has its outcome.
    #[error("{id} has had its run ({state})")]
    Done {
        /// Which.
        id: DefinitionId,
        /// How it ended.
        state: RunState,
    },
    /// The service is ending, or its journal failed.
    #[error("the service is ending")]
    Stopping,
}

/// Why a run cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// It is over, or there is no such run.
    #[error("run {0} is not going")]
    NotGoing(RunId),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// What was delivered to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What it is known by.
    pub key: String,
    /// A JSON object.
    pub payload: String,
    /// The same key before then was another delivery's.
    pub since: DateTime<Utc>,
}

/// A delivery that is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its run, the first attempt.
    pub run: RunId,
    /// It was delivered before.
    pub again: bool,
}

/// Why nothing can be delivered now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeliverError {
    /// There is no such webhook, or its file is not valid.
    #[error("there is no webhook `{0}`")]
    NotFound(DefinitionId),
    /// The person has paused everything, or disabled it, or it has failed too often.
    #[error("it is paused")]
    Paused,
    /// More of it waits than can be kept.
    #[error("too many deliveries wait already")]
    Full,
    /// The journal did not record it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// Why a person's decision may not hold.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DecisionError {
    /// The journal did not record it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// Who waits for an answer that comes once it is on the disk.
pub(super) type Decided<T> = oneshot::Sender<Result<T, JournalError>>;

/// Files that have changed, one soon after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// What has changed.
    pub occasion: Occasion,
    /// When the first of them did.
    pub began: Instant,
}

#[derive(Debug)]
pub(super) enum Command {
    Replace(Vec<Loaded>),
    Upsert(Loaded),
    Remove(DefinitionId),
    LookAgain(PathBuf),
    Changed(DefinitionId, Burst),
    Deliver(DefinitionId, Delivery, oneshot::Sender<Result<Accepted, DeliverError>>),
    Fire(DefinitionId, oneshot::Sender<Result<RunId, FireError>>),
    Cancel(RunId, oneshot::Sender<Result<RunState, CancelError>>),
    Pause(Decided<()>),
    Resume(Decided<()>),
    ResumeRoutine(DefinitionId, Decided<bool>),
    LoggedIn,
    Answered,
    Limit(usize),
    AlertAfter(u32),
    Snapshot(usize, oneshot::Sender<Snapshot>),
    Stop(Duration),
    EndNow,
}

impl Command {
    /// Whether it can be obeyed only once what the previous process left is taken up. `recovering`: that is under way.
    pub(super) fn needs_recovery(&self, recovering: bool) -> bool {
        match self {
            Self::Replace(_) => recovering,
            Self::Snapshot(..) | Self::Limit(_) | Self::AlertAfter(_) | Self::Stop(_) | Self::EndNow => false,
            _ => true,
        }
    }
}

/// An active occurrence, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveView {
    /// The last attempt.
    pub run: RunId,
    /// Whose.
    pub id: DefinitionId,
    /// Routine or reminder.
    pub kind: Kind,
    /// When it was due.
    pub scheduled: DateTime<Utc>,
    /// The last attempt's number.
    pub attempt: u32,
    /// Where it stands.
    pub stage: StageView,
}

/// What an active occurrence waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageView {
    /// It waits: for a slot, for an earlier run of its definition, for `resume`, for a login.
    Waiting,
    /// Its file is not valid just now; it waits for it.
    WaitingForFile,
    /// An attempt is running since then.
    Running(DateTime<Utc>),
    /// Another attempt follows in so long.
    RetryIn(Duration),
    /// Its end is being recorded.
    Recording,
}

/// The state of the schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// How many definitions there are.
    pub definitions: usize,
    /// Occurrences that are claimed and have no outcome.
    pub active: Vec<ActiveView>,
    /// The next to fall due, as many as were asked for.
    pub next: Vec<(DateTime<Utc>, Arc<Definition>)>,
    /// What was launched in the last 15 minutes, oldest first; the newest 64 at most.
    pub recent: Vec<(DateTime<Utc>, Arc<Definition>)>,
    /// Since when a person has paused everything.
    pub paused: Option<DateTime<Utc>>,
    /// Since when jobs wait for the client to be logged in.
    pub waiting_for_login: Option<DateTime<Utc>>,
    /// Since when jobs wait for a client that is not there.
    pub waiting_for_agent: Option<DateTime<Utc>>,
    /// It is stopping: nothing starts any more.
    pub ending: bool,
}

/// A summary of the schedule that can be watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whether the schedule has started: the definitions are known, and what the previous process left is taken up.
    pub loaded: bool,
    /// How many occurrences are active, or being claimed.
    pub active: usize,
    /// How many attempts are running.
    pub running: usize,
    /// When the next one falls due.
    pub next: Option<DateTime<Utc>>,
    /// A person has paused everything.
    pub paused: bool,
    /// Jobs wait for the client to be logged in.
    pub waiting_for_login: bool,
    /// Jobs wait for a client that is not there.
    pub waiting_for_agent: bool,
}

/// A handle on a running dispatcher. Cheap to clone. When the last one is dropped, the dispatcher stops at once.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) activity: watch::Receiver<Activity>,
}

/// Where a dispatcher takes what the handles send.
#[derive(Debug)]
pub struct Inbox {
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) activity: watch::Sender<Activity>,
    pub(super) max_concurrent_runs: usize,
}

#[cfg(test)]
impl Inbox {
    /// Says how the schedule is, where there is no dispatcher that does.
    pub fn say(&self, activity: Activity) {
        self.activity.send_replace(activity);
    }
}

impl Schedule {
    /// A handle, and the inbox of the dispatcher that is to be made. What is sent before waits.
    #[must_use]
    pub fn channel(max_concurrent_runs: usize) -> (Self, Inbox) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (activity, watching) = watch::channel(Activity::default());
        (Self { commands: sender, activity: watching }, Inbox { commands, activity, max_concurrent_runs })
    }

    /// Replaces all definitions. The first call about definitions must be this one. It also takes up what the previous
    /// process left; nothing fires before that.
    pub fn replace(&self, definitions: Vec<Loaded>) {
        self.send(Command::Replace(definitions));
    }

    /// A definition is new, or its file has changed.
    pub fn upsert(&self, loaded: Loaded) {
        self.send(Command::Upsert(loaded));
    }

    /// A definition's file is gone, or no longer valid. A run of it goes on.
    pub fn remove(&self, id: DefinitionId) {
        self.send(Command::Remove(id));
    }

    /// A file that held no valid definition is gone, or was mended: occurrences that wait for it look at it again.
    pub fn look_again(&self, file: PathBuf) {
        self.send(Command::LookAgain(file));
    }

    /// Something below the folder that a routine watches has changed.
    pub fn changed(&self, id: DefinitionId, burst: Burst) {
        self.send(Command::Changed(id, burst));
    }

    /// Takes something that was delivered to a webhook. Once this has returned it is on the disk, and runs once, however often it is
    /// delivered.
    ///
    /// # Errors
    /// [`DeliverError`].
    pub async fn deliver(&self, id: DefinitionId, delivery: Delivery) -> Result<Accepted, DeliverError> {
        self.ask(|reply| Command::Deliver(id, delivery, reply)).await.unwrap_or(Err(DeliverError::Stopping))
    }

    /// Runs a definition now, even a paused or disabled one. One that waits for another attempt, for `resume`, for a login or
    /// for an agent waits no longer. A reminder's own occurrence is brought forward: when it
    /// completes, its file is removed as usual. A routine's run by hand is an occurrence of its own.
    ///
    /// # Errors
    /// [`FireError`].
    pub async fn fire(&self, id: DefinitionId) -> Result<RunId, FireError> {
        self.ask(|reply| Command::Fire(id, reply)).await.unwrap_or(Err(FireError::Stopping))
    }

    /// Ends a run, or keeps it from starting. Returns how it ended, once that is on the disk. A run that ends by itself at
    /// the same moment keeps its own end.
    ///
    /// # Errors
    /// [`CancelError`].
    pub async fn cancel_run(&self, run: RunId) -> Result<RunState, CancelError> {
        self.ask(|reply| Command::Cancel(run, reply)).await.unwrap_or(Err(CancelError::Stopping))
    }

    /// Starts nothing until [`Self::resume`]. Once this has returned, that holds for the next process too. What falls due
    /// meanwhile goes by `on_missed`.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn pause(&self) -> Result<(), DecisionError> {
        self.ask(Command::Pause).await.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// Ends [`Self::pause`], and lets jobs that wait for a login try at once. Returns when that is on the disk.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn resume(&self) -> Result<(), DecisionError> {
        self.ask(Command::Resume).await.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// The person has logged the client in: jobs that wait for a login or for an agent try at once.
    pub fn logged_in(&self) {
        self.send(Command::LoggedIn);
    }

    /// Ends a routine's automatic pause, and returns when that is on the disk. `false`: it was not paused.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn resume_routine(&self, id: DefinitionId) -> Result<bool, DecisionError> {
        let done = self.ask(|reply| Command::ResumeRoutine(id, reply)).await;
        done.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// The person has answered a question: what waits for their yes looks at the answer.
    pub fn answered(&self) {
        self.send(Command::Answered);
    }

    /// Sets how many background runs may run at once, at least one.
    pub fn limit(&self, max_concurrent_runs: usize) {
        self.send(Command::Limit(max_concurrent_runs));
    }

    /// Sets how many consecutive failures the person is notified of where a definition does not say, at least one.
    pub fn alert_after(&self, failures: u32) {
        self.send(Command::AlertAfter(failures));
    }

    /// The state of the schedule, with the `next` definitions to fall due.
    pub async fn snapshot(&self, next: usize) -> Snapshot {
        self.ask(|reply| Command::Snapshot(next, reply)).await.unwrap_or_default()
    }

    /// Returns `true` when the dispatcher answers, and `false` when it has ended.
    pub async fn is_alive(&self) -> bool {
        self.ask(|reply| Command::Snapshot(0, reply)).await.is_some()
    }

    /// Starts nothing more, lets runs finish for `grace`, then ends them as interrupted. A second call with a shorter
    /// grace shortens it. The dispatcher's `run` returns when all is recorded.
    pub fn stop(&self, grace: Duration) {
        self.send(Command::Stop(grace));
    }

    /// As [`Self::stop`], and cuts runs off in the middle.
    pub fn end_now(&self) {
        self.send(Command::EndNow);
    }

    /// Watches the summary of the schedule.
    #[must_use]
    pub fn activity(&self) -> watch::Receiver<Activity> {
        self.activity.clone()
    }

    /// The answer to a command; `None` when the dispatcher has ended.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer.await.ok()
    }

    fn send(&self, command: Command) {
        // If the dispatcher has ended, the dropped reply tells whoever waits for an answer.
        let _ended = self.commands.send(command);
    }
}
