//! The setting `budget`: limits on the cost of everything that the bot runs, and their periods. Pure.

use chrono::{DateTime, Datelike, Days, LocalResult, Months, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// Limits on spending. Amounts are in US dollars, above zero; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Maximum per day.
    pub day: Option<f64>,
    /// Maximum per month.
    pub month: Option<f64>,
    /// Maximum per run without a `max_cost_usd` of its own.
    pub run: Option<f64>,
    /// Maximum number of tokens per day, not counting those read from a cache.
    pub tokens_day: Option<u64>,
}

impl Budget {
    /// Returns the limit of a run without one of its own: `run`, else the smaller of a tenth of `day` and a hundredth of `month`.
    #[must_use]
    pub fn of_a_run(&self) -> Option<f64> {
        let tenth = self.day.map(|day| day / 10.0);
        let hundredth = self.month.map(|month| month / 100.0);
        let least = tenth.into_iter().chain(hundredth).reduce(f64::min);
        self.run.or(least)
    }

    /// Returns a time before which no run's cost counts now, in any zone: more than a month ago if there is a cap of the month, else
    /// more than a day, since each job may have a cap of its own for the day.
    #[must_use]
    pub fn counts_since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        now - TimeDelta::days(if self.month.is_some() { 32 } else { 2 })
    }
}

/// Formats an amount of US dollars with at least two significant digits, without zeros that say nothing: `$1.50`, `$0.02`, `$0.0042`.
#[must_use]
pub fn money(dollars: f64) -> String {
    let mut text = format!("${dollars:.*}", decimals(dollars));
    let shortest = text.find('.').map_or(0, |point| point + 3);
    while text.len() > shortest && text.ends_with('0') {
        text.pop();
    }
    text
}

/// Formats a number as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn decimals(dollars: f64) -> usize {
    let decimals = (2..9).zip(1..).find(|(_, power)| dollars * 10_f64.powi(*power) >= 1.0);
    decimals.map_or(2, |(decimals, _)| decimals)
}

/// The period of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A calendar day.
    Day,
    /// A calendar month.
    Month,
}

impl Period {
    /// Returns its name: `day`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the name of the period that contains `now`: `2026-11-23`, `2026-11`.
    #[must_use]
    pub fn label(self, now: DateTime<Utc>, zone: Tz) -> String {
        let format = if self == Self::Day { "%Y-%m-%d" } else { "%Y-%m" };
        now.with_timezone(&zone).format(format).to_string()
    }

    /// Returns the start and the end of the period that contains `now`.
    #[must_use]
    pub fn around(self, now: DateTime<Utc>, zone: Tz) -> (DateTime<Utc>, DateTime<Utc>) {
        let today = now.with_timezone(&zone).date_naive();
        let first = if self == Self::Day { today } else { today.with_day(1).unwrap_or(today) };
        let next = match self {
            Self::Day => first.checked_add_days(Days::new(1)),
            Self::Month => first.checked_add_months(Months::new(1)),
        };
        (midnight(first, zone), next.map_or(DateTime::<Utc>::MAX_UTC, |next| midnight(next, zone)))
    }
}

/// Returns the first moment of a day, which is after midnight if the clocks skip it.
fn midnight(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let quarters = (0..96u32).filter_map(|quarter| NaiveTime::from_hms_opt(quarter / 4, quarter % 4 * 15, 0));
    let mut moments = quarters.filter_map(|time| match zone.from_local_datetime(&day.and_time(time)) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
        LocalResult::None => None,
    });
    moments.next().unwrap_or_else(|| day.and_time(NaiveTime::MIN).and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_calendar() {
        let check = |period: Period, zone: Tz, now: &str, expected: (&str, &str, &str)| {
            let now: DateTime<Utc> = now.parse().unwrap();
            let (from, until) = period.around(now, zone);
            let shown = |at: DateTime<Utc>| at.format("%Y-%m-%dT%H:%MZ").to_string();
            assert_eq!((&*period.label(now, zone), &*shown(from), &*shown(until)), expected);
        };
        let vienna = Tz::Europe__Vienna;
        check(Period::Day, Tz::UTC, "2026-11-23T23:59:59Z", ("2026-11-23", "2026-11-23T00:00Z", "2026-11-24T00:00Z"));
        check(Period::Day, vienna, "2026-11-23T23:30:00Z", ("2026-11-24", "2026-11-23T23:00Z", "2026-11-24T23:00Z"));
        check(Period::Month, vienna, "2026-12-31T22:00:00Z", ("2026-12", "2026-11-30T23:00Z", "2026-12-31T23:00Z"));
        // A day of 25 hours, and a day whose midnight is skipped.
        check(Period::Day, vienna, "2026-10-25T12:00:00Z", ("2026-10-25", "2026-10-24T22:00Z", "2026-10-25T23:00Z"));
        let beirut = Tz::Asia__Beirut;
        check(Period::Day, beirut, "2026-03-29T12:00:00Z", ("2026-03-29", "2026-03-28T22:00Z", "2026-03-29T21:00Z"));
    }

    #[test]
    fn every_run_of_the_period_still_counts() {
        let zones = [Tz::UTC, Tz::Pacific__Kiritimati, Tz::Pacific__Pago_Pago, Tz::Europe__Vienna];
        for (hour, zone) in (0..366 * 24).flat_map(|hour| zones.map(|zone| (hour, zone))) {
            let now = DateTime::UNIX_EPOCH + TimeDelta::hours(hour);
            for (period, month) in [(Period::Day, None), (Period::Month, Some(9.0))] {
                let since = Budget { month, ..Budget::default() }.counts_since(now);
                assert!(since < period.around(now, zone).0, "{period:?} {now} {zone}");
            }
        }
    }

    #[test]
    fn amounts_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 1.5, 12.345, 0.02, 0.0042].map(money), ["$0.00", "$1.50", "$12.35", "$0.02", "$0.0042"]);
    }

    #[test]
    fn a_run_without_a_cap_has_a_part_of_the_smallest() {
        let of = |day, month, run| Budget { day, month, run, tokens_day: None }.of_a_run();
        assert_eq!(of(None, None, None), None);
        assert_eq!(of(Some(5.0), None, None), Some(0.5));
        assert_eq!(of(Some(5.0), Some(20.0), None), Some(0.2));
        assert_eq!(of(Some(5.0), Some(20.0), Some(1.0)), Some(1.0));
    }
}
