//! The coming occurrences, in order of time.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::View;
use crate::app::{Occurrence, Upcoming, summary, times};
use crate::channel::terminal::plain;
use crate::cli::output::{Cell, FAINT, HINT, Output, STRONG, paint};

/// A table, and which routines are paused.
pub(super) fn upcoming(upcoming: &Upcoming, view: &View, output: &mut Output) {
    let Upcoming { occurrences, paused } = upcoming;
    if view.json {
        output.json(&as_json(occurrences));
        return;
    }
    if occurrences.is_empty() {
        output.note("nothing is coming");
    }
    output.table(&rows(occurrences, view.now));
    for id in paused {
        output.note(format!("paused after failures: {}", plain(id.as_str())));
        output.note(format!("{}: `ollim-bot resume {}`", paint(HINT, "hint"), plain(id.as_str())));
    }
}

/// Occurrences with the keys that others build on.
pub(super) fn as_json(occurrences: &[Occurrence]) -> Vec<Value> {
    let of = |Occurrence { at, definition }: &Occurrence| {
        json!({
            "id": definition.id,
            "kind": definition.kind(),
            "at": times::rfc3339(*at, definition.zone),
            "description": definition.description,
            "background": definition.background().is_some(),
        })
    };
    occurrences.iter().map(of).collect()
}

/// Occurrences as lines of a table.
pub(super) fn rows(occurrences: &[Occurrence], now: DateTime<Utc>) -> Vec<Vec<Cell>> {
    let of = |Occurrence { at, definition }: &Occurrence| {
        vec![
            times::local(*at, now, definition.zone).into(),
            Cell::new(times::relative(*at, now), FAINT),
            definition.kind().to_string().into(),
            Cell::new(definition.id.as_str(), STRONG),
            summary(definition).into(),
        ]
    };
    occurrences.iter().map(of).collect()
}
