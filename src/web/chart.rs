//! The bars of a timeline's row, as SVG.
//!
//! The outcome determines a bar's colour and shape. Positions are shares of the span, so an hour is equally wide on every day; a day of 23
//! or 25 hours has that width.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use chrono::{DateTime, Datelike as _, Days, NaiveTime, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;
use maud::{Markup, PreEscaped, html};

use super::context::Context;
use super::parts::{glyph, run};
use crate::app::words;
use crate::app::{Row, Timeline, times};
use crate::definition::DefinitionId;
use crate::journal::{RunState, TimelineEntry};

/// Height of a row, in pixels.
const HEIGHT: u32 = 22;
/// Bars that are closer than this share of the span are merged.
const MERGE_DISTANCE: f64 = 0.006;
/// Minimum width of a bar, as a share of the span. A shorter bar is drawn as a glyph.
const LONG: f64 = 0.012;
/// Maximum span in which hours are marked too, in milliseconds: three days.
const SHORT: f64 = 3.0 * 86_400_000.0;
/// Maximum number of bars of a row that link to their runs. Bad outcomes come before good ones.
const LINKED: usize = 40;

/// One or more runs of the same outcome that are close together.
struct Bar<'a> {
    from: f64,
    until: f64,
    state: RunState,
    last: &'a TimelineEntry,
    count: usize,
}

/// The position of times in a span: 0 at its beginning, 1 at its end.
pub(super) struct Scale {
    from: DateTime<Utc>,
    span: f64,
    /// The background of every row.
    grid: String,
    /// Zones of jobs that differ from the viewer's.
    zones: HashMap<DefinitionId, Tz>,
}

impl Scale {
    pub(super) fn of(timeline: &Timeline, context: &Context) -> Self {
        let span = (timeline.until - timeline.from).num_milliseconds().max(1);
        let zones = timeline.zones.clone();
        let mut scale = Self { from: timeline.from, span: span as f64, grid: String::new(), zones };
        scale.grid = grid(&scale, context);
        scale
    }

    fn at(&self, at: DateTime<Utc>) -> f64 {
        ((at - self.from).num_milliseconds() as f64 / self.span).clamp(0.0, 1.0)
    }
}

/// Formats a share, as `12.34%`.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Draws a row's bars.
pub(super) fn bars(row: &Row, name: &str, scale: &Scale, context: &Context) -> Markup {
    let bars = merged(&row.past, scale, context.now);
    let mut linked: Vec<usize> = (0..bars.len()).collect();
    linked.sort_by_key(|index| (bars[*index].state.is_well(), std::cmp::Reverse(*index)));
    linked.truncate(LINKED);
    linked.sort_unstable();
    // A failure is above its neighbours, which could cover it.
    let (mut drawn, mut above) = (String::new(), String::new());
    let mut plain: Vec<&Bar<'_>> = Vec::new();
    for (index, bar) in bars.iter().enumerate() {
        if linked.binary_search(&index).is_ok() {
            let level = if bar.state.is_well() { &mut drawn } else { &mut above };
            level.push_str(&linked_bar(bar, scale, context).into_string());
        } else {
            plain.push(bar);
        }
    }
    html! {
        svg .strip height=(HEIGHT) width="100%" role="group" aria-label=(label(row, name, context)) {
            (PreEscaped(&scale.grid))
            (PreEscaped(dense(&plain)))
            (PreEscaped(coming(row, scale)))
            (PreEscaped(drawn + &above))
        }
    }
}

/// Describes a row: `email-triage: 12 completed, 1 failed; next in 2h`.
fn label(row: &Row, name: &str, context: &Context) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for stretch in &row.past {
        *counts.entry(words::state(stretch.state)).or_default() += 1;
    }
    let mut words: Vec<String> = counts.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    words.extend(row.coming.first().map(|at| format!("next {}", times::relative(*at, context.now))));
    format!("{name}: {}", words.join(", "))
}

fn merged<'a>(past: &'a [TimelineEntry], scale: &Scale, now: DateTime<Utc>) -> Vec<Bar<'a>> {
    let mut in_order: Vec<&TimelineEntry> = past.iter().collect();
    in_order.sort_by_key(|stretch| stretch.from);
    let mut bars: Vec<Bar<'a>> = Vec::new();
    for stretch in in_order {
        let (from, until) = (scale.at(stretch.from), scale.at(stretch.until.unwrap_or(now)));
        match bars.last_mut() {
            Some(bar) if bar.state == stretch.state && from - bar.until < MERGE_DISTANCE => {
                bar.until = bar.until.max(until);
                bar.count += 1;
                bar.last = stretch;
            }
            _ => bars.push(Bar { from, until, state: stretch.state, last: stretch, count: 1 }),
        }
    }
    bars
}

fn linked_bar(bar: &Bar<'_>, scale: &Scale, context: &Context) -> Markup {
    let shape = glyph(bar.state);
    let TimelineEntry { id, from, until, .. } = bar.last;
    let state = words::state(bar.state);
    let took = until.map(|until| until - *from).filter(|took| took.num_milliseconds() > 0);
    let beside = scale.zones.get(id).map(|zone| times::in_zone(*from, *zone, context.zone)).unwrap_or_default();
    let at = times::local(*from, context.now, context.zone) + &beside;
    let title = match (bar.count, took) {
        (1, Some(took)) => format!("{id} {state}, {at}, took {}", times::span(took)),
        (1, None) => format!("{id} {state}, {at}"),
        (count, _) => format!("{count} runs {state}, the last at {at}"),
    };
    // Keyboard focus skips successful runs: the job's page lists them too.
    let stop = bar.state.is_well().then_some("-1");
    html! {
        a href=(run(bar.last.run.as_str())) tabindex=[stop] {
            title { (title) }
            @if bar.until - bar.from >= LONG {
                rect .{ "b-" (shape) } x=(percent(bar.from)) width=(percent(bar.until - bar.from)) y="6" height="10" rx="1.5" {}
                @if !bar.state.is_well() { svg x=(percent(bar.until)) y="11" overflow="visible" { use href={ "#" (shape) } {} } }
            } @else {
                svg x=(percent((bar.from + bar.until) / 2.0)) y="11" overflow="visible" { use href={ "#" (shape) } {} }
            }
        }
    }
}

/// Draws bars without links in few bytes: two paths per outcome. A brief bar is as wide as its glyph on any screen.
fn dense(bars: &[&Bar<'_>]) -> String {
    let mut paths: BTreeMap<(&str, bool), String> = BTreeMap::new();
    for bar in bars {
        let is_brief = bar.until - bar.from < LONG;
        let path = paths.entry((glyph(bar.state), is_brief)).or_default();
        let (x, width) = ((bar.from * 1000.0).round(), ((bar.until - bar.from) * 1000.0).round());
        let (top, height) = extent(glyph(bar.state));
        // Writing to a `String` cannot fail.
        let _ = match is_brief {
            true => write!(path, "M{x} {top}v{height}"),
            false => write!(path, "M{x} {top}h{width}v{height}h-{width}z"),
        };
    }
    let mut svg = String::new();
    if !paths.is_empty() {
        svg.push_str("<svg viewBox=\"0 0 1000 22\" preserveAspectRatio=\"none\" width=\"100%\" height=\"22\">");
        for ((shape, is_brief), path) in paths {
            let brief = if is_brief { " brief" } else { "" };
            let _ = write!(svg, "<path class=\"b-{shape}{brief}\" d=\"{path}\"/>");
        }
        svg.push_str("</svg>");
    }
    svg
}

/// Returns the top and the height of such a bar, so that outcomes differ by more than colour. (A skipped one is hollow.)
fn extent(shape: &str) -> (u32, u32) {
    match shape {
        "failed" => (1, 20),
        "late" => (1, 12),
        "cut" => (9, 12),
        "going" => (9, 4),
        "waiting" => (8, 6),
        _ => (6, 10),
    }
}

/// Draws upcoming occurrences as ticks.
fn coming(row: &Row, scale: &Scale) -> String {
    let mut path = String::new();
    let mut last = f64::MIN;
    for at in &row.coming {
        let x = scale.at(*at);
        if x - last >= MERGE_DISTANCE {
            let _ = write!(path, "M{} 7v8", (x * 1000.0).round());
            last = x;
        }
    }
    if path.is_empty() {
        return path;
    }
    format!(
        "<svg viewBox=\"0 0 1000 22\" preserveAspectRatio=\"none\" width=\"100%\" height=\"22\"><path class=\"coming\" d=\"{path}\"/></svg>"
    )
}

/// Draws a line for each midnight, and one for now.
fn grid(scale: &Scale, context: &Context) -> String {
    let mut path = String::new();
    for (at, _) in marks(scale, context.zone).into_iter().filter(|(_, text)| !text.contains(':')) {
        let _ = write!(path, "M{} 0v22", (scale.at(at) * 1000.0).round());
    }
    format!(
        "<svg viewBox=\"0 0 1000 22\" preserveAspectRatio=\"none\" width=\"100%\" height=\"22\"><path class=\"day\" d=\"{path}\"/><path class=\"now\" d=\"M{} 0v22\"/></svg>",
        (scale.at(context.now) * 1000.0).round()
    )
}

/// Draws the times above the rows.
pub(super) fn axis(scale: &Scale, context: &Context) -> Markup {
    let now = scale.at(context.now);
    html! {
        svg .axis .week[scale.span > SHORT] height="18" width="100%" aria-hidden="true" {
            @for (at, text) in marks(scale, context.zone) {
                @let share = scale.at(at);
                // Leave out a label that would overlap another or the end.
                @if share < 0.97 && (share - now).abs() > 0.05 {
                    text x=(percent(share)) y="12" .strong[!text.contains(':')] .near[(share > now - 0.16 && share < now + 0.06) || share > 0.89] {
                        // On a narrow screen a week has room only for the day.
                        @if let Some((weekday, day)) = text.split_once(' ') { tspan .weekday { (weekday) " " } (day) } @else { (text) }
                    }
                }
            }
            text .now x=(percent(now)) y="12" text-anchor="middle" { "now" }
        }
    }
}

/// Returns the midnights with their day, and, in a span of at most three days, every sixth hour between them.
fn marks(scale: &Scale, zone: Tz) -> Vec<(DateTime<Utc>, String)> {
    let until = scale.from + TimeDelta::milliseconds(scale.span as i64);
    let is_short = scale.span <= SHORT;
    let mut marks = Vec::new();
    let mut day = scale.from.with_timezone(&zone).date_naive();
    while let Some(midnight) = first_of(day, zone).filter(|midnight| *midnight <= until) {
        let next = day.checked_add_days(Days::new(1)).and_then(|next| first_of(next, zone)).unwrap_or(until);
        marks.push((midnight, format!("{} {}", midnight.with_timezone(&zone).format("%a"), day.day())));
        let mut at = midnight + TimeDelta::hours(1);
        while is_short && at < next {
            let there = at.with_timezone(&zone);
            if there.hour().is_multiple_of(6) && there.minute() == 0 {
                marks.push((at, there.format("%H:%M").to_string()));
            }
            at += TimeDelta::hours(1);
        }
        let Some(following) = day.checked_add_days(Days::new(1)) else { break };
        day = following;
    }
    marks.retain(|(at, _)| *at >= scale.from && *at <= until);
    marks
}

/// Returns the beginning of a day in a zone. The day may have no midnight.
fn first_of(day: chrono::NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    let midnight = day.and_time(NaiveTime::MIN);
    (0..4)
        .find_map(|hour| (midnight + TimeDelta::hours(hour)).and_local_timezone(zone).earliest().map(|at| at.to_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_as_wide_as_they_are_long() {
        // Vienna sets its clocks back by an hour on 25 October 2026, and forward on 29 March.
        for (from, hours) in [("2026-10-24T22:00:00Z", 25), ("2026-03-28T23:00:00Z", 23)] {
            let from: DateTime<Utc> = from.parse().unwrap();
            let span = TimeDelta::days(7).num_milliseconds() as f64;
            let marks =
                marks(&Scale { from, span, grid: String::new(), zones: HashMap::new() }, chrono_tz::Europe::Vienna);
            assert_eq!(marks[0].0, from);
            assert_eq!((marks[1].0 - marks[0].0).num_hours(), hours);
            assert!(marks.iter().all(|(at, _)| at.with_timezone(&chrono_tz::Europe::Vienna).hour() == 0), "{marks:?}");
        }
    }

    #[test]
    fn outcomes_differ_without_colour_where_bars_are_many() {
        let last = TimelineEntry {
            id: DefinitionId::new("mail"),
            kind: crate::definition::Kind::Routine,
            run: crate::journal::RunId::new("0badcafe"),
            state: RunState::Completed,
            from: DateTime::UNIX_EPOCH,
            until: None,
        };
        let states = [
            RunState::Completed,
            RunState::Failed,
            RunState::TimedOut,
            RunState::Running,
            RunState::Claimed,
            RunState::Cancelled,
        ];
        for until in [0.5, 0.6] {
            let drawn = |state| {
                let bar = Bar { from: 0.5, until, state, last: &last, count: 1 };
                dense(&[&bar]).split(" d=").nth(1).unwrap().to_owned()
            };
            let shapes: std::collections::BTreeSet<String> = states.into_iter().map(drawn).collect();
            assert_eq!(shapes.len(), states.len(), "{shapes:?}");
        }
    }

    #[test]
    fn shares_are_short() {
        assert_eq!([0.0, 0.5, 0.12345, 1.0].map(percent), ["0%", "50%", "12.35%", "100%"]);
    }
}
