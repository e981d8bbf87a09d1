//! Computes when a routine fires in a zone, including daylight saving time. Pure.
//!
//! The rules are those of vixie cron (cron(8), "Daylight Saving Time and other time changes"; docs/cron.md):
//! - A *fixed-time* expression (neither minute nor hour begins with a `*`) fires once for a skipped time, at the first moment after
//!   the gap. It fires once for a repeated time, at its first occurrence.
//! - Any other expression follows the clock: it does not fire in a gap, and fires at both times in a repeated hour.
//!
//! croner computes the second kind. For the first kind it walks the calendar without a zone, and this module maps the
//! wall-clock times to instants. With a zone, croner treats `0 1,2 * * *` as the second kind, drops a skipped time whose
//! gap ends on another day (America/Nuuk, 23:30), and gives up on a gap of a whole day (Pacific/Apia 2011).
//!
//! A span (`every`) is counted in elapsed time from a fixed moment, so it needs no state and does not drift.
//! `jitter` delays each time by a part of itself that depends only on the job and the time.

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use croner::Cron;

use crate::definition::cron::{cron_fields, parse_cron};
use crate::definition::{Cadence, Definition, DefinitionId, Recurrence, Trigger};

/// The times of a routine. A cron expression takes about 6 kB, so create this where needed and drop it afterwards.
#[derive(Clone, Debug)]
pub struct Times {
    cadence: Parsed,
    jitter: Option<Jitter>,
}

#[derive(Clone, Debug)]
enum Parsed {
    Cron { cron: Box<Cron>, fixed_time: bool },
    Every(TimeDelta),
}

/// Jitter: see the module's documentation.
#[derive(Clone, Copy, Debug)]
struct Jitter {
    most: TimeDelta,
    /// The seed of the job.
    seed: u64,
}

/// The start of spans, as local time in their zone: a Monday.
const COUNTED_FROM: NaiveDateTime = match NaiveDate::from_ymd_opt(2024, 1, 1) {
    Some(day) => day.and_time(NaiveTime::MIN),
    None => NaiveDateTime::MIN,
};

impl Times {
    /// Returns the times of a routine. `None` if the expression is invalid, if it has no times, or if the definition is no routine.
    #[must_use]
    pub fn of(definition: &Definition) -> Option<Self> {
        match &definition.trigger {
            Trigger::Routine { recurs, .. } => Self::new(recurs, &definition.id),
            Trigger::Reminder { .. } | Trigger::Webhook(_) | Trigger::Session { .. } => None,
        }
    }

    /// Returns the times of the routine `id`.
    fn new(recurs: &Recurrence, id: &DefinitionId) -> Option<Self> {
        let times = match &recurs.cadence {
            Cadence::Cron(cron) => Self::parse(cron)?,
            Cadence::Every(span) => {
                let span = TimeDelta::from_std(*span).ok().filter(|span| *span > TimeDelta::zero())?;
                Self { cadence: Parsed::Every(span), jitter: None }
            }
            Cadence::After(_) | Cadence::Watch(_) => return None,
        };
        let jitter = |most| Some(Jitter { most: TimeDelta::from_std(most).ok()?, seed: mixed(id.as_str().bytes()) });
        Some(Self { jitter: recurs.jitter.and_then(jitter), ..times })
    }

    /// Parses five fields, or `@daily` and the like. `None` if the expression is invalid.
    #[must_use]
    pub fn parse(expression: &str) -> Option<Self> {
        let [minute, hour, ..] = cron_fields(expression).ok()?;
        let fixed_time = !minute.starts_with('*') && !hour.starts_with('*');
        let mut cron = parse_cron(expression).ok()?;
        // Keeps croner from treating it as a fixed time.
        cron.pattern.seconds.from_wildcard = true;
        Some(Self { cadence: Parsed::Cron { cron: Box::new(cron), fixed_time }, jitter: None })
    }

    /// Returns the first time after `after`, excluding `after`. `None` if there is none before the year 5000.
    #[must_use]
    pub fn next(&self, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.next_put_off(zone, after).map(|(_, at)| at)
    }

    /// Returns `after`, or a later time if the occurrence of `last` would repeat because its jitter was different then.
    #[must_use]
    pub fn not_again(&self, zone: Tz, after: DateTime<Utc>, last: DateTime<Utc>) -> DateTime<Utc> {
        let mut after = after;
        // Whatever the jitter was, `last` belongs to the last due time that is not after it.
        while let Some((_, at)) = self.next_put_off(zone, after).filter(|(due, _)| *due <= last) {
            after = at;
        }
        after
    }

    /// Returns the same time, together with the due time before jitter.
    fn next_put_off(&self, zone: Tz, after: DateTime<Utc>) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let Some(jitter) = self.jitter else { return self.cadence.next(zone, after).map(|at| (at, at)) };
        // Jitter ends before the next due time. So of the due times before `after`, only the last can move past it.
        let mut back = TimeDelta::minutes(1).min(jitter.most);
        let mut due = loop {
            let due = self.cadence.next(zone, after.checked_sub_signed(back)?)?;
            if due <= after || back >= jitter.most {
                break due;
            }
            back = (back * 2).min(jitter.most);
        };
        loop {
            let following = self.cadence.next(zone, due);
            let at = due + jitter.of(due, following);
            if at > after {
                return Some((due, at));
            }
            due = following?;
        }
    }
}

/// Describes when a routine fires: `At 08:30, from Monday to Friday`.
#[must_use]
pub fn in_words(recurs: &Recurrence) -> String {
    let described = match &recurs.cadence {
        Cadence::Cron(cron) => parse_cron(cron).ok().map(|cron| {
            let workdays = "on Monday, Tuesday, Wednesday, Thursday, and Friday";
            let words = cron.describe().replace(workdays, "from Monday to Friday");
            let words = by_the_clock(&words).unwrap_or(words);
            words.strip_prefix("At every ").map(|often| format!("Every {often}")).unwrap_or(words)
        }),
        Cadence::Every(_) | Cadence::After(_) | Cadence::Watch(_) => None,
    };
    match (described, recurs.jitter) {
        (None, _) => recurs.to_string(),
        (Some(words), None) => words,
        (Some(words), Some(jitter)) => format!("{words}, up to {} later", humantime::format_duration(jitter)),
    }
}

/// Rewrites `At minute 5, of hour 8 and 14.` as `At 08:05 and 14:05.`.
fn by_the_clock(words: &str) -> Option<String> {
    let (minute, rest) = words.strip_prefix("At minute ")?.split_once(", of hour ")?;
    let minute: u32 = minute.parse().ok()?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && !", and".contains(c))?;
    let (hours, tail) = rest.split_at(rest[..end].trim_end_matches([',', ' ']).len());
    let hours: Vec<String> = hours
        .split(|c: char| !c.is_ascii_digit())
        .filter(|hour| !hour.is_empty())
        .map(|hour| format!("{hour:0>2}:{minute:02}"))
        .collect();
    let (last, before) = hours.split_last().filter(|(_, before)| !before.is_empty())?;
    Some(format!("At {} and {last}{tail}", before.join(", ")))
}

impl Jitter {
    /// Returns the delay of a due time. It ends before the following due time, so that each occurrence keeps a time of its own.
    fn of(self, due: DateTime<Utc>, following: Option<DateTime<Utc>>) -> TimeDelta {
        let most = following.map_or(self.most, |following| self.most.min(following - due)).num_seconds();
        let Some(most) = u64::try_from(most).ok().filter(|most| *most > 0) else { return TimeDelta::zero() };
        let share = mixed(self.seed.to_le_bytes().into_iter().chain(due.timestamp().to_le_bytes())) % most;
        i64::try_from(share).map_or(TimeDelta::zero(), TimeDelta::seconds)
    }
}

/// Hashes bytes to the same number in every version of this program. FNV-1a, then the end of splitmix64, since the
/// last byte changes few bits of FNV-1a.
fn mixed(bytes: impl Iterator<Item = u8>) -> u64 {
    let fnv =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Parsed {
    fn next(&self, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Cron { cron, fixed_time: true } => next_fixed(cron, zone, after),
            Self::Cron { cron, fixed_time: false } => {
                cron.find_next_occurrence(&after.with_timezone(&zone), false).ok().map(|next| next.to_utc())
            }
            Self::Every(span) => {
                let from = zone.from_local_datetime(&COUNTED_FROM).earliest()?.to_utc();
                let passed = (after - from).num_milliseconds().div_euclid(span.num_milliseconds());
                from.checked_add_signed(TimeDelta::try_milliseconds(
                    span.num_milliseconds().checked_mul(passed.checked_add(1)?)?,
                )?)
            }
        }
    }
}

/// Maps wall-clock times to instants, in order. Several times in one gap become one.
fn next_fixed(cron: &Cron, zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let mut wall = wall_clock(zone, after);
    loop {
        wall = cron.find_next_occurrence(&wall, false).ok()?;
        let instant = match zone.from_local_datetime(&wall) {
            LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => instant.to_utc(),
            LocalResult::None => after_gap(zone, wall)?,
        };
        if instant > after {
            return Some(instant);
        }
    }
}

/// Returns the local time in `zone`, to the second.
fn wall_clock(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    let local = at.with_timezone(&zone).naive_local();
    local - TimeDelta::nanoseconds(i64::from(local.and_utc().timestamp_subsec_nanos()))
}

/// Returns the first moment after the gap that contains `wall`.
fn after_gap(zone: Tz, wall: NaiveDateTime) -> Option<DateTime<Utc>> {
    GapInfo::new(&wall, &zone)?.end.map(|end| end.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::cron::check_cron;
    use chrono::SubsecRound;
    use proptest::prelude::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    /// Checks the next times after `after`, in the zone.
    fn check(expression: &str, zone: Tz, after: &str, expected: &[&str]) {
        let times = Times::parse(expression).unwrap();
        let mut found = Vec::new();
        let mut last = at(after);
        for _ in expected {
            last = times.next(zone, last).unwrap();
            found.push(last.with_timezone(&zone).to_rfc3339());
        }
        assert_eq!(found, expected, "{expression} in {zone} after {after}");
    }

    fn span(every: &str, jitter: Option<&str>, id: &str) -> Times {
        let duration = |text: &str| humantime::parse_duration(text).unwrap();
        let recurs = Recurrence { cadence: Cadence::Every(duration(every)), jitter: jitter.map(duration) };
        Times::new(&recurs, &DefinitionId::new(id)).unwrap()
    }

    #[test]
    fn times_of_a_day_are_said_by_the_clock() {
        for (cron, words) in [
            ("0 5-9/2 * * *", "At 05:00, 07:00 and 09:00."),
            ("15 8,14 * * 1-5", "At 08:15 and 14:15, from Monday to Friday."),
            ("30 8 * * *", "At 08:30."),
            ("*/30 * * * *", "Every 30 minutes."),
            ("* * * * *", "Every minute."),
            ("40 * * * *", "At minute 40 past every hour."),
            ("0,30 8,9 * * *", "At minute 0 and 30, of hour 8 and 9."),
        ] {
            assert_eq!(in_words(&Recurrence { cadence: Cadence::Cron(cron.into()), jitter: None }), words, "{cron}");
        }
    }

    #[test]
    fn a_span_is_counted_from_a_fixed_moment_as_it_elapses() {
        let next = |every: &str, zone: Tz, after: &str| {
            let next = span(every, None, "x").next(zone, at(after)).unwrap();
            next.with_timezone(&zone).to_rfc3339()
        };
        let (berlin, kolkata) = (Tz::Europe__Berlin, Tz::Asia__Kolkata);
        assert_eq!(next("2h", berlin, "2026-01-10T12:00:00+01:00"), "2026-01-10T14:00:00+01:00");
        assert_eq!(next("2h", berlin, "2026-01-10T13:59:59.999+01:00"), "2026-01-10T14:00:00+01:00");
        // In summer it is an hour later by the clock. Across the change itself it takes two hours.
        assert_eq!(next("2h", berlin, "2026-07-10T12:00:00+02:00"), "2026-07-10T13:00:00+02:00");
        assert_eq!(next("2h", berlin, "2026-03-29T00:00:00+01:00"), "2026-03-29T03:00:00+02:00");
        assert_eq!(next("7days", berlin, "2026-01-09T00:00:00+01:00"), "2026-01-12T00:00:00+01:00");
        assert_eq!(next("1h", kolkata, "2026-01-10T12:10:00+05:30"), "2026-01-10T13:00:00+05:30");
        assert_eq!(next("90m", Tz::UTC, "2023-12-31T23:00:00Z"), "2024-01-01T00:00:00+00:00");
        assert_eq!(next("90m", Tz::UTC, "2023-12-31T22:00:00Z"), "2023-12-31T22:30:00+00:00");
    }

    proptest! {
        /// Each occurrence has its own time, from its due time until before the next due time, whatever the query starts from.
        #[test]
        fn jitter_keeps_order_and_never_fires_early(
            every in 60u64..100_000, most in 1u64..86_400, id in "[a-z]{1,8}", start in 1_700_000_000i64..1_900_000_000,
        ) {
            let (every, most) = (format!("{every}s"), format!("{most}s"));
            let (plain, put_off) = (span(&every, None, &id), span(&every, Some(&most), &id));
            let mut due = plain.next(Tz::UTC, DateTime::from_timestamp(start, 0).unwrap()).unwrap();
            let mut last = due - TimeDelta::milliseconds(1);
            for _ in 0..5 {
                let following = plain.next(Tz::UTC, due).unwrap();
                let at = put_off.next(Tz::UTC, last).unwrap();
                prop_assert!(due <= at && at < following, "{due} {at} {following}");
                // A query from just before the due time gives the same answer.
                prop_assert_eq!(put_off.next(Tz::UTC, due - TimeDelta::milliseconds(1)).unwrap(), at);
                (last, due) = (at, following);
            }
        }
    }

    #[test]
    fn jitter_spreads_jobs_and_is_always_the_same() {
        let due = at("2026-01-10T12:00:00Z");
        let of = |id: &str| span("1h", Some("10m"), id).next(Tz::UTC, due - TimeDelta::seconds(1)).unwrap();
        let seconds = |id: &str| (of(id) - due).num_seconds();
        // If these values changed, every job with jitter would move.
        assert_eq!((seconds("mail"), seconds("news")), (340, 272));
        let spread: std::collections::BTreeSet<_> = (0..100).map(|n| seconds(&n.to_string()) / 60).collect();
        assert!(spread.len() >= 9, "{spread:?}");
    }

    #[test]
    fn half_past_eight_in_new_york_on_both_sides_of_both_changes() {
        check(
            "30 8 * * *",
            Tz::America__New_York,
            "2026-03-07T00:00:00-05:00",
            &["2026-03-07T08:30:00-05:00", "2026-03-08T08:30:00-04:00", "2026-03-09T08:30:00-04:00"],
        );
        check(
            "30 8 * * *",
            Tz::America__New_York,
            "2026-10-31T00:00:00-04:00",
            &["2026-10-31T08:30:00-04:00", "2026-11-01T08:30:00-05:00", "2026-11-02T08:30:00-05:00"],
        );
    }

    #[test]
    fn a_skipped_fixed_time_fires_once_right_after_the_gap() {
        let zone = Tz::America__New_York;
        let (gap, next) = ("2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00");
        check("30 2 * * *", zone, "2026-03-08T00:00:00-05:00", &[gap, next]);
        check("30 2 * * *", zone, "2026-03-08T01:59:59-05:00", &[gap, next]);
        check("30 2 * * *", zone, gap, &[next]);
        // Two skipped times and the moment after the gap still fire only once.
        check("0,30 2,3 * * *", zone, "2026-03-08T00:00:00-05:00", &[gap, "2026-03-08T03:30:00-04:00"]);
        // Only a star as the first character makes a wildcard.
        check("0,*/20 2 * * *", zone, "2026-03-08T00:00:00-05:00", &[gap, "2026-03-09T02:00:00-04:00"]);
        // The day of the skipped time counts, not the day of the moment after it.
        check(
            "30 23 * * 6",
            Tz::America__Nuuk,
            "2026-03-28T12:00:00-02:00",
            &["2026-03-29T00:00:00-01:00", "2026-04-04T23:30:00-01:00"],
        );
        // The zone skipped a whole day.
        check(
            "0 9 * * *",
            Tz::Pacific__Apia,
            "2011-12-29T08:00:00-10:00",
            &["2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"],
        );
        // The clock jumps two hours at once.
        check("0 1 * * *", Tz::Antarctica__Troll, "2026-03-28T12:00:00+00:00", &["2026-03-29T03:00:00+02:00"]);
    }

    #[test]
    fn a_repeated_fixed_time_fires_once_the_first_time() {
        let zone = Tz::America__New_York;
        let (first, next) = ("2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00");
        check("30 1 * * *", zone, "2026-11-01T00:00:00-04:00", &[first, next]);
        check("30 1 * * *", zone, "2026-11-01T01:10:00-05:00", &[next]);
        check("0,30 1 * * *", zone, "2026-11-01T00:59:59-04:00", &["2026-11-01T01:00:00-04:00", first]);
        // The zone repeats only half an hour.
        check(
            "45 1 * * *",
            Tz::Australia__Lord_Howe,
            "2026-04-04T12:00:00+11:00",
            &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
        );
    }

    #[test]
    fn a_wildcard_follows_the_clock() {
        let zone = Tz::America__New_York;
        check(
            "0 * * * *",
            zone,
            "2026-03-08T00:30:00-05:00",
            &["2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"],
        );
        check("*/30 2 * * *", zone, "2026-03-07T12:00:00-05:00", &["2026-03-09T02:00:00-04:00"]);
        check(
            "30 * * * *",
            zone,
            "2026-11-01T00:45:00-04:00",
            &["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"],
        );
        check(
            "*/30 1 * * *",
            zone,
            "2026-11-01T00:45:00-04:00",
            &[
                "2026-11-01T01:00:00-04:00",
                "2026-11-01T01:30:00-04:00",
                "2026-11-01T01:00:00-05:00",
                "2026-11-01T01:30:00-05:00",
                "2026-11-02T01:00:00-05:00",
            ],
        );
        check("@hourly", zone, "2026-11-01T01:00:00-04:00", &["2026-11-01T01:00:00-05:00"]);
        check("*/15 * * * *", Tz::Australia__Lord_Howe, "2026-04-05T01:50:00+11:00", &["2026-04-05T01:30:00+10:30"]);
    }

    #[test]
    fn zones_that_change_at_midnight() {
        // Cairo's clocks go forward from Thursday 24:00 to Friday 01:00.
        check(
            "0 0 * * *",
            Tz::Africa__Cairo,
            "2026-04-23T12:00:00+02:00",
            &["2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"],
        );
        check("@daily", Tz::Africa__Cairo, "2026-04-23T12:00:00+02:00", &["2026-04-24T01:00:00+03:00"]);
        check("15 0 * * *", Tz::America__Havana, "2026-03-07T12:00:00-05:00", &["2026-03-08T01:00:00-04:00"]);
        // Havana's clocks go back from 01:00 to 00:00.
        check(
            "0 0 * * *",
            Tz::America__Havana,
            "2026-10-31T12:00:00-04:00",
            &["2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"],
        );
    }

    #[test]
    fn both_day_fields_are_joined_by_or_unless_one_begins_with_a_star() {
        let zone = Tz::UTC;
        check(
            "0 0 13 * 5",
            zone,
            "2026-03-01T00:00:00+00:00",
            &[
                "2026-03-06T00:00:00+00:00",
                "2026-03-13T00:00:00+00:00",
                "2026-03-20T00:00:00+00:00",
                "2026-03-27T00:00:00+00:00",
                "2026-04-03T00:00:00+00:00",
                "2026-04-10T00:00:00+00:00",
                "2026-04-13T00:00:00+00:00",
            ],
        );
        check("0 0 * * 5", zone, "2026-03-01T00:00:00+00:00", &["2026-03-06T00:00:00+00:00"]);
        check("0 0 13 * *", zone, "2026-03-01T00:00:00+00:00", &["2026-03-13T00:00:00+00:00"]);
        check(
            "0 0 */2 * mon",
            zone,
            "2026-03-01T00:00:00+00:00",
            &["2026-03-09T00:00:00+00:00", "2026-03-23T00:00:00+00:00", "2026-04-13T00:00:00+00:00"],
        );
        check("0 0 * * 7", zone, "2026-03-02T00:00:00+00:00", &["2026-03-08T00:00:00+00:00"]);
    }

    #[test]
    fn leap_days_and_year_ends() {
        check(
            "0 0 29 2 *",
            Tz::UTC,
            "2026-03-01T00:00:00+00:00",
            &["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"],
        );
        check("0 0 29 2 *", Tz::UTC, "2096-03-01T00:00:00+00:00", &["2104-02-29T00:00:00+00:00"]);
        check("59 23 31 12 *", Tz::Pacific__Kiritimati, "2026-01-01T00:00:00+14:00", &["2026-12-31T23:59:00+14:00"]);
        check("0 0 1 1 *", Tz::UTC, "2026-12-31T23:59:59+00:00", &["2027-01-01T00:00:00+00:00"]);
    }

    #[test]
    fn what_is_no_expression_has_no_times() {
        for expression in ["", "* * * *", "* * * * * *", "0 0 * * * 2027", "61 * * * *", "@sometimes", "a b c d e"] {
            assert!(Times::parse(expression).is_none(), "{expression}");
        }
        let never = Times::parse("0 0 30 2 *").unwrap();
        assert_eq!(never.next(Tz::UTC, at("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn every_name_has_times() {
        for (name, meaning) in [
            ("@hourly", "0 * * * *"),
            ("@daily", "0 0 * * *"),
            ("@midnight", "0 0 * * *"),
            ("@weekly", "0 0 * * 0"),
            ("@Monthly", "0 0 1 * *"),
            ("@YEARLY", "0 0 1 1 *"),
            (" @annually ", "0 0 1 1 *"),
        ] {
            let next = |text| Times::parse(text).unwrap().next(Tz::UTC, at("2026-03-01T00:00:00Z")).unwrap();
            assert_eq!(next(name), next(meaning), "{name}");
        }
    }

    const ZONES: [Tz; 12] = [
        Tz::UTC,
        Tz::America__New_York,
        Tz::Europe__Berlin,
        Tz::Europe__Dublin,
        Tz::Australia__Lord_Howe,
        Tz::Antarctica__Troll,
        Tz::America__Nuuk,
        Tz::America__Havana,
        Tz::Africa__Cairo,
        Tz::Asia__Kathmandu,
        Tz::America__St_Johns,
        Tz::Pacific__Chatham,
    ];

    /// Vixie's rules, minute by minute: slow, and as plain as the manual page.
    fn by_the_book(times: &Times, zone: Tz, after: DateTime<Utc>, hours: i64) -> Vec<DateTime<Utc>> {
        let Parsed::Cron { cron, fixed_time } = &times.cadence else { panic!("no expression") };
        let matches = |wall: NaiveDateTime| cron.is_time_matching(&wall).unwrap();
        let mut minute = after.trunc_subsecs(0);
        while wall_clock(zone, minute).and_utc().timestamp() % 60 != 0 || minute <= after {
            minute += TimeDelta::seconds(1);
        }
        let mut latest = wall_clock(zone, minute - TimeDelta::minutes(1));
        // Times that clocks showed before `after` in a repeated hour have fired already.
        for back in 1..=180 {
            latest = latest.max(wall_clock(zone, minute - TimeDelta::minutes(back)));
        }
        let mut found = Vec::new();
        for _ in 0..hours * 60 {
            let wall = wall_clock(zone, minute);
            let due = if *fixed_time {
                // Every wall-clock minute that was passed for the first time, shown or skipped.
                let mut passed = latest + TimeDelta::minutes(1);
                let mut due = false;
                while passed <= wall {
                    due |= matches(passed);
                    passed += TimeDelta::minutes(1);
                }
                due
            } else {
                matches(wall)
            };
            latest = latest.max(wall);
            if due {
                found.push(minute);
            }
            minute += TimeDelta::minutes(1);
        }
        found
    }

    fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
        prop_oneof![
            3 => Just("*".to_owned()),
            1 => (2u32..=7).prop_map(|step| format!("*/{step}")),
            3 => (low..=high).prop_map(|one| one.to_string()),
            1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{a},{b}")),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Around the clock changes of twelve zones, every expression fires exactly by Vixie's rules.
        #[test]
        fn agrees_with_the_book(
            minute in field(0, 59), hour in field(0, 3), day in field(1, 31), weekday in field(0, 7),
            zone in 0..ZONES.len(), spring in any::<bool>(), start in 0i64..250,
        ) {
            let zone = ZONES[zone];
            let expression = format!("{minute} {hour} {day} * {weekday}");
            let times = Times::parse(&expression).unwrap();
            // Day 60 and day 80 of 2026 precede the spring changes, day 90 the southern autumn change, day 290 the northern one.
            let base = at(if spring { "2026-03-05T00:00:00Z" } else { "2026-09-24T00:00:00Z" });
            let after = base + TimeDelta::hours(start * 5) + TimeDelta::milliseconds(start);
            let expected = by_the_book(&times, zone, after, 60);
            let mut found = Vec::new();
            let mut last = after;
            while let Some(next) = times.next(zone, last) {
                prop_assert!(next > last);
                if next - after > TimeDelta::hours(59) {
                    break;
                }
                found.push(next);
                last = next;
            }
            let expected: Vec<_> =
                expected.into_iter().filter(|time| *time - after <= TimeDelta::hours(59)).collect();
            prop_assert_eq!(found, expected, "{} in {} after {}", expression, zone, after);
        }

        /// An expression is accepted exactly if it has times, so every accepted job fires.
        #[test]
        fn what_is_accepted_has_times(
            minute in "[0-9*/,-]{1,4}", day in "[0-9*/,?LW-]{1,4}", month in "([0-9*/,-]{1,4}|[A-Z]{3})",
            weekday in "([0-9*/,?L#+-]{1,4}|(MON|SUN|FRI)[-,#](MON|SUN|FRI|2|L))",
        ) {
            let expression = format!("{minute} 0 {day} {month} {weekday}");
            let next = Times::parse(&expression).and_then(|times| times.next(Tz::UTC, DateTime::UNIX_EPOCH));
            prop_assert_eq!(next.is_some(), check_cron(&expression).is_ok(), "{}", expression);
        }

        /// Queries from any moment in between give the same answer.
        #[test]
        fn asking_earlier_or_later_changes_nothing(
            minute in field(0, 59), hour in field(0, 23), zone in 0..ZONES.len(), from in 0i64..500_000, step in 1i64..5000,
        ) {
            let times = Times::parse(&format!("{minute} {hour} * * *")).unwrap();
            let zone = ZONES[zone];
            let after = at("2026-01-01T00:00:00Z") + TimeDelta::minutes(from);
            let next = times.next(zone, after).unwrap();
            let between = after + TimeDelta::seconds(step).min(next - after - TimeDelta::milliseconds(1));
            prop_assert_eq!(times.next(zone, between).unwrap(), next);
        }
    }
}
