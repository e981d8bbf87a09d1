//! The durable record: one row per occurrence, one per attempt, and the messages to the person.
//!
//! It is the SQLite file `state/journal.db`, or a PostgreSQL server. A claim is committed before a process is spawned, and an
//! outcome before a reminder's file is removed. Knows definitions by id only; knows nothing of clients or channels.
//!
//! [`Journal`] is the daemon's handle. It commits all requests of one moment together; when it answers, the commit
//! is on the disk. [`JournalReader`] reads beside it, or without a daemon.

mod backup;
mod channel_input;
mod channel_state;
mod check;
mod claims;
mod copy;
mod database;
mod delays;
mod deliveries;
mod error;
mod events;
mod forks;
mod generations;
mod history;
mod hosts;
mod occasions;
mod open;
mod outbox;
mod process;
mod prune;
mod pushed;
mod questions;
mod reader;
mod recovery;
mod refusals;
mod refused;
mod remembered;
mod rows;
mod runs;
mod schema;
mod server;
mod sessions;
mod settings;
mod shared_files;
mod spending;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timeline;
mod updates;
mod why_button;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

use crate::agent::Tokens;
use crate::clock::Clock;
use crate::definition::{DefinitionId, Kind, Urgency};

pub use backup::copy_journal;
pub use channel_input::ChannelInput;
pub use channel_state::{BegunInput, Status};
pub use claims::{Claim, DeliveryClaim, NewClaim, Purpose};
pub use copy::{CopiedTable, CopyError, CopySummary, copy_to, mark_moved};
pub use delays::{Delay, DelayCause, Punctuality, UnreportedDelays};
pub use deliveries::{Cause, Delivery, DeliveryState, FailingChannel, Refused, Waiting};
pub use error::JournalError;
pub use events::{Event, EventFilter, EventKind, PROGRAM_REFUSED};
pub use forks::{ForkEnd, ForkRecord, Resumable};
pub use generations::{ConsecutiveFailures, ObservedGeneration};
pub use history::{Attempt, ObservedTrigger, OccurrenceHistory, PastRun};
pub use hosts::{HostRecord, Hosts, Member, NewHost, OnLost, Takeover};
pub use occasions::{Occasion, Origin};
pub use outbox::{Button, NewMessage, RichContent, Subject};
pub use process::ProcessIdentity;
pub use pushed::{NearlyDue, NewPushed, NextDue, PushOutcome, PushWriter, Pushed, PushedCounts};
pub use questions::{Answer, NOT_APPROVED, NewQuestion, Question, QuestionEnd, SKIPPED};
pub use reader::{JournalReader, OccurrenceAccount, OccurrenceRecord, RunCost, RunFilter};
pub use recovery::{ConcludedReminder, RecoveryWork, SERVICE_ENDED, UnfinishedOccurrence, ended_unseen};
pub use refusals::RefusedCalls;
pub use refused::RefusedDeliveries;
pub use remembered::Remembered;
pub use runs::{AfterAttempt, Finish};
pub use server::{JournalLocation, Server};
pub use sessions::{NewSession, SessionRecord, SessionStart, SetPolicyResult};
pub use settings::PAUSED;
pub use shared_files::{Publication, SharedFile};
pub use spending::{ApplicableBudget, Caps, Reservation, RunCap, Spending, Usage};
pub use timeline::TimelineEntry;
pub use updates::PendingUpdates;
pub use why_button::WHY;

/// The journal, open for writing. Cheap to clone; all clones write to one journal. Async methods must be called
/// within a tokio runtime, and return when the change is on the disk.
#[derive(Clone, Debug)]
pub struct Journal {
    writer: Arc<writer::Writer>,
    place: JournalLocation,
    clock: Clock,
    /// Runs whose first side effect is on the disk. Marking one of them again needs no commit.
    marked: Arc<Mutex<HashSet<RunId>>>,
    /// The number of the newest message.
    newest: watch::Sender<i64>,
    /// Counts changes to what channels have to deliver.
    routed: watch::Sender<u64>,
    /// Notifies of forks that have ended, and how.
    ended_forks: broadcast::Sender<(DefinitionId, ForkEnd)>,
    /// Notifies of questions that have ended.
    ended_questions: broadcast::Sender<Question>,
    /// The hosts that share the journal; `None`: nobody shares it.
    hosts: Option<watch::Receiver<Hosts>>,
    /// The newest event at the last look at the hosts.
    looked: watch::Sender<i64>,
    /// The name and epoch of this host, if hosts share the journal.
    lease: Option<(String, i64)>,
    /// Whether this host has stopped renewing its lease.
    leaving: Arc<std::sync::atomic::AtomicBool>,
    /// Why runs that the previous process left do not go on.
    cut_off: &'static str,
    kept_aside: Option<PathBuf>,
    watermark: Option<DateTime<Utc>>,
    _last: Arc<LastHandle>,
}

/// Stops the wait for faults to pass when the last handle is dropped.
#[derive(Debug)]
struct LastHandle(Arc<writer::Writer>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.refuse();
    }
}

impl Journal {
    /// Opens the journal, or creates it (a file with mode 0600, its folder with 0700). Keeps a damaged file aside
    /// under another name and starts a fresh one: see [`Self::kept_aside`].
    ///
    /// # Errors
    /// [`JournalError::Newer`], or the reason why the journal cannot be opened.
    pub fn open(place: impl Into<JournalLocation>, clock: Clock) -> Result<Self, JournalError> {
        let place = place.into();
        let mut file = open::open(&place, clock.now())?;
        let kept_aside = file.kept_aside.take();
        copy::take_into_use(&file.connection, &place)?;
        let newest = outbox::newest(&file.connection)?;
        let watermark = generations::latest(&file.connection)?;
        let writer = Arc::new(writer::Writer::new(place.clone(), clock.clone(), file)?);
        Ok(Self {
            _last: Arc::new(LastHandle(Arc::clone(&writer))),
            writer,
            place,
            clock,
            marked: Arc::default(),
            newest: watch::Sender::new(newest),
            routed: watch::Sender::default(),
            ended_forks: broadcast::Sender::new(64),
            ended_questions: broadcast::Sender::new(64),
            hosts: None,
            looked: watch::Sender::default(),
            lease: None,
            leaving: Arc::default(),
            cut_off: SERVICE_ENDED,
            kept_aside,
            watermark,
        })
    }

    /// Says that the previous process ended because it lost the journal's server.
    pub const fn after_lost_server(&mut self) {
        self.cut_off = "the host lost the journal's server while it was going";
    }

    /// Opens the same journal for reading.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn reader(&self) -> Result<JournalReader, JournalError> {
        JournalReader::open(&self.place)
    }

    /// Reads the journal. Waits for a fault that may pass, as the writer does.
    ///
    /// # Errors
    /// Fails when the journal cannot be read, or is closed during the wait.
    pub async fn read<T>(&self, read: impl Fn(&JournalReader) -> Result<T, JournalError>) -> Result<T, JournalError> {
        let mut pause = writer::MIN_BACKOFF;
        loop {
            let journal = self.clone();
            // Connecting may take a while.
            let opening = tokio::task::spawn_blocking(move || journal.reader());
            let tried = opening.await.unwrap_or(Err(JournalError::Closed)).and_then(|reader| read(&reader));
            match tried {
                Err(error) if error.may_pass() && !self.writer.is_closed() => tokio::time::sleep(pause).await,
                tried => return tried,
            }
            pause = (pause * 2).min(writer::MAX_BACKOFF);
        }
    }

    /// Returns where [`Self::open`] put a damaged journal, so that the person can be notified.
    #[must_use]
    pub fn kept_aside(&self) -> Option<&Path> {
        self.kept_aside.as_deref()
    }

    /// Returns the latest watermark of any definition when the journal was opened. The clock has shown this time before.
    #[must_use]
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        self.watermark
    }

    /// Returns how many commits were made.
    #[cfg(test)]
    pub(crate) fn commits(&self) -> u32 {
        self.writer.commits.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the current fault of the journal (disk full, read-only, locked, gone), if there is one. Callers
    /// wait until it has passed.
    #[must_use]
    pub fn fault(&self) -> watch::Receiver<Option<JournalError>> {
        self.writer.fault()
    }

    /// Refuses new work, completes accepted work, and closes the journal. Work that waits for a fault to pass fails with
    /// that fault. A journal that is dropped without `close` loses nothing; its log stays beside the file.
    pub async fn close(&self) {
        self.writer.close().await;
        if let Some((host, epoch)) = self.lease.clone() {
            self.leave(host, epoch).await;
        }
    }
}

/// One attempt's identity: 8 hex digits, unique in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Makes a random id. The journal keeps it unique.
    #[must_use]
    pub fn random() -> Self {
        let word = std::hash::RandomState::new().hash_one(std::time::Instant::now());
        Self(format!("{:08x}", word & 0xffff_ffff))
    }
    /// Wraps `text`, an id as the journal holds it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A definition and one of its scheduled times. Unique in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Occurrence {
    /// The definition.
    pub id: DefinitionId,
    /// The kind of the definition.
    pub kind: Kind,
    /// The scheduled time, to the millisecond.
    pub at: DateTime<Utc>,
}

/// The state of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Claimed; nothing has been started.
    Claimed,
    /// The client is running.
    Running,
    /// The work was done.
    Completed,
    /// The run ended without doing its work; the record says why.
    Failed,
    /// The run exceeded its time limit.
    TimedOut,
    /// A person ended the run.
    Cancelled,
    /// The service ended during the run.
    Interrupted,
    /// The run never started; the record says why.
    Skipped,
}

/// A tool call that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool's name.
    pub tool: String,
    /// Its input as the agent sent it.
    pub input: serde_json::Value,
    /// The layer that refused it (see [`crate::policy::Layer`]); `client` if the client itself did.
    pub layer: String,
    /// The rule that matched, if one did.
    pub rule: Option<String>,
    /// The sentence that the agent received.
    pub reason: String,
}

/// One attempt, as `runs` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// The attempt's id.
    pub run: RunId,
    /// The definition's id.
    pub id: DefinitionId,
    /// The kind of the definition.
    pub kind: Kind,
    /// The scheduled time.
    pub scheduled: DateTime<Utc>,
    /// When the client was started; for work without a process, when the attempt was. `None`: never.
    pub started: Option<DateTime<Utc>>,
    /// When it ended; `None`: it is running.
    pub ended: Option<DateTime<Utc>>,
    /// The state.
    pub outcome: RunState,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Time from the scheduled time to the claim, in milliseconds.
    pub late_ms: Option<i64>,
    /// Cost in US dollars, as reported by the client.
    pub cost_usd: Option<f64>,
    /// Number of turns, as reported by the client.
    pub turns: Option<u32>,
    /// The model, as reported by the client.
    pub model: Option<String>,
    /// Tokens that the run used.
    pub tokens: Option<Tokens>,
    /// Refused calls, in order.
    pub denials: Vec<Denial>,
    /// Why the run failed, was skipped or was cut off.
    pub error: Option<String>,
    /// When the occurrence is retried, while the retry is pending.
    pub retry_at: Option<DateTime<Utc>>,
    /// For a skipped one that stands for several occurrences: the scheduled time of the first.
    pub covers_from: Option<DateTime<Utc>>,
    /// What caused the occurrence; `None`: its scheduled time.
    pub occasion: Option<Occasion>,
    /// Whether a person fired it.
    pub by_hand: bool,
    /// The host that ran it; `None`: the journal is a file, which has one host.
    pub host: Option<String>,
    /// The client that ran it; `None`: none was needed, or an earlier version of the program recorded the run.
    pub client: Option<String>,
    /// The client's version, as reported by the client.
    pub client_version: Option<String>,
    /// How many requests to the model's API the client retried.
    pub api_retries: u32,
    /// Why it retried the last one.
    pub api_fault: Option<String>,
    /// The client's own transcript, if there is one.
    pub transcript: Option<PathBuf>,
    /// The text of the definition's file when the run began.
    pub definition: Option<String>,
}

/// A message to the person.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Number of the message, from 1, over the whole journal.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The run that sent it, if one did.
    pub run: Option<RunId>,
    /// The definition that it came from, if any.
    pub id: Option<DefinitionId>,
    /// The text, as the person reads it.
    pub text: String,
    /// When the first channel delivered it; `None`: not yet.
    pub delivered: Option<DateTime<Utc>>,
    /// Urgency of the message.
    pub urgency: Urgency,
    /// Whether it waits for the next digest.
    pub digest: bool,
    /// The channel that its definition names.
    pub channel: Option<String>,
    /// The message for channels that can show more than text.
    pub rich: Option<RichContent>,
    /// The channels that deliver it, with their delivery states. Filled only on request.
    pub deliveries: Vec<Delivery>,
}
