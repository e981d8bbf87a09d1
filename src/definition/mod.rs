//! Routines, reminders and webhooks: markdown files with YAML frontmatter, parsed, checked and written.
//!
//! A [`Definition`] exists only if its file is valid. An invalid file yields a problem and is never changed. This
//! module knows the policy's patterns. It knows nothing of runs, the journal or clients.

mod agent;
mod budget;
mod commands;
pub mod cron;
mod draft;
pub(crate) mod durable;
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
mod pushed;
mod read;
mod recurrence;
mod rule_change;
pub mod samples;
pub mod shared;
mod skill;
mod store;
pub(crate) mod values;
mod watch;
mod write;

pub use agent::{AgentTools, KnownAgents};
pub use budget::{Budget, Period, grouped, money};
pub use commands::KnownCommands;
pub use draft::When;
pub(crate) use durable::{replace as replace_file, write_new};
pub use error::DefinitionError;
pub use expect::Expect;
pub use fields::{Definition, Draft, FieldValue};
pub use hook::{Hook, PayloadFault, PayloadSchema, Signature};
pub use names::maker_in;
pub use parse::{Defaults, LARGEST_FILE, Parsed, parse};
pub use persona::load_persona;
pub use problem::{Problem, Severity};
pub(crate) use problem::{kind_of, quoted};
pub use pushed::{parse_pushed, pushed_id, pushed_path};
pub(crate) use read::{is_definition_name, is_missing, other_entries, parsed as parse_file};
pub use recurrence::{Cadence, FollowedEnd, Follows, Recurrence, WatchedFolder};
pub use rule_change::{RuleChange, diff};
pub use samples::samples;
pub use skill::{Skill, load_skills};
pub use store::{Change, Loaded, Store, load, load_kind};
pub(crate) use values::{is_host_name, time_with_offset};
pub(crate) use watch::{Event as FolderEvent, events as folder_events, registered};
pub use watch::{PossibleChange, Watch};
pub use write::{
    FailedReminder, WrittenFile, change_text, changed_text, create, create_from, create_link, create_text,
    failed_names, failed_reminders, is_gone, keep_as_failed, move_to_failed, read_text, remove, remove_unchanged,
    replace_text, require_free, restore_failed, restore_fired, set_field, set_fields, sweep, unique_id, would_create,
};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::policy::BgForkConfig;

/// The identity of a definition: the value of `id`, else the file's stem. Always a string; a file's is never empty. Clones share
/// the text, since several parts of the program keep every id.
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
    /// Creates an identity from `text`, unchecked.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }
    /// Returns the identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Prefix of the ids of turns of the conversation.
    pub const TURN: &str = "chat-";

    /// Prefix of the ids of forks: conversations beside the main session.
    pub const FORK: &str = "fork-";

    /// Prefix of the ids of spawned agents.
    pub const SPAWN: &str = "spawn-";

    /// Whether this is the id of a fork in which the person talks.
    #[must_use]
    pub fn is_fork(&self) -> bool {
        self.0.starts_with(Self::FORK)
    }

    /// Whether no new file may have this name. The bot itself gives such ids.
    #[must_use]
    pub fn is_reserved(name: &str) -> bool {
        [Self::TURN, Self::FORK, Self::SPAWN].iter().any(|beginning| name.starts_with(beginning))
    }

    /// Whether this is the id of a turn: a message of the person to the bot.
    #[must_use]
    pub fn is_turn(&self) -> bool {
        self.0.starts_with(Self::TURN)
    }

    /// Returns the id of the turn that answers a message. `external` is the id of the message in the channel's service.
    #[must_use]
    pub fn of_turn(channel: &str, external: &str) -> Self {
        Self::new(format!("{}{channel}-{external}", Self::TURN))
    }

    /// Returns the id that the channel's service gave the message that this turn answers.
    #[must_use]
    pub fn answered_on(&self, channel: &str) -> Option<&str> {
        let external = self.0.strip_prefix(Self::TURN)?.strip_prefix(channel)?.strip_prefix('-')?;
        // The name of another channel may begin with this one and a `-`.
        (!external.contains('-')).then_some(external)
    }
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Recurs.
    Routine,
    /// Fires once.
    Reminder,
    /// Fires for each delivery from another service.
    Webhook,
    /// Runs once, immediately, without a file: a spawned agent or a turn of the conversation.
    Session,
}

impl Kind {
    /// The kinds that have files.
    pub const WITH_FILES: [Self; 3] = [Self::Routine, Self::Reminder, Self::Webhook];

    /// Returns the default of `on_missed`.
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
    /// Returns the kind of the definition.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.trigger {
            Trigger::Routine { .. } => Kind::Routine,
            Trigger::Reminder { .. } => Kind::Reminder,
            Trigger::Webhook(_) => Kind::Webhook,
            Trigger::Session { .. } => Kind::Session,
        }
    }

    /// Whether a run made it, or may have made it: a session, or a job that another job made.
    #[must_use]
    pub fn is_made_by_run(&self) -> bool {
        self.kind() == Kind::Session || self.created_by.is_some()
    }

    /// Returns the job that made it; `None` if no job did. Who spawned an agent is not known here, so all spawned agents have one maker.
    #[must_use]
    pub fn maker(&self) -> Option<DefinitionId> {
        let is_spawned = self.kind() == Kind::Session && !self.id.is_turn();
        self.created_by.clone().or_else(|| is_spawned.then(|| DefinitionId::new("spawned agents")))
    }

    /// Returns its position in a chain; `None` outside of a chain.
    #[must_use]
    pub fn chain(&self) -> Option<&Chain> {
        match &self.trigger {
            Trigger::Reminder { chain, .. } => chain.as_ref(),
            Trigger::Routine { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
        }
    }

    /// Returns the fork that it is a turn of.
    #[must_use]
    pub fn fork(&self) -> Option<&DefinitionId> {
        match &self.trigger {
            Trigger::Session { fork, .. } => fork.as_ref(),
            Trigger::Routine { .. } | Trigger::Reminder { .. } | Trigger::Webhook(_) => None,
        }
    }

    /// Returns the background settings; `None` for a foreground job.
    #[must_use]
    pub fn background(&self) -> Option<&Background> {
        match &self.mode {
            Mode::Foreground => None,
            Mode::Background(background) => Some(background),
        }
    }

    /// Returns the job that it follows, and the ends that count; `None` if it fires otherwise.
    #[must_use]
    pub fn follows(&self) -> Option<&Follows> {
        match &self.trigger {
            Trigger::Routine { recurs: Recurrence { cadence: Cadence::After(follows), .. }, .. } => Some(follows),
            _ => None,
        }
    }

    /// Returns the maximum delay of its occurrences; `None` for no delay.
    #[must_use]
    pub fn jitter(&self) -> Option<Duration> {
        match &self.trigger {
            Trigger::Routine { recurs, .. } => recurs.jitter,
            Trigger::Reminder { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
        }
    }

    /// Returns the folder that it watches; `None` if it fires otherwise.
    #[must_use]
    pub fn watches(&self) -> Option<&WatchedFolder> {
        match &self.trigger {
            Trigger::Routine { recurs: Recurrence { cadence: Cadence::Watch(folder), .. }, .. } => Some(folder),
            _ => None,
        }
    }

    /// Returns the rules for its deliveries; `None` if it fires otherwise.
    #[must_use]
    pub fn hook(&self) -> Option<&Hook> {
        match &self.trigger {
            Trigger::Webhook(hook) => Some(hook),
            _ => None,
        }
    }

    /// Describes the event that fires a definition without times. See [`Recurrence::waits_for`].
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        match &self.trigger {
            Trigger::Routine { recurs, .. } => recurs.waits_for(),
            Trigger::Webhook(_) => Some("when something is delivered".to_owned()),
            Trigger::Reminder { .. } | Trigger::Session { .. } => None,
        }
    }

    /// Whether its body is delivered as written, whichever client is configured.
    #[must_use]
    pub fn is_delivered_as_written(&self) -> bool {
        self.client == Some(JobClient::Notify)
    }

    /// Whether it is a later check of the chain that began with this reminder.
    #[must_use]
    pub fn is_check_of(&self, first: &DefinitionId) -> bool {
        self.id != *first && self.chain().is_some_and(|chain| chain.parent == *first)
    }

    /// Returns the name under which later runs find its memory: its id (in a chain, the id of the first reminder) and
    /// the job that made it. The maker keeps a job from creating one that takes over the memory of another.
    #[must_use]
    pub fn lineage(&self) -> String {
        let id = self.chain().map_or(&self.id, |chain| &chain.parent);
        lineage(id, self.created_by.as_ref())
    }

    /// Whether it runs without an agent and so needs no login: its body is delivered as written, or it runs a command.
    #[must_use]
    pub fn is_without_agent(&self) -> bool {
        matches!(self.client, Some(JobClient::Notify | JobClient::Exec))
    }

    /// Whether a run of it is a command in the job's shell, without a client.
    #[must_use]
    pub fn runs_command(&self) -> bool {
        matches!(self.mode, Mode::Background(_)) && self.command.is_some()
    }

    /// Returns its name for people and agents: `routine email-triage`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind(), self.id)
    }
}

/// Returns the [`Definition::lineage`] of the job `id` that `maker` made. Quoting keeps the two parts apart.
#[must_use]
pub fn lineage(id: &DefinitionId, maker: Option<&DefinitionId>) -> String {
    match maker {
        None => format!("{:?}", id.as_str()),
        Some(maker) => format!("{:?} {:?}", id.as_str(), maker.as_str()),
    }
}

/// The memory that a job has of its earlier runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// Nothing.
    #[default]
    None,
    /// The answer of the last completed run.
    Last,
    /// The whole conversation of the last completed run, which the next run continues.
    Thread,
}

/// A condition that the machine must meet before a job starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A default route.
    Online,
    /// Mains power.
    Power,
}

impl Need {
    /// All conditions.
    pub const ALL: [Self; 2] = [Self::Online, Self::Power];

    /// Returns the condition as written in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Power => "power",
        }
    }
}

/// The client of a job whose file names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobClient {
    /// No model: the body is delivered to the person as written.
    Notify,
    /// The agent. The job waits while there is none.
    Claude,
    /// No model: `command` is run.
    Exec,
}

/// The output of a job that the person is sent (`deliver`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// The last lines of a command, in the message that it failed.
    #[default]
    Failure,
    /// The output of a completed command, and the last lines of a failed one.
    Always,
    /// No output of a command.
    Never,
    /// The messages of any job, with the next digest.
    Digest,
}

/// The urgency of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// It waits as a normal message does. The channel shows it quietly, if it can.
    Low,
    /// It waits until quiet hours end.
    #[default]
    Normal,
    /// It never waits, and is also sent to `critical_channel`.
    Critical,
}

impl Urgency {
    /// Returns the word for it in the journal and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::Critical => "critical",
        }
    }
}

/// The event that fires a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Recurs.
    Routine {
        /// The times or events.
        recurs: Recurrence,
        /// The effect of falling due while the previous occurrence is active.
        on_overlap: OnOverlap,
    },
    /// Fires once.
    Reminder {
        /// The instant. Its offset is the one in the file, else the zone's at that time.
        run_at: DateTime<FixedOffset>,
        /// Its position in a chain; `None` for a single reminder.
        chain: Option<Chain>,
    },
    /// Fires for each delivery from another service.
    Webhook(Hook),
    /// Runs once, as soon as it is started.
    Session {
        /// The time at which it was started.
        run_at: DateTime<FixedOffset>,
        /// The fork that it is a turn of; `None`: it is a turn of the main session, or a spawned agent. The journal has it, its text
        /// does not.
        fork: Option<DefinitionId>,
    },
}

impl Trigger {
    /// Returns the instant of a reminder or a session, in UTC.
    #[must_use]
    pub fn run_at(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Routine { .. } | Self::Webhook(_) => None,
            Self::Reminder { run_at, .. } | Self::Session { run_at, .. } => Some(run_at.with_timezone(&Utc)),
        }
    }
}

/// The position of a reminder in a chain. `depth <= max`, and `max > 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Maximum number of follow-ups in the chain.
    pub max: u32,
    /// Number of follow-ups before this one; 0 for the first reminder.
    pub depth: u32,
    /// The id of the first reminder.
    pub parent: DefinitionId,
}

/// The session in which a job runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// A turn of the main session, with its tools.
    Foreground,
    /// A fork, under restrictions.
    Background(Background),
}

/// Settings of a background job's fork.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// Whether it is a fresh session instead of a fork of the main session.
    pub isolated: bool,
    /// Model alias or full name; `None` for the main session's model.
    pub model: Option<String>,
    /// How the model thinks.
    pub thinking: Thinking,
    /// The named agent that the job runs as.
    pub agent: Option<String>,
    /// Tool lists, pings, reports.
    pub restrictions: BgForkConfig,
}

/// The value of `thinking`: `true`, `false` or a token budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model decides.
    #[default]
    Adaptive,
    /// No thinking.
    Disabled,
    /// At most this many tokens.
    Budget(u32),
}

/// The treatment of occurrences that fell due while nothing could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissed {
    /// One late run, for the newest. The default of routines.
    Latest,
    /// A late run for each. The default of all other kinds.
    All,
    /// No run. Each occurrence is recorded as skipped.
    Skip,
}

/// The effect of a routine that falls due while its previous occurrence is still active. An occurrence is also active
/// while it waits for a slot or for another attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOverlap {
    /// The new occurrence is recorded as skipped.
    #[default]
    Skip,
    /// It waits until the previous one has ended. At most one occurrence waits.
    Queue,
    /// The previous one is cancelled.
    Cancel,
}
