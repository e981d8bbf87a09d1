//! Renders waiting runs: for a slot, another attempt, `resume`, a login or the service.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::View;
use crate::app::{Overdue, Status, times, words};
use crate::cli::output::{Cell, FAINT, STRONG};
use crate::definition::{DefinitionId, Kind};
use crate::journal::{RunRecord, RunState};

fn words(due: &Overdue, view: &View) -> String {
    let times = match due.count {
        1 => return format!("due {}", times::relative(due.since, view.now)),
        count if due.is_truncated() => format!("{count} times or more"),
        count => format!("{count} times"),
    };
    format!("due {times} since {}", view.moment(due.since))
}

/// Returns overdue definitions as JSON with stable keys.
pub(super) fn as_json(due: &[Overdue]) -> Vec<Value> {
    due.iter()
        .map(|due| {
            json!({
                "id": due.definition.id,
                "kind": due.definition.kind(),
                "since": times::rfc3339(due.since, due.definition.zone),
                "count": due.count,
            })
        })
        .collect()
}

/// Returns the rows of a table: unfinished runs, then overdue definitions.
pub(super) fn rows<'a>(
    unfinished: impl Iterator<Item = &'a RunRecord>,
    status: &Status,
    view: &View,
) -> Vec<Vec<Cell>> {
    let unfinished = unfinished.map(|run| row(run.run.as_str(), run.kind, &run.id, state(run, status, view.now)));
    let due = status.due.iter().map(|due| row("", due.definition.kind(), &due.definition.id, words(due, view)));
    unfinished.chain(due).collect()
}

fn state(run: &RunRecord, status: &Status, now: DateTime<Utc>) -> String {
    match run.outcome {
        RunState::Claimed if run.scheduled <= now => {
            let why = run.error.as_deref().or_else(|| status.waits_for.get(&run.run).copied());
            let waits = why.map(|why| match why.starts_with("it waits") {
                true => format!(": {why}"),
                false => format!(": it waits, since {why}"),
            });
            format!("due {}{}", times::relative(run.scheduled, now), waits.unwrap_or_default())
        }
        // A person fired it before its time.
        RunState::Claimed => words::state(run.outcome),
        RunState::Running | RunState::Interrupted => "was cut off".to_owned(),
        _ => words::outcome_and_cause(run, now),
    }
}

fn row(run: &str, kind: Kind, id: &DefinitionId, what: String) -> Vec<Cell> {
    vec![Cell::new(run, STRONG), format!("{kind} {id}").into(), Cell::new(what, FAINT)]
}
