//! What can be typed: every command and flag, as clap reads them. No behaviour.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bot::budget::CAPACITY;
use crate::definition::{OnMissed, OnOverlap};
use crate::policy::UpdateMode;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "ollim-bot",
    version,
    about = "A background job scheduler for a personal bot",
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Flags that stand before or after the command.
    #[command(flatten)]
    pub global: Global,
    /// What to do; nothing: a short help.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// The data folder [default: $OLLIM_HOME, else ~/.ollim-bot]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Where it goes to a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Every command with an example each
    Help {
        /// Show one command's flags instead: `help reminder add`
        command: Vec<String>,
    },
    /// Run the service in the foreground
    Run(RunArgs),
    /// Make the data folder, with configuration and samples
    Init {
        /// Also into a folder that has something in it; files that are there stay as they are
        #[arg(long)]
        force: bool,
    },
    /// Check definitions, all or those named
    Check {
        /// Files or ids
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// How the service is doing
    Status,
    /// The coming occurrences
    Next(NextArgs),
    /// Recurring jobs
    #[command(subcommand)]
    Routine(Routine),
    /// One-shot jobs
    #[command(subcommand)]
    Reminder(Reminder),
    /// Run a job now
    Fire {
        /// The job's id
        id: String,
        /// Show the prompt, the policy and the client's command instead
        #[arg(long)]
        dry_run: bool,
    },
    /// What ran, newest first
    #[command(args_conflicts_with_subcommands = true)]
    Runs(RunsArgs),
    /// End a run that is going
    CancelRun {
        /// The run's id, as `runs` shows it
        run: String,
    },
    /// Stop starting jobs until `resume`
    Pause,
    /// Start jobs again
    Resume {
        /// Only this routine, paused after failures
        id: Option<String>,
    },
    /// Inside a chain reminder's run: schedule the next check
    #[command(alias = "follow_up_chain")]
    FollowUpChain {
        /// Minutes from now, or a span: `30`, `10s`, `1h30m`
        #[arg(long = "in", value_name = "MINUTES", value_parser = minutes)]
        delay: Duration,
    },
    /// What a job may do, and why
    #[command(subcommand)]
    Policy(Policy),
    /// Named agents
    #[command(subcommand)]
    Agents(Agents),
    /// Start an agent for one task, in a session of its own
    Spawn(SpawnArgs),
    /// The main session, and those of spawned agents
    #[command(subcommand)]
    Sessions(Sessions),
    /// What the bot said
    Inbox {
        /// How many messages, newest last
        #[arg(short = 'n', default_value_t = 20)]
        count: usize,
    },
    /// How many messages background jobs may still send
    Budget {
        /// Set what is left
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(CAPACITY)))]
        set: Option<u32>,
    },
    /// The settings in force and where each came from
    Config,
    /// A completion script for your shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Any other name: `ollim-bot-NAME`
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

/// `run`.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// End when no run is going and nothing is due within a minute
    #[arg(long)]
    pub until_idle: bool,
    /// End after this time: `10m`, `1h30m`
    #[arg(long = "for", value_name = "DURATION", value_parser = span)]
    pub duration: Option<Duration>,
}

/// `next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// How many, at most 10,000: there is no last occurrence
    #[arg(short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub count: u16,
    /// Not before this time
    #[arg(long, value_name = "WHEN")]
    pub from: Option<String>,
    /// Not after this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only these jobs
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// `routine …`.
#[derive(Debug, Subcommand)]
pub enum Routine {
    /// Make a routine
    Add(Box<RoutineAdd>),
    /// All routines
    List,
    /// One routine
    Show {
        /// Its id
        id: String,
    },
    /// Edit a routine's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Let a disabled routine fire again
    Enable {
        /// Its id
        id: String,
    },
    /// Keep a routine from firing, without losing it
    Disable {
        /// Its id
        id: String,
    },
    /// Delete a routine's file
    Cancel {
        /// Its id
        id: String,
    },
}

/// `reminder …`.
#[derive(Debug, Subcommand)]
pub enum Reminder {
    /// Make a reminder
    Add(Box<ReminderAdd>),
    /// All reminders
    List,
    /// One reminder
    Show {
        /// Its id
        id: String,
    },
    /// Edit a reminder's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is written
    Edit {
        /// Its id, or its file
        id: String,
        /// What to set.
        #[command(flatten)]
        changes: Box<Changes>,
    },
    /// Delete a reminder's file
    Cancel {
        /// Its id
        id: String,
    },
    /// Let a reminder fire so long from now instead
    Snooze {
        /// Its id
        id: String,
        /// A time from now: `20m`, `1h30m`, `2days`
        #[arg(value_parser = span)]
        span: Duration,
    },
    /// Write a reminder that has fired into reminders/ again, as it fired
    Restore {
        /// The run that it fired as, as `runs` shows it
        run: String,
        /// When it is to fire, where its own time has passed: a time from now
        #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
        span: Option<Duration>,
        /// The same as a time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
        #[arg(long, value_name = "WHEN", group = "when")]
        at: Option<String>,
    },
    /// Bring back a reminder that failed; it fires at once unless its time is to come
    Retry {
        /// Its id
        id: String,
    },
}

/// `routine add`.
#[derive(Debug, Args)]
pub struct RoutineAdd {
    /// Minute hour day month weekday: `30 8 * * 1-5`, or `@daily`
    #[arg(long, value_name = "EXPR")]
    pub cron: String,
    /// When the previous run is still going
    #[arg(long, value_name = "WHAT", value_parser = on_overlap)]
    pub on_overlap: Option<OnOverlap>,
    /// What both kinds have.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `reminder add`.
#[derive(Debug, Args)]
pub struct ReminderAdd {
    /// Minutes from now
    #[arg(long, value_name = "MINUTES", group = "when")]
    pub delay: Option<u32>,
    /// A time from now: `20m`, `1h30m`, `2days`
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
    pub span: Option<Duration>,
    /// A time: `2026-11-22T09:00+01:00`, `tomorrow 9am`, `friday 18:30`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// How many follow-ups the agent may schedule
    #[arg(long, value_name = "N")]
    pub max_chain: Option<u32>,
    /// Which link of a chain this is
    #[arg(long, value_name = "N", hide = true)]
    pub chain_depth: Option<u32>,
    /// The chain's first link
    #[arg(long, value_name = "ID", hide = true)]
    pub chain_parent: Option<String>,
    /// What both kinds have.
    #[command(flatten)]
    pub job: JobArgs,
}

/// What a job of either kind can be told.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: String,
    /// One line for lists
    #[arg(short, long, value_name = "TEXT")]
    pub description: Option<String>,
    /// IANA zone of its times, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Run in a fork of its own instead of the main session
    #[arg(long)]
    pub background: bool,
    /// A fresh session without the main session's history
    #[arg(long)]
    pub isolated: bool,
    /// Model alias or full name
    #[arg(long)]
    pub model: Option<String>,
    /// At most so many tokens of thinking
    #[arg(long, value_name = "TOKENS", conflicts_with = "no_thinking")]
    pub thinking: Option<u32>,
    /// No thinking
    #[arg(long)]
    pub no_thinking: bool,
    /// How it reports to the main session
    #[arg(long, value_name = "MODE", value_parser = update_mode)]
    pub update_main_session: Option<UpdateMode>,
    /// It may not reach you directly
    #[arg(long)]
    pub no_ping: bool,
    /// Only these tools exist for it; '' for none
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allowed_tools: Option<Vec<String>>,
    /// Everything the main session has, except these
    #[arg(long, visible_alias = "disallowed-tools", value_name = "PATTERN", num_args = 1..)]
    pub blocked_tools: Option<Vec<String>>,
    /// The named agent that it runs as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Skills whose text it is given: folders of skills/
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub skills: Option<Vec<String>>,
    /// Wall clock for the whole run: `10m`, `1h30m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub timeout: Option<Duration>,
    /// At most so many turns of the model
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// At most so many US dollars
    #[arg(long, value_name = "USD")]
    pub max_cost_usd: Option<f64>,
    /// What happens to times that were missed: latest, all, skip
    #[arg(long, value_name = "WHAT", value_parser = on_missed)]
    pub on_missed: Option<OnMissed>,
    /// Extra attempts after a failure that may pass
    #[arg(long, value_name = "N")]
    pub retry: Option<u32>,
    /// The job whose run made it
    #[arg(long, value_name = "ID", hide = true)]
    pub created_by: Option<String>,
}

/// What `edit` can set without an editor. An empty text takes the line out of the file.
#[derive(Debug, Default, PartialEq, Args)]
pub struct Changes {
    /// What the agent is to do: the prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// One line for lists
    #[arg(short, long, value_name = "TEXT")]
    pub description: Option<String>,
    /// A routine's times: `30 8 * * 1-5`, or `@daily`
    #[arg(long, value_name = "EXPR")]
    pub cron: Option<String>,
    /// A reminder's time from now: `20m`, `1h30m`
    #[arg(long = "in", id = "span", value_name = "SPAN", value_parser = span, group = "when")]
    pub span: Option<Duration>,
    /// A reminder's time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
    #[arg(long, value_name = "WHEN", group = "when")]
    pub at: Option<String>,
    /// Model alias or full name
    #[arg(long)]
    pub model: Option<String>,
    /// Only these tools exist for it; '' for none
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allowed_tools: Option<Vec<String>>,
    /// Everything the main session has, except these
    #[arg(long, visible_alias = "disallowed-tools", value_name = "PATTERN", num_args = 1..)]
    pub blocked_tools: Option<Vec<String>>,
    /// The named agent that it runs as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How it reports to the main session
    #[arg(long, value_name = "MODE", value_parser = update_mode)]
    pub update_main_session: Option<UpdateMode>,
    /// It may not reach you directly
    #[arg(long)]
    pub no_ping: bool,
    /// Wall clock for the whole run: `10m`, `1h30m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub timeout: Option<Duration>,
    /// At most so many turns of the model
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
}

/// `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Only this job's
    pub id: Option<String>,
    /// Only those that did not do their work
    #[arg(long)]
    pub failed: bool,
    /// How many
    #[arg(short = 'n', default_value_t = 20)]
    pub count: usize,
    /// `runs show`.
    #[command(subcommand)]
    pub command: Option<Runs>,
}

/// `runs …`.
#[derive(Debug, Subcommand)]
pub enum Runs {
    /// One run, with its denials and the file as it fired
    Show {
        /// The run's id
        run: String,
    },
}

/// `agents …`.
#[derive(Debug, Subcommand)]
pub enum Agents {
    /// Every named agent, and where it comes from
    List,
    /// One agent: its tools, its mode, its prompt
    Show {
        /// Its name
        name: String,
    },
}

/// `spawn`.
#[derive(Debug, Args)]
pub struct SpawnArgs {
    /// What the agent is to do: its prompt
    #[arg(short, long, value_name = "TEXT")]
    pub message: String,
    /// The named agent that it runs as
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Its tools.
    #[command(flatten)]
    pub tools: ToolArgs,
    /// Wall clock for its run: `10m`, `1h30m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub timeout: Option<Duration>,
}

/// The tools of a spawned agent.
#[derive(Debug, Args)]
pub struct ToolArgs {
    /// Only these of its caller's tools; '' for none. Replaces `allow` of the settings
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub allow: Option<Vec<String>>,
    /// Not these, whatever is allowed. Added to `deny` of the settings
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    pub deny: Option<Vec<String>>,
}

/// `sessions …`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// The main session and every spawned agent's, newest first
    List,
    /// One session: who started it, what it may use, what came of it
    Show {
        /// Its id
        session: String,
    },
    /// Give a spawned agent's session its tool policy, once
    Patch {
        /// Its id
        session: String,
        /// What it may use.
        #[command(flatten)]
        tools: ToolArgs,
    },
}

/// `policy …`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Would this call be allowed, and which rule says so? Exit 0: allowed, 1: denied
    Explain(ExplainArgs),
    /// The effective policy, and where each entry came from
    Show {
        /// A job's id, or a file
        definition: String,
    },
}

/// `policy explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A job's id, or a file
    pub definition: String,
    /// The tool's name
    #[arg(long, default_value = "Bash")]
    pub tool: String,
    /// The tool's input as JSON: `{"file_path": "notes/a.md"}`
    #[arg(long, value_name = "JSON", conflicts_with = "line")]
    pub input: Option<String>,
    /// A command line for Bash
    #[arg(long = "command", id = "line", value_name = "LINE")]
    pub line: Option<String>,
}

/// A span of time: `90s`, `10m`, `1h30m`.
fn span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("a span of time must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(_) => Err("not a span of time; write it like `20m`, `90s` or `1h30m`".into()),
    }
}

/// Bare minutes, or a span of time.
fn minutes(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("the next check must be later than now".into()),
        Ok(minutes) => Ok(Duration::from_secs(u64::from(minutes) * 60)),
        Err(_) => span(text),
    }
}

/// A word of an enum that serde names.
fn word<T: serde::de::DeserializeOwned>(text: &str, choices: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.replace('-', "_"))).map_err(|_| format!("one of: {choices}"))
}

fn update_mode(text: &str) -> Result<UpdateMode, String> {
    word(text, "always, on_ping, freely, blocked")
}

fn on_missed(text: &str) -> Result<OnMissed, String> {
    word(text, "latest, all, skip")
}

fn on_overlap(text: &str) -> Result<OnOverlap, String> {
    word(text, "skip, queue, cancel")
}

/// What a command does, so far as it matters to who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only shows something.
    Reads,
    /// It makes or changes definitions: a run may, as far as it has no less itself.
    Makes,
    /// It starts an agent, with no more than whoever starts it.
    Spawns,
    /// It changes runs or the service: the person's alone.
    Rules,
    /// It schedules the next link of the caller's own chain, and nothing else.
    FollowsUp,
    /// It is one of the person's own commands: what it does is its own.
    External,
}

impl Command {
    /// What the command does. Exhaustive on purpose: a new command must be classified.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Help { .. }
            | Self::Check { .. }
            | Self::Status
            | Self::Next(_)
            | Self::Runs(_)
            | Self::Policy(Policy::Explain(_) | Policy::Show { .. })
            | Self::Agents(Agents::List | Agents::Show { .. })
            | Self::Sessions(Sessions::List | Sessions::Show { .. })
            | Self::Inbox { .. }
            | Self::Budget { set: None }
            | Self::Config
            | Self::Completions { .. }
            | Self::Routine(Routine::List | Routine::Show { .. })
            | Self::Reminder(Reminder::List | Reminder::Show { .. })
            | Self::Fire { dry_run: true, .. } => Effect::Reads,
            Self::Run(_)
            | Self::Init { .. }
            | Self::Fire { dry_run: false, .. }
            | Self::CancelRun { .. }
            | Self::Pause
            | Self::Resume { .. }
            | Self::Sessions(Sessions::Patch { .. })
            | Self::Budget { set: Some(_) } => Effect::Rules,
            Self::Spawn(_) => Effect::Spawns,
            Self::Routine(
                Routine::Add(_)
                | Routine::Edit { .. }
                | Routine::Enable { .. }
                | Routine::Disable { .. }
                | Routine::Cancel { .. },
            )
            | Self::Reminder(
                Reminder::Add(_)
                | Reminder::Edit { .. }
                | Reminder::Cancel { .. }
                | Reminder::Snooze { .. }
                | Reminder::Restore { .. }
                | Reminder::Retry { .. },
            ) => Effect::Makes,
            Self::FollowUpChain { .. } => Effect::FollowsUp,
            Self::External(_) => Effect::External,
        }
    }
}
