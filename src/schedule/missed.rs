//! Sorts a routine's due occurrences into missed and on time, by `on_missed`. Also writes the prompt's line for a late run. Pure.

use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use chrono_tz::Tz;

use super::cron::Times;
use crate::definition::OnMissed;

/// Maximum number of a routine's missed occurrences with a record each. Older ones share one record. Otherwise a
/// routine of every minute would leave half a million rows after a year switched off.
pub(super) const LISTED: usize = 100;

/// Maximum number of missed occurrences that `on_missed: all` runs: the newest ones.
pub(super) const MAX_CAUGHT_UP: usize = 1000;

/// A run that begins this long after its time says so in its prompt, whatever the cause.
const LATE: TimeDelta = TimeDelta::seconds(60);

/// The first and the last of several occurrences.
pub(super) type TimeSpan = (DateTime<Utc>, DateTime<Utc>);

/// The occurrences to record and to run. Each occurrence of the window is in exactly one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Skipped occurrences that share one record.
    pub(super) skip_stretch: Option<TimeSpan>,
    /// Skipped occurrences with a record each.
    pub(super) skip: Vec<DateTime<Utc>>,
    /// Missed occurrences that run late, oldest first.
    pub(super) run_late: Vec<DateTime<Utc>>,
    /// Occurrences that fell due while they could run, oldest first; nearly always one.
    pub(super) run: Vec<DateTime<Utc>>,
}

/// The period of a plan: after `after`, up to and including `now`.
pub(super) struct Window {
    pub(super) after: DateTime<Utc>,
    /// Occurrences before this were missed.
    pub(super) eligible_since: DateTime<Utc>,
    pub(super) now: DateTime<Utc>,
}

/// Sorts the occurrences of a window.
pub(super) fn plan(times: &Times, zone: Tz, policy: OnMissed, window: &Window) -> Plan {
    let Window { after, eligible_since, now } = *window;
    let boundary = eligible_since.min(now + TimeDelta::milliseconds(1));
    let keep = if policy == OnMissed::All { MAX_CAUGHT_UP } else { LISTED };
    let (skip_stretch, mut missed) = newest(times, zone, after, boundary, keep);
    let on_time_from = after.max(boundary - TimeDelta::milliseconds(1));
    let run = between(times, zone, on_time_from, now + TimeDelta::milliseconds(1), LISTED);
    let run_late = match policy {
        OnMissed::All => std::mem::take(&mut missed),
        // An occurrence on time makes the late one pointless.
        OnMissed::Latest if run.is_empty() => missed.pop().into_iter().collect(),
        OnMissed::Latest | OnMissed::Skip => Vec::new(),
    };
    Plan { skip_stretch, skip: missed, run_late, run }
}

/// Returns the newest `keep` occurrences after `from` and before `to`, and the first and last of the older ones.
fn newest(
    times: &Times,
    zone: Tz,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    keep: usize,
) -> (Option<TimeSpan>, Vec<DateTime<Utc>>) {
    let Some(first) = times.next(zone, from).filter(|first| *first < to) else { return (None, Vec::new()) };
    // Looks back twice as far each time, so that the work depends on `keep` and not on the length of the period.
    let mut back = TimeDelta::hours(2);
    loop {
        let start = from.max(to - back);
        let mut found = between(times, zone, start, to, usize::MAX);
        if found.len() > keep {
            let newer = found.split_off(found.len() - keep);
            return (found.last().map(|last| (first, *last)), newer);
        }
        if start == from {
            return (None, found);
        }
        back = back + back;
    }
}

/// Returns at most `limit` occurrences after `from` and before `to`.
fn between(times: &Times, zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>, limit: usize) -> Vec<DateTime<Utc>> {
    let next = |last: &DateTime<Utc>| times.next(zone, *last).filter(|next| *next < to);
    std::iter::successors(next(&from), next).take(limit).collect()
}

/// Returns whether a run that begins at `now` is late.
pub(super) fn is_late(scheduled: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now - scheduled >= LATE
}

/// Returns the line for the prompt of a run that begins at `now`; `None` if it is not late. Names the day if it is
/// not today.
pub(super) fn late_line(scheduled: DateTime<Utc>, zone: Tz, now: DateTime<Utc>) -> Option<String> {
    if !is_late(scheduled, now) {
        return None;
    }
    let (due, today) = (scheduled.with_timezone(&zone), now.with_timezone(&zone));
    let words = format!("{}%H:%M", day(due, today));
    Some(format!("[late: was scheduled for {}, running now]", due.format(&words)))
}

/// Formats a time as `14:00 CET`. Names the day if it is not today.
pub(super) fn moment(at: DateTime<Utc>, zone: Tz, now: DateTime<Utc>) -> String {
    let (at, today) = (at.with_timezone(&zone), now.with_timezone(&zone));
    at.format(&format!("{}%H:%M %Z", day(at, today))).to_string()
}

/// Returns the format of a day: empty for today, with the year if it is another year.
fn day(at: DateTime<Tz>, today: DateTime<Tz>) -> &'static str {
    match (at.date_naive() == today.date_naive(), at.year() == today.year()) {
        (true, _) => "",
        (false, true) => "%a %-d %b ",
        (false, false) => "%a %-d %b %Y ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        format!("2026-03-{text}Z").parse().unwrap()
    }

    /// `[stretch] skipped | late | on time`, as day and hour.
    fn check(cron: &str, policy: OnMissed, after: &str, eligible_since: &str, now: &str, expected: &str) {
        let times = Times::parse(cron).unwrap();
        let window = Window { after: at(after), eligible_since: at(eligible_since), now: at(now) };
        let plan = plan(&times, Tz::UTC, policy, &window);
        let words = |times: &[DateTime<Utc>]| {
            times.iter().map(|time| time.format("%d/%H").to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(plan.skip_stretch, None);
        let found = format!("{} | {} | {}", words(&plan.skip), words(&plan.run_late), words(&plan.run));
        assert_eq!(found, expected, "{cron} {policy:?} after {after}, eligible since {eligible_since}, now {now}");
    }

    #[test]
    fn missed_ones_go_by_the_policy_and_those_on_time_run() {
        use OnMissed::{All, Latest, Skip};
        let daily = "0 8 * * *";
        check(daily, Latest, "01T08:00:00", "01T09:00:00", "02T08:00:00", " |  | 02/08");
        check(daily, Latest, "01T08:00:00", "04T09:00:00", "04T09:00:00", "02/08 03/08 | 04/08 | ");
        check(daily, All, "01T08:00:00", "04T09:00:00", "04T09:00:00", " | 02/08 03/08 04/08 | ");
        check(daily, Skip, "01T08:00:00", "04T09:00:00", "04T09:00:00", "02/08 03/08 04/08 |  | ");
        // Due at the very moment from which runs could start: on time, so the late ones are skipped.
        check(daily, Latest, "01T08:00:00", "04T08:00:00", "04T08:00:00", "02/08 03/08 |  | 04/08");
        check(daily, All, "01T08:00:00", "04T08:00:00", "04T08:00:00", " | 02/08 03/08 | 04/08");
        check(daily, Skip, "01T08:00:00", "04T08:00:00", "04T08:00:00", "02/08 03/08 |  | 04/08");
        // Nothing is missed or due.
        check(daily, All, "01T08:00:00", "02T07:00:00", "02T07:00:00", " |  | ");
        check(daily, All, "02T08:00:00", "02T07:00:00", "02T07:00:00", " |  | ");
    }

    #[test]
    fn a_year_of_minutes_is_one_record_and_a_hundred() {
        let times = Times::parse("* * * * *").unwrap();
        let (from, now) = (at("01T00:00:30"), at("01T00:00:30") + TimeDelta::days(365));
        let plan = plan(&times, Tz::UTC, OnMissed::Latest, &Window { after: from, eligible_since: now, now });
        assert_eq!((plan.skip.len(), plan.run_late.len(), plan.run.len()), (LISTED - 1, 1, 0));
        let (first, last) = plan.skip_stretch.unwrap();
        assert_eq!(first, at("01T00:01:00"));
        assert_eq!(plan.skip[0] - last, TimeDelta::minutes(1));
        assert_eq!(plan.run_late[0], now - TimeDelta::seconds(30));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        /// Each occurrence is in exactly one field, and no other time is.
        #[test]
        fn every_occurrence_is_in_exactly_one_place(
            step in 1u32..30, hour in 0u32..23, policy in 0usize..3, gone in 0i64..20_000, able in 0i64..20_000,
        ) {
            let times = Times::parse(&format!("*/{step} {hour}-23 * * *")).unwrap();
            let policy = [OnMissed::Latest, OnMissed::All, OnMissed::Skip][policy];
            let watermark = at("01T00:00:00");
            let now = watermark + TimeDelta::minutes(gone);
            let eligible_since = watermark + TimeDelta::minutes(able);
            let plan = plan(&times, Tz::UTC, policy, &Window { after: watermark, eligible_since, now });
            let all = between(&times, Tz::UTC, watermark, now + TimeDelta::milliseconds(1), usize::MAX);
            let mut placed: Vec<DateTime<Utc>> = match plan.skip_stretch {
                None => Vec::new(),
                Some((first, last)) => all.iter().copied().filter(|time| *time >= first && *time <= last).collect(),
            };
            for part in [&plan.skip, &plan.run_late, &plan.run] {
                placed.extend(part);
            }
            placed.sort();
            let on_time = all.iter().filter(|time| **time >= eligible_since).count();
            if on_time <= LISTED {
                prop_assert_eq!(&placed, &all);
                prop_assert_eq!(plan.run.len(), on_time);
            }
        }
    }

    #[test]
    fn a_late_run_says_when_it_was_due() {
        let berlin = Tz::Europe__Berlin;
        let due = at("02T13:00:00");
        let line = |later: TimeDelta| late_line(due, berlin, due + later);
        assert_eq!(line(TimeDelta::seconds(59)), None);
        assert_eq!(line(TimeDelta::minutes(5)).unwrap(), "[late: was scheduled for 14:00, running now]");
        assert_eq!(line(TimeDelta::days(1)).unwrap(), "[late: was scheduled for Mon 2 Mar 14:00, running now]");
        let next_year = line(TimeDelta::days(365)).unwrap();
        assert_eq!(next_year, "[late: was scheduled for Mon 2 Mar 2026 14:00, running now]");
        assert_eq!(line(TimeDelta::days(-1)), None);
    }
}
