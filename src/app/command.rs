//! Everything that can be asked, typed.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::{CostsBy, Each, InitOptions, ServiceCommand, UnitCommand};
use crate::definition::fields::Field;
use crate::definition::{Draft, FieldValue, Kind};
use crate::journal::{Answer, RunFilter};
use crate::run::spawn::SpawnRequest;

/// One thing that a caller can ask for. A new command is a variant here, its [`Effect`](super::Effect), and the function
/// that answers it.
#[derive(Clone, Debug)]
pub enum Command {
    /// How things are, in a line.
    Overview,
    /// The names of the person's own commands.
    ExternalCommands,
    /// What is wrong with definitions: all, or those of these files and ids.
    Check {
        /// Ids, or paths.
        files: Vec<PathBuf>,
        /// What relative paths are relative to besides the data folder.
        folder: Option<PathBuf>,
    },
    /// How the service is doing, what runs, what comes, what went wrong.
    Status,
    /// The coming occurrences.
    Next {
        /// At most so many.
        count: usize,
        /// Not before this time, as a person writes it.
        from: Option<String>,
        /// Not after this time.
        until: Option<String>,
        /// Only of these definitions; empty: of all.
        ids: Vec<String>,
        /// How many of each.
        each: Each,
    },
    /// Why a job did what it did.
    Why {
        /// The job, or one of its runs.
        id: String,
        /// At which time, as a person writes it; `None`: the last time, and the next.
        at: Option<String>,
    },
    /// What would become of occurrences.
    Simulate {
        /// Of these definitions; empty: of all.
        ids: Vec<String>,
        /// Not before this time, as a person writes it; `None`: from now on.
        from: Option<String>,
        /// Not after this time; `None`: a day.
        until: Option<String>,
    },
    /// The coming occurrences, for a calendar.
    Calendar {
        /// Of so many days from now.
        days: u16,
    },
    /// Take over the data folder of the Python ollim-bot.
    Import {
        /// The folder.
        from: PathBuf,
        /// Only say what would be taken over.
        dry_run: bool,
    },
    /// Take over the lines of a crontab.
    ImportCrontab {
        /// `None`: the person's own.
        file: Option<PathBuf>,
        /// Whether its lines name their user.
        of_user: bool,
        /// Only say what would be taken over.
        dry_run: bool,
    },
    /// Take over timers of systemd.
    ImportSystemd {
        /// Files of timers, or folders with some; empty: the person's own.
        units: Vec<PathBuf>,
        /// Only say what would be taken over.
        dry_run: bool,
    },
    /// Past and present runs, newest first.
    Runs(RunFilter),
    /// One run.
    Run {
        /// Its id.
        run: String,
        /// With what its calls returned.
        full: bool,
    },
    /// Calls that runs were refused, counted by job and rule.
    RefusedCalls {
        /// Only those in so much time up to now.
        since: Option<Duration>,
    },
    /// What runs have cost.
    Costs {
        /// Summed up by what.
        by: CostsBy,
        /// Only of runs that were scheduled in so much time up to now.
        since: Option<Duration>,
    },
    /// What the bot has said, newest last.
    Inbox {
        /// At most so many messages.
        count: u32,
    },
    /// The channels, and how each is doing.
    Channels,
    /// The person's own MCP servers.
    McpServers,
    /// The tools of one of them, or of each.
    McpTools {
        /// Its name; `None`: of each.
        server: Option<String>,
    },
    /// What jobs ask the person, and the last answers.
    Questions,
    /// Answer a question.
    Answer {
        /// Its number.
        question: i64,
        /// What the person says.
        answer: Answer,
        /// What the agent is told besides a no.
        sentence: Option<String>,
        /// Where the person answers: `terminal`, or a channel's name.
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
    /// Whether a definition's run may make a tool call, and which rule says so.
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
    /// What a run of a definition would be given, and nothing done.
    DryRun {
        /// Its id.
        id: String,
    },
    /// All definitions of a kind.
    List(Kind),
    /// One definition.
    Show {
        /// Its kind; `None`: either.
        kind: Option<Kind>,
        /// Its id, its file, or the beginning of its id.
        id: String,
    },
    /// Write a new definition.
    Add {
        /// What it is to say.
        draft: Box<Draft>,
        /// A reminder's time, unless the draft has it.
        when: Option<When>,
    },
    /// Set fields of a definition.
    Edit {
        /// Its kind.
        kind: Kind,
        /// Its id.
        id: String,
        /// What to set.
        changes: Box<FieldChanges>,
    },
    /// The text of a definition's file, valid or not, for an editor.
    FileOf {
        /// Its kind; `None`: either.
        kind: Option<Kind>,
        /// Its id or file.
        id: String,
    },
    /// A text for an editor, from which a new definition is made.
    Template {
        /// What was said of it.
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
        /// The template that it was made of, whose comments are left out.
        template: String,
    },
    /// Put a new text in the place of a definition's, if it is valid and the old one still stands.
    Replace {
        /// The file, relative to the data folder.
        file: PathBuf,
        /// The text that was edited.
        old: String,
        /// The new text.
        new: String,
    },
    /// Let a definition fire, or keep it from firing.
    SetEnabled {
        /// Its kind; `None`: either.
        kind: Option<Kind>,
        /// Its id.
        id: String,
        /// Whether it fires.
        enabled: bool,
    },
    /// Let a definition fire again that was paused, by the person or after failures.
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
    /// Let a reminder fire so long from now instead, or again.
    Snooze {
        /// Its id.
        id: String,
        /// The time from now.
        span: Duration,
    },
    /// Bring back a reminder that failed; it is due at once.
    Retry {
        /// Its id.
        id: String,
    },
    /// Write a reminder that has fired again, as it fired.
    Restore {
        /// The run that it fired as.
        run: String,
        /// When it is to fire, where its own time has passed.
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
    /// Whether everything that jobs depend on is as it should be.
    Doctor {
        /// Repair what is safe to repair.
        fix: bool,
    },
    /// Write the data folder into one file.
    Backup {
        /// The file, which must not be there yet.
        file: PathBuf,
        /// Secrets too.
        secrets: bool,
    },
    /// Copy the journal to a server, or back into a file.
    CopyJournal {
        /// The server's address; `None`: the data folder's file.
        to: Option<String>,
        /// The service uses the copy from then on: the settings say so.
        uses: bool,
    },
    /// Make the data folder from a backup, or say how it differs.
    RestoreBackup {
        /// The backup.
        file: PathBuf,
    },
    /// The service as a unit of systemd.
    Unit(UnitCommand),
    /// Make the data folder.
    Init {
        /// What to make.
        options: InitOptions,
    },
    /// Start an agent for one task.
    Spawn(SpawnRequest),
    /// Run a definition now, by the running service.
    Fire {
        /// Its id, its file, or the beginning of its id.
        id: String,
    },
    /// What the running service alone can do.
    Service(ServiceCommand),
}

/// A time, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// So long from now.
    In(Duration),
    /// As a person writes it: `tomorrow 9am`.
    At(String),
}

/// What to set in a definition's file.
#[derive(Clone, Debug, Default)]
pub struct FieldChanges {
    /// The prompt.
    pub message: Option<String>,
    /// A reminder's time.
    pub when: Option<When>,
    /// The fields. An empty text takes the field's line out of the file.
    pub fields: Vec<FieldChange>,
}

/// One field and its value, by the name that the caller knows it by.
#[derive(Clone)]
pub struct FieldChange {
    /// The field.
    pub field: &'static Field,
    /// Its value.
    pub value: FieldValue,
    /// How errors call it: `--max-turns`.
    pub called: String,
}

impl std::fmt::Debug for FieldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple(self.field.name).field(&self.value).finish()
    }
}
