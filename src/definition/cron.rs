//! Which texts are cron expressions. Computing occurrences from one is the schedule's.
//!
//! `croner` accepts more than a definition may say (seconds, years, names anywhere), and parses dates that never
//! come; what is accepted here is exactly the documented five fields.

use std::cell::RefCell;
use std::collections::HashMap;

use chrono::DateTime;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};

use super::problem::quoted;

/// Why a text is not a cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Not five fields.
    #[error("a cron expression has 5 fields (minute hour day month weekday), this has {0}")]
    Fields(usize),
    /// An `@name` that is none.
    #[error("{0} is not a name for a cron expression")]
    Nickname(String),
    /// One field is wrong.
    #[error("{0}")]
    Field(String),
    /// It is well formed, and no date matches it.
    #[error("no date ever matches it, so it can never fire")]
    Never,
}

impl CronError {
    /// What to write instead.
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

/// Longer than any sensible list of minutes, short enough never to matter.
const LONGEST: usize = 1000;

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Parses five fields or an `@name`; both day fields restricted means either (vixie cron).
///
/// The result takes about 6 kB: keep the text, not this, where there are many. It may never match: see
/// [`check_cron`].
///
/// # Errors
/// [`CronError`], never [`CronError::Never`].
pub fn parse_cron(text: &str) -> Result<Cron, CronError> {
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
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(CronError::Fields(fields.len()));
    };
    let words = words_are_names(minute, &[], "")
        && words_are_names(hour, &[], "")
        && words_are_names(day, &[], "LW")
        && words_are_names(month, &MONTHS, "")
        && words_are_names(weekday, &WEEKDAYS, "L");
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    match parser.parse(text) {
        Ok(cron) if words => Ok(cron),
        _ => Err(CronError::Field(first_wrong_field(&parser, &fields))),
    }
}

/// The message about the first field that is wrong by itself (`croner` does not say which one it means).
fn first_wrong_field(parser: &CronParser, fields: &[&str]) -> String {
    let known: [(&str, &str, &[&str], &str); 5] = [
        ("minute", "0-59", &[], ""),
        ("hour", "0-23", &[], ""),
        ("day", "1-31", &[], "LW"),
        ("month", "1-12 or JAN-DEC", &MONTHS, ""),
        ("weekday", "0-7 or SUN-SAT", &WEEKDAYS, "L"),
    ];
    for (n, ((name, range, names, letters), field)) in known.iter().zip(fields).enumerate() {
        let mut alone = ["*"; 5];
        alone[n] = field;
        if !words_are_names(field, names, letters) || parser.parse(&alone.join(" ")).is_err() {
            return format!("the {name} field {} is not valid ({range})", quoted(field));
        }
    }
    "it is not a cron expression".into()
}

/// [`parse_cron`], and that some date matches. Remembers its answers on each thread, for many definitions share few
/// expressions.
///
/// # Errors
/// [`CronError`].
pub fn check_cron(text: &str) -> Result<(), CronError> {
    const REMEMBERED: usize = 4096;
    thread_local! {
        static SEEN: RefCell<HashMap<String, Result<(), CronError>>> = RefCell::new(HashMap::new());
    }
    if let Some(known) = SEEN.with_borrow(|seen| seen.get(text).cloned()) {
        return known;
    }
    let answer = parse_cron(text).and_then(|cron| {
        // Whether a date matches does not depend on when one asks: the calendar repeats every 400 years.
        cron.find_next_occurrence(&DateTime::UNIX_EPOCH, true).map(drop).map_err(|_| CronError::Never)
    });
    SEEN.with_borrow_mut(|seen| {
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        seen.insert(text.to_owned(), answer.clone());
    });
    answer
}

/// `croner` replaces names anywhere in the text (`JANFEB` becomes month 12): each run of letters must be one name
/// of its own field, or the letters that stand with a number there (`L`, `15W`).
fn words_are_names(field: &str, names: &[&str], letters: &str) -> bool {
    field.split(|c: char| !c.is_ascii_alphanumeric()).all(|word| {
        let upper = word.to_ascii_uppercase();
        names.contains(&upper.as_str()) || upper.chars().all(|c| c.is_ascii_digit() || letters.contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) -> String {
        check_cron(text).map_or_else(|error| error.to_string(), |()| "ok".into())
    }

    #[test]
    fn accepted() {
        for text in [
            "30 8 * * *",
            "*/5 * * * *",
            "  0   9  * *   MON-FRI ",
            "0 0 1,15 * 1",
            "0 0 * jan,Mar sun",
            "0 0 * * 0",
            "0 0 * * 7",
            "0 0 29 2 *",
            "0 0 L * *",
            "0 0 15W * *",
            "0 0 * * 5L",
            "0 0 * * MON#2",
            "0 0 ? * *",
            "@daily",
            "@Midnight",
            "@hourly",
            "@weekly",
            "@monthly",
            "@yearly",
            "@annually",
        ] {
            assert_eq!(check(text), "ok", "{text}");
        }
    }

    #[test]
    fn refused() {
        let shown: Vec<String> = [
            "",
            "* * * *",
            "0 30 8 * * *",
            "0 30 8 * * * 2030",
            "60 8 * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * 32 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "MON * * * *",
            "0 0 * JANFEB *",
            "0 0 * * MONDAY",
            "0 0 * * 1MON",
            "0 0 * * ВТ",
            "0 0 1 1 * @daily",
            "0 0 @1 1 *",
            "@reboot",
            "@",
            "a b c d e",
            "0 0 30 2 *",
            "0 0 31 4,6,9,11 *",
        ]
        .iter()
        .map(|text| format!("{text:20} {}", check(text)))
        .collect();
        insta::assert_snapshot!(shown.join("\n"), @"
                             a cron expression has 5 fields (minute hour day month weekday), this has 0
        * * * *              a cron expression has 5 fields (minute hour day month weekday), this has 4
        0 30 8 * * *         a cron expression has 5 fields (minute hour day month weekday), this has 6
        0 30 8 * * * 2030    a cron expression has 5 fields (minute hour day month weekday), this has 7
        60 8 * * *           the minute field `60` is not valid (0-59)
        * 24 * * *           the hour field `24` is not valid (0-23)
        * * 0 * *            the day field `0` is not valid (1-31)
        * * 32 * *           the day field `32` is not valid (1-31)
        * * * 13 *           the month field `13` is not valid (1-12 or JAN-DEC)
        * * * * 8            the weekday field `8` is not valid (0-7 or SUN-SAT)
        */0 * * * *          the minute field `*/0` is not valid (0-59)
        5-1 * * * *          the minute field `5-1` is not valid (0-59)
        MON * * * *          the minute field `MON` is not valid (0-59)
        0 0 * JANFEB *       the month field `JANFEB` is not valid (1-12 or JAN-DEC)
        0 0 * * MONDAY       the weekday field `MONDAY` is not valid (0-7 or SUN-SAT)
        0 0 * * 1MON         the weekday field `1MON` is not valid (0-7 or SUN-SAT)
        0 0 * * ВТ           it is longer than 1000 characters or has letters beyond A-Z
        0 0 1 1 * @daily     a cron expression has 5 fields (minute hour day month weekday), this has 6
        0 0 @1 1 *           the day field `@1` is not valid (1-31)
        @reboot              `@reboot` is not a name for a cron expression
        @                    `@` is not a name for a cron expression
        a b c d e            the minute field `a` is not valid (0-59)
        0 0 30 2 *           no date ever matches it, so it can never fire
        0 0 31 4,6,9,11 *    no date ever matches it, so it can never fire
        ");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-0-9*/,?#LW@ A-Za-z]{0,30}") {
            let _ = check_cron(&text);
        }
    }
}
