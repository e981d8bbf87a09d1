//! Formats times: local, with the weekday, and relative to now.

use std::fmt::Write as _;
use std::sync::LazyLock;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, Datelike, Offset as _, TimeDelta, Utc};
use chrono_tz::Tz;

use crate::journal::Spending;

/// The formats of [`local`], parsed once, because parsing takes longer than formatting.
static FORMS: LazyLock<[Vec<Item<'static>>; 4]> = LazyLock::new(|| {
    ["%a %-d %b %H:%M %Z", "%a %-d %b %H:%M:%S %Z", "%a %-d %b %Y %H:%M %Z", "%a %-d %b %Y %H:%M:%S %Z"]
        .map(|form| StrftimeItems::new(form).collect())
});

/// Formats `Sun 22 Nov 09:00 CET`, with the year if it is not the current one, and seconds if there are any.
#[must_use]
pub fn local(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let there = at.with_timezone(&zone);
    let (same_year, whole_minute) = (there.year() == now.with_timezone(&zone).year(), there.timestamp() % 60 == 0);
    let form = &FORMS[usize::from(!same_year) * 2 + usize::from(!whole_minute)];
    there.format_with_items(form.iter()).to_string()
}

/// Formats like [`local`], but always with seconds, so that times in a column are equally wide.
#[must_use]
pub fn local_to_the_second(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    let there = at.with_timezone(&zone);
    let same_year = there.year() == now.with_timezone(&zone).year();
    there.format_with_items(FORMS[usize::from(!same_year) * 2 + 1].iter()).to_string()
}

/// Returns when a budget limit begins anew: `begins anew in 9h 14m`.
#[must_use]
pub fn resets_in(cap: &Spending, now: DateTime<Utc>) -> String {
    format!("begins anew {}", relative(cap.until, now))
}

/// Formats both: `Sun 22 Nov 09:00 CET (in 19h 4m)`.
#[must_use]
pub fn local_and_relative(at: DateTime<Utc>, now: DateTime<Utc>, zone: Tz) -> String {
    format!("{} ({})", local(at, now, zone), relative(at, now))
}

/// Returns ` (16:00 in Asia/Tokyo)`, to follow a time in the zone `said_in`. Empty if both zones have the same offset.
#[must_use]
pub fn in_zone(at: DateTime<Utc>, zone: Tz, said_in: Tz) -> String {
    let there = at.with_timezone(&zone);
    if there.offset().fix() == at.with_timezone(&said_in).offset().fix() {
        return String::new();
    }
    format!(" ({} in {})", there.format("%H:%M"), zone.name())
}

/// Formats a time relative to now: `in 2h 5m`, `3d 4h ago`, `now`.
#[must_use]
pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let mut distance = at - now;
    // Ten minutes away, seconds do not matter, and would change all the time.
    if distance.abs() >= TimeDelta::minutes(10) {
        distance = TimeDelta::minutes(distance.num_minutes());
    }
    if distance.abs() < TimeDelta::seconds(1) {
        "now".to_owned()
    } else if distance > TimeDelta::zero() {
        format!("in {}", span(distance))
    } else {
        format!("{} ago", span(distance))
    }
}

/// Formats a span in its two largest units: `2h 5m`, `40s`, `3d`; below a second, `0.2s`. The sign is not shown.
#[must_use]
pub fn span(span: TimeDelta) -> String {
    let span = span.abs();
    let seconds = span.num_seconds();
    if seconds < 1 {
        return format!("0.{}s", span.num_milliseconds() / 100);
    }
    // From a minute on, the remainder that is not shown is rounded away.
    let (whole, units): (i64, &[(i64, &str)]) = match seconds {
        0..60 => (seconds, &[(1, "s")]),
        60..3_600 => (seconds, &[(60, "m"), (1, "s")]),
        3_600..86_400 => (seconds, &[(3_600, "h"), (60, "m")]),
        _ => (seconds, &[(86_400, "d"), (3_600, "h")]),
    };
    let mut rest = whole;
    let mut text = String::new();
    for (size, letter) in units {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            let blank = if text.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{blank}{count}{letter}");
        }
    }
    text
}

/// Formats a time for JSON: RFC 3339 with the zone's offset.
#[must_use]
pub fn rfc3339(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).to_rfc3339_opts(chrono::SecondsFormat::AutoSi, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, expect: &str) {
        let now = "2026-11-21T13:56:00Z".parse().unwrap();
        assert_eq!(relative(now + TimeDelta::seconds(seconds), now), expect);
    }

    #[test]
    fn distances_have_two_units_at_most() {
        check(0, "now");
        check(1, "in 1s");
        check(59, "in 59s");
        check(60, "in 1m");
        check(125, "in 2m 5s");
        check(599, "in 9m 59s");
        check(-1_475, "24m ago");
        check(7_500, "in 2h 5m");
        check(19 * 3_600 + 4 * 60 + 59, "in 19h 4m");
        check(86_400, "in 1d");
        check(-(3 * 86_400 + 4 * 3_600), "3d 4h ago");
        check(400 * 86_400, "in 400d");
    }

    #[test]
    fn times_are_local_with_their_weekday() {
        let now: DateTime<Utc> = "2026-11-21T12:56:00Z".parse().unwrap();
        let zone = chrono_tz::Europe::Berlin;
        let shown = |text: &str| local(text.parse().unwrap(), now, zone);
        assert_eq!(shown("2026-11-22T08:00:00Z"), "Sun 22 Nov 09:00 CET");
        assert_eq!(shown("2026-07-02T08:00:30Z"), "Thu 2 Jul 10:00:30 CEST");
        assert_eq!(shown("2027-01-01T08:00:00Z"), "Fri 1 Jan 2027 09:00 CET");
        assert_eq!(rfc3339("2026-11-22T08:00:00Z".parse().unwrap(), zone), "2026-11-22T09:00:00+01:00");
    }
}
