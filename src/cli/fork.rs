//! Inside a fork: the binary touches no file. What was typed goes to the service with the run's token; the
//! service decides, executes and answers.

use std::ffi::OsString;
use std::sync::Arc;

use clap::Parser as _;
use tokio::runtime::Handle;

use super::args::{Cli, Effect};
use super::context::Context;
use super::error::CliError;
use super::external;
use super::output::Output;
use crate::daemon::call::{self, CallError};
use crate::daemon::wire::{Reply, Request};
use crate::journal::Denial;
use crate::policy::Verdict;
use crate::run::tokens::RunAuthority;

/// The fork's side.
///
/// # Errors
/// When the service refuses, or is not there.
pub fn ask(argv: &[OsString], token: &str, context: &Context) -> Result<Output, CliError> {
    let argv = argv
        .iter()
        .map(|word| word.to_str().map(ToOwned::to_owned))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| CliError::user("the command line is not UTF-8"))?;
    match call::with_token(&context.home, token, &Request::Execute { argv }) {
        Ok(Reply::Output { stdout, stderr, exit }) => Ok(Output { stdout, stderr, exit, ..Output::default() }),
        Ok(Reply::Exec { name, args }) => {
            let program = external::find(&name, &context.home, &context.env)?;
            let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
            Err(external::become_command(&program, &args, &context.home))
        }
        Ok(Reply::Refused(reason)) => Err(CliError::user(reason)),
        Ok(Reply::Done(_) | Reply::Status(_) | Reply::Fired { .. } | Reply::Spawned { .. }) => {
            Err(CliError::environment("the service gave an answer to another question"))
        }
        Err(CallError::NotRunning) => {
            Err(CliError::environment("inside a job every command goes through the service, which is not running")
                .hint("the job's time is over: end here"))
        }
        Err(error) => Err(CliError::environment(error.to_string())),
    }
}

/// The service's side: the run's own policy first, then what runs may do at all. `surroundings` are the
/// service's; the caller in them is replaced by the run. Called on a blocking thread of the service's runtime.
#[must_use]
pub fn serve(run: Arc<RunAuthority>, argv: Vec<String>, surroundings: &Context) -> Reply {
    let mut output = Output::default();
    let words: Vec<String> = std::iter::once("ollim-bot".to_owned()).chain(argv).collect();
    match decide(&run, &words, surroundings, &mut output) {
        Ok(Some(reply)) => return reply,
        Ok(None) => {}
        Err(error) => {
            if error.is_denied() {
                let denial = Denial {
                    tool: "Bash".into(),
                    input: serde_json::json!({ "command": words.join(" ") }),
                    layer: "cap".into(),
                    rule: None,
                    reason: error.to_string(),
                };
                Handle::current().block_on(run.acts.record_denial(denial));
            }
            output.fail(&error);
        }
    }
    Reply::Output { stdout: output.stdout, stderr: output.stderr, exit: output.exit }
}

fn decide(
    run: &Arc<RunAuthority>,
    words: &[String],
    surroundings: &Context,
    output: &mut Output,
) -> Result<Option<Reply>, CliError> {
    let decision = run.acts.decide_command(words, run.agent.as_deref());
    if decision.verdict == Verdict::Deny {
        return Err(CliError::denied(decision.reason));
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            super::usage(&error, output);
            return Ok(None);
        }
    };
    if cli.global.home.is_some() {
        return Err(CliError::denied("`--home` is refused inside a job: it has the data folder it was started from"));
    }
    let effect = cli.command.as_ref().map_or(Effect::Reads, super::args::Command::effect);
    if let (Some(agent), Effect::Makes | Effect::FollowsUp | Effect::Spawns) = (&run.agent, effect) {
        // What it makes would have what the job has.
        return Err(CliError::denied(format!(
            "the agent {agent} was called by another one, and makes and changes no jobs"
        ))
        .hint("report to whoever called you what is to be done"));
    }
    match (effect, cli.command) {
        (Effect::Reads | Effect::Makes, command) => {
            let context = surroundings.of_run(Arc::clone(run), cli.global.json);
            super::execute(command, &context, output)?;
            Ok(None)
        }
        (Effect::FollowsUp, Some(super::args::Command::FollowUpChain { chain: None, delay })) => {
            let said = Handle::current().block_on(run.acts.follow_up(delay)).map_err(CliError::user)?;
            output.line(said);
            Ok(None)
        }
        (Effect::Spawns, Some(super::args::Command::Spawn(args))) => {
            let request = super::spawn::request(args)?;
            let spawned = Handle::current().block_on(run.acts.spawn(request)).map_err(CliError::denied)?;
            super::spawn::said(spawned.as_str(), cli.global.json, output);
            Ok(None)
        }
        (Effect::External, Some(super::args::Command::External(typed))) => {
            super::refuse_json(cli.global.json)?;
            let (name, args) = external::split(&typed)?;
            // Found here too, so that a name that is not there is said in the same words as outside.
            external::find(name, &surroundings.home, &surroundings.env)?;
            let args = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
            Ok(Some(Reply::Exec { name: name.to_owned(), args }))
        }
        (Effect::Rules | Effect::Spawns | Effect::External | Effect::FollowsUp, _) => {
            Err(CliError::denied(format!("`{}` is the person's alone, and a job may not do it", shown(words)))
                .hint("report what you wanted to do instead"))
        }
    }
}

/// The command without its arguments: `ollim-bot reminder add`.
fn shown(words: &[String]) -> String {
    let name = |word: &&String| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-');
    let mut shown = vec!["ollim-bot"];
    shown.extend(
        words[1..].iter().skip_while(|word| word.starts_with('-')).take_while(name).take(2).map(String::as_str),
    );
    shown.join(" ")
}
