//! What can be typed: every command and flag, as clap reads them. No behaviour.

mod agents;
mod fields;
mod jobs;
mod service;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use agents::{Agents, Sessions, SpawnArgs, ToolArgs};
pub use fields::FieldFlags;
pub use jobs::{Changes, Reminder, ReminderAdd, Routine, RoutineAdd, Text, Webhook};
pub use service::{Logs, Service, UnitFlags};
pub(super) use values::list;
use values::{count, limited_count, minutes, span};

use crate::bot::budget::CAPACITY;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "ollim-bot",
    version = super::VERSION,
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

/// Flags of every command. Under a heading of their own: they would stand between a command's own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The data folder [default: $OLLIM_HOME, else ~/.ollim-bot]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour: auto, always, never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
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

/// What costs are summed up by.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CostsBy {
    /// The job.
    Job,
    /// The day.
    Day,
    /// The model.
    Model,
}

impl From<CostsBy> for crate::app::CostsBy {
    fn from(by: CostsBy) -> Self {
        match by {
            CostsBy::Job => Self::Job,
            CostsBy::Day => Self::Day,
            CostsBy::Model => Self::Model,
        }
    }
}

/// `questions`.
#[derive(Debug, Subcommand)]
pub enum Questions {
    /// Answer one; the first answer counts
    Answer {
        /// Its number, as `questions` shows it
        #[arg(value_name = "N")]
        number: i64,
        /// `allow`: this call; `run`: all that the same rule asks about in this run; `always`: from now on; `deny`
        #[arg(value_enum)]
        answer: Answer,
        /// With `deny`: what the agent is told
        sentence: Option<String>,
    },
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Answer {
    /// This call may run.
    Allow,
    /// So may all that the rule asks about in this run.
    Run,
    /// So may they from now on: the rule moves into `allowed_tools`.
    Always,
    /// It may not; of a run that is to begin: it is skipped.
    #[value(alias = "skip")]
    Deny,
}

impl From<Answer> for crate::journal::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow => Self::Once,
            Answer::Run => Self::Run,
            Answer::Always => Self::Always,
            Answer::Deny => Self::Deny,
        }
    }
}

/// `channels`.
#[derive(Debug, Subcommand)]
pub enum Channels {
    /// Send a message by a channel, and say what becomes of it
    Test {
        /// The channel's name
        name: String,
    },
}

/// `journal`.
#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Copy it to a server that several hosts share, or back into a file
    Copy {
        /// `postgres://USER@HOST/NAME`, or `file`
        #[arg(long, value_name = "PLACE")]
        to: String,
        /// Use the copy from then on: sets `journal` in config.yaml, and JOURNAL_PASSWORD in .env if the address has one
        #[arg(long = "use")]
        uses: bool,
    },
}

/// `mcp`.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Each server, and whether it runs
    List,
    /// The tools that a server offers, as rules name them
    Tools {
        /// The server's name; without it, those of each
        server: Option<String>,
    },
    /// Call a tool yourself
    Call {
        /// The server's name
        server: String,
        /// The tool's name
        tool: String,
        /// Its arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Every command with an example each
    Help {
        /// Show one command's flags instead: `help reminder add`
        command: Vec<String>,
    },
    /// Run the service in the foreground; with --json every event is a line
    Run(RunArgs),
    /// Make the data folder; on a terminal a few questions lead through it
    Init(InitArgs),
    /// Check definitions, all or those named
    Check {
        /// Files or ids
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Whether all that jobs depend on is in order, and what to do
    Doctor {
        /// Repair what is safe to repair: permissions of secrets, a stale socket, missing folders
        #[arg(long)]
        fix: bool,
    },
    /// Write the data folder into one file, also while the service runs
    Backup {
        /// A new file, a tar archive
        file: PathBuf,
        /// Take .env, tools/ and logins along
        #[arg(long)]
        secrets: bool,
    },
    /// The journal: what has run, and what you were told
    Journal {
        /// What to do with it.
        #[command(subcommand)]
        command: Journal,
    },
    /// Make the data folder from a backup; where there is one, say how it differs
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Have systemd run the service
    #[command(subcommand)]
    Service(Service),
    /// How the service is doing
    Status,
    /// The coming occurrences
    Next(NextArgs),
    /// Why a job did what it did, and what it does next
    Why {
        /// The job, or one of its runs
        #[arg(value_name = "ID")]
        id: String,
        /// At which time: `8:00`, `yesterday 8:00`, `2026-11-22 09:00`, or a day
        #[arg(value_name = "TIME", num_args = 1..)]
        time: Vec<String>,
    },
    /// What would become of the occurrences to come
    Simulate(SimulateArgs),
    /// What is coming, for other programs
    #[command(subcommand)]
    Export(Export),
    /// Take over jobs from another program
    #[command(subcommand)]
    Import(Import),
    /// Recurring jobs
    #[command(subcommand)]
    Routine(Routine),
    /// One-shot jobs
    #[command(subcommand)]
    Reminder(Reminder),
    /// Jobs that other services set off
    #[command(subcommand)]
    Webhook(Webhook),
    /// Open a job's file in $VISUAL or $EDITOR, also one with an error; it is checked before it is written
    Edit {
        /// The job's id, or its file
        id: String,
    },
    /// Run jobs now
    Fire {
        /// The jobs' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Show the prompt, the policy and the client's command instead
        #[arg(long)]
        dry_run: bool,
        /// Show what it does, and exit by its outcome
        #[arg(long, conflicts_with = "dry_run")]
        wait: bool,
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
    Pause {
        /// Only these: their files say `enabled: false` then
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Start jobs again
    Resume {
        /// Only these, whether you paused them or failures did
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Schedule a chain's next check: inside its run, or `--for ID`
    #[command(alias = "follow_up_chain")]
    FollowUpChain {
        /// The chain: the id of its first reminder, or of any check; the person's alone
        #[arg(long = "for", value_name = "ID")]
        chain: Option<String>,
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
        #[arg(short = 'n', default_value_t = 20, value_parser = count::<u32>)]
        count: u32,
        /// Show those that come, too
        #[arg(short, long)]
        follow: bool,
    },
    /// The service's own log
    Logs {
        /// Only what names this job, one of its runs, or this run
        #[arg(value_name = "RUN|ID")]
        about: Option<String>,
        /// Show what comes, too
        #[arg(short, long)]
        follow: bool,
        /// Only of so much time up to now: `2h`
        #[arg(long, value_name = "SPAN", value_parser = span)]
        since: Option<Duration>,
        /// How many lines
        #[arg(short = 'n', default_value_t = 100, value_parser = count::<usize>)]
        count: usize,
    },
    /// What runs have cost
    Costs {
        /// Summed up by job, day or model
        #[arg(long, value_enum, default_value_t = CostsBy::Job, hide_possible_values = true)]
        by: CostsBy,
        /// Only in so much time up to now: `30d`
        #[arg(long, value_name = "SPAN", value_parser = span)]
        since: Option<Duration>,
    },
    /// Talk with the bot
    Chat {
        /// What to say; `-` reads it from standard input. Without it a conversation begins
        text: Option<String>,
        /// How many earlier exchanges are shown first
        #[arg(long, value_name = "N", default_value_t = 3)]
        history: usize,
    },
    /// What jobs ask you before they go on, and your answers
    Questions {
        /// What to do with one; nothing: all are listed.
        #[command(subcommand)]
        command: Option<Questions>,
    },
    /// Log the agent in, from wherever you are
    Login {
        /// The code that the link has shown you; without it you get the link
        #[arg(allow_hyphen_values = true)]
        code: Option<String>,
    },
    /// A link that opens the page in your browser
    Web {
        /// Log every browser out first
        #[arg(long)]
        end_sessions: bool,
        /// Print it, and open no browser
        #[arg(long)]
        no_open: bool,
    },
    /// How messages reach you, and whether each way works
    Channels {
        /// What to do with one; nothing: all are listed.
        #[command(subcommand)]
        command: Option<Channels>,
    },
    /// MCP servers of your own, and what they offer
    Mcp {
        /// What to do; nothing: all are listed.
        #[command(subcommand)]
        command: Option<Mcp>,
    },
    /// How many messages background jobs may still send, and what may still be spent
    Budget {
        /// Set how many messages are left
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(CAPACITY)))]
        set: Option<u32>,
        /// Today may cost so much, until midnight
        #[arg(long, value_name = "USD", value_parser = cents, conflicts_with = "set")]
        day: Option<u64>,
        /// This month may cost so much, until it ends
        #[arg(long, value_name = "USD", value_parser = cents, conflicts_with = "set")]
        month: Option<u64>,
        /// Today may take so many tokens, until midnight
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "set")]
        tokens: Option<u64>,
    },
    /// The settings in force and where each came from
    Config,
    /// A completion script for your shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one a command
    #[command(hide = true)]
    Man {
        /// A folder; without one, the first page is printed
        folder: Option<PathBuf>,
    },
    /// Any other name: `ollim-bot-NAME`
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

/// `export …`.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// Every occurrence to come as a calendar (RFC 5545)
    Ics {
        /// Of so many days from now
        #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3660))]
        days: u16,
    },
}

/// `import …`.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Definitions, skills and agents of the Python ollim-bot; nothing here is overwritten
    OllimBot {
        /// Its data folder
        path: PathBuf,
        /// Only say what would be taken over, and what not
        #[arg(long)]
        dry_run: bool,
    },
    /// Lines of a crontab, as routines that run a command; they are disabled until you enable them
    Crontab {
        /// The file; without one what `crontab -l` prints
        file: Option<PathBuf>,
        /// Its lines name a user, as those of /etc/crontab do: only yours are taken
        #[arg(long)]
        user: bool,
        /// Only say what would be taken over, and what not
        #[arg(long)]
        dry_run: bool,
    },
    /// Timers of systemd with their services, in the same way
    Systemd {
        /// Files of timers, or folders with some; without one ~/.config/systemd/user
        units: Vec<PathBuf>,
        /// Only say what would be taken over, and what not
        #[arg(long)]
        dry_run: bool,
    },
}

/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Also into a folder that has something in it; files that are there stay as they are
    #[arg(long)]
    pub force: bool,
    /// Ask nothing: no call is made and no service installed unless a flag says so
    #[arg(short, long)]
    pub yes: bool,
    /// No samples
    #[arg(long)]
    pub bare: bool,
    /// The time zone, e.g. Europe/Berlin [default: the system's]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Send messages to this topic of an ntfy server, e.g. https://ntfy.sh/my-topic
    #[arg(long, value_name = "URL")]
    pub ntfy: Option<String>,
    /// A server of your own that speaks Discord's or Telegram's protocol, for the bot that you are asked about
    #[arg(long, value_name = "URL")]
    pub api: Option<String>,
    /// Try the agent's login with one short call, which costs less than a cent; exit 1 if it fails
    #[arg(long)]
    pub try_login: bool,
    /// Have systemd run the service
    #[arg(long)]
    pub service: bool,
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
    #[arg(short = 'n', default_value_t = 10, value_parser = limited_count)]
    pub count: u16,
    /// Every occurrence not before this time
    #[arg(long, value_name = "WHEN")]
    pub from: Option<String>,
    /// Every occurrence not after this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Every occurrence instead of the next one of each job
    #[arg(long)]
    pub all: bool,
    /// Every occurrence of these jobs
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Of these jobs
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Of all jobs
    #[arg(long)]
    pub all: bool,
    /// Not before this time [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Not after this time [default: a day after the first]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
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
    #[arg(short = 'n', default_value_t = 20, value_parser = count::<u32>)]
    pub count: u32,
    /// `runs show`.
    #[command(subcommand)]
    pub command: Option<Runs>,
}

/// `runs …`.
#[derive(Debug, Subcommand)]
pub enum Runs {
    /// One run: what it was given, said and did, and the file as it fired
    Show {
        /// The run's id
        run: String,
        /// Every text in full, and what calls returned
        #[arg(long)]
        transcript: bool,
    },
    /// What a run says and does as it happens; exit 1 if it does not do its work
    Follow {
        /// A run, or a job: its latest run; none: everything that happens
        #[arg(value_name = "RUN|ID")]
        target: Option<String>,
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
    /// What jobs were refused, counted by job and rule
    Refusals {
        /// Only those in so much time up to now, for example 7d
        #[arg(long, value_name = "SPAN", value_parser = span)]
        since: Option<Duration>,
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

/// An amount of US dollars, in cents: at least one, at most a million dollars.
fn cents(text: &str) -> Result<u64, String> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok().filter(|amount| (0.01..=1e6).contains(amount));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within these bounds")]
    amount.map(|amount| (amount * 100.0).round() as u64).ok_or_else(|| "write an amount from 0.01: `5.00`".into())
}
