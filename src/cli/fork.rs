//! The command line inside a fork. The binary touches no file: it sends its arguments to the service with the run's token, and the service
//! decides, executes and answers.

use std::ffi::OsString;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::command::{self, LocalCommand, ParsedCommand};
use super::output::Output;
use super::render::{self, View};
use super::{batch, complete, edit, examples, external, help};
use crate::app::{App, Effect, unexpected_reply};
use crate::daemon::call::{self, CallError};
use crate::daemon::wire::{Reply, Request};
use crate::journal::Denial;
use crate::policy::Verdict;
use crate::refusal::{Cause, Refusal};
use crate::run::tokens::RunAuthority;

/// Sends the arguments to the service. This runs in the fork.
///
/// # Errors
/// Fails if the service refuses, or is not running.
pub fn ask(argv: &[OsString], token: &str, app: &App) -> Result<Output, Refusal> {
    let argv = argv
        .iter()
        .map(|word| word.to_str().map(ToOwned::to_owned))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Refusal::user("the command line is not UTF-8"))?;
    match call::with_token(&app.home, token, &Request::Execute { argv }) {
        Ok(Reply::Output { stdout, stderr, exit }) => Ok(Output { stdout, stderr, exit, ..Output::default() }),
        Ok(Reply::Exec { name, args }) => {
            let program = external::find(&name, app)?;
            let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
            Err(external::become_command(&program, &args, &app.home))
        }
        Ok(Reply::Refused(refusal)) => Err(refusal),
        Ok(Reply::Done(_) | Reply::Event(_)) => Err(unexpected_reply()),
        Err(CallError::NotRunning) => {
            Err(Refusal::environment("inside a job every command goes through the service, which is not running")
                .hint("the job's time is over: end here"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Executes a run's arguments in the service. The run's own policy decides first, then the rules for all runs. `app` is the service's.
/// Must be called on a blocking thread of its runtime.
#[must_use]
pub fn execute(app: &App, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
    let mut output = Output::default();
    let words: Vec<String> = std::iter::once("ollim-bot".to_owned()).chain(argv).collect();
    match decide(&run, &words, app, &mut output) {
        Ok(Some(reply)) => return reply,
        Ok(None) => {}
        Err(refusal) => {
            record(&refusal, &run, &words);
            output.fail(&refusal);
        }
    }
    Reply::Output { stdout: output.stdout, stderr: output.stderr, exit: output.exit }
}

/// Records a denial in the run.
fn record(refusal: &Refusal, run: &RunAuthority, words: &[String]) {
    if refusal.cause != Cause::Denied {
        return;
    }
    let denial = Denial {
        tool: "Bash".into(),
        input: serde_json::json!({ "command": words.join(" ") }),
        layer: "cap".into(),
        rule: None,
        reason: refusal.to_string(),
    };
    Handle::current().block_on(run.acts.record_denial(denial));
}

fn decide(run: &Arc<RunAuthority>, words: &[String], app: &App, output: &mut Output) -> Result<Option<Reply>, Refusal> {
    let decision = run.acts.decide_command(words, run.agent.as_deref());
    if decision.verdict != Verdict::Allow {
        return Err(Refusal::denied(decision.reason));
    }
    let cli = match examples::parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            super::usage(&error, output);
            return Ok(None);
        }
    };
    if cli.global.home.is_some() {
        return Err(Refusal::denied("`--home` is refused inside a job: it has the data folder it was started from"));
    }
    let alone = || {
        Refusal::denied(format!("`{}` is the person's alone, and a job may not do it", shown(words)))
            .hint("report what you wanted to do instead")
    };
    let (app, json) = (app.of_run(Arc::clone(run)), cli.global.json);
    let view = View::of(&app, json);
    match command::typed(cli.command, None)? {
        ParsedCommand::App(command) if command.effect() == Effect::Controls => return Err(alone()),
        ParsedCommand::App(command) => render::render(app.execute(command)?, &view, output),
        ParsedCommand::Each(commands) if commands.iter().any(|command| command.effect() == Effect::Controls) => {
            return Err(alone());
        }
        ParsedCommand::Each(commands) => batch::execute_each(commands, view.json, output, |command, output| {
            let outcome = app.execute(command).inspect_err(|refusal| record(refusal, run, words))?;
            render::render(outcome, &view, output);
            Ok(())
        }),
        ParsedCommand::Own(LocalCommand::Short) => help::short(&app, &view, output)?,
        ParsedCommand::Own(LocalCommand::Help(topic)) => help::help(&topic, &app, &view, output)?,
        ParsedCommand::Own(LocalCommand::Completions(shell)) => output.stdout.push_str(&complete::script(shell)?),
        ParsedCommand::Own(LocalCommand::Edit { kind, id }) => edit::edit(kind, &id, &app, &view, output)?,
        ParsedCommand::Own(LocalCommand::New { draft, when }) => edit::new(*draft, when, &app, &view, output)?,
        ParsedCommand::Own(LocalCommand::External(typed)) => {
            super::refuse_json(json)?;
            let (name, args) = external::split(&typed)?;
            // Check here too, so that an unknown name gets the same refusal as outside a fork.
            external::find(name, &app)?;
            let args = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
            return Ok(Some(Reply::Exec { name: name.to_owned(), args }));
        }
        ParsedCommand::Own(
            LocalCommand::Chat { .. }
            | LocalCommand::SetBudget(_)
            | LocalCommand::SetCap { .. }
            | LocalCommand::Fire { .. }
            | LocalCommand::Init(_)
            | LocalCommand::Run(_)
            | LocalCommand::Follow(_)
            | LocalCommand::FollowInbox(_)
            | LocalCommand::Logs { .. }
            | LocalCommand::ServiceLogs(_)
            | LocalCommand::Man(_),
        ) => {
            return Err(alone());
        }
    }
    Ok(None)
}

/// Returns the command without its arguments: `ollim-bot reminder add`.
fn shown(words: &[String]) -> String {
    let name = |word: &&String| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-');
    let mut shown = vec!["ollim-bot"];
    shown.extend(
        words[1..].iter().skip_while(|word| word.starts_with('-')).take_while(name).take(2).map(String::as_str),
    );
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::app::PERSONS_ALONE;
    use crate::cli::examples;

    /// Whether an example is refused to jobs. Returns `None` if it does not convert without a folder.
    fn is_alone(example: &str) -> Option<bool> {
        let line = example.split(" | ").next()?.split(" > ").next()?;
        let words = examples::words(line);
        let cli = examples::parse(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        Some(match command::typed(cli.command, None).ok()? {
            ParsedCommand::App(command) => command.effect() == Effect::Controls,
            ParsedCommand::Each(commands) => commands.iter().any(|command| command.effect() == Effect::Controls),
            ParsedCommand::Own(own) => !matches!(
                own,
                LocalCommand::Short
                    | LocalCommand::Help(_)
                    | LocalCommand::Completions(_)
                    | LocalCommand::Edit { .. }
                    | LocalCommand::New { .. }
                    | LocalCommand::External(_)
            ),
        })
    }

    #[test]
    fn the_commands_that_are_the_persons_alone_are_known() {
        let mut alone = BTreeSet::new();
        let mut shared = BTreeSet::new();
        for (path, lines, _) in examples::EXAMPLES {
            let name = path.split(' ').next().unwrap();
            for line in lines.iter().filter(|line| line.starts_with("ollim-bot ")) {
                match is_alone(line) {
                    Some(true) => alone.insert(name),
                    Some(false) => shared.insert(name),
                    None => false,
                };
            }
        }
        let known: Vec<&str> = alone.difference(&shared).copied().collect();
        assert_eq!(PERSONS_ALONE, known);
    }
}
