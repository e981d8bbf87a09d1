//! Converts parsed arguments into commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::args::{self, Changes, ExplainArgs, ReminderAdd, RoutineAdd, SpawnArgs, Text, ToolArgs};
use crate::app::{Command, FieldChange, FieldChanges, LogFilter, OccurrenceLimit, ServiceCommand, When};
use crate::definition::{DefinitionId, Draft, Kind};
use crate::journal::{RunFilter, RunId};
use crate::policy::{BOT, ToolLists};
use crate::refusal::Refusal;
use crate::run::spawn::SpawnRequest;

/// A parsed command.
#[derive(Debug)]
pub enum ParsedCommand {
    /// A command of the application, for any caller.
    App(Command),
    /// The same command for several jobs. Each is executed or refused separately.
    Each(Vec<Command>),
    /// A command of this process.
    Own(LocalCommand),
}

/// Commands that the command line executes in its own process.
#[derive(Debug)]
pub enum LocalCommand {
    /// Shows a short help and an overview.
    Short,
    /// Shows the help of all commands, or of one.
    Help(Vec<String>),
    /// Prints a completion script.
    Completions(clap_complete::Shell),
    /// Writes the manual pages into a folder, or prints the first one.
    Man(Option<PathBuf>),
    /// Sets and shows the budget.
    SetBudget(u32),
    /// Sets and shows the spending limits of today or this month.
    SetCap {
        /// US cents for today.
        day: Option<u64>,
        /// US cents for this month.
        month: Option<u64>,
        /// Tokens for today.
        tokens: Option<u64>,
    },
    /// Edits a definition in an editor.
    Edit {
        /// Kind of the definition; `None` means any.
        kind: Option<Kind>,
        /// Id or file of the definition.
        id: String,
    },
    /// Creates a definition in an editor.
    New {
        /// The fields from the command line.
        draft: Box<Draft>,
        /// Time of a reminder.
        when: Option<When>,
    },
    /// Fires jobs by the service. Starts one for this if none is running.
    Fire {
        /// Ids of the jobs.
        ids: Vec<String>,
        /// Whether to follow the run to its end.
        wait: bool,
    },
    /// Talks with the bot. With `text`, sends only this message.
    Chat {
        /// The message.
        text: Option<String>,
        /// Number of earlier exchanges to show first.
        history: usize,
    },
    /// Follows a run to its end, or all events if `None`.
    Follow(Option<String>),
    /// Shows the service's log.
    Logs {
        /// Filter of the lines.
        filter: LogFilter,
        /// Whether to show new lines too.
        follow: bool,
    },
    /// Shows this number of messages, and then new ones.
    FollowInbox(u32),
    /// Creates the data folder.
    Init(args::InitArgs),
    /// Runs the service.
    Run(args::RunArgs),
    /// Replaces this process by the program that shows the service's log.
    ServiceLogs(args::Logs),
    /// Replaces this process by a person's own command.
    External(Vec<std::ffi::OsString>),
}

impl LocalCommand {
    /// Whether the command reads the terminal, follows events until it is interrupted, or replaces this process.
    #[must_use]
    pub const fn takes_terminal(&self) -> bool {
        match self {
            Self::Edit { .. } | Self::New { .. } | Self::Init(_) | Self::Chat { .. } | Self::Run(_) => true,
            Self::Follow(_) | Self::FollowInbox(_) | Self::ServiceLogs(_) | Self::External(_) => true,
            Self::Logs { follow, .. } => *follow,
            Self::SetCap { .. } | Self::SetBudget(_) | Self::Fire { .. } => false,
            Self::Short | Self::Help(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }
}

/// Converts parsed arguments. Paths are relative to `folder`. If it is `None`, as in a fork, only the data folder is available.
///
/// # Errors
/// Fails if an argument has an invalid value.
#[expect(clippy::too_many_lines, reason = "a table: a row a command")]
pub fn typed(command: Option<args::Command>, folder: Option<&Path>) -> Result<ParsedCommand, Refusal> {
    use args::{Agents, Policy, Runs, Sessions};
    let app = match command {
        None => return Ok(ParsedCommand::Own(LocalCommand::Short)),
        Some(args::Command::Help { command }) => return Ok(ParsedCommand::Own(LocalCommand::Help(command))),
        Some(args::Command::Completions { shell }) => return Ok(ParsedCommand::Own(LocalCommand::Completions(shell))),
        Some(args::Command::Man { folder }) => return Ok(ParsedCommand::Own(LocalCommand::Man(folder))),
        Some(args::Command::Run(args)) => return Ok(ParsedCommand::Own(LocalCommand::Run(args))),
        Some(args::Command::External(words)) => return Ok(ParsedCommand::Own(LocalCommand::External(words))),
        Some(args::Command::Fire { ids, wait, dry_run: false }) => {
            return Ok(ParsedCommand::Own(LocalCommand::Fire { ids, wait }));
        }
        Some(args::Command::Fire { ids, dry_run: true, .. }) => {
            return Ok(each(ids, |id| Command::DryRun { id }));
        }
        Some(args::Command::Edit { id }) => return Ok(ParsedCommand::Own(LocalCommand::Edit { kind: None, id })),
        Some(args::Command::Chat { text, history }) => {
            return Ok(ParsedCommand::Own(LocalCommand::Chat { text, history }));
        }
        Some(args::Command::Channels { command: None }) => Command::Channels,
        Some(args::Command::Channels { command: Some(args::Channels::Test { name }) }) => {
            Command::Service(ServiceCommand::TestChannel { name })
        }
        Some(args::Command::Mcp { command: None | Some(args::Mcp::List) }) => Command::McpServers,
        Some(args::Command::Mcp { command: Some(args::Mcp::Tools { server }) }) => Command::McpTools { server },
        Some(args::Command::Mcp { command: Some(args::Mcp::Call { server, tool, arguments }) }) => {
            let arguments = serde_json::from_str(&arguments).map_err(|error| {
                Refusal::user(format!("the arguments are no JSON object: {error}"))
                    .hint(format!("`ollim-bot mcp call {server} {tool} '{{\"path\": \"notes\"}}'`"))
            })?;
            Command::Service(ServiceCommand::McpCall { server, tool, arguments })
        }
        Some(args::Command::Web { end_sessions, .. }) => Command::Service(ServiceCommand::WebLink { end_sessions }),
        Some(args::Command::Login { code }) => Command::Service(ServiceCommand::Login { code }),
        Some(args::Command::Budget { set: Some(left), .. }) => {
            return Ok(ParsedCommand::Own(LocalCommand::SetBudget(left)));
        }
        Some(args::Command::Budget { set: None, day, month, tokens })
            if day.is_some() || month.is_some() || tokens.is_some() =>
        {
            return Ok(ParsedCommand::Own(LocalCommand::SetCap { day, month, tokens }));
        }
        Some(args::Command::Questions { command: None }) => Command::Questions,
        Some(args::Command::Questions { command: Some(args::Questions::Answer { number, answer, sentence }) }) => {
            Command::Answer { question: number, answer: answer.into(), sentence, channel: "terminal".into() }
        }
        Some(args::Command::Budget { .. }) => Command::Budget,
        Some(args::Command::Runs(args)) => match args.command {
            Some(Runs::Follow { target }) => return Ok(ParsedCommand::Own(LocalCommand::Follow(target))),
            Some(Runs::Show { run, transcript }) => Command::Run { run, full: transcript },
            None => Command::Runs(RunFilter {
                id: args.id.map(DefinitionId::new),
                failed: args.failed,
                before: None,
                limit: Some(args.count),
            }),
        },
        Some(args::Command::Inbox { count, follow: true }) => {
            return Ok(ParsedCommand::Own(LocalCommand::FollowInbox(count)));
        }
        Some(args::Command::Logs { about, follow, since, count }) => {
            return Ok(ParsedCommand::Own(LocalCommand::Logs { filter: LogFilter { about, since, count }, follow }));
        }
        Some(args::Command::Costs { by, since }) => Command::Costs { by: by.into(), since },
        Some(args::Command::Inbox { count, follow: false }) => Command::Inbox { count },
        Some(args::Command::Status) => Command::Status,
        // Inside a fork there is no folder, but both commands are refused.
        Some(args::Command::Backup { file, secrets }) => Command::Backup { file: absolute(file, folder), secrets },
        Some(args::Command::Journal { command: args::Journal::Copy { to, uses } }) => {
            Command::CopyJournal { to: (to != "file").then_some(to), uses }
        }
        Some(args::Command::Restore { file }) => Command::RestoreBackup { file: absolute(file, folder) },
        Some(args::Command::Service(args::Service::Logs(logs))) => {
            return Ok(ParsedCommand::Own(LocalCommand::ServiceLogs(logs)));
        }
        Some(args::Command::Service(service)) => service.command(),
        Some(args::Command::Export(args::Export::Ics { days })) => Command::Calendar { days },
        Some(args::Command::Import(args::Import::OllimBot { path, dry_run })) => {
            Command::Import { from: absolute(path, folder), dry_run }
        }
        Some(args::Command::Import(args::Import::Crontab { file, user, dry_run })) => {
            Command::ImportCrontab { file: file.map(|file| absolute(file, folder)), of_user: user, dry_run }
        }
        Some(args::Command::Import(args::Import::Systemd { units, dry_run })) => {
            let units = units.into_iter().map(|unit| absolute(unit, folder)).collect();
            Command::ImportSystemd { units, dry_run }
        }
        Some(args::Command::Push { paths, dry_run, remove }) => {
            let is_stdin = |path: &Path| path.as_os_str() == "-";
            if folder.is_none() && paths.iter().any(|path| is_stdin(path)) {
                return Err(Refusal::user("standard input can be read at a terminal only"));
            }
            let from = |path: PathBuf| if is_stdin(&path) { path } else { absolute(path, folder) };
            Command::Push { paths: paths.into_iter().map(from).collect(), dry_run, remove }
        }
        Some(args::Command::Doctor { fix }) => Command::Doctor { fix },
        Some(args::Command::Config) => Command::Config,
        Some(args::Command::Init(args)) => return Ok(ParsedCommand::Own(LocalCommand::Init(args))),
        Some(args::Command::Check { files }) => Command::Check { files, folder: folder.map(Path::to_owned) },
        Some(args::Command::Why { id, time }) => {
            Command::Why { id, at: Some(time.join(" ")).filter(|time| !time.is_empty()) }
        }
        Some(args::Command::Simulate(args)) => {
            let args::SimulateArgs { ids, from, until, .. } = args;
            Command::Simulate { ids, from, until }
        }
        Some(args::Command::Next(args)) => {
            let args::NextArgs { count, from, until, all, ids } = args;
            let all = all || from.is_some() || until.is_some() || !ids.is_empty();
            let usual = if until.is_some() { 10_000 } else { 10 };
            Command::Next {
                count: count.unwrap_or(usual).into(),
                from,
                until,
                ids,
                each: if all { OccurrenceLimit::All } else { OccurrenceLimit::First },
            }
        }
        Some(args::Command::Agents(Agents::List)) => Command::Agents,
        Some(args::Command::Agents(Agents::Show { name })) => Command::Agent { name },
        Some(args::Command::Sessions(Sessions::List)) => Command::Sessions,
        Some(args::Command::Sessions(Sessions::Show { session })) => Command::Session { id: session },
        Some(args::Command::Sessions(Sessions::Resume { session })) => {
            Command::Service(ServiceCommand::ResumeConversation { session })
        }
        Some(args::Command::Sessions(Sessions::Patch { session, tools })) => {
            let spawn_tool_policy = tools_of(tools)?.ok_or_else(|| {
                Refusal::user("no tools were named").hint("`--allow PATTERN…`, `--deny PATTERN…` or both; '' for none")
            })?;
            Command::Service(ServiceCommand::PatchSession { session, spawn_tool_policy })
        }
        Some(args::Command::Sessions(Sessions::Reset { id })) => {
            Command::Service(ServiceCommand::ResetSession { id: DefinitionId::new(id), lineage: String::new() })
        }
        Some(args::Command::Spawn(args)) => Command::Spawn(spawn(args)?),
        Some(args::Command::Policy(Policy::Show { definition })) => Command::ShowPolicy { definition },
        Some(args::Command::Policy(Policy::Explain(args))) => explain(args)?,
        Some(args::Command::Policy(Policy::Refusals { since })) => Command::RefusedCalls { since },
        Some(args::Command::CancelRun { runs }) => {
            return Ok(each(runs, |run| Command::Service(ServiceCommand::CancelRun { run: RunId::new(run) })));
        }
        Some(args::Command::Pause { ids }) if ids.is_empty() => Command::Service(ServiceCommand::Pause),
        Some(args::Command::Pause { ids }) => {
            return Ok(each(ids, |id| Command::SetEnabled { kind: None, id, enabled: false }));
        }
        Some(args::Command::Resume { ids }) if ids.is_empty() => Command::Service(ServiceCommand::Resume { id: None }),
        Some(args::Command::Resume { ids }) => return Ok(each(ids, |id| Command::Resume { id })),
        Some(args::Command::FollowUpChain { chain: None, delay }) => Command::FollowUp { delay },
        Some(args::Command::FollowUpChain { chain: Some(chain), delay }) => Command::ProlongChain { chain, delay },
        Some(args::Command::Routine(routine)) => return of_routine(routine, folder),
        Some(args::Command::Webhook(args::Webhook::List)) => Command::List(Kind::Webhook),
        Some(args::Command::Webhook(args::Webhook::Show { ids })) => {
            return Ok(each(ids, |id| Command::Show { kind: Some(Kind::Webhook), id }));
        }
        Some(args::Command::Reminder(reminder)) => return of_reminder(reminder, folder),
    };
    Ok(ParsedCommand::App(app))
}

fn absolute(file: PathBuf, folder: Option<&Path>) -> PathBuf {
    folder.map_or(file.clone(), |folder| folder.join(file))
}

fn of_routine(routine: args::Routine, folder: Option<&Path>) -> Result<ParsedCommand, Refusal> {
    use args::Routine;
    let kind = Kind::Routine;
    Ok(ParsedCommand::App(match routine {
        Routine::List => Command::List(kind),
        Routine::Show { ids } => return Ok(each(ids, |id| Command::Show { kind: Some(kind), id })),
        Routine::Add(args) => {
            let RoutineAdd { text, fields } = *args;
            let text = body(text, folder)?;
            let has_text = text.is_some();
            let draft = Box::new(FieldChange::draft(kind, text.unwrap_or_default(), &fields.0)?);
            // A command needs no text.
            let is_new = !has_text && draft.command.is_none();
            if is_new {
                return Ok(ParsedCommand::Own(LocalCommand::New { draft, when: None }));
            }
            Command::Add { draft, when: None }
        }
        Routine::Edit { id, changes } => return Ok(edit(kind, id, *changes)),
        Routine::Enable { ids } => {
            return Ok(each(ids, |id| Command::SetEnabled { kind: Some(kind), id, enabled: true }));
        }
        Routine::Disable { ids } => {
            return Ok(each(ids, |id| Command::SetEnabled { kind: Some(kind), id, enabled: false }));
        }
        Routine::Cancel { ids } => return Ok(each(ids, |id| Command::Cancel { kind, id })),
    }))
}

fn of_reminder(reminder: args::Reminder, folder: Option<&Path>) -> Result<ParsedCommand, Refusal> {
    use args::Reminder;
    let kind = Kind::Reminder;
    Ok(ParsedCommand::App(match reminder {
        Reminder::List => Command::List(kind),
        Reminder::Show { ids } => return Ok(each(ids, |id| Command::Show { kind: Some(kind), id })),
        Reminder::Add(args) => {
            let ReminderAdd { text, delay, span, at, fields } = *args;
            let minutes = |minutes: u32| Duration::from_secs(u64::from(minutes) * 60);
            let text = body(text, folder)?;
            let has_text = text.is_some();
            let draft = Box::new(FieldChange::draft(kind, text.unwrap_or_default(), &fields.0)?);
            // A command needs no text.
            let is_new = !has_text && draft.command.is_none();
            let when = when(span.or(delay.map(minutes)), at);
            if is_new {
                return Ok(ParsedCommand::Own(LocalCommand::New { draft, when }));
            }
            Command::Add { draft, when }
        }
        Reminder::Edit { id, changes } => return Ok(edit(kind, id, *changes)),
        Reminder::Snooze { ids, span } => return Ok(each(ids, |id| Command::Snooze { id, span })),
        Reminder::Restore { runs, span, at } => {
            return Ok(each(runs, |run| Command::Restore { run, when: when(span, at.clone()) }));
        }
        Reminder::Cancel { ids } => return Ok(each(ids, |id| Command::Cancel { kind, id })),
        Reminder::Retry { ids } => return Ok(each(ids, |id| Command::Retry { id })),
    }))
}

/// Sets fields if there are flags. Otherwise opens the editor.
fn edit(kind: Kind, id: String, changes: Changes) -> ParsedCommand {
    let Changes { message, span, at, fields } = changes;
    if message.is_none() && span.is_none() && at.is_none() && fields.0.is_empty() {
        return ParsedCommand::Own(LocalCommand::Edit { kind: Some(kind), id });
    }
    let changes = FieldChanges { message, when: when(span, at), fields: fields.0 };
    ParsedCommand::App(Command::Edit { kind, id, changes: Box::new(changes) })
}

/// Returns the command for each id. A single id makes a plain command.
fn each(mut ids: Vec<String>, command: impl Fn(String) -> Command) -> ParsedCommand {
    match ids.pop() {
        Some(id) if ids.is_empty() => ParsedCommand::App(command(id)),
        last => ParsedCommand::Each(ids.into_iter().chain(last).map(command).collect()),
    }
}

/// Returns the prompt, if any. Only a person's process may read standard input and files.
fn body(given: Text, folder: Option<&Path>) -> Result<Option<String>, Refusal> {
    let Text { text, message, file } = given;
    let text = text.or(message);
    let is_dash = text.as_deref() == Some("-");
    if (is_dash || file.is_some()) && folder.is_none() {
        return Err(Refusal::user("a job has no standard input and no files to hand on").hint("give the text itself"));
    }
    if let Some(file) = file {
        let file = absolute(file, folder);
        let read = std::fs::read_to_string(&file)
            .map_err(|error| Refusal::user(format!("cannot read {}: {error}", file.display())))?;
        if read.trim_start_matches(['\u{feff}', '\n', '\r', ' ']).starts_with("---") {
            return Err(Refusal::user(format!("{} has a frontmatter, so it is a whole job", file.display())).hint(
                "copy it into routines/, reminders/ or webhooks/ of the data folder; `ollim-bot check` says what is wrong with it",
            ));
        }
        return Ok(Some(read));
    }
    if is_dash {
        let read = std::io::read_to_string(std::io::stdin());
        return read.map(Some).map_err(|error| Refusal::user(format!("standard input cannot be read: {error}")));
    }
    Ok(text)
}

fn when(span: Option<Duration>, at: Option<String>) -> Option<When> {
    span.map(When::In).or(at.map(When::At))
}

fn explain(args: ExplainArgs) -> Result<Command, Refusal> {
    let ExplainArgs { definition, tool, input, line } = args;
    let input = match (line, input) {
        (Some(line), _) if tool == "Bash" => json!({ "command": line }),
        (Some(_), _) => {
            return Err(Refusal::user("`--command` is for Bash").hint("use `--input` with the tool's JSON"));
        }
        (None, Some(text)) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Value::Object(map),
            Ok(_) => {
                return Err(Refusal::user("`--input` must be a JSON object").hint("as in `{\"command\": \"ls\"}`"));
            }
            Err(error) => {
                return Err(Refusal::user(format!("`--input` is not JSON: {error}"))
                    .hint("quote it whole: `--input '{\"command\": \"ls\"}'`"));
            }
        },
        (None, None) if tool == "Bash" => {
            return Err(Refusal::user("no command to explain").hint("say `--command 'git push'`"));
        }
        (None, None) => json!({}),
    };
    Ok(Command::ExplainPolicy { definition, tool, input })
}

fn spawn(args: SpawnArgs) -> Result<SpawnRequest, Refusal> {
    let SpawnArgs { message, agent, tools, timeout } = args;
    Ok(SpawnRequest { prompt: message, agent, tools: tools_of(tools)?, timeout })
}

/// Parses the two lists; `None` if neither was given. One empty value means the empty list.
fn tools_of(args: ToolArgs) -> Result<Option<ToolLists>, Refusal> {
    let list = |values: Option<Vec<String>>| values.map(args::list);
    let (allow, deny) = (list(args.allow), list(args.deny));
    if allow.is_none() && deny.is_none() {
        return Ok(None);
    }
    let tools = ToolLists::parse(allow.as_deref(), deny.as_deref(), &BOT);
    tools.map(Some).map_err(|error| Refusal::user(error.to_string()).hint("write `Tool` or `Tool(what)`"))
}
