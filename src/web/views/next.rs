//! Upcoming occurrences, and the times of each routine in words.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Offset as _, SecondsFormat, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::app::{App, Command, Outcome, Status, Upcoming, summary, words};
use crate::definition::{Definition, DefinitionId, Kind, Trigger};
use crate::journal::RunState;
use crate::refusal::Refusal;
use crate::schedule::cron::in_words;
use crate::web::context::Context;
use crate::web::pages::execute;
use crate::web::parts::{self, link};

/// Number of next times shown for a routine.
const TIMES: usize = 5;

/// Maximum number of rows in the list.
const LONGEST: usize = 200;

/// Maximum number of rows per job, since a job that fires each minute would hide the others.
pub(in crate::web) const ROWS: usize = 3;

/// Maximum number of routines described in words.
const ROUTINES: usize = 50;

/// A routine, its recurrence in words, and its next times.
pub(in crate::web) struct Routine {
    definition: Arc<Definition>,
    words: String,
    times: Vec<DateTime<Utc>>,
}

/// Returns the routines that fire, by their next time, and the number of further ones.
pub(in crate::web) fn routines(app: &App) -> Result<(Vec<Routine>, usize), Refusal> {
    let list = execute!(app, Command::List(Kind::Routine), Outcome::Jobs(list) => list);
    let mut firing = list.jobs.into_iter().filter(|job| job.next.is_some());
    let routines = firing.by_ref().take(ROUTINES).map(|job| of(&job.definition, app)).collect();
    Ok((routines, firing.count()))
}

/// Describes a routine's recurrence.
pub(in crate::web) fn of(definition: &Arc<Definition>, app: &App) -> Routine {
    let times = app.next_times(definition, TIMES);
    let words = match &definition.trigger {
        Trigger::Routine { recurs, .. } => in_words(recurs),
        _ => String::new(),
    };
    Routine { definition: Arc::clone(definition), words, times }
}

pub(in crate::web) fn next(
    next: &Upcoming,
    (routines, others): &(Vec<Routine>, usize),
    status: &Status,
    context: &Context,
) -> Markup {
    html! {
        h1 { "Next 24 hours" }
        (parts::all_paused(status))
        @if next.occurrences.is_empty() {
            p .empty { "Nothing falls due in the next 24 hours." }
        } @else {
            (coming(next, status, context))
        }
        @for definition in &next.on_events {
            @if let Some(error) = status.error_of(&definition.id) {
                p .bad { (parts::problem(error)) }
            } @else {
                p { (parts::job(definition.id.as_str())) " fires " (parts::with_code(&definition.waits_for().unwrap_or_default())) "." }
            }
        }
        @for id in &next.paused { p .bad { (parts::job(id.as_str())) " is paused after failures." } }
        @if !next.disabled.is_empty() {
            p .warn {
                "Disabled: "
                @for (index, id) in next.disabled.iter().enumerate() { @if index > 0 { ", " } (parts::job(id.as_str())) }
            }
        }
        @if !routines.is_empty() {
            h2 { "Routines" }
            @for routine in routines { h3 { (parts::job(routine.definition.id.as_str())) } (times(routine, context)) }
            @if *others > 0 { p { a href="/jobs#routines" { (others) " more routines" } } }
        }
    }
}

/// Renders one row per occurrence. `next` has one occurrence more than shown for a job with further ones.
fn coming(next: &Upcoming, status: &Status, context: &Context) -> Markup {
    let mut of_each: HashMap<&DefinitionId, usize> = HashMap::new();
    for one in &next.occurrences {
        *of_each.entry(&one.definition.id).or_default() += 1;
    }
    let mut rows: HashMap<&DefinitionId, usize> = HashMap::new();
    let mut shown = next.occurrences.iter().filter_map(|one| {
        let row = rows.entry(&one.definition.id).or_default();
        *row += 1;
        (*row <= ROWS).then_some((one, *row == ROWS && of_each[&one.definition.id] > ROWS))
    });
    let page: Vec<_> = shown.by_ref().take(LONGEST).collect();
    let others = shown.count();
    html! {
        div .scroll tabindex="0" role="region" aria-label="What comes" {
            table {
                thead { tr { th { "In" } th { "Job" } th { "When" } th { "What" } th { "Last" } } }
                tbody {
                    @for (one, has_more) in &page {
                        tr {
                            td .num .faint { (context.relative(one.at)) }
                            td { (parts::job(one.definition.id.as_str())) }
                            td .num .when { (context.time_of_job(one.at, one.definition.zone)) }
                            td .wide {
                                (summary(&one.definition))
                                @if one.definition.approve { " " span .warn { "asks you first" } }
                                @if *has_more { " " span .faint { "(and more times)" } }
                                @if status.keeps_waiting(&one.definition).is_some() { " " span .warn { "will wait for an agent" } }
                            }
                            td .faint data-of="Last" {
                                @if let Some((state, at)) = one.last {
                                    (parts::mark(state)) (words::state(state)) @if state == RunState::Running { ", began" } " " (context.relative(at))
                                }
                            }
                        }
                    }
                }
            }
        }
        @if let Some((last, _)) = page.last().filter(|_| others > 0) {
            @let after = last.at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            p { a href={ "/next?after=" (link("", &after, "&job=")) (link("", last.definition.id.as_str(), "")) } { (others) " more" } }
        }
    }
}

/// Renders a routine's recurrence in words, and its next times.
pub(in crate::web) fn times(routine: &Routine, context: &Context) -> Markup {
    let Routine { definition, words, times } = routine;
    // An interval has no other words.
    let expression = match &definition.trigger {
        Trigger::Routine { recurs, .. } => Some(recurs.to_string()).filter(|text| text != words),
        _ => None,
    };
    html! {
        section .times {
            p { (words) " " span .faint { "(" @if let Some(text) = &expression { code { (text) } " " } "in " (definition.zone.name()) ")" } }
            ol {
                @for (index, at) in times.iter().enumerate() {
                    li .num {
                        (context.time_of_job(*at, definition.zone)) " " span .faint { (context.relative(*at)) }
                        @if change_before(index, times, context.now, definition.zone) {
                            " " strong .warn { "the clocks change before it" }
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a zone's UTC offset changes between a time and the one before it, or now for the first.
fn change_before(index: usize, times: &[DateTime<Utc>], now: DateTime<Utc>, zone: Tz) -> bool {
    let before = index.checked_sub(1).map_or(now, |before| times[before]);
    let offset = |at: DateTime<Utc>| at.with_timezone(&zone).offset().fix();
    offset(times[index]) != offset(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_clocks_is_marked_where_it_comes() {
        // Vienna sets its clocks forward on 29 March 2026, at one o'clock UTC.
        let times: Vec<DateTime<Utc>> =
            (27..32).map(|day| format!("2026-03-{day}T07:00:00Z").parse().unwrap()).collect();
        let marked = |now: &str, zone: Tz| -> Vec<usize> {
            let now = now.parse().unwrap();
            (0..times.len()).filter(|index| change_before(*index, &times, now, zone)).collect()
        };
        assert_eq!(marked("2026-03-26T12:00:00Z", chrono_tz::Europe::Vienna), [2]);
        assert_eq!(marked("2026-03-26T12:00:00Z", Tz::UTC), [0; 0]);
        let times = &times[2..];
        assert!(change_before(0, times, "2026-03-28T12:00:00Z".parse().unwrap(), chrono_tz::Europe::Vienna));
        assert!(!change_before(0, times, "2026-03-29T02:00:00Z".parse().unwrap(), chrono_tz::Europe::Vienna));
    }
}
