//! Every request that can be made, as a type.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{CostsBy, InitOptions, OccurrenceLimit, ServiceCommand, UnitCommand};
use crate::definition::fields::Field;
use crate::definition::{Draft, FieldValue, Kind};
use crate::journal::{Answer, RunFilter};
use crate::run::spawn::SpawnRequest;

/// One request of a caller. A new command needs a variant here, its [`Effect`](super::Effect), and the function that
/// answers it.
#[derive(Clone, Debug)]
pub enum Command {
    /// The state of everything, in a line.
    Overview,
    /// The names of the person's own commands.
    ExternalCommands,
    /// Problems of all definitions, or of those with these files and ids.
    Check {
        /// Ids, or paths.
        files: Vec<PathBuf>,
        /// Folder against which relative paths are resolved, besides the data folder.
        folder: Option<PathBuf>,
    },
    /// The state of the service, active runs, coming occurrences and failures.
    Status,
    /// The coming occurrences.
    Next {
        /// Maximum number of occurrences.
        count: usize,
        /// Earliest time, as a person writes it.
        from: Option<String>,
        /// Latest time.
        until: Option<String>,
        /// The definitions; empty for all.
        ids: Vec<String>,
        /// Which occurrences of each definition.
        each: OccurrenceLimit,
    },
    /// An explanation of what a job did.
    Why {
        /// The id of the job, or of one of its runs.
        id: String,
        /// The time, as a person writes it; `None` for the last time and the next.
        at: Option<String>,
    },
    /// A prediction of what would happen to occurrences.
    Simulate {
        /// The definitions; empty for all.
        ids: Vec<String>,
        /// Earliest time, as a person writes it; `None` for now.
        from: Option<String>,
        /// Latest time; `None` for one day later.
        until: Option<String>,
    },
    /// The coming occurrences, for a calendar.
    Calendar {
        /// Number of days from now.
        days: u16,
    },
    /// Take over the data folder of the Python ollim-bot.
    Import {
        /// The folder.
        from: PathBuf,
        /// Whether to report only, without importing.
        dry_run: bool,
    },
    /// Take over the lines of a crontab.
    ImportCrontab {
        /// The file; `None` for the person's own crontab.
        file: Option<PathBuf>,
        /// Whether its lines name a user.
        of_user: bool,
        /// Whether to report only, without importing.
        dry_run: bool,
    },
    /// Put definitions into the journal's database, or remove some.
    Push {
        /// Files and folders; `-` for JSON lines on standard input.
        paths: Vec<PathBuf>,
        /// Whether to write nothing.
        dry_run: bool,
        /// Ids to remove instead.
        remove: Vec<String>,
    },
    /// Take over timers of systemd.
    ImportSystemd {
        /// Timer files, or folders with timers; empty for the person's own.
        units: Vec<PathBuf>,
        /// Whether to report only, without importing.
        dry_run: bool,
    },
    /// Past and present runs, newest first.
    Runs(RunFilter),
    /// One run.
    Run {
        /// Its id.
        run: String,
        /// Whether to include the results of its calls.
        full: bool,
    },
    /// Refused calls of runs, counted by job and rule.
    RefusedCalls {
        /// How far to look back; `None` for all.
        since: Option<Since>,
    },
    /// Costs of runs.
    Costs {
        /// The grouping.
        by: CostsBy,
        /// How far back runs may have begun; `None` for all.
        since: Option<Since>,
    },
    /// Messages that the bot sent, newest last.
    Inbox {
        /// Maximum number of messages.
        count: u32,
    },
    /// The channels and their states.
    Channels,
    /// The person's own MCP servers.
    McpServers,
    /// The tools of one or all of the person's MCP servers.
    McpTools {
        /// The server's name; `None` for all.
        server: Option<String>,
    },
    /// Questions that jobs ask the person, and the last answers.
    Questions,
    /// Answer a question.
    Answer {
        /// Its number.
        question: i64,
        /// The person's answer.
        answer: Answer,
        /// A sentence that the agent gets with a denial.
        sentence: Option<String>,
        /// Where the person answers: `terminal`, or the name of a channel.
        channel: String,
    },
    /// How many messages background jobs may still send.
    Budget,
    /// The settings in force, each with its origin.
    Config,
    /// All named agents.
    Agents,
    /// One named agent.
    Agent {
        /// Its name.
        name: String,
    },
    /// The main session and those of spawned agents.
    Sessions,
    /// One session.
    Session {
        /// Its id, or `main`.
        id: String,
    },
    /// Whether a definition's run may make a tool call, and the rule that decides.
    ExplainPolicy {
        /// A definition's id or file.
        definition: String,
        /// The tool.
        tool: String,
        /// The tool's input, a JSON object.
        input: Value,
    },
    /// A definition's effective policy.
    ShowPolicy {
        /// A definition's id or file.
        definition: String,
    },
    /// What a run of a definition would be given. Has no effect.
    DryRun {
        /// Its id.
        id: String,
    },
    /// All definitions of a kind.
    List(Kind),
    /// One definition.
    Show {
        /// Its kind; `None` for either.
        kind: Option<Kind>,
        /// Its id, its file, or the beginning of its id.
        id: String,
    },
    /// Write a new definition.
    Add {
        /// The content of the definition.
        draft: Box<Draft>,
        /// A reminder's time, unless the draft has one.
        when: Option<When>,
    },
    /// Set fields of a definition.
    Edit {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
        /// The changes.
        changes: Box<FieldChanges>,
    },
    /// The text of a definition's file, valid or not, for an editor.
    FileOf {
        /// Its kind; `None` for either.
        kind: Option<Kind>,
        /// Its id or file.
        id: String,
    },
    /// A text from which a person makes a new definition in an editor.
    Template {
        /// The content that is known already.
        draft: Box<Draft>,
        /// A reminder's time.
        when: Option<When>,
    },
    /// Write a new definition from a text.
    AddText {
        /// Its kind.
        kind: Kind,
        /// The text.
        text: String,
        /// The template that the text was made from. Its comments are left out.
        template: String,
    },
    /// Replace a definition's text, if the new text is valid and the file still has the old one.
    Replace {
        /// The file, relative to the data folder.
        file: PathBuf,
        /// The text that was edited.
        old: String,
        /// The new text.
        new: String,
    },
    /// Enable or disable a definition.
    SetEnabled {
        /// Its kind; `None` for either.
        kind: Option<Kind>,
        /// Its id.
        id: String,
        /// Whether the definition is enabled.
        enabled: bool,
    },
    /// Resume a definition that the person paused, or that was paused after failures.
    Resume {
        /// Its id.
        id: String,
    },
    /// Delete a definition's file, valid or not.
    Cancel {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
    },
    /// Move a reminder to a time from now, also if it has fired.
    Snooze {
        /// Its id.
        id: String,
        /// The time from now.
        span: Duration,
    },
    /// Bring back a failed reminder, which is due at once.
    Retry {
        /// Its id.
        id: String,
    },
    /// Write the file of a reminder that has fired once more, as it was when it fired.
    Restore {
        /// The run of the reminder.
        run: String,
        /// Its new time, needed if its own has passed.
        when: Option<When>,
    },
    /// Schedule the next check of the calling run's own chain.
    FollowUp {
        /// The time from now.
        delay: Duration,
    },
    /// Schedule the next check of any chain.
    ProlongChain {
        /// The id of its first reminder, or of any check.
        chain: String,
        /// The time from now.
        delay: Duration,
    },
    /// Check everything that jobs depend on.
    Doctor {
        /// Whether to repair what is safe to repair.
        fix: bool,
    },
    /// Write the data folder to a file.
    Backup {
        /// The file, which must not exist yet.
        file: PathBuf,
        /// Whether to include secrets.
        secrets: bool,
    },
    /// Copy the journal to a server, or back to a file.
    CopyJournal {
        /// The server's address; `None` for the file in the data folder.
        to: Option<String>,
        /// Whether to change the settings, so that the service uses the copy from then on.
        uses: bool,
    },
    /// Create the data folder from a backup, or report how it differs.
    RestoreBackup {
        /// The backup.
        file: PathBuf,
    },
    /// A command for the systemd unit of the service.
    Unit(UnitCommand),
    /// Create the data folder.
    Init {
        /// What to create.
        options: InitOptions,
    },
    /// Start an agent for one task.
    Spawn(SpawnRequest),
    /// Run a definition now, in the running service.
    Fire {
        /// Its id, its file, or the beginning of its id.
        id: String,
    },
    /// A command that only the running service can execute.
    Service(ServiceCommand),
}

/// A time, as the caller gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A time from now.
    In(Duration),
    /// A time as a person writes it: `tomorrow 9am`.
    At(String),
}

/// How far to look back, as the caller gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// A span of time until now.
    Span(Duration),
    /// A time that has passed, as a person writes it: `yesterday`.
    Moment(String),
}

/// Changes to a definition's file.
#[derive(Clone, Debug, Default)]
pub struct FieldChanges {
    /// The prompt.
    pub message: Option<String>,
    /// A reminder's time.
    pub when: Option<When>,
    /// The fields. An empty text removes the field's line from the file.
    pub fields: Vec<FieldChange>,
}

/// A field with its new value, and the name that the caller uses for it.
#[derive(Clone)]
pub struct FieldChange {
    /// The field.
    pub field: &'static Field,
    /// Its value.
    pub value: FieldValue,
    /// The name of the field in errors: `--max-turns`.
    pub called: String,
}

impl std::fmt::Debug for FieldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple(self.field.name).field(&self.value).finish()
    }
}
