//! Renders what was put into the database, and what was removed from it.

use super::{View, check};
use crate::app::{PushResult, RemoveResult};
use crate::channel::terminal::plain;
use crate::cli::output::{FAINT, Output, paint};

/// Renders the problems, then the counts. The exit code is 1 if something was refused.
pub(super) fn pushed(pushed: &PushResult, view: &View, output: &mut Output) {
    let PushResult { added, changed, unchanged, had_their_run, refused, problems, dry_run } = pushed;
    if *refused > 0 {
        output.exit = 1;
    }
    if view.json {
        output.json(pushed);
        return;
    }
    for problem in problems {
        output.note(check::problem(problem));
    }
    let mut parts = vec![
        format!("{added} added"),
        format!("{changed} changed"),
        format!("{unchanged} unchanged"),
        format!("{refused} refused"),
    ];
    if *had_their_run > 0 {
        parts.push(format!("{had_their_run} had their run"));
    }
    output.line(parts.join(", "));
    if *dry_run {
        output.note(paint(FAINT, "nothing was written"));
    }
}

/// Renders what was removed. The exit code is 1 if something was not there.
pub(super) fn removed(result: &RemoveResult, view: &View, output: &mut Output) {
    if !result.unknown.is_empty() {
        output.exit = 1;
    }
    if view.json {
        output.json(result);
        return;
    }
    for id in &result.removed {
        output.line(format!("removed {}", plain(id.as_str())));
    }
    for id in &result.unknown {
        output.note(format!("{} is not in the database", plain(id.as_str())));
    }
}
