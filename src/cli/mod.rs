//! The command line: what is typed, done and shown.
//!
//! Every command is executed by [`execute`], whoever asked: a person in a process of their own, or a run, for
//! which the service executes it. Inside a fork this binary therefore touches no file (see [`fork`]).

pub mod args;
pub mod context;
pub mod error;
pub mod external;
pub mod fork;
pub mod help;
pub mod output;
mod runs;
pub mod times;
pub mod when;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Color, Command};
use context::{Caller, Context, Environment};
use error::CliError;
use output::Output;

use crate::clock::Clock;
use crate::daemon::wire::RUN_TOKEN;

/// The whole program: reads what was typed, does it, prints, and gives the exit code.
#[must_use]
pub fn main(argv: Vec<OsString>) -> ExitCode {
    let mut output = Output::default();
    let typed = Cli::try_parse_from(&argv);
    let color = typed.as_ref().map_or(Color::Auto, |cli| cli.global.color);
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
    let token = env.text(RUN_TOKEN).map(ToOwned::to_owned);
    // A fork's `--home` is not looked at here: the service sees it, and refuses it.
    let home = context::home(flag.filter(|_| token.is_none()), &env, &folder)?;
    let json = typed.as_ref().is_ok_and(|cli| cli.global.json);
    let context = Context { home, caller: Caller::Person, clock: Clock::system(), env, folder, json };
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
            help::short(output);
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
        Some(Command::Inbox { count }) => runs::inbox(count, context, output),
        Some(other) => Err(CliError::environment(format!("not built: {other:?}"))),
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
