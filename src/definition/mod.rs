//! Routines, reminders and webhooks: markdown files with YAML frontmatter, parsed, checked and written.
//!
//! A [`Definition`] exists only if its file is valid; a file that is not is a problem beside the others, and
//! is left exactly as it is. Knows the policy's patterns; knows nothing of runs, the journal or clients.

mod agent;
mod budget;
mod commands;
pub mod cron;
mod draft;
mod durable;
mod edit;
mod error;
mod expect;
pub mod fields;
pub(crate) mod frontmatter;
pub(crate) mod hook;
mod names;
mod parse;
mod payload_schema;
mod persona;
mod problem;
mod read;
mod recurrence;
pub mod samples;
pub mod shared;
mod skill;
mod store;
pub(crate) mod values;
mod watch;
mod write;

pub use agent::{AgentWord, KnownAgents};
pub use budget::{Budget, Period, money};
pub use commands::KnownCommands;
pub use draft::When;
pub(crate) use durable::{replace as replace_file, write_new};
pub use error::DefinitionError;
pub use expect::Expect;
pub use fields::{Definition, Draft, FieldValue};
pub use hook::{Hook, PayloadFault, PayloadSchema, Signature};
pub use parse::{Defaults, LARGEST_FILE, Parsed, parse};
pub use persona::load_persona;
pub(crate) use problem::quoted;
pub use problem::{Problem, Severity};
pub(crate) use read::parsed as parse_file;
pub use recurrence::{Cadence, FollowedEnd, Follows, Recurrence, WatchedFolder};
pub use samples::samples;
pub use skill::{Skill, load_skills};
pub use store::{Change, Loaded, Store, load, load_kind};
pub(crate) use values::{is_host_name, time_with_offset};
pub use watch::{Changed, Watch};
pub(crate) use watch::{Event as FolderEvent, events as folder_events, registered};
pub use write::{
    FailedReminder, Written, changed_text, create, create_from, create_link, create_text, failed_reminders,
    move_to_failed, read_text, remove, remove_unchanged, replace_text, require_free, restore_failed, restore_fired,
    set_field, set_fields, sweep, would_create,
};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::policy::BgForkConfig;

/// A definition's identity: what `id` says, else the file's stem. Always a string, never empty. Its clones share the
/// text: every definition is known by it in half a dozen places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionId(Arc<str>);

impl Serialize for DefinitionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DefinitionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl DefinitionId {
    /// `text` is taken as it is.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }
    /// The identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the id of a turn of the conversation begins with.
    pub const TURN: &str = "chat-";

    /// How the ids of forks begin: conversations beside the main session.
    pub const FORK: &str = "fork-";

    /// How the ids of spawned agents begin.
    pub const SPAWN: &str = "spawn-";

    /// Whether it is that of a fork that the person talks in.
    #[must_use]
    pub fn is_fork(&self) -> bool {
        self.0.starts_with(Self::FORK)
    }

    /// Whether no new file may have this name: the bot gives such ids by itself.
    #[must_use]
    pub fn is_reserved(name: &str) -> bool {
        [Self::TURN, Self::FORK, Self::SPAWN].iter().any(|beginning| name.starts_with(beginning))
    }

    /// Whether it is that of a turn: something that the person has said to the bot.
    #[must_use]
    pub fn is_turn(&self) -> bool {
        self.0.starts_with(Self::TURN)
    }

    /// That of the turn that answers a message: always the same for what a channel's service calls so.
    #[must_use]
    pub fn of_turn(channel: &str, external: &str) -> Self {
        Self::new(format!("{}{channel}-{external}", Self::TURN))
    }

    /// What the channel's service calls the message that this turn answers.
    #[must_use]
    pub fn answered_on(&self, channel: &str) -> Option<&str> {
        let external = self.0.strip_prefix(Self::TURN)?.strip_prefix(channel)?.strip_prefix('-')?;
        // The name of a longer one may begin so.
        (!external.contains('-')).then_some(external)
    }
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Routine, reminder or webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Recurs.
    Routine,
    /// Fires once.
    Reminder,
    /// Fires for each delivery of another service.
    Webhook,
    /// A spawned agent: runs once, at once, and has no file.
    Session,
}

impl Kind {
    /// The kinds that have files.
    pub const WITH_FILES: [Self; 3] = [Self::Routine, Self::Reminder, Self::Webhook];

    /// What happens to its missed occurrences where the file does not say.
    #[must_use]
    pub fn on_missed(self) -> OnMissed {
        match self {
            Self::Routine => OnMissed::Latest,
            Self::Reminder | Self::Webhook | Self::Session => OnMissed::All,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Routine => "routine",
            Self::Reminder => "reminder",
            Self::Webhook => "webhook",
            Self::Session => "session",
        })
    }
}

impl Definition {
    /// Routine, reminder or webhook.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.trigger {
            Trigger::Routine { .. } => Kind::Routine,
            Trigger::Reminder { .. } => Kind::Reminder,
            Trigger::Webhook(_) => Kind::Webhook,
            Trigger::Session { .. } => Kind::Session,
        }
    }

    /// Whether a run has made it, or may have: a spawned agent, or a job of a job's.
    #[must_use]
    pub fn is_made_by_run(&self) -> bool {
        self.kind() == Kind::Session || self.created_by.is_some()
    }

    /// Its place in a chain; `None`: it is of none.
    #[must_use]
    pub fn chain(&self) -> Option<&Chain> {
        match &self.trigger {
            Trigger::Reminder { chain, .. } => chain.as_ref(),
            Trigger::Routine { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
        }
    }

    /// The background settings; `None` for a foreground job.
    #[must_use]
    pub fn background(&self) -> Option<&Background> {
        match &self.mode {
            Mode::Foreground => None,
            Mode::Background(background) => Some(background),
        }
    }

    /// The job whose ends it follows, and which of them; `None`: it fires otherwise.
    #[must_use]
    pub fn follows(&self) -> Option<&Follows> {
        match &self.trigger {
            Trigger::Routine { recurs: Recurrence { cadence: Cadence::After(follows), .. }, .. } => Some(follows),
            _ => None,
        }
    }

    /// By how much its times are put off at most; `None`: not at all.
    #[must_use]
    pub fn jitter(&self) -> Option<Duration> {
        match &self.trigger {
            Trigger::Routine { recurs, .. } => recurs.jitter,
            Trigger::Reminder { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
        }
    }

    /// The folder that it watches; `None`: it fires otherwise.
    #[must_use]
    pub fn watches(&self) -> Option<&WatchedFolder> {
        match &self.trigger {
            Trigger::Routine { recurs: Recurrence { cadence: Cadence::Watch(folder), .. }, .. } => Some(folder),
            _ => None,
        }
    }

    /// What its deliveries must be like; `None`: it fires otherwise.
    #[must_use]
    pub fn hook(&self) -> Option<&Hook> {
        match &self.trigger {
            Trigger::Webhook(hook) => Some(hook),
            _ => None,
        }
    }

    /// What it waits for where it has no times, in words. See [`Recurrence::waits_for`].
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        match &self.trigger {
            Trigger::Routine { recurs, .. } => recurs.waits_for(),
            Trigger::Webhook(_) => Some("when something is delivered".to_owned()),
            Trigger::Reminder { .. } | Trigger::Session { .. } => None,
        }
    }

    /// Whether its body is delivered as it is written, whatever client there is.
    #[must_use]
    pub fn is_delivered_as_written(&self) -> bool {
        self.client == Some(JobClient::Notify)
    }

    /// What its runs are known by to later ones: its id, in a chain that of the first link, and the job that made it. So no job can
    /// make one that takes over what belongs to another's.
    #[must_use]
    pub fn lineage(&self) -> String {
        let id = self.chain().map_or(&self.id, |chain| &chain.parent);
        lineage(id, self.created_by.as_ref())
    }

    /// Whether it needs no agent, and so waits for no login: its body is delivered as it is written, or it runs a command.
    #[must_use]
    pub fn is_without_agent(&self) -> bool {
        matches!(self.client, Some(JobClient::Notify | JobClient::Exec))
    }

    /// `routine email-triage`: how it is named to people and agents.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind(), self.id)
    }
}

/// [`Definition::lineage`] of a job with this id that this job made. Quoted, so that no text of one part can be taken for the other.
#[must_use]
pub fn lineage(id: &DefinitionId, maker: Option<&DefinitionId>) -> String {
    match maker {
        None => format!("{:?}", id.as_str()),
        Some(maker) => format!("{:?} {:?}", id.as_str(), maker.as_str()),
    }
}

/// What a job is told of its earlier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// Nothing.
    #[default]
    None,
    /// The answer of the last completed one.
    Last,
    /// Its whole conversation, which the next one goes on with.
    Thread,
}

/// What the machine must have before a job starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A default route.
    Online,
    /// Mains.
    Power,
}

impl Need {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Online, Self::Power];

    /// As a file has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Power => "power",
        }
    }
}

/// Who does a job whose file says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobClient {
    /// The body is delivered to the person as it is written.
    Notify,
    /// The agent, and nobody in its place.
    Claude,
    /// Nobody: `command` is run.
    Exec,
}

/// What the person is sent of what a job says, or a command prints (`deliver`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// Its last lines, with the news that it failed.
    #[default]
    Failure,
    /// Whatever it printed, each time.
    Always,
    /// Nothing.
    Never,
    /// Of every job: what it says, with the next digest.
    Digest,
}

/// How much a message matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// It may wait.
    Low,
    /// It waits for the end of quiet hours.
    #[default]
    Normal,
    /// It waits for nothing, and goes to one more channel.
    Critical,
}

impl Urgency {
    /// The word that stands for it in the journal and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::Critical => "critical",
        }
    }
}

/// When a definition fires.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Again and again.
    Routine {
        /// When.
        recurs: Recurrence,
        /// What happens when the previous run is still going.
        on_overlap: OnOverlap,
    },
    /// Once.
    Reminder {
        /// The instant. Its offset is the one the file wrote, or the zone's at that time.
        run_at: DateTime<FixedOffset>,
        /// Its place in a chain; `None` for a one-shot.
        chain: Option<Chain>,
    },
    /// For each delivery of another service.
    Webhook(Hook),
    /// Once, as soon as it is started.
    Session {
        /// When it was started.
        run_at: DateTime<FixedOffset>,
    },
}

impl Trigger {
    /// A reminder's or a session's instant in UTC.
    #[must_use]
    pub fn run_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Routine { .. } | Self::Webhook(_) => None,
            Self::Reminder { run_at, .. } | Self::Session { run_at } => Some(run_at.with_timezone(&Utc)),
        }
    }
}

/// A reminder's place in a chain. `depth <= max`, and `max > 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// How many follow-ups the chain may have.
    pub max: u32,
    /// Which link this is; 0 is the first.
    pub depth: u32,
    /// The first link's id.
    pub parent: DefinitionId,
}

/// Where a job runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// As a turn of the main session, with its tools.
    Foreground,
    /// In a fork, under the restrictions.
    Background(Background),
}

/// What a background job's file says of its fork.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// A fresh session instead of a fork of the main session.
    pub isolated: bool,
    /// Model alias or full name; `None`: the main session's.
    pub model: Option<String>,
    /// How the model thinks.
    pub thinking: Thinking,
    /// The named agent that it runs as.
    pub agent: Option<String>,
    /// Tool lists, pings, reports.
    pub restrictions: BgForkConfig,
}

/// `thinking`: `true`, `false` or a token budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model decides.
    #[default]
    Adaptive,
    /// None.
    Disabled,
    /// At most so many tokens.
    Budget(u32),
}

/// What happens to occurrences that fell due while nothing could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissed {
    /// One late run, for the newest. A routine's default.
    Latest,
    /// Every one of them, late. A reminder's default.
    All,
    /// None; each is recorded as skipped.
    Skip,
}

/// What happens when a routine falls due while its previous occurrence is not over: also while that one waits for a slot
/// or for another attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverlap {
    /// The new occurrence is recorded as skipped.
    #[default]
    Skip,
    /// It waits until the previous one is over; at most one does.
    Queue,
    /// The previous one is ended.
    Cancel,
}
