//! Past runs and upcoming occurrences: one row per job.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::app::{Attention, Row, RowSubject, Status, Timeline};
use crate::journal::{RunRecord, RunState};
use crate::web::chart::{Scale, axis, bars};
use crate::web::context::Context;
use crate::web::parts::{self, link, mark};

/// The meaning of the glyphs.
const LEGEND: [(RunState, &str); 7] = [
    (RunState::Completed, "completed"),
    (RunState::Failed, "failed"),
    (RunState::TimedOut, "timed out"),
    (RunState::Running, "running"),
    (RunState::Claimed, "waiting"),
    (RunState::Skipped, "skipped"),
    (RunState::Cancelled, "cancelled or interrupted"),
];

pub(in crate::web) fn timeline(timeline: &Timeline, attention: &Attention, week: bool, context: &Context) -> Markup {
    let scale = Scale::of(timeline, context);
    html! {
        div .head {
            h1 { "Timeline" }
            p .switch {
                a href="/" aria-current=[(!week).then_some("true")] { "24 hours" }
                a href="/?days=7" aria-current=[week.then_some("true")] { "7 days" }
            }
        }
        (parts::all_paused(&attention.status))
        (running(&attention.status, context))
        (waiting(&timeline.waiting))
        @if timeline.rows.is_empty() {
            p .empty { "Nothing ran and nothing comes in this time. " a href="/jobs" { "All jobs" } }
        } @else {
            div .timeline {
                div .row .top { span {} (axis(&scale, context)) }
                @for row in &timeline.rows {
                    @let name = name(row);
                    div .row {
                        @match &row.whose {
                            RowSubject::Routine(id) => a .name .bad[attention.status.failures.iter().any(|failing| failing.id == *id)] href=(link("/jobs/", id.as_str(), "")) { (name) @if timeline.paused.contains(id) { " " span .warn { "paused" } } },
                            RowSubject::Reminders => a .name .faint href="/jobs#reminders" { (name) },
                            RowSubject::Conversation => a .name .faint href="/chat" { (name) },
                            RowSubject::Agents => a .name .faint href="/runs" { (name) },
                        }
                        (bars(row, &name, &scale, context))
                    }
                }
            }
            p .legend {
                @for (state, words) in LEGEND { span { (mark(state)) (words) } }
                span { svg .mark width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true" { use href="#coming" {} } "comes" }
            }
        }
        @if timeline.more > 0 {
            @if let Some(RowSubject::Routine(last)) = &timeline.last {
                @let days = if week { 7 } else { 1 };
                p { a href={ "/?days=" (days) "&after=" (link("", last.as_str(), "")) } { (timeline.more) " more" } }
            }
        }
        (others(timeline, attention))
    }
}

/// Renders the number of jobs without a row, and of files with errors.
fn others(timeline: &Timeline, attention: &Attention) -> Markup {
    let idle = timeline.idle.len();
    let paused = timeline.idle.iter().filter(|id| timeline.paused.contains(id)).count();
    let errors = attention.status.problems.iter().filter(|problem| problem.is_error());
    let broken = errors.map(|problem| &problem.file).collect::<BTreeSet<_>>().len();
    html! {
        @if idle > 0 || broken > 0 {
            p .faint {
                @if idle > 0 {
                    (idle) @if idle == 1 { " job has" } @else { " jobs have" } " nothing in this time"
                    @if paused > 0 { ", " (paused) " paused" } ". "
                }
                @if broken > 0 { (broken) @if broken == 1 { " file has an error. " } @else { " files have errors. " } }
                a href="/jobs" { "All jobs" }
            }
        }
    }
}

fn name(row: &Row) -> String {
    match &row.whose {
        RowSubject::Routine(id) => id.to_string(),
        RowSubject::Reminders => "reminders".to_owned(),
        RowSubject::Agents => "spawned agents".to_owned(),
        RowSubject::Conversation => "conversation".to_owned(),
    }
}

fn running(status: &Status, context: &Context) -> Markup {
    let mut going = status.running.iter().filter(|run| run.outcome == RunState::Running).take(8).peekable();
    html! {
        @if going.peek().is_some() {
            ul .running aria-label="Going now" {
                @for run in going {
                    li {
                        a href=(parts::run(run.run.as_str())) { (mark(run.outcome)) (run.id) }
                        @if status.is_asking(&run.run) {
                            " " a .warn href="/questions" { "waits for your answer" }
                        } @else if let Some(started) = run.started { " " span .faint { "began " (context.relative(started)) } }
                    }
                }
            }
        }
    }
}

/// Renders the runs that are due but have not begun, with the reason.
fn waiting(waiting: &[(RunRecord, String)]) -> Markup {
    html! {
        @if !waiting.is_empty() {
            ul .waiting aria-label="Waiting" {
                @for (run, why) in waiting {
                    li {
                        a href=(parts::run(run.run.as_str())) { (mark(run.outcome)) (run.id) }
                        " " span .faint { (parts::with_code(why.strip_prefix(run.id.as_str()).unwrap_or(why))) }
                    }
                }
            }
        }
    }
}
