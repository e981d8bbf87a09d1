//! A comparison of our times with cronsim's, and the classes of difference that docs/cron.md explains.
//!
//! A class alone excuses nothing. A second reference, which walks minute by minute, must confirm our side for each time that
//! only one of the two has.

use std::collections::BTreeSet;

use chrono::{DateTime, LocalResult, NaiveTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use ollim_bot::definition::cron::{CronError, check_cron, cron_fields};
use ollim_bot::schedule::cron::Times;

use super::reference::{Answer, Ask, End};
use super::spans::{HORIZON, changes};

/// The reason why our times and cronsim's may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A fixed time, requested within the second half of a repeated interval. cronsim answers with the first half, which is over.
    SecondHalf,
    /// A wildcard near a clock change by part of an hour, off the hour, or over a midnight. cronsim steps by whole hours, and
    /// from a midnight that no clock shows.
    Crooked,
    /// As [`Class::Crooked`], and cronsim walks in a circle.
    Circle,
}

/// The side that has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Ours,
    Theirs,
    /// cronsim returns the time a second time.
    TheirsAgain,
}

/// A time that only one side has.
#[derive(Clone, Debug)]
pub struct Difference {
    pub at: DateTime<Utc>,
    pub has: Side,
    /// `None` if the difference is unexplained.
    pub class: Option<Class>,
}

/// Returns our next times, which are empty if nothing ever matches. Returns `None` if we refuse the expression.
pub fn ours(ask: &Ask) -> Option<Vec<DateTime<Utc>>> {
    match check_cron(&ask.expression) {
        Err(CronError::Never) => return Some(Vec::new()),
        Err(_) => return None,
        Ok(()) => {}
    }
    let times = Times::parse(&ask.expression).unwrap();
    let mut last = ask.from;
    let next = || {
        last = times.next(ask.zone, last)?;
        Some(last)
    };
    Some(std::iter::from_fn(next).take(ask.count).collect())
}

/// Returns the differences, up to the last time that both sides were asked for and for which both know the zone's changes.
pub fn differences(ask: &Ask, ours: &[DateTime<Utc>], answer: &Answer) -> Vec<Difference> {
    let last = |times: &[DateTime<Utc>]| times.iter().max().copied();
    // A side with fewer times than requested claims that there are no more, ever.
    let ours_until = if ours.len() < ask.count { None } else { last(ours) };
    let theirs_until = if answer.end == End::Enough { last(&answer.times) } else { None };
    let until = ours_until.unwrap_or(HORIZON).min(theirs_until.unwrap_or(HORIZON));
    let counts = |at: &DateTime<Utc>| *at <= until && *at < HORIZON;
    let mut only: Vec<(DateTime<Utc>, Side)> = Vec::new();
    let mut left: BTreeSet<DateTime<Utc>> = ours.iter().copied().filter(counts).collect();
    let mut seen = BTreeSet::new();
    for at in answer.times.iter().copied().filter(counts) {
        if !seen.insert(at) {
            only.push((at, Side::TheirsAgain));
        } else if !left.remove(&at) {
            only.push((at, Side::Theirs));
        }
    }
    only.extend(left.into_iter().map(|at| (at, Side::Ours)));

    // The last time before cronsim found no more.
    let stood = answer.times.last().copied().unwrap_or(ask.from);
    let [minute, hour, ..] = cron_fields(&ask.expression).unwrap();
    let fixed = !minute.starts_with('*') && !hour.starts_with('*');
    let crooked = |at| !fixed && is_near_crooked(ask.zone, at);
    let lost = answer.end == End::Stuck && only.iter().any(|(at, _)| *at > stood && crooked(*at));
    let class = |at: DateTime<Utc>, has: Side| match has {
        Side::Ours if lost && at > stood => Some(Class::Circle),
        Side::TheirsAgain if crooked(at) => Some(Class::Circle),
        Side::Theirs if fixed && at <= ask.from && is_second_half(ask.zone, ask.from) => Some(Class::SecondHalf),
        Side::Ours | Side::Theirs if crooked(at) => Some(Class::Crooked),
        _ => None,
    };
    only.into_iter().map(|(at, has)| Difference { at, has, class: class(at, has) }).collect()
}

/// Returns whether the clocks have shown this local time before.
fn is_second_half(zone: Tz, at: DateTime<Utc>) -> bool {
    let wall = at.with_timezone(&zone).naive_local();
    matches!(zone.from_local_datetime(&wall), LocalResult::Ambiguous(_, second) if second.to_utc() == at)
}

/// Returns whether the clocks change by part of an hour, off the hour, or over a midnight, within the two days before `at`
/// or the hour after it.
fn is_near_crooked(zone: Tz, at: DateTime<Utc>) -> bool {
    changes(zone, at - TimeDelta::days(2)..at + TimeDelta::hours(1)).into_iter().any(|change| {
        let shown = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local();
        let (before, after) = (shown(change - TimeDelta::seconds(1)) + TimeDelta::seconds(1), shown(change));
        let midnight = match before.time() {
            NaiveTime::MIN => before,
            _ => (before.date() + TimeDelta::days(1)).and_time(NaiveTime::MIN),
        };
        before.minute() != 0 || after.minute() != 0 || midnight < after
    })
}
