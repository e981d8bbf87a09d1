//! What the service has done.

use serde_json::json;

use super::View;
use crate::app::ServiceReply;
use crate::channel::terminal::plain;
use crate::cli::output::{FAINT, Output, STRONG, paint};
use crate::journal::RunState;

/// A sentence, and how to see what becomes of it.
pub(super) fn reply(reply: &ServiceReply, view: &View, output: &mut Output) {
    let done = match reply {
        ServiceReply::Fired { id, run, paused } => {
            if view.json {
                output.json(&json!({ "id": id, "run": run }));
            } else {
                output.line(format!("fired {}: run {run}", paint(STRONG, &plain(id.as_str()))));
                output.note(paint(FAINT, &format!("`ollim-bot runs show {run}` tells how it ends")));
            }
            if *paused {
                output.note("the service is paused; this run starts all the same, since you fired it");
            }
            return;
        }
        ServiceReply::Spawned { session } => {
            if view.json {
                output.json(&json!({ "session": session }));
            } else {
                output.line(format!("spawned {}", paint(STRONG, &plain(session.as_str()))));
                output.note(paint(FAINT, &format!("`ollim-bot sessions show {session}` tells what becomes of it")));
            }
            return;
        }
        ServiceReply::RunEnded { run, state: RunState::Cancelled } => format!("run {run} is cancelled"),
        ServiceReply::RunEnded { run, state } => format!("run {run} has ended: {state}"),
        ServiceReply::Paused => {
            "paused: nothing starts by itself until `ollim-bot resume`; `ollim-bot fire ID` still runs a job".into()
        }
        ServiceReply::Resumed { id: None } => "resumed".into(),
        ServiceReply::Resumed { id: Some(id) } => format!("routine {id} is resumed"),
        ServiceReply::SessionPatched { session } => {
            format!("session {session} carries its spawnToolPolicy from now on")
        }
        ServiceReply::BudgetSet(budget) => format!("{} pings left", budget.left()),
        ServiceReply::Status(status) => format!("running (pid {})", status.pid),
    };
    if view.json {
        output.json(&json!({ "done": done }));
    } else {
        output.line(done);
    }
}
