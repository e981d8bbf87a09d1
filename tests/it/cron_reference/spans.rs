//! The zones and starts to ask about: zones with every kind of change, and starts around their changes.

use std::ops::Range;

use chrono::{DateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::select;

/// Time zones, each with the property that makes it worth testing.
pub const ZONES: [Tz; 16] = [
    Tz::UTC,
    Tz::America__New_York,
    // Winter time is the exception there, and the changes follow UTC.
    Tz::Europe__Dublin,
    // At midnight: 0:00 to 1:00, and 1:00 back to 0:00.
    Tz::America__Havana,
    // At midnight: 0:00 to 1:00, and 0:00 back to 23:00 of the day before.
    Tz::Asia__Beirut,
    Tz::Africa__Cairo,
    // A change by half an hour.
    Tz::Australia__Lord_Howe,
    // A change by two hours.
    Tz::Antarctica__Troll,
    // Late in the evening, over the end of the day.
    Tz::America__Nuuk,
    // At 0:01, until 2011.
    Tz::America__St_Johns,
    // At a quarter to three.
    Tz::Pacific__Chatham,
    // A whole day skipped in 2011, daylight saving over the year's end, none any more.
    Tz::Pacific__Apia,
    // Twice a year for Ramadan, backwards first.
    Tz::Africa__Casablanca,
    // The standard time moved: by half an hour in 2007 and back in 2016.
    Tz::America__Caracas,
    // The standard time moved in 2015 and 2018, once at 23:30.
    Tz::Asia__Pyongyang,
    // No change since 1986, and an offset with three quarters of an hour.
    Tz::Asia__Kathmandu,
];

/// 2100: chrono-tz knows no changes from here on.
pub const HORIZON: DateTime<Utc> = DateTime::from_timestamp(4_102_444_800, 0).unwrap();

/// 1990: every kind of change above has occurred since then.
const BEGIN: DateTime<Utc> = DateTime::from_timestamp(631_152_000, 0).unwrap();

/// Returns the moments within a span at which the zone's offset changes, to the second.
pub fn changes(zone: Tz, span: Range<DateTime<Utc>>) -> Vec<DateTime<Utc>> {
    const STEP: TimeDelta = TimeDelta::days(1);
    const SECOND: TimeDelta = TimeDelta::seconds(1);
    let offset = |at: DateTime<Utc>| zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let mut found = Vec::new();
    let mut from = span.start;
    while from < span.end {
        let (mut before, mut after) = (from, (from + STEP).min(span.end));
        from = after;
        let old = offset(before);
        if old == offset(after) {
            continue;
        }
        while after - before > SECOND {
            let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
            if offset(middle) == old { before = middle } else { after = middle }
        }
        found.push(after);
    }
    found
}

/// Returns each zone with its starts.
pub fn starts() -> Vec<(Tz, BoxedStrategy<DateTime<Utc>>)> {
    ZONES.iter().map(|zone| (*zone, start(changes(*zone, BEGIN..HORIZON)))).collect()
}

/// Generates a start: mostly near one of the changes, on either side, sometimes anywhere.
fn start(changes: Vec<DateTime<Utc>>) -> BoxedStrategy<DateTime<Utc>> {
    let last = HORIZON - TimeDelta::days(365);
    let anywhere = (BEGIN.timestamp()..last.timestamp()).prop_map(|at| DateTime::from_timestamp(at, 0).unwrap());
    if changes.is_empty() {
        return anywhere.boxed();
    }
    let away = prop_oneof![
        // Within two seconds of the change.
        1 => -2i64..3,
        // Within the repeated and the skipped hours.
        3 => -2 * 3600i64..2 * 3600,
        3 => -2 * 86_400i64..3600,
        2 => -9 * 86_400i64..0,
    ];
    let near = (select(changes), away).prop_map(|(change, away)| change + TimeDelta::seconds(away));
    prop_oneof![5 => near, 1 => anywhere].boxed()
}
