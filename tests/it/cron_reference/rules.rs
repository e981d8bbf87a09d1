//! Each class of difference: cronsim's times, our times, and the times of a daemon that checks every minute. docs/cron.md
//! quotes the rule of each.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::differences::{Class, differences, ours};
use super::reference::{self, Ask, DaemonAsk};
use super::spans::HORIZON;

fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

/// Asserts that cronsim's first times after `from` are `theirs`, that ours and the book's are `expected`, and that the
/// difference is of this class.
fn check(class: Class, expression: &str, zone: Tz, from: &str, theirs: &[&str], expected: &[&str]) {
    let ask = Ask { expression: expression.to_owned(), zone, from: at(from), count: expected.len().max(theirs.len()) };
    let shown = |times: &[DateTime<Utc>]| -> Vec<String> {
        times.iter().map(|time| time.with_timezone(&zone).to_rfc3339()).collect()
    };
    let answer = reference::times(std::slice::from_ref(&ask)).remove(0).unwrap();
    assert_eq!(shown(&answer.times), theirs, "cronsim: {ask:?} {answer:?}");
    let ours = ours(&ask).unwrap();
    assert_eq!(shown(&ours), expected, "ours: {ask:?}");
    let until = *ours.last().unwrap();
    let book =
        reference::book(&[DaemonAsk { expression: ask.expression.clone(), zone, from: ask.from, until }]).remove(0);
    assert_eq!(shown(&book), expected, "the book: {ask:?}");
    let found = differences(&ask, &ours, &answer);
    assert!(!found.is_empty() && found.iter().all(|one| one.class == Some(class)), "{ask:?} {found:?}");
}

#[test]
fn in_the_second_half_of_a_repeated_hour_nothing_of_the_first_is_to_come() {
    check(
        Class::SecondHalf,
        "30 1 * * *",
        Tz::America__New_York,
        "2026-11-01T01:10:00-05:00",
        &["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        &["2026-11-02T01:30:00-05:00", "2026-11-03T01:30:00-05:00"],
    );
}

#[test]
fn a_wildcard_follows_a_clock_that_changes_by_half_an_hour() {
    check(
        Class::Crooked,
        "*/30 3 * * *",
        Tz::Australia__Lord_Howe,
        "2026-10-04T01:10:00+10:30",
        &["2026-10-04T03:30:00+11:00"],
        &["2026-10-04T03:00:00+11:00"],
    );
}

#[test]
fn a_wildcard_does_not_fire_at_a_midnight_that_no_clock_shows() {
    check(
        Class::Crooked,
        "*/30 0 24 * *",
        Tz::Africa__Cairo,
        "2026-04-22T12:00:00+02:00",
        &["2026-04-24T01:00:00+03:00"],
        &["2026-05-24T00:00:00+03:00"],
    );
    // The zone skipped a whole Friday.
    check(
        Class::Crooked,
        "0 * * * 5",
        Tz::Pacific__Apia,
        "2011-12-28T12:00:00-10:00",
        &["2011-12-31T00:00:00+14:00"],
        &["2012-01-06T00:00:00+14:00"],
    );
    // The day begins at the first hour that exists.
    check(
        Class::Crooked,
        "*/30 1 24 * *",
        Tz::Africa__Cairo,
        "2026-04-22T12:00:00+02:00",
        &["2026-05-24T01:00:00+03:00"],
        &["2026-04-24T01:00:00+03:00"],
    );
}

#[test]
fn a_wildcard_goes_on_after_a_change_off_the_hour() {
    check(
        Class::Circle,
        "30 */12 * * *",
        Tz::America__St_Johns,
        "2003-10-25T13:00:00-02:30",
        &[],
        &["2003-10-26T00:30:00-03:30", "2003-10-26T12:30:00-03:30"],
    );
}

/// chrono-tz has the changes of each year up to 2099; Python has the rule behind them.
#[test]
fn from_2100_on_zones_keep_their_standard_time() {
    let ask = |from| Ask { expression: "0 12 1 7 *".into(), zone: Tz::America__New_York, from: at(from), count: 1 };
    for (from, theirs, expected) in [
        ("2099-01-01T00:00:00Z", "2099-07-01T16:00:00Z", "2099-07-01T16:00:00Z"),
        ("2100-01-01T00:00:00Z", "2100-07-01T16:00:00Z", "2100-07-01T17:00:00Z"),
    ] {
        let ask = ask(from);
        assert_eq!(reference::times(std::slice::from_ref(&ask))[0].as_ref().unwrap().times, [at(theirs)]);
        assert_eq!(ours(&ask).unwrap(), [at(expected)]);
    }
    assert_eq!(HORIZON, at("2100-01-01T00:00:00Z"));
}

/// Each line of the table in docs/cron.md holds for us and for the book.
#[test]
fn the_examples_in_the_docs_hold() {
    let text = include_str!("../../../docs/cron.md");
    let mut examples = 0;
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let &[expression, zone, after, expected] = cells.as_slice() else { continue };
        let Ok(zone) = zone.parse::<Tz>() else { continue };
        let expression = expression.trim_matches('`').to_owned();
        let ask = Ask { expression: expression.clone(), zone, from: at(after), count: 1 };
        assert_eq!(ours(&ask).unwrap()[0].with_timezone(&zone).to_rfc3339(), expected, "{line}");
        // The reference does not know `W`.
        let nearest = expression.contains("5W") || expression.contains("1W");
        // A span of years is too long to walk minute by minute.
        if !nearest && at(expected) - at(after) < TimeDelta::days(40) {
            let book = DaemonAsk { expression, zone, from: at(after), until: at(expected) };
            assert_eq!(reference::book(&[book])[0], [at(expected)], "{line}");
        }
        examples += 1;
    }
    assert_eq!(examples, 16, "the table of examples");
}
