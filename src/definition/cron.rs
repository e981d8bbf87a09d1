//! Validates cron expressions. The schedule computes occurrences from them.
//!
//! `croner` accepts more than a definition may contain (seconds, years, names anywhere), and parses dates that never
//! occur. This module accepts exactly the documented five fields.

use chrono::DateTime;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::problem::quoted;

/// The reason why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error("a cron expression has 5 fields (minute hour day month weekday), this has {0}")]
    Fields(usize),
    /// An unknown `@name`.
    #[error("{0} is not a name for a cron expression")]
    Nickname(String),
    /// A field is invalid.
    #[error("{0}")]
    Field(String),
    /// The expression is well formed, but no date matches it.
    #[error("no date ever matches it, so it can never fire")]
    Never,
}

impl CronError {
    /// Returns a suggestion of what to write instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Fields(n) if *n > 5 => {
                "write no seconds and no year: `30 8 * * 1-5` is 8:30 on every day from Monday to Friday"
            }
            Self::Fields(_) | Self::Field(_) => {
                "for example `30 8 * * *` (every day at 8:30) or `*/15 9-17 * * 1-5` (every quarter of an hour at work)"
            }
            Self::Nickname(_) => "use @hourly, @daily, @midnight, @weekly, @monthly or @yearly, or five fields",
            Self::Never => "check the day against the month: a 30 February or a 31 April does not exist",
        }
    }
}

/// Maximum length of an expression, in bytes: longer than any sensible list of minutes.
const LONGEST: usize = 1000;

/// One of the five fields: its name, its range, and the names that stand for its values.
struct Field {
    name: &'static str,
    range: &'static str,
    names: &'static [&'static str],
    /// Whether an item (in capitals) is a special word of the field, such as `LW`.
    own: fn(&str) -> bool,
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", range: "0-59", names: &[], own: |_| false },
    Field { name: "hour", range: "0-23", names: &[], own: |_| false },
    Field {
        name: "day",
        range: "1-31",
        names: &[],
        own: |item| matches!(item, "L" | "LW") || item.strip_suffix('W').is_some_and(is_number),
    },
    Field { name: "month", range: "1-12 or JAN-DEC", names: &MONTHS, own: |_| false },
    Field {
        name: "weekday",
        range: "0-7 or SUN-SAT",
        names: &WEEKDAYS,
        own: |item| {
            let nth = |(day, n): (&str, &str)| (is_number(day) || WEEKDAYS.contains(&day)) && is_number(n);
            item.strip_suffix('L').is_some_and(is_number) || item.split_once('#').is_some_and(nth)
        },
    },
];

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Splits a text into its five fields, and expands an `@name` (crontab(5) has the table).
///
/// # Errors
/// [`CronError::Fields`], [`CronError::Nickname`], and [`CronError::Field`] for a text that is too long or not ASCII.
/// The fields themselves are not checked; see [`parse_cron`].
pub fn cron_fields(text: &str) -> Result<[&str; 5], CronError> {
    let text = text.trim();
    if text.len() > LONGEST || !text.is_ascii() {
        return Err(CronError::Field(format!("it is longer than {LONGEST} characters or has letters beyond A-Z")));
    }
    let text = match text.strip_prefix('@') {
        Some(name) => match name.to_ascii_lowercase().as_str() {
            "hourly" => "0 * * * *",
            "daily" | "midnight" => "0 0 * * *",
            "weekly" => "0 0 * * 0",
            "monthly" => "0 0 1 * *",
            "yearly" | "annually" => "0 0 1 1 *",
            _ => return Err(CronError::Nickname(quoted(text))),
        },
        None => text,
    };
    let mut words = text.split_ascii_whitespace();
    let fields = [(); 5].map(|()| words.next());
    match (fields, words.next()) {
        ([Some(minute), Some(hour), Some(day), Some(month), Some(weekday)], None) => {
            Ok([minute, hour, day, month, weekday])
        }
        _ => Err(CronError::Fields(text.split_ascii_whitespace().count())),
    }
}

/// Parses five fields or an `@name`. If both day fields are restricted, a date must match either of them; if one begins
/// with `*`, a date must match both (crontab(5)).
///
/// The result takes about 6 kB, so callers with many expressions keep the texts. It may match no date: see
/// [`check_cron`].
///
/// # Errors
/// [`CronError`], never [`CronError::Never`].
pub fn parse_cron(text: &str) -> Result<Cron, CronError> {
    let fields = cron_fields(text)?;
    assembled::cron(fields).ok_or_else(|| CronError::Field(first_wrong_field(&parser(fields), &fields)))
}

/// Configures croner's own parser with our rules.
fn parser([_, _, day, _, weekday]: [&str; 5]) -> CronParser {
    CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .dom_and_dow(day.starts_with(['*', '?']) || weekday.starts_with(['*', '?']))
        .build()
}

/// Returns the message about the first field that is invalid by itself. `croner` does not name the field.
fn first_wrong_field(parser: &CronParser, fields: &[&str; 5]) -> String {
    for (n, (field, text)) in FIELDS.iter().zip(fields).enumerate() {
        let mut alone = ["*"; 5];
        alone[n] = text;
        if !field.is_well_formed(text) || parser.parse(&alone.join(" ")).is_err() {
            return format!("the {} field {} is not valid ({})", field.name, quoted(text), field.range);
        }
    }
    "it is not a cron expression".into()
}

/// Checks that [`parse_cron`] accepts the text and that a date matches it.
///
/// # Errors
/// [`CronError`].
pub fn check_cron(text: &str) -> Result<(), CronError> {
    let fields = cron_fields(text)?;
    if always_comes(fields) && assembled::is_valid(fields) {
        return Ok(());
    }
    let cron = parse_cron(text)?;
    // The start is arbitrary: the calendar repeats every 400 years.
    cron.find_next_occurrence(&DateTime::UNIX_EPOCH, true).map(drop).map_err(|_| CronError::Never)
}

/// Whether a date obviously matches: every day exists in some month, and every month has days 1 to 28 and each weekday.
fn always_comes([_, _, day, month, weekday]: [&str; 5]) -> bool {
    let in_every_month = |day: &str| day.parse().is_ok_and(|day: u32| (1..=28).contains(&day));
    match (day, weekday) {
        ("*", _) => month == "*" || weekday == "*" || is_number(weekday),
        (_, "*") => month == "*" || in_every_month(day),
        _ => false,
    }
}

impl Field {
    /// Whether a text has the form of this field: a list of values, ranges, steps and special words. `croner` checks
    /// the bounds of the numbers. It also accepts malformed fields: names anywhere (`JANFEB` becomes month 12), empty
    /// items, `+MON`, `MON-FRI#2`, and a lone `L` for a weekday that never matches.
    fn is_well_formed(&self, text: &str) -> bool {
        let text = text.to_ascii_uppercase();
        if text == "?" {
            return matches!(self.name, "day" | "weekday");
        }
        // croner ignores `L` beside `LW`.
        let has = |word| text.split(',').any(|item| item == word);
        if has("L") && has("LW") {
            return false;
        }
        text.split(',').all(|item| (self.own)(item) || self.is_range(item))
    }

    /// Whether an item is a value, or `*` or a range with an optional step.
    fn is_range(&self, item: &str) -> bool {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let known = match range.split_once('-') {
            // croner reads the second `SUN` as 7.
            Some(("SUN", "SUN")) => false,
            Some((from, to)) => self.is_value(from) && self.is_value(to),
            None => range == "*" || (step.is_none() && self.is_value(range)),
        };
        known && step.is_none_or(is_number)
    }

    fn is_value(&self, text: &str) -> bool {
        is_number(text) || self.names.contains(&text)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

mod assembled;
#[cfg(test)]
mod tests;
