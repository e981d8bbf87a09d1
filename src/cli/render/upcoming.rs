//! Renders upcoming occurrences in order of time.

use serde_json::{Value, json};

use super::View;
use crate::app::{Occurrence, OccurrenceLimit, Upcoming, summary, times, words};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, HINT, Output, STRONG, paint};
use crate::definition::{Definition, DefinitionId};
use crate::journal::RunState;

/// Renders a table, then the jobs that fire on events and the paused ones.
pub(super) fn upcoming(upcoming: &Upcoming, view: &View, output: &mut Output) {
    let Upcoming { occurrences, left_out, each, paused, disabled, on_events, unread } = upcoming;
    let more_in_database = |output: &mut Output| {
        if *unread > 0 {
            output.note(paint(FAINT, &format!("and {unread} jobs in the database, which fall due later")));
        }
    };
    if view.json {
        output.json(&as_json(occurrences, view));
        more_in_database(output);
        return;
    }
    if occurrences.is_empty() {
        output.note("nothing is coming");
    }
    output.table_without(&rows(occurrences, view), LEAST);
    match (left_out, each) {
        (0, _) => {}
        (more, OccurrenceLimit::First) => {
            let all = command(occurrences.len() + more);
            output.note(paint(FAINT, &format!("and {more} more (`{all}`)")));
        }
        _ => output.note(paint(FAINT, "and later ones (`-n` sets how many are shown)")),
    }
    more_in_database(output);
    for definition in on_events {
        let when = definition.waits_for().unwrap_or_default();
        output.note(format!("{} fires {}", plain(definition.id.as_str()), plain(&when)));
    }
    for id in paused {
        output.note(format!("paused after failures: {}", plain(id.as_str())));
        output.note(format!("{}: `ollim-bot resume {}`", paint(HINT, "hint"), plain(id.as_str())));
    }
    if !disabled.is_empty() {
        output.note(format!("disabled: {}", listed(disabled)));
    }
}

/// Returns the command that shows the next occurrences of this many jobs.
pub(super) fn command(jobs: usize) -> String {
    match jobs {
        ..=USUAL => "ollim-bot next".to_owned(),
        _ => format!("ollim-bot next -n {}", jobs.min(MOST)),
    }
}

/// Number of occurrences that `next` shows by itself.
const USUAL: usize = 10;

/// Largest number of occurrences that `next` shows.
const MOST: usize = 10_000;

/// Maximum number of disabled jobs that are named.
const NAMED: usize = 8;

/// Returns the ids of disabled jobs in one line, and the command that enables them.
pub(super) fn listed(disabled: &[DefinitionId]) -> String {
    let names = disabled.iter().take(NAMED).map(|id| plain(id.as_str())).collect::<Vec<_>>().join(", ");
    let more = disabled.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let one = if disabled.len() == 1 { &disabled[0] } else { &DefinitionId::new("ID") };
    format!("{names}{more} (`ollim-bot resume {}` ends that)", plain(one.as_str()))
}

/// Returns occurrences as JSON with stable keys.
pub(super) fn as_json(occurrences: &[Occurrence], view: &View) -> Vec<Value> {
    let of = |Occurrence { at, definition, last }: &Occurrence| {
        json!({
            "id": definition.id,
            "kind": definition.kind(),
            "at": times::rfc3339(*at, definition.zone),
            "description": definition.description,
            "background": definition.background().is_some(),
            "last": last.map(|(outcome, at)| json!({ "outcome": outcome, "at": times::rfc3339(at, view.zone) })),
        })
    };
    occurrences.iter().map(of).collect()
}

fn what(definition: &Definition) -> String {
    let asks = if definition.approve { " (asks you first)" } else { "" };
    format!("{}{asks}", summary(definition))
}

/// The columns of [`rows`] that a narrow terminal drops, in this order: the kind, and the relative time.
pub(super) const LEAST: &[usize] = &[3, 1];

/// Returns the rows of a table, with a header if there are any.
pub(super) fn rows(occurrences: &[Occurrence], view: &View) -> Vec<Vec<Cell>> {
    let now = view.now;
    let of = |Occurrence { at, definition, last }: &Occurrence| {
        let ended = |(outcome, at)| {
            let due = if outcome == RunState::Claimed { ", due" } else { "" };
            format!("{}{due} {}", words::state(outcome), times::relative(at, now))
        };
        let bad = last.is_some_and(|(outcome, _)| matches!(outcome, RunState::Failed | RunState::TimedOut));
        vec![
            times::local(*at, now, definition.zone).into(),
            Cell::new(times::relative(*at, now), FAINT),
            Cell::new(last.map(ended).unwrap_or_default(), if bad { BAD } else { FAINT }),
            definition.kind().to_string().into(),
            Cell::new(definition.id.as_str(), STRONG),
            what(definition).into(),
        ]
    };
    let header = ["NEXT", "", "LAST", "KIND", "ID", "WHAT"].map(|name| Cell::new(name, FAINT)).to_vec();
    let header = (!occurrences.is_empty()).then_some(header);
    header.into_iter().chain(occurrences.iter().map(of)).collect()
}
