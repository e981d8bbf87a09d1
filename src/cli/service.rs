//! What is asked of the running service: `fire`, `cancel-run`, `pause`, `resume`.

use serde_json::json;

use super::args::Color;
use super::context::Context;
use super::error::CliError;
use super::output::{FAINT, Output, STRONG, paint};
use super::{jobs, run, runs};
use crate::channel::terminal::plain;
use crate::daemon::call::{self, CallError};
use crate::daemon::ending::Until;
use crate::daemon::wire::{Reply, Request};
use crate::journal::{RunId, RunState};

impl From<CallError> for CliError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NotRunning => Self::environment(error.to_string()).hint("start it: `ollim-bot run`"),
            _ => Self::environment(error.to_string()),
        }
    }
}

/// `fire`: by the service where it runs, else by one that is started for this run.
///
/// # Errors
/// When there is no such job, or it cannot run now.
pub fn fire(id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let definition = jobs::find(id, None, &loaded)?;
    let request = Request::Fire { id: definition.id.to_string() };
    match call::as_person(&context.home, &request) {
        Ok(Reply::Fired { run }) => {
            if context.json {
                output.json(&json!({ "id": definition.id, "run": run }));
            } else {
                output.line(format!("fired {}: run {run}", paint(STRONG, &plain(definition.id.as_str()))));
                output.note(paint(FAINT, &format!("`ollim-bot runs show {run}` tells how it ends")));
            }
            Ok(())
        }
        Ok(Reply::Refused(why)) => Err(CliError::user(why)),
        Ok(_) => Err(odd()),
        Err(CallError::NotRunning) => {
            if !context.json {
                output.note(paint(FAINT, "the service was not running: it was started for this run"));
            }
            run::log("warn", Color::Auto, context)?;
            let run = run::serve(Until::default(), Some(definition.id.clone()), context)?;
            ended(run.as_ref(), context, output)
        }
        Err(error) => Err(error.into()),
    }
}

/// How the run of a service that was started for it has ended.
fn ended(run: Option<&RunId>, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let found = run.map(|run| runs::open(context)?.run(run).map_err(CliError::from)).transpose()?.flatten();
    let Some(run) = found else {
        return Err(CliError::environment("the run left no record"));
    };
    if run.outcome != RunState::Completed {
        output.exit = 1;
    }
    if context.json {
        output.json(&runs::as_json(&run, context.zone_of_records()));
        return Ok(());
    }
    let why = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    output.line(format!("{} {}{why}", run.id, runs::word(run.outcome).replace('_', " ")));
    Ok(())
}

/// `cancel-run`, `pause`, `resume`.
///
/// # Errors
/// When the service does not run, or refuses.
pub fn verb(request: &Request, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    match call::as_person(&context.home, request)? {
        Reply::Done(said) if context.json => output.json(&json!({ "done": said })),
        Reply::Done(said) => output.line(said),
        Reply::Refused(why) => return Err(CliError::user(why)),
        _ => return Err(odd()),
    }
    Ok(())
}

/// An answer that no question of ours has.
pub(super) fn odd() -> CliError {
    CliError::environment("the service gave an answer to another question")
        .hint("it may be another version: start it anew")
}
