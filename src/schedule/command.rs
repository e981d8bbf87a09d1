//! The handle with which the rest of the daemon uses the dispatcher, with its commands and answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{JournalError, Occasion, Question, RunId, RunState};

/// A valid definition and its file's text.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The parsed file.
    pub definition: Arc<Definition>,
    /// The text of the file.
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
        /// The definition.
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
        /// The definition.
        id: DefinitionId,
        /// Why this host may not.
        why: String,
    },
    /// A reminder that has its outcome already.
    #[error("{id} has had its run ({state})")]
    Done {
        /// The reminder.
        id: DefinitionId,
        /// The outcome.
        state: RunState,
    },
    /// The service is ending, or its journal failed.
    #[error("the service is ending")]
    Stopping,
}

/// Why a run cannot be cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    /// The run has ended, or does not exist.
    #[error("run {0} is not going")]
    NotGoing(RunId),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// A delivery to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The key that identifies it.
    pub key: String,
    /// The payload, a JSON object.
    pub payload: String,
    /// Start of the period in which the key identifies this delivery. An equal key before it was another delivery's.
    pub since: DateTime<Utc>,
}

/// A delivery that is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its run, the first attempt.
    pub run: RunId,
    /// Whether it is a repeated delivery.
    pub is_repeated: bool,
}

/// Why a delivery is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeliverError {
    /// There is no such webhook, or its file is not valid.
    #[error("there is no webhook `{0}`")]
    NotFound(DefinitionId),
    /// The person has paused everything or disabled it, or it has failed too often.
    #[error("it is paused")]
    Paused,
    /// The maximum number of its deliveries is waiting.
    #[error("too many deliveries wait already")]
    Full,
    /// The journal did not record it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// Why a person's decision may not last.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DecisionError {
    /// The journal did not record it.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The service is ending.
    #[error("the service is ending")]
    Stopping,
}

/// The caller that gets an answer once the decision is on the disk.
pub(super) type DecisionReply<T> = oneshot::Sender<Result<T, JournalError>>;

/// Changes of files in quick succession.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The changed files.
    pub occasion: Occasion,
    /// When the first of them changed.
    pub began: Instant,
}

#[derive(Debug)]
pub(super) enum Command {
    Replace(Vec<Loaded>),
    Upsert(Loaded),
    Remove(DefinitionId),
    Load(Vec<Loaded>),
    Unload(Vec<DefinitionId>, oneshot::Sender<Vec<DefinitionId>>),
    Unpush(Vec<DefinitionId>),
    LookAgain(PathBuf),
    Changed(DefinitionId, Burst),
    Deliver(DefinitionId, Delivery, oneshot::Sender<Result<Accepted, DeliverError>>),
    Fire(DefinitionId, oneshot::Sender<Result<RunId, FireError>>),
    Cancel(RunId, oneshot::Sender<Result<RunState, CancelError>>),
    Pause(DecisionReply<()>),
    Resume(DecisionReply<()>),
    ResumeRoutine(DefinitionId, DecisionReply<bool>),
    LoggedIn,
    Answered(Option<(RunId, String)>),
    Limit(usize),
    AlertAfter(u32),
    Snapshot(usize, oneshot::Sender<Snapshot>),
    Stop(Duration),
    EndNow,
}

impl Command {
    /// Returns whether the command has to wait for the recovery of the previous process's work. `recovering`: recovery has begun.
    pub(super) fn needs_recovery(&self, recovering: bool) -> bool {
        match self {
            Self::Replace(_) => recovering,
            Self::Snapshot(..) | Self::Limit(_) | Self::AlertAfter(_) | Self::Stop(_) | Self::EndNow => false,
            _ => true,
        }
    }
}

/// An active occurrence, as shown to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveView {
    /// The last attempt.
    pub run: RunId,
    /// The definition.
    pub id: DefinitionId,
    /// The kind of the definition.
    pub kind: Kind,
    /// The scheduled time.
    pub scheduled: DateTime<Utc>,
    /// The number of the last attempt.
    pub attempt: u32,
    /// The stage.
    pub stage: StageView,
}

/// The stage of an active occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageView {
    /// It waits: for a slot, an earlier run of its definition, `resume`, or a login.
    Waiting,
    /// It waits for its file to become valid.
    WaitingForFile,
    /// An attempt is running, since this time.
    Running(DateTime<Utc>),
    /// Another attempt follows after this time.
    RetryIn(Duration),
    /// The journal is recording its claim or its end.
    Recording,
}

/// The state of the schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Number of definitions.
    pub definitions: usize,
    /// Occurrences that are claimed and have no outcome.
    pub active: Vec<ActiveView>,
    /// The next definitions to fall due, as many as requested.
    pub next: Vec<(DateTime<Utc>, Arc<Definition>)>,
    /// Launches of the last 15 minutes, oldest first; at most the newest 64.
    pub recent: Vec<(DateTime<Utc>, Arc<Definition>)>,
    /// When a person paused everything.
    pub paused: Option<DateTime<Utc>>,
    /// When jobs began to wait for a login of the client.
    pub waiting_for_login: Option<DateTime<Utc>>,
    /// When jobs began to wait for a missing client.
    pub waiting_for_agent: Option<DateTime<Utc>>,
    /// Whether it is stopping, so that nothing starts any more.
    pub ending: bool,
}

/// A summary of the schedule that can be watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whether the schedule has started: the definitions are known, and the previous process's work is recovered.
    pub loaded: bool,
    /// Number of occurrences that are active or being claimed.
    pub active: usize,
    /// Number of running attempts.
    pub running: usize,
    /// When the next definition falls due.
    pub next: Option<DateTime<Utc>>,
    /// Whether a person has paused everything.
    pub paused: bool,
    /// Whether jobs wait for a login of the client.
    pub waiting_for_login: bool,
    /// Whether jobs wait for a missing client.
    pub waiting_for_agent: bool,
}

/// A handle on a running dispatcher. Cheap to clone. When the last one is dropped, the dispatcher stops at once.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) activity: watch::Receiver<Activity>,
}

/// The dispatcher's end of the channel from the handles.
#[derive(Debug)]
pub struct Inbox {
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) activity: watch::Sender<Activity>,
    pub(super) max_concurrent_runs: usize,
}

#[cfg(test)]
impl Inbox {
    /// Sets the activity of a schedule without a dispatcher.
    pub fn say(&self, activity: Activity) {
        self.activity.send_replace(activity);
    }
}

impl Schedule {
    /// Returns a handle, and the inbox for the dispatcher. Commands wait until there is a dispatcher.
    #[must_use]
    pub fn channel(max_concurrent_runs: usize) -> (Self, Inbox) {
        let (sender, commands) = mpsc::unbounded_channel();
        let (activity, watching) = watch::channel(Activity::default());
        (Self { commands: sender, activity: watching }, Inbox { commands, activity, max_concurrent_runs })
    }

    /// Replaces all definitions. Must be the first call about definitions. The first call also recovers the work
    /// of the previous process; nothing fires before that.
    pub fn replace(&self, definitions: Vec<Loaded>) {
        self.send(Command::Replace(definitions));
    }

    /// Adds a definition, or replaces it after a change of its file.
    pub fn upsert(&self, loaded: Loaded) {
        self.send(Command::Upsert(loaded));
    }

    /// Removes a definition whose file is gone or no longer valid. Its current run continues.
    pub fn remove(&self, id: DefinitionId) {
        self.send(Command::Remove(id));
    }

    /// Adds definitions of the database that are nearly due, or replaces them. A file with the same id comes first.
    pub fn load(&self, definitions: Vec<Loaded>) {
        self.send(Command::Load(definitions));
    }

    /// Drops definitions of the database that are not nearly due any more, unless something of theirs is open. Returns those that are
    /// not known any more.
    pub async fn unload(&self, ids: Vec<DefinitionId>) -> Vec<DefinitionId> {
        self.ask(|reply| Command::Unload(ids, reply)).await.unwrap_or_default()
    }

    /// Removes definitions that were removed from the database. Their current runs continue.
    pub fn unpush(&self, ids: Vec<DefinitionId>) {
        self.send(Command::Unpush(ids));
    }

    /// Makes occurrences that wait for a file check it again, since an invalid file is gone or was corrected.
    pub fn recheck(&self, file: PathBuf) {
        self.send(Command::LookAgain(file));
    }

    /// Reports changes in the folder that a routine watches.
    pub fn changed(&self, id: DefinitionId, burst: Burst) {
        self.send(Command::Changed(id, burst));
    }

    /// Accepts a delivery to a webhook. When this returns, the delivery is on the disk. It runs once, however
    /// often it is delivered.
    ///
    /// # Errors
    /// [`DeliverError`].
    pub async fn deliver(&self, id: DefinitionId, delivery: Delivery) -> Result<Accepted, DeliverError> {
        self.ask(|reply| Command::Deliver(id, delivery, reply)).await.unwrap_or(Err(DeliverError::Stopping))
    }

    /// Runs a definition now, even a suppressed or disabled one. If it waits for another attempt, `resume`, a
    /// login or an agent, the wait ends. For a reminder, its own occurrence runs early, and its file is removed as
    /// usual on completion. For a routine, the run is a separate occurrence.
    ///
    /// # Errors
    /// [`FireError`].
    pub async fn fire(&self, id: DefinitionId) -> Result<RunId, FireError> {
        self.ask(|reply| Command::Fire(id, reply)).await.unwrap_or(Err(FireError::Stopping))
    }

    /// Ends a run, or prevents its start. Returns its outcome, once that is on the disk. A run that ends by itself
    /// at the same moment keeps its own outcome.
    ///
    /// # Errors
    /// [`CancelError`].
    pub async fn cancel_run(&self, run: RunId) -> Result<RunState, CancelError> {
        self.ask(|reply| Command::Cancel(run, reply)).await.unwrap_or(Err(CancelError::Stopping))
    }

    /// Starts nothing until [`Self::resume`]. When this returns, the pause holds for the next process, too.
    /// Occurrences that fall due meanwhile are handled by `on_missed`.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn pause(&self) -> Result<(), DecisionError> {
        self.ask(Command::Pause).await.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// Ends [`Self::pause`], and makes jobs that wait for a login try at once. Returns when the decision is on the disk.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn resume(&self) -> Result<(), DecisionError> {
        self.ask(Command::Resume).await.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// Makes jobs that wait for a login or an agent try at once, since the person has logged the client in.
    pub fn logged_in(&self) {
        self.send(Command::LoggedIn);
    }

    /// Ends a routine's automatic pause. Returns when that is on the disk; `false` if the routine was not paused.
    ///
    /// # Errors
    /// [`DecisionError`].
    pub async fn resume_routine(&self, id: DefinitionId) -> Result<bool, DecisionError> {
        let done = self.ask(|reply| Command::ResumeRoutine(id, reply)).await;
        done.ok_or(DecisionError::Stopping)?.map_err(DecisionError::from)
    }

    /// Makes jobs that wait for an approval check the answer, since a question has ended. The run that it refuses, if any, ends at
    /// once. `None`: which one has ended is not known.
    pub fn answered(&self, question: Option<&Question>) {
        let refused = question.and_then(|question| Some((question.run.clone(), question.start_refused()?)));
        self.send(Command::Answered(refused));
    }

    /// Sets the maximum number of concurrent background runs, at least one.
    pub fn limit(&self, max_concurrent_runs: usize) {
        self.send(Command::Limit(max_concurrent_runs));
    }

    /// Sets the number of consecutive failures after which the person is notified, unless the definition says otherwise; at least one.
    pub fn alert_after(&self, failures: u32) {
        self.send(Command::AlertAfter(failures));
    }

    /// Returns the state of the schedule, with the `next` definitions to fall due.
    pub async fn snapshot(&self, next: usize) -> Snapshot {
        self.ask(|reply| Command::Snapshot(next, reply)).await.unwrap_or_default()
    }

    /// Returns `true` when the dispatcher answers, and `false` when it has ended.
    pub async fn is_alive(&self) -> bool {
        self.ask(|reply| Command::Snapshot(0, reply)).await.is_some()
    }

    /// Starts nothing more, lets runs finish for `grace`, then ends them as interrupted. A second call with a
    /// shorter grace shortens it. The dispatcher's `run` returns when everything is recorded.
    pub fn stop(&self, grace: Duration) {
        self.send(Command::Stop(grace));
    }

    /// Stops like [`Self::stop`], but cuts runs off immediately.
    pub fn end_now(&self) {
        self.send(Command::EndNow);
    }

    /// Watches the summary of the schedule.
    #[must_use]
    pub fn activity(&self) -> watch::Receiver<Activity> {
        self.activity.clone()
    }

    /// Sends a command and waits for the answer; `None` if the dispatcher has ended.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        answer.await.ok()
    }

    fn send(&self, command: Command) {
        // If the dispatcher has ended, the dropped reply notifies the waiting caller.
        let _ended = self.commands.send(command);
    }
}
