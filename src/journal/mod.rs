//! What happened, durably: one row per occurrence, one per attempt, and what the person is to be told.
//!
//! SQLite in `state/journal.db`. A claim is committed before anything is spawned, an outcome before a
//! reminder's file is removed. Knows definitions by id only; knows nothing of clients or channels.
//!
//! [`Journal`] is the daemon's handle: everything it is asked in one moment is one commit, and an answer means
//! that it is on the disk. [`JournalReader`] reads beside it, or without any daemon.

mod backup;
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
mod heard;
mod hosts;
mod kept;
mod occasions;
mod open;
mod outbox;
mod process;
mod prune;
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
mod story;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod timeline;
mod updates;
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
pub use claims::{Claim, Delivered, NewClaim, Purpose};
pub use copy::{Copied, CopiedTable, CopyError, copy_to, mark_moved};
pub use delays::{Delay, DelayCause, Folded, Punctuality};
pub use deliveries::{Delivery, DeliveryState, FailingChannel, Refused, Waiting};
pub use error::JournalError;
pub use events::{Event, EventFilter, EventKind};
pub use forks::{ForkEnd, ForkRecord, Resumable};
pub use generations::{ConsecutiveFailures, ObservedGeneration};
pub use heard::HeardBy;
pub use hosts::{HostRecord, Hosts, Member, NewHost, OnLost};
pub use kept::Status;
pub use occasions::{Occasion, Origin};
pub use outbox::{Button, NewMessage, Rich};
pub use process::ProcessIdentity;
pub use questions::{Answer, NewQuestion, Question, QuestionEnd};
pub use reader::{Account, JournalReader, OccurrenceRecord, RunCost, RunFilter};
pub use recovery::{Recorded, Recovered, Unfinished};
pub use refusals::RefusedCalls;
pub use refused::RefusedDeliveries;
pub use remembered::Remembered;
pub use runs::{After, Finish};
pub use server::{JournalPlace, Server};
pub use sessions::{NewSession, PolicySet, SessionRecord, Started};
pub use settings::PAUSED;
pub use shared_files::{Publication, SharedFile};
pub use spending::{Caps, Purse, Spending, Taken};
pub use story::{Attempt, PastRun, Seen, Story};
pub use timeline::Stretch;
pub use updates::PendingUpdates;

/// The journal, open for writing. Cheap to clone; clones share one file. Every method that is async must be called
/// within a tokio runtime, and returns when what it did is on the disk.
#[derive(Clone, Debug)]
pub struct Journal {
    writer: Arc<writer::Writer>,
    place: JournalPlace,
    clock: Clock,
    /// Runs whose first effect is on the disk: marking it again costs nothing.
    marked: Arc<Mutex<HashSet<RunId>>>,
    /// The newest message's number.
    newest: watch::Sender<i64>,
    /// Counts changes of what channels have to deliver.
    routed: watch::Sender<u64>,
    /// Forks that have ended, and how.
    ended_forks: broadcast::Sender<(DefinitionId, ForkEnd)>,
    /// Who shares it; `None`: nobody does.
    hosts: Option<watch::Receiver<Hosts>>,
    /// The newest event that was seen when the hosts were looked at.
    looked: watch::Sender<i64>,
    /// This host's name and epoch, where several share it.
    lease: Option<(String, i64)>,
    /// The lease is not kept any more.
    leaving: Arc<std::sync::atomic::AtomicBool>,
    kept_aside: Option<PathBuf>,
    watermark: Option<DateTime<Utc>>,
    _last: Arc<LastHandle>,
}

/// When the last handle goes, nobody waits for a fault to pass any more.
#[derive(Debug)]
struct LastHandle(Arc<writer::Writer>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.refuse();
    }
}

impl Journal {
    /// Opens the journal, or makes it (a file: 0600, its folder 0700). A damaged file is kept aside under another name, and a
    /// fresh one started: see [`Self::kept_aside`].
    ///
    /// # Errors
    /// [`JournalError::Newer`], or whatever keeps the file from being opened.
    pub fn open(place: impl Into<JournalPlace>, clock: Clock) -> Result<Self, JournalError> {
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
            hosts: None,
            looked: watch::Sender::default(),
            lease: None,
            leaving: Arc::default(),
            kept_aside,
            watermark,
        })
    }

    /// The same journal, for reading.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn reader(&self) -> Result<JournalReader, JournalError> {
        JournalReader::open(&self.place)
    }

    /// Reads, as soon as it can be read: a fault that may pass is waited for, as by whoever writes.
    ///
    /// # Errors
    /// When it cannot be read, or is closed meanwhile.
    pub async fn read<T>(&self, read: impl Fn(&JournalReader) -> Result<T, JournalError>) -> Result<T, JournalError> {
        let mut pause = writer::FIRST_PAUSE;
        loop {
            let journal = self.clone();
            // Connecting may take a while.
            let opening = tokio::task::spawn_blocking(move || journal.reader());
            let tried = opening.await.unwrap_or(Err(JournalError::Closed)).and_then(|reader| read(&reader));
            match tried {
                Err(error) if error.may_pass() && !self.writer.is_closed() => tokio::time::sleep(pause).await,
                tried => return tried,
            }
            pause = (pause * 2).min(writer::LONGEST_PAUSE);
        }
    }

    /// Where [`Self::open`] put a damaged journal, for the person to be told.
    #[must_use]
    pub fn kept_aside(&self) -> Option<&Path> {
        self.kept_aside.as_deref()
    }

    /// The latest time up to which a definition was accounted for when the journal was opened: the clock had shown it.
    #[must_use]
    pub fn watermark(&self) -> Option<DateTime<Utc>> {
        self.watermark
    }

    /// How many commits were made.
    #[cfg(test)]
    pub(crate) fn commits(&self) -> u32 {
        self.writer.commits.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The fault that holds the journal up while there is one (disk full, read-only, locked, gone): callers wait
    /// until it has passed.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<JournalError>> {
        self.writer.trouble()
    }

    /// Refuses new work from now on, does what was asked before, answers what waits for a fault to pass with that
    /// fault, and closes the file. Without it the file is as good, only left with its log.
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
    /// A new one, at random; the journal keeps it unique.
    fn random() -> Self {
        let word = std::hash::RandomState::new().hash_one(std::time::Instant::now());
        Self(format!("{:08x}", word & 0xffff_ffff))
    }
    /// `text` as it stands in the journal.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// The id as text.
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

/// A definition and one time at which it falls due: what the journal is unique by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Occurrence {
    /// Whose occurrence.
    pub id: DefinitionId,
    /// Routine or reminder.
    pub kind: Kind,
    /// The scheduled time, to the millisecond.
    pub at: DateTime<Utc>,
}

/// How an attempt stands or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Claimed; nothing has been started.
    Claimed,
    /// A client is going.
    Running,
    /// It did its work.
    Completed,
    /// It ended without doing it; the record says why.
    Failed,
    /// It went over its time.
    TimedOut,
    /// A person ended it.
    Cancelled,
    /// The service ended while it was going.
    Interrupted,
    /// It never started; the record says why.
    Skipped,
}

/// A tool call that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool's name.
    pub tool: String,
    /// Its input as the agent sent it.
    pub input: serde_json::Value,
    /// The layer that said no (see [`crate::policy::Layer`]), `client` where the client itself did.
    pub layer: String,
    /// The rule, where one matched.
    pub rule: Option<String>,
    /// The sentence that the agent was given.
    pub reason: String,
}

/// One attempt, as `runs` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// The attempt's id.
    pub run: RunId,
    /// The definition's id.
    pub id: DefinitionId,
    /// Routine or reminder.
    pub kind: Kind,
    /// When it was to run.
    pub scheduled: DateTime<Utc>,
    /// When the client was started, or, where it is no process, the attempt; `None`: it never was.
    pub started: Option<DateTime<Utc>>,
    /// When it ended; `None`: it is going.
    pub ended: Option<DateTime<Utc>>,
    /// How it stands or ended.
    pub outcome: RunState,
    /// 1 for the first.
    pub attempt: u32,
    /// From the scheduled time to the claim, in milliseconds.
    pub late_ms: Option<i64>,
    /// As the client reports it, in US dollars.
    pub cost_usd: Option<f64>,
    /// As the client reports it.
    pub turns: Option<u32>,
    /// The model that the client says it had.
    pub model: Option<String>,
    /// What it took of it.
    pub tokens: Option<Tokens>,
    /// Refused calls, in order.
    pub denials: Vec<Denial>,
    /// Why it failed, was skipped or was cut off.
    pub error: Option<String>,
    /// When its occurrence is tried again, while that is waited for.
    pub retry_at: Option<DateTime<Utc>>,
    /// A skipped one that stands for all of its definition's occurrences from then on.
    pub covers_from: Option<DateTime<Utc>>,
    /// What its occurrence fell due for; `None`: its time.
    pub occasion: Option<Occasion>,
    /// The host that had it; `None`: the journal is a file, which has one.
    pub host: Option<String>,
    /// Which client did it; `None`: none was asked, or an earlier version of the program recorded it.
    pub client: Option<String>,
    /// The client's version, as it says itself.
    pub client_version: Option<String>,
    /// How many requests to the model's API the client had to make again.
    pub api_retries: u32,
    /// Why, the last time.
    pub api_fault: Option<String>,
    /// The client's own transcript, where there is one.
    pub transcript: Option<PathBuf>,
    /// The file's text when it fired.
    pub definition: Option<String>,
}

/// Something the person is to be told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Counts up from 1 over the whole journal.
    pub number: i64,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The run it came from, if it came from one.
    pub run: Option<RunId>,
    /// The definition it came from, if it came from one.
    pub id: Option<DefinitionId>,
    /// The text, as the person reads it.
    pub text: String,
    /// When the first channel had delivered it; `None`: not yet.
    pub delivered: Option<DateTime<Utc>>,
    /// How much it matters.
    pub urgency: Urgency,
    /// It waits for the next digest.
    pub digest: bool,
    /// The channel that its definition asks for.
    pub channel: Option<String>,
    /// The same for channels that can show more than text.
    pub rich: Option<Rich>,
    /// Which channels deliver it, and how far they are. Only where they were asked for.
    pub deliveries: Vec<Delivery>,
}
