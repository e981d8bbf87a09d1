//! `fire`: fires a job by the running service, or else by a service that is started for this run.

use std::collections::BTreeSet;

use super::args::Color;
use super::output::{FAINT, Output, paint};
use super::render::{self, View};
use super::{log, run, start_warnings, watch};
use crate::app::{App, Command, Outcome, ServiceReply, words};
use crate::daemon::shutdown::EndConditions;
use crate::journal::{RunId, RunState};
use crate::refusal::Refusal;

/// Fires a definition. With `wait`, follows the run to its end, in these colours.
///
/// # Errors
/// Fails if there is no such definition, or if it cannot run now.
pub(super) fn fire(id: &str, wait: Option<Color>, app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    let fired = app.execute(Command::Fire { id: id.to_owned() })?;
    start_warnings::warn_of_agent(&fired, app, output);
    let id = match (fired, wait) {
        (Outcome::NotRunning(id), _) => id,
        (Outcome::Service(ServiceReply::Fired { run, .. }), Some(color)) => {
            return watch::runs(Some(run.as_str()), app, view, color, output);
        }
        (fired, _) => {
            render::render(fired, view, output);
            return Ok(());
        }
    };
    if !view.json {
        output.note(paint(FAINT, "the service was not running: it was started for this run"));
    }
    log::start("warn", Color::Auto, false, app)?;
    let run = run::serve(EndConditions::default(), Some(id), app, None)?;
    let run = run.ok_or_else(|| Refusal::environment("the run left no record"))?;
    let Outcome::Run(details) = app.execute(Command::Run { run: run.to_string(), full: false })? else { return Ok(()) };
    let run = details.run;
    if run.outcome != RunState::Completed {
        output.exit = 1;
    }
    if view.json {
        output.json(&render::run_json(&run, view.zone));
        return Ok(());
    }
    let left = left_over(&run.run, app);
    let waits = (run.outcome == RunState::Claimed).then(|| ": a running service goes on with it".to_owned());
    let why = run.error.as_ref().map(|error| format!(": {error}")).or(waits).unwrap_or_default();
    output.line(format!("{} {}{why}", run.id, words::state(run.outcome)));
    if left > 0 {
        let runs = if left == 1 { "1 other run waits" } else { &format!("{left} other runs wait") };
        output.note(format!("{runs} for a running service: `ollim-bot run` or `ollim-bot service install` starts one"));
    }
    Ok(())
}

/// Returns the number of other runs that have not ended. Those that this run made wait for the next service.
fn left_over(fired: &RunId, app: &App) -> usize {
    match app.execute(Command::Status) {
        Ok(Outcome::Status(status)) => {
            let others = status.running.iter().chain(&status.waiting);
            others.map(|run| &run.run).filter(|run| *run != fired).collect::<BTreeSet<_>>().len()
        }
        // The run itself has its answer.
        _ => 0,
    }
}
