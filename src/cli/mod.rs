//! The command line: what is typed, done and shown.
//!
//! Every command is executed by [`execute`], whoever asked: a person in a process of their own, or a run, for
//! which the service executes it. Inside a fork this binary therefore touches no file (see [`fork`]).

mod add;
mod agents;
pub mod args;
mod budget;
mod capped;
mod change;
mod changes;
mod check;
mod config;
pub mod context;
mod dry_run;
mod edit;
pub mod error;
pub mod external;
pub mod fork;
mod held;
pub mod help;
mod init;
mod jobs;
mod next;
pub mod output;
mod policy;
mod prolong;
mod restore;
mod run;
mod runs;
mod service;
mod sessions;
mod spawn;
mod status;
pub mod times;
pub mod waiting;
mod when;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Color, Command};
use context::{Caller, Context, Environment};
use error::CliError;
use output::Output;

use crate::daemon::wire::{RUN_TOKEN, Request};
use crate::definition::Kind;

/// The whole program: reads what was typed, does it, prints, and gives the exit code.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    let typed = Cli::try_parse_from(&argv);
    let color = typed.as_ref().map_or(Color::Auto, |cli| cli.global.color);
    let mut output = Output::to_stdout(color);
    if let Err(error) = start(&argv, typed, &mut output) {
        output.fail(&error);
    }
    match output.print(color) {
        Ok(()) => ExitCode::from(output.exit),
        Err(_) => ExitCode::from(2),
    }
}

fn start(argv: &[OsString], typed: Result<Cli, clap::Error>, output: &mut Output) -> Result<(), CliError> {
    let env = Environment::of_process();
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let flag = typed.as_ref().ok().and_then(|cli| cli.global.home.as_deref());
    // Set to nothing, or to what is no text, it is still there: whoever has it is a fork, and not the person.
    let token = env.as_it_is(RUN_TOKEN).map(|token| token.to_string_lossy().into_owned());
    // A fork's `--home` is not looked at here: the service sees it, and refuses it.
    let home = context::home(flag.filter(|_| token.is_none()), &env, &folder)?;
    let json = typed.as_ref().is_ok_and(|cli| cli.global.json);
    let context = Context::new(home, Caller::Person, env, folder, json);
    if let Some(token) = token {
        *output = fork::ask(argv.get(1..).unwrap_or_default(), &token, &context)?;
        return Ok(());
    }
    let cli = match typed {
        Ok(cli) => cli,
        Err(error) => {
            usage(&error, output);
            return Ok(());
        }
    };
    match cli.command {
        Some(Command::External(words)) => {
            refuse_json(json)?;
            let (name, args) = external::split(&words)?;
            let program = external::find(name, &context.home, &context.env)?;
            Err(external::become_command(&program, args, &context.home))
        }
        Some(Command::Run(args)) => run::run(&args, cli.global.color, &context, output),
        command => execute(command, &context, output),
    }
}

/// Does one command, for whoever asks. What may not be done for a run has been refused before.
///
/// # Errors
/// What went wrong, as the person reads it. What was put out before stands.
pub fn execute(command: Option<Command>, context: &Context, output: &mut Output) -> Result<(), CliError> {
    match command {
        None => {
            help::short(context, output);
            Ok(())
        }
        Some(Command::Help { command }) => help::help(&command, context, output),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut <Cli as clap::CommandFactory>::command(), "ollim-bot", &mut script);
            output.stdout.push_str(&String::from_utf8_lossy(&script));
            Ok(())
        }
        Some(Command::Runs(args)) => match &args.command {
            Some(args::Runs::Show { run }) => runs::show(run, context, output),
            None => runs::list(&args, context, output),
        },
        Some(Command::Agents(command)) => agents::agents(&command, context, output),
        Some(Command::Spawn(args)) => spawn::spawn(args, context, output),
        Some(Command::Sessions(command)) => sessions::sessions(command, context, output),
        Some(Command::Budget { set }) => budget::budget(set, context, output),
        Some(Command::Inbox { count }) => runs::inbox(count, context, output),
        Some(Command::Check { files }) => check::check(&files, context, output),
        Some(Command::Next(args)) => next::next(&args, context, output),
        Some(Command::Routine(args::Routine::List)) => jobs::list(Kind::Routine, context, output),
        Some(Command::Routine(args::Routine::Show { id })) => jobs::show(Kind::Routine, &id, context, output),
        Some(Command::Reminder(args::Reminder::List)) => jobs::list(Kind::Reminder, context, output),
        Some(Command::Reminder(args::Reminder::Show { id })) => jobs::show(Kind::Reminder, &id, context, output),
        Some(Command::Routine(args::Routine::Add(args))) => add::routine(*args, context, output),
        Some(Command::Routine(args::Routine::Edit { id, changes })) => {
            edit::edit(Kind::Routine, &id, *changes, context, output)
        }
        Some(Command::Routine(args::Routine::Enable { id })) => change::set_enabled(&id, true, context, output),
        Some(Command::Routine(args::Routine::Disable { id })) => change::set_enabled(&id, false, context, output),
        Some(Command::Routine(args::Routine::Cancel { id })) => change::cancel(Kind::Routine, &id, context, output),
        Some(Command::Reminder(args::Reminder::Add(args))) => add::reminder(*args, context, output),
        Some(Command::Reminder(args::Reminder::Edit { id, changes })) => {
            edit::edit(Kind::Reminder, &id, *changes, context, output)
        }
        Some(Command::Reminder(args::Reminder::Snooze { id, span })) => change::snooze(&id, span, context, output),
        Some(Command::Reminder(args::Reminder::Restore { run, span, at })) => {
            restore::restore(&run, span, at.as_deref(), context, output)
        }
        Some(Command::Reminder(args::Reminder::Cancel { id })) => change::cancel(Kind::Reminder, &id, context, output),
        Some(Command::Reminder(args::Reminder::Retry { id })) => change::retry(&id, context, output),
        Some(Command::Config) => config::config(context, output),
        Some(Command::Policy(args::Policy::Explain(args))) => policy::explain(&args, context, output),
        Some(Command::Policy(args::Policy::Show { definition })) => policy::show(&definition, context, output),
        Some(Command::Init { force }) => init::init(force, context, output),
        Some(Command::Status) => status::status(context, output),
        Some(Command::Fire { id, dry_run: false }) => service::fire(&id, context, output),
        Some(Command::Fire { id, dry_run: true }) => dry_run::dry_run(&id, context, output),
        Some(Command::CancelRun { run }) => service::verb(&Request::CancelRun { run }, context, output),
        Some(Command::Pause) => service::verb(&Request::Pause, context, output),
        Some(Command::Resume { id }) => service::verb(&Request::Resume { id }, context, output),
        Some(Command::FollowUpChain { chain: Some(chain), delay }) => prolong::prolong(&chain, delay, context, output),
        Some(Command::FollowUpChain { chain: None, .. }) => {
            Err(CliError::user("outside a chain reminder's run `follow-up-chain` needs to know which chain")
                .hint("name it: `ollim-bot follow-up-chain --for ID --in 20`")
                .hint("`ollim-bot reminder add --in 20m --max-chain 3 -m 'Check the oven'` begins one"))
        }
        // These take the process over, and were dealt with by who owns it.
        Some(Command::Run(_) | Command::External(_)) => {
            Err(CliError::environment("this command runs in a process of its own"))
        }
    }
}

/// What clap says of a line that it cannot read, or of `--help` and `--version`, in our own form.
fn usage(error: &clap::Error, output: &mut Output) {
    let text = error.render().ansi().to_string();
    if !error.use_stderr() {
        output.stdout.push_str(&text);
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
    let failed = hints.into_iter().fold(CliError::user(message.join(" ")), CliError::hint);
    output.fail(&failed);
}

/// `--json` before a command of one's own would be lost.
fn refuse_json(json: bool) -> Result<(), CliError> {
    if json {
        return Err(CliError::user("`--json` before one of your own commands is not handed on to it")
            .hint("put it after the command's name"));
    }
    Ok(())
}
