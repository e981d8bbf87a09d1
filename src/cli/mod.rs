//! The command line: parses the arguments into a [`Command`](crate::app::Command), and renders the outcome.
//!
//! A person's commands are executed in their own process. Inside a fork this binary touches no file: it sends its arguments to the service
//! (see [`fork`]), which executes them there.

pub mod args;
mod batch;
pub mod by_channel;
mod chat;
pub mod command;
mod complete;
mod edit;
pub mod examples;
pub mod external;
mod fire;
pub mod fork;
mod guide;
pub mod help;
mod log;
mod man;
mod open;
pub mod output;
pub mod render;
mod run;
mod service_logs;
mod start_warnings;
mod watch;
mod wrap;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use args::{Cli, Color, Global};
use command::{LocalCommand, ParsedCommand};
use output::Output;
use render::View;

use crate::app::{self, App, Command, Environment, ServiceCommand};
use crate::clock::Clock;
use crate::daemon::call::Remote;
use crate::daemon::wire::RUN_TOKEN;
use crate::home::Home;
use crate::owner::act_as_owner;
use crate::refusal::Refusal;

/// `0.1.0 (5a91c0de12 2027-01-31)`: the version, and the commit and date of a release build (see `build.rs`).
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("OLLIM_BUILT_FROM"));

/// Runs the whole program: parses the arguments, executes the command, prints the output. Returns the exit code.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    let typed = examples::parse(&argv);
    let color = typed.as_ref().map_or(Color::Auto, |cli| cli.global.color);
    let mut output = Output::to_stdout(color);
    output.home = typed.as_ref().ok().and_then(|cli| cli.global.home.clone());
    if let Err(refusal) = start(&argv, typed, &mut output) {
        output.fail(&refusal);
    }
    match output.print(color) {
        Ok(()) => ExitCode::from(output.exit),
        Err(error) => {
            let done = if output.exit == 0 { "; the command itself was carried out" } else { "" };
            // Standard error may be what cannot be written.
            let _ = writeln!(io::stderr(), "error: cannot write the answer: {error}{done}");
            ExitCode::from(2)
        }
    }
}

fn start(argv: &[OsString], typed: Result<Cli, clap::Error>, output: &mut Output) -> Result<(), Refusal> {
    let env = Environment::of_process();
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let flag = typed.as_ref().ok().and_then(|cli| cli.global.home.as_deref());
    // Even an empty or undecodable token counts: only a fork has the variable.
    let token = env.as_it_is(RUN_TOKEN).map(|token| token.to_string_lossy().into_owned());
    if let (Some(shell), None) = (env.as_it_is(complete::ASKED_BY), &token) {
        let home = app::home(complete::home_in(argv), &env, &folder)?;
        output.stdout = complete::answer(shell, argv, &folder, &for_person(home, env.clone()));
        return Ok(());
    }
    // A fork's `--home` is ignored here. The service sees it, and refuses it.
    let home = app::home(flag.filter(|_| token.is_none()), &env, &folder)?;
    let app = for_person(home, env);
    if let Some(token) = token {
        *output = fork::ask(argv.get(1..).unwrap_or_default(), &token, &app)?;
        return Ok(());
    }
    match typed {
        Ok(cli) => {
            // Only root talks to the machine's systemd.
            if !matches!(cli.command, Some(args::Command::Service(_))) {
                act_as_owner(app.home.root(), argv)?;
            }
            execute(cli, &folder, &app, output)
        }
        Err(error) => {
            usage(&error, output);
            Ok(())
        }
    }
}

/// Creates the application for a person's own process.
#[must_use]
pub fn for_person(home: Home, env: Environment) -> App {
    let service = Arc::new(Remote { home: home.clone(), clock: Clock::system(), env: env.clone() });
    App::new(home, env, service, command_names)
}

fn command_names() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Executes the command and renders its outcome.
///
/// # Errors
/// Returns the refusal. The output written before it is kept.
pub fn execute(cli: Cli, folder: &Path, app: &App, output: &mut Output) -> Result<(), Refusal> {
    let Cli { global, command } = cli;
    let view = View::of(app, global.json);
    let opens = open::is_wanted(command.as_ref(), view.json, &app.env);
    execute_typed(command::typed(command, Some(folder))?, opens, &global, app, &view, output)
}

/// Executes a converted command. `opens` is whether to open the page's link in a browser.
fn execute_typed(
    typed: ParsedCommand,
    opens: bool,
    global: &Global,
    app: &App,
    view: &View,
    output: &mut Output,
) -> Result<(), Refusal> {
    match typed {
        ParsedCommand::App(command) => {
            start_warnings::show_wait(&command, app, global.color, output)?;
            let outcome = app.execute(command)?;
            let (promises, needs_login) = (start_warnings::will_fire(&outcome), start_warnings::needs_login(&outcome));
            start_warnings::warn_of_zone(&outcome, app, output);
            start_warnings::warn_of_cut_off(&outcome, app, output);
            if opens {
                open::open(&outcome, app, output);
            }
            let promised = start_warnings::promised(&outcome);
            start_warnings::warn_of_text(&outcome, app, output);
            render::render(outcome, view, output);
            if promises {
                start_warnings::warn(app, needs_login, promised.as_ref(), output);
            }
        }
        ParsedCommand::Each(commands) => {
            let (mut promises, mut needs_login) = (false, false);
            batch::execute_each(commands, view.json, output, |command, output| {
                let outcome = app.execute(command)?;
                promises |= start_warnings::will_fire(&outcome);
                needs_login |= start_warnings::needs_login(&outcome);
                render::render(outcome, view, output);
                Ok(())
            });
            if promises {
                start_warnings::warn(app, needs_login, None, output);
            }
        }
        ParsedCommand::Own(own) => execute_own(own, global, app, view, output)?,
    }
    Ok(())
}

/// Executes a command of this process, which may use commands of the application.
fn execute_own(own: LocalCommand, global: &Global, app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    match own {
        LocalCommand::SetCap { day, month, tokens } => {
            let set = ServiceCommand::SetCap { day, month, tokens };
            render::render(app.execute(Command::Service(set))?, view, output);
            if output.exit == 0 && !view.json {
                render::render(app.execute(Command::Budget)?, view, output);
            }
        }
        LocalCommand::SetBudget(left) => {
            app.execute(Command::Service(ServiceCommand::SetBudget { left }))?;
            render::render(app.execute(Command::Budget)?, view, output);
        }
        LocalCommand::Edit { kind, id } => edit::edit(kind, &id, app, view, output)?,
        LocalCommand::New { draft, when } => edit::new(*draft, when, app, view, output)?,
        LocalCommand::Fire { ids, wait } => {
            let wait = wait.then_some(global.color);
            match &ids[..] {
                [id] => fire::fire(id, wait, app, view, output)?,
                _ => batch::execute_each(ids, view.json, output, |id, output| fire::fire(&id, wait, app, view, output)),
            }
        }
        LocalCommand::Logs { filter, follow } => watch::logs(&filter, follow, app, view, global.color, output)?,
        LocalCommand::Chat { text, history } => chat::chat(text.as_deref(), history, app, view, global, output)?,
        LocalCommand::Follow(target) => watch::runs(target.as_deref(), app, view, global.color, output)?,
        LocalCommand::FollowInbox(count) => watch::inbox(count, app, view, global.color, output)?,
        LocalCommand::ServiceLogs(logs) => return Err(service_logs::exec_log_viewer(&logs, global.json, app)),
        LocalCommand::Init(args) => guide::init(args, global.color, app, view, output)?,
        LocalCommand::Run(args) => run::run(&args, global.color, app, view)?,
        LocalCommand::External(words) => {
            refuse_json(global.json)?;
            let (name, args) = external::split(&words)?;
            return Err(external::become_command(&external::find(name, app)?, args, &app.home));
        }
        LocalCommand::Short => help::short(app, view, output)?,
        LocalCommand::Help(topic) => help::help(&topic, app, view, output)?,
        LocalCommand::Completions(shell) => output.stdout.push_str(&complete::script(shell)?),
        LocalCommand::Man(folder) => man::man(folder.as_deref(), output)?,
    }
    Ok(())
}

/// Shows clap's help, version or error in our own format.
fn usage(error: &clap::Error, output: &mut Output) {
    // A group without a subcommand lists its commands.
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output.stdout.push_str(&error.render().ansi().to_string());
        return;
    }
    let plain = error.render().to_string();
    let mut message = Vec::new();
    let mut hints = Vec::new();
    for line in plain.lines() {
        let line = line.trim();
        if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            hints.push(format!("usage: {usage}"));
            break;
        } else if !line.is_empty() && !line.starts_with("For more information") {
            message.push(line.strip_prefix("error: ").unwrap_or(line).to_owned());
        }
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(suggestion) = examples::suggestion_in_group(word)
        && hints
            .iter()
            .any(|hint| examples::group_has(hint.strip_prefix("usage: ollim-bot ").unwrap_or_default(), suggestion))
    {
        hints.insert(0, format!("did you mean `{suggestion}`?"));
    } else if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && examples::stands_alone(word)
    {
        hints.retain(|hint| !hint.starts_with("a similar subcommand exists"));
        hints.insert(0, format!("`{word}` stands alone: `ollim-bot {word} ID`"));
    }
    if let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(usage) = hints.iter().find_map(|hint| hint.strip_prefix("usage: ollim-bot "))
        && let Some(suggestion) = examples::suggestion_for_flag(usage, flag)
    {
        hints = vec![suggestion];
    }
    let failed = hints.into_iter().fold(Refusal::user(message.join(" ")), Refusal::hint);
    output.fail(&failed);
}

/// Refuses `--json` before a person's own command, which would not receive it.
fn refuse_json(json: bool) -> Result<(), Refusal> {
    if json {
        return Err(Refusal::user("`--json` before one of your own commands is not handed on to it")
            .hint("put it after the command's name"));
    }
    Ok(())
}
