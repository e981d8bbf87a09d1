//! The command line in clap's derive form: all commands and flags, without behaviour.

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
use values::{count, limited_count, minutes, since, span};

use crate::app::Since;
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
    /// Flags that may appear before or after the command.
    #[command(flatten)]
    pub global: Global,
    /// The command. Without one, a short help is printed.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags of every command. They have a heading of their own, so that they do not mix with a command's flags.
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

/// When to colour the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// If the output is a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A service by which a person talks with the bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TalkBy {
    /// Discord.
    Discord,
    /// Telegram.
    Telegram,
}

/// The grouping of costs.
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
    /// Answer a question; the first answer counts
    Answer {
        /// The question's number, as `questions` shows it
        #[arg(value_name = "N")]
        number: i64,
        /// `allow`: this call; `run`: every call in this run that the same rule asks about; `always`: from now on; `deny`
        #[arg(value_enum)]
        answer: Answer,
        /// With `deny`: a sentence for the agent
        sentence: Option<String>,
    },
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Answer {
    /// Allows this call.
    Allow,
    /// Allows every call in this run that the same rule asks about.
    Run,
    /// Allows such calls from now on: moves the rule into `allowed_tools`.
    Always,
    /// Denies the call. Skips the run, if the question is whether to start it.
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
    /// Send a message by a channel and report the outcome
    Test {
        /// The channel's name
        name: String,
    },
}

/// `journal`.
#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Copy the journal to a server that several hosts share, or back into a file
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
    /// List the servers and whether each runs
    List,
    /// List the tools that a server offers, as rules name them
    Tools {
        /// The server's name [default: all servers]
        server: Option<String>,
    },
    /// Call a tool yourself
    Call {
        /// The server's name
        server: String,
        /// The tool's name
        tool: String,
        /// The tool's arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every command with an example
    Help {
        /// Show the flags of one command instead: `help reminder add`
        command: Vec<String>,
    },
    /// Run the service in the foreground; with --json, print each event as a line
    Run(RunArgs),
    /// Create the data folder; on a terminal, guided by a few questions
    Init(InitArgs),
    /// Check all definitions, or only some
    Check {
        /// Files or ids
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Check everything that jobs depend on, and say how to fix it
    Doctor {
        /// Repair what is safe to repair: permissions of secrets, a stale socket, missing folders
        #[arg(long)]
        fix: bool,
    },
    /// Write the data folder into one file, even while the service runs
    Backup {
        /// A new file, in tar format
        file: PathBuf,
        /// Include .env, tools/ and logins
        #[arg(long)]
        secrets: bool,
    },
    /// Manage the journal: the record of runs and messages
    Journal {
        /// The subcommand.
        #[command(subcommand)]
        command: Journal,
    },
    /// Create the data folder from a backup; if there is one already, show how it differs
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Run the service under systemd
    #[command(subcommand)]
    Service(Service),
    /// Show how the service is doing
    Status,
    /// List upcoming occurrences
    Next(NextArgs),
    /// Explain why a job did what it did, and what it does next
    Why {
        /// The job, or one of its runs
        #[arg(value_name = "ID")]
        id: String,
        /// The time in question: `8:00`, `yesterday 8:00`, `2026-11-22 09:00`, or a day
        #[arg(value_name = "TIME", num_args = 1..)]
        time: Vec<String>,
    },
    /// Predict what upcoming occurrences would do
    Simulate(SimulateArgs),
    /// Export upcoming runs for other programs
    #[command(subcommand)]
    Export(Export),
    /// Import jobs from another program
    #[command(subcommand)]
    Import(Import),
    /// Put jobs into the journal's database, without a file on any host
    Push {
        /// Files, or folders with `routines` and `reminders`; `-` reads lines of JSON from standard input
        #[arg(value_name = "PATH", required_unless_present = "remove")]
        paths: Vec<PathBuf>,
        /// Only check, and show what would change
        #[arg(long)]
        dry_run: bool,
        /// Remove these jobs from the database
        #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["paths", "dry_run"])]
        remove: Vec<String>,
    },
    /// Manage recurring jobs
    #[command(subcommand)]
    Routine(Routine),
    /// Manage one-shot jobs
    #[command(subcommand)]
    Reminder(Reminder),
    /// Show jobs that other services trigger
    #[command(subcommand)]
    Webhook(Webhook),
    /// Edit a job's file in $VISUAL or $EDITOR, even one with an error; it is checked before it is written
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
        /// Follow the runs, and exit by their outcome
        #[arg(long, conflicts_with = "dry_run")]
        wait: bool,
    },
    /// List runs, newest first
    #[command(args_conflicts_with_subcommands = true)]
    Runs(RunsArgs),
    /// Cancel an active run
    CancelRun {
        /// The runs' ids, as `runs` shows them
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// Stop starting jobs until `resume`
    Pause {
        /// Only these jobs: sets `enabled: false` in their files
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Start jobs again
    Resume {
        /// Only these jobs, whether you or failures paused them
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Schedule a chain's next check: inside its run, or `--for ID`
    #[command(alias = "follow_up_chain")]
    FollowUpChain {
        /// The chain: the id of its first reminder, or of any check; not available to runs
        #[arg(long = "for", value_name = "ID")]
        chain: Option<String>,
        /// Minutes from now, or a span: `30`, `10s`, `1h30m`
        #[arg(long = "in", value_name = "MINUTES", value_parser = minutes)]
        delay: Duration,
    },
    /// Explain what a job may do, and why
    #[command(subcommand)]
    Policy(Policy),
    /// Show named agents
    #[command(subcommand)]
    Agents(Agents),
    /// Start an agent for one task, in a session of its own
    Spawn(SpawnArgs),
    /// Manage the main session and the sessions of spawned agents
    #[command(subcommand)]
    Sessions(Sessions),
    /// Show the messages that the bot sent
    Inbox {
        /// The number of messages, newest last
        #[arg(short = 'n', default_value_t = 20, value_parser = count::<u32>)]
        count: u32,
        /// Also show new messages as they arrive
        #[arg(short, long)]
        follow: bool,
    },
    /// Show the service's own log
    Logs {
        /// Only lines about this job and its runs, or about this run
        #[arg(value_name = "RUN|ID")]
        about: Option<String>,
        /// Also show new lines as they arrive
        #[arg(short, long)]
        follow: bool,
        /// Only lines since this time: `2h`, `yesterday`, `2026-11-22 9:00`
        #[arg(long, value_name = "TIME", value_parser = since)]
        since: Option<Since>,
        /// The number of lines
        #[arg(short = 'n', default_value_t = 100, value_parser = count::<usize>)]
        count: usize,
    },
    /// Show what runs have cost
    Costs {
        /// Group by job, day or model
        #[arg(long, value_enum, default_value_t = CostsBy::Job, hide_possible_values = true)]
        by: CostsBy,
        /// Only costs since this time: `30d`, `yesterday`, `2026-11-01`
        #[arg(long, value_name = "TIME", value_parser = since)]
        since: Option<Since>,
    },
    /// Talk with the bot
    Chat {
        /// The message; `-` reads it from standard input. Without it, a conversation begins
        text: Option<String>,
        /// The number of earlier exchanges to show first
        #[arg(long, value_name = "N", default_value_t = 3)]
        history: usize,
    },
    /// List the questions that jobs ask before they continue, and your answers
    Questions {
        /// The subcommand. Without one, all questions are listed.
        #[command(subcommand)]
        command: Option<Questions>,
    },
    /// Log the agent in, from any device
    Login {
        /// The code that the link showed you; without it, print the link
        #[arg(allow_hyphen_values = true)]
        code: Option<String>,
    },
    /// Open the page in your browser by a one-time link
    Web {
        /// Log out all browsers first
        #[arg(long)]
        end_sessions: bool,
        /// Print the link, without opening a browser
        #[arg(long)]
        no_open: bool,
    },
    /// List the channels by which messages reach you, and whether each works
    Channels {
        /// The subcommand. Without one, all channels are listed.
        #[command(subcommand)]
        command: Option<Channels>,
    },
    /// Show your own MCP servers, and what they offer
    Mcp {
        /// The subcommand. Without one, all servers are listed.
        #[command(subcommand)]
        command: Option<Mcp>,
    },
    /// Show how many messages background jobs may still send, and how much they may still spend
    Budget {
        /// Set the number of messages left
        #[arg(long, value_name = "N", value_parser = pings)]
        set: Option<u32>,
        /// Set today's spending limit, until midnight
        #[arg(long, value_name = "USD", value_parser = cents, conflicts_with = "set")]
        day: Option<u64>,
        /// Set this month's spending limit, until the month ends
        #[arg(long, value_name = "USD", value_parser = cents, conflicts_with = "set")]
        month: Option<u64>,
        /// Set today's token limit, until midnight
        #[arg(long, value_name = "N", value_parser = count::<u64>, conflicts_with = "set")]
        tokens: Option<u64>,
    },
    /// Show the settings in force, and where each came from
    Config,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command
    #[command(hide = true)]
    Man {
        /// A folder; without one, print the first page
        folder: Option<PathBuf>,
    },
    /// Any other name runs `ollim-bot-NAME`
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

/// `export …`.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// Export every upcoming occurrence as a calendar (RFC 5545)
    Ics {
        /// The number of days from now
        #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3660))]
        days: u16,
    },
}

/// `import …`.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Import definitions, skills and agents of the Python ollim-bot, without overwriting anything
    OllimBot {
        /// Its data folder
        path: PathBuf,
        /// Only show what would be imported, and what not
        #[arg(long)]
        dry_run: bool,
    },
    /// Import lines of a crontab, as routines that run a command; they are disabled until you enable them
    Crontab {
        /// The file [default: the output of `crontab -l`]
        file: Option<PathBuf>,
        /// Expect a user in each line, as in /etc/crontab, and import only yours
        #[arg(long)]
        user: bool,
        /// Only show what would be imported, and what not
        #[arg(long)]
        dry_run: bool,
    },
    /// Import systemd timers with their services, in the same way
    Systemd {
        /// Timer files, or folders that contain some [default: ~/.config/systemd/user]
        units: Vec<PathBuf>,
        /// Only show what would be imported, and what not
        #[arg(long)]
        dry_run: bool,
    },
}

/// `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Use a folder that is not empty; existing files stay unchanged
    #[arg(long)]
    pub force: bool,
    /// Ask nothing: make no call and install no service unless a flag says so
    #[arg(short, long)]
    pub yes: bool,
    /// Install no samples
    #[arg(long)]
    pub bare: bool,
    /// The time zone, e.g. Europe/Berlin [default: the system's]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Send messages to this topic of an ntfy server, e.g. https://ntfy.sh/my-topic
    #[arg(long, value_name = "URL")]
    pub ntfy: Option<String>,
    /// Talk with the bot by this service; a message is sent to you there first, and nothing is written if that fails
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub talk: Option<TalkBy>,
    /// The file with the bot's token for `--talk`; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "talk")]
    pub token_file: Option<PathBuf>,
    /// Your user number at the service of `--talk`; Telegram needs it, Discord knows who owns the bot
    #[arg(long, value_name = "ID", requires = "talk", value_parser = clap::value_parser!(i64).range(1..))]
    pub owner: Option<i64>,
    /// A server of your own with Discord's or Telegram's protocol
    #[arg(long, value_name = "URL")]
    pub api: Option<String>,
    /// Try the agent's login with one short call, which costs less than a cent; exit 1 if it fails
    #[arg(long)]
    pub try_login: bool,
    /// Install the service under systemd
    #[arg(long)]
    pub service: bool,
}

/// `run`.
#[derive(Debug, Default, Args)]
pub struct RunArgs {
    /// Exit when no run is active and nothing is due within a minute
    #[arg(long)]
    pub until_idle: bool,
    /// Exit after this time: `10m`, `1h30m`
    #[arg(long = "for", value_name = "DURATION", value_parser = span)]
    pub duration: Option<Duration>,
}

/// `next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// The number of occurrences, at most 10,000 [default: 10; 10,000 with `--until`]
    #[arg(short = 'n', value_parser = limited_count)]
    pub count: Option<u16>,
    /// Show every occurrence at or after this time
    #[arg(long, value_name = "WHEN")]
    pub from: Option<String>,
    /// Show every occurrence at or before this time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Show every occurrence, instead of the next one of each job
    #[arg(long)]
    pub all: bool,
    /// Show every occurrence of these jobs
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Simulate these jobs
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// Simulate all jobs
    #[arg(long)]
    pub all: bool,
    /// The start of the simulation [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// The end of the simulation [default: a day after the start]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

/// `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Only runs of this job
    pub id: Option<String>,
    /// Only runs that did not do their work
    #[arg(long)]
    pub failed: bool,
    /// The number of runs
    #[arg(short = 'n', default_value_t = 20, value_parser = count::<u32>)]
    pub count: u32,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Option<Runs>,
}

/// `runs …`.
#[derive(Debug, Subcommand)]
pub enum Runs {
    /// Show one run: its input, output and calls, and the file as it fired
    Show {
        /// The run's id
        run: String,
        /// Show every text in full, and the results of calls
        #[arg(long)]
        transcript: bool,
    },
    /// Follow a run as it happens; exit 1 if it does not do its work
    Follow {
        /// A run, or a job for its latest run; without one, follow everything
        #[arg(value_name = "RUN|ID")]
        target: Option<String>,
    },
}

/// `policy …`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Check whether a call would be allowed, and by which rule; exit 0: allowed, 1: denied
    Explain(ExplainArgs),
    /// Show the effective policy, and where each entry came from
    Show {
        /// A job's id, or a file
        definition: String,
    },
    /// Count the refused calls of jobs, by job and rule
    Refusals {
        /// Only refusals since this time: `7d`, `yesterday`, `2026-11-22`
        #[arg(long, value_name = "TIME", value_parser = since)]
        since: Option<Since>,
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

/// Parses an amount of US dollars into cents: at least one cent, at most a million dollars.
fn pings(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count <= CAPACITY);
    count.ok_or_else(|| format!("write a whole number from 0 to {CAPACITY}"))
}

fn cents(text: &str) -> Result<u64, String> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok().filter(|amount| (0.01..=1e6).contains(amount));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within these bounds")]
    amount.map(|amount| (amount * 100.0).round() as u64).ok_or_else(|| "write an amount from 0.01: `5.00`".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{ArgAction, CommandFactory as _};

    use super::Cli;
    use crate::policy::{self, BOT, BgForkConfig, PathRoots, Policy, ProgramStart, ToolPattern, UpdateMode, Verdict};

    /// Returns the words of every call in a group of commands, without arguments.
    fn calls(command: &clap::Command, before: &[&str]) -> Vec<Vec<String>> {
        let under = command.get_subcommands().flat_map(|sub| {
            let words = [before, &[sub.get_name()]].concat();
            let own = words.iter().map(ToString::to_string).collect();
            [vec![own], calls(sub, &words)].concat()
        });
        under.collect()
    }

    #[test]
    fn the_policy_knows_every_command_and_every_global_flag() {
        let cli = Cli::command();
        let names = cli.get_subcommands().map(|sub| sub.get_name());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names, BOT.subcommands);
        let groups: Vec<&clap::Command> =
            cli.get_subcommands().filter(|sub| sub.get_subcommands().next().is_some()).collect();
        assert!(groups.len() > 10);
        let aliases = cli.get_subcommands().flat_map(|sub| sub.get_all_aliases().map(|alias| (alias, sub.get_name())));
        assert_eq!(aliases.collect::<Vec<_>>(), BOT.aliases);
        // The engine resolves only aliases of commands that are in no group.
        assert!(
            groups.iter().flat_map(|group| group.get_subcommands()).all(|sub| sub.get_all_aliases().next().is_none())
        );
        let global = |takes_value: bool| -> Vec<String> {
            let flags = cli.get_arguments().filter(|arg| arg.is_global_set());
            let flags = flags.filter(|arg| matches!(arg.get_action(), ArgAction::Set) == takes_value);
            flags.map(|arg| format!("--{}", arg.get_long().unwrap())).collect()
        };
        assert_eq!(global(false), BOT.flags);
        assert_eq!(global(true), BOT.valued_flags);
        assert!(cli.get_arguments().filter(|arg| arg.is_global_set()).all(|arg| arg.get_short().is_none()));
    }

    #[test]
    fn a_global_flag_hides_no_call_from_a_denial_or_a_question() {
        let roots = PathRoots { root: "/bot".into(), work: "/bot/work".into(), user_home: "/home".into() };
        let pattern = |text: &str| vec![ToolPattern::parse(text).unwrap()];
        let config = |allowed, denied| BgForkConfig::new(UpdateMode::Always, true, allowed, denied).unwrap();
        let policy = |config| policy::background("routine x", &config, &pattern("Bash(ollim-bot *)"), &roots);
        let calls = calls(&Cli::command(), &[]);
        assert!(calls.len() > 80, "{}", calls.len());
        for words in calls {
            let rule = pattern(&format!("Bash(ollim-bot {} *)", words.join(" ")));
            let denying = policy(config(None, Some(rule.clone())));
            let asking = policy(config(Some(Vec::new()), None).asking(Some(rule), None));
            for flag in [&[][..], &["--json"], &["--color", "never"], &["--color=never"]] {
                for at in 0..=words.len() {
                    let (before, after) = words.split_at(at);
                    let flag: Vec<String> = flag.iter().map(ToString::to_string).collect();
                    let argv = [&["ollim-bot".to_owned()], before, &flag, after, &["hook".to_owned()]].concat();
                    let (cwd, env) = (&roots.work, &BTreeMap::new());
                    let start = ProgramStart { argv: &argv, cwd, env, agent_type: None };
                    let verdict = |policy: &Policy| policy.decide_program(&start).decision.verdict;
                    assert_eq!(verdict(&denying), Verdict::Deny, "{argv:?}");
                    assert_eq!(verdict(&asking), Verdict::Ask, "{argv:?}");
                }
            }
        }
    }
}
