//! Turns recurring times as people type them into an equivalent cron expression: `weekdays at 8:30`, `every 2h`.
//!
//! Pure. Times that cron cannot express are refused, with the reason.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::time::Duration;

use chrono::Timelike as _;

use super::when::{MONTHS, WEEKDAYS, name, time_of_day};
use crate::refusal::Refusal;

const HINT: &str = "write `daily at 9`, `weekdays at 8:30`, `monday and friday 18:00`, `monthly on the 1st at 9`, `every 2h`, or \
                    a cron expression like `30 8 * * 1-5`";

/// Returns the cron expression that `text` is or means.
///
/// # Errors
/// If the text is ambiguous, or cron cannot express it.
pub(super) fn cron(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    if is_cron(text) {
        return Ok(text.to_owned());
    }
    read(text).map_err(|why| Refusal::user(format!("cannot make a cron expression of `{text}`: {why}")).hint(HINT))
}

/// Whether the text is meant as a cron expression, valid or not.
fn is_cron(text: &str) -> bool {
    let numbers = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b"*,/-?".contains(&b));
    text.starts_with('@') || text.split_whitespace().take(2).all(numbers)
}

/// The words that were read so far.
#[derive(Default)]
struct ReadWords {
    times: BTreeSet<(u32, u32)>,
    /// 0 is Sunday.
    weekdays: BTreeSet<u32>,
    days: BTreeSet<u32>,
    /// Whether the last day of the month is among the days.
    last_day: bool,
    months: BTreeSet<u32>,
    units: Vec<&'static str>,
    /// Whether the time was named: midnight or noon.
    is_named_time: bool,
}

fn read(text: &str) -> Result<String, String> {
    let lower = text.to_lowercase().replace([',', '&'], " ");
    let words: Vec<&str> = lower.split_whitespace().filter(|word| !matches!(*word, "on" | "the" | "of")).collect();
    if let ["every" | "each", span @ ..] = &words[..]
        && span.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    {
        return every(&span.join(" "));
    }
    let mut said = ReadWords::default();
    let mut words = words.into_iter().peekable();
    // A bare number is an hour after `at`, else a day.
    let mut is_hour = false;
    while let Some(word) = words.next() {
        let half = words.next_if(|next| matches!(*next, "am" | "pm")).unwrap_or_default();
        let whole = format!("{word}{half}");
        said.is_named_time |= matches!(word, "midnight" | "noon");
        if let Some(time) = time_of_day(&whole).map(|time| (time.hour(), time.minute(), time.second())) {
            match time {
                (hour, minute, 0) => said.times.insert((hour, minute)),
                _ => return Err("cron counts whole minutes".into()),
            };
            is_hour = true;
            continue;
        }
        match word {
            "and" => continue,
            "at" => {
                is_hour = true;
                continue;
            }
            "midnight" => {
                said.times.insert((0, 0));
                is_hour = true;
                continue;
            }
            _ => {}
        }
        if let Ok(number) = word.parse::<u32>() {
            match is_hour {
                true if number < 24 => said.times.insert((number, 0)),
                true => return Err(format!("`{word}` is no hour")),
                false => said.days.insert(number),
            };
            continue;
        }
        is_hour = false;
        said.add(word, &mut words)?;
    }
    said.cron()
}

impl ReadWords {
    /// Adds a word that is neither a time of day nor a number.
    fn add<'a>(&mut self, word: &str, words: &mut Peekable<impl Iterator<Item = &'a str>>) -> Result<(), String> {
        let of_weekday = |word: &str| {
            let day = name(word, &WEEKDAYS).or_else(|| name(word.strip_suffix('s')?, &WEEKDAYS));
            day.map(|monday_first| (monday_first + 1) % 7)
        };
        let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)?.parse::<u32>().ok());
        match word {
            "and" | "every" | "each" => {}
            "daily" | "day" | "everyday" => self.units.push("day"),
            "weekly" | "week" => self.units.push("week"),
            "monthly" | "month" => self.units.push("month"),
            "yearly" | "year" | "annually" => self.units.push("year"),
            "hourly" | "hour" => self.units.push("hour"),
            "minute" => self.units.push("minute"),
            "weekday" | "weekdays" | "workdays" => self.weekdays.extend(1..=5),
            "weekend" | "weekends" => self.weekdays.extend([0, 6]),
            "last" | "end" => {
                self.last_day = true;
                words.next_if(|next| *next == "day");
                words.next_if(|next| matches!(*next, "each" | "every"));
                if words.next_if(|next| *next == "month").is_some() && !self.units.contains(&"month") {
                    self.units.push("month");
                }
            }
            "other" | "second" => return Err("cron does not count weeks or days over the end of a month".into()),
            _ if ordinal.is_some() => self.days.extend(ordinal),
            _ => {
                let (first, last) = match word.split_once('-') {
                    Some((first, last)) => (first, Some(last)),
                    None => (word, words.next_if(|next| matches!(*next, "to" | "through")).and_then(|_| words.next())),
                };
                match (of_weekday(first), last.map(of_weekday), name(word, &MONTHS)) {
                    (Some(day), None, _) => drop(self.weekdays.insert(day)),
                    (Some(first), Some(Some(last)), _) => {
                        let length = (last + 7 - first) % 7;
                        self.weekdays.extend((0..=length).map(|n| (first + n) % 7));
                    }
                    (None, None, Some(month)) => drop(self.months.insert(month + 1)),
                    _ => return Err(format!("`{word}` is not a word that is understood")),
                }
            }
        }
        Ok(())
    }

    fn cron(self) -> Result<String, String> {
        let Self { times, weekdays, days, last_day, months, units, is_named_time } = self;
        let unclear = || Err("it is not clear which days are meant".to_owned());
        let no_days = days.is_empty() && !last_day;
        let has_days = !(weekdays.is_empty() && no_days && months.is_empty());
        match (&units[..], has_days || !times.is_empty()) {
            // Every day has a midnight and a noon.
            ([], true) if is_named_time && !has_days => {}
            (["hour"], false) => return Ok("0 * * * *".into()),
            (["minute"], false) => return Ok("* * * * *".into()),
            (["hour" | "minute"], true) => return Err("it says how often and when at once".into()),
            (["day"], _) if has_days => return unclear(),
            (["day"], _) => {}
            (["week"] | [], _) if !weekdays.is_empty() && no_days && months.is_empty() => {}
            (["month"], _) if !no_days && weekdays.is_empty() && months.is_empty() => {}
            (["year"] | [], _) if !no_days && !months.is_empty() && weekdays.is_empty() => {}
            (["week"], _) if !has_days => {
                return Err("it names no day of the week; say `mondays at 9`, or `@weekly`".into());
            }
            (["month"], _) if !has_days => return Err("it names no day of the month".into()),
            ([], false) => return Err("it is empty".into()),
            _ => return unclear(),
        }
        if let Some(day) = days.iter().find(|day| !(1..=31).contains(*day)) {
            return Err(format!("no month has a day {day}"));
        }
        if times.is_empty() {
            return Err("it names no time of day; say `at 9`".into());
        }
        let hours: BTreeSet<u32> = times.iter().map(|(hour, _)| *hour).collect();
        let minutes: BTreeSet<u32> = times.iter().map(|(_, minute)| *minute).collect();
        if hours.len() * minutes.len() != times.len() {
            return Err("one expression has the same minutes in every hour; make a routine for each time".into());
        }
        let weekdays = if weekdays.len() == 7 { BTreeSet::new() } else { weekdays };
        let [minutes, hours, days, months, weekdays] =
            [minutes, hours, days, months, weekdays].map(|values| field(&values));
        let days = match (last_day, &*days) {
            (false, _) => days,
            (true, "*") => "L".to_owned(),
            (true, days) => format!("{days},L"),
        };
        Ok([minutes, hours, days, months, weekdays].join(" "))
    }
}

/// Formats one field: `*`, `9`, `1-5`, `1,5`.
fn field(values: &BTreeSet<u32>) -> String {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return "*".into() };
    if values.len() > 2 && usize::try_from(last - first + 1) == Ok(values.len()) {
        return format!("{first}-{last}");
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Parses `2h`, `15 minutes`. The span must divide an hour or a day, so that the steps are even.
fn every(text: &str) -> Result<String, String> {
    let span: Duration = humantime::parse_duration(text).map_err(|_| format!("`{text}` is no span of time"))?;
    let minutes = span.as_secs() / 60;
    if span.subsec_nanos() != 0 || !span.as_secs().is_multiple_of(60) || minutes == 0 {
        return Err("cron counts whole minutes".into());
    }
    match minutes {
        1 => Ok("* * * * *".into()),
        2..60 if 60 % minutes == 0 => Ok(format!("*/{minutes} * * * *")),
        60 => Ok("0 * * * *".into()),
        1440 => Ok("0 0 * * *".into()),
        61..1440 if minutes.is_multiple_of(60) && 1440 % minutes == 0 => Ok(format!("0 */{} * * *", minutes / 60)),
        10_080 => Err("it names no day of the week; say `mondays at 9`, or `@weekly`".into()),
        1441.. => Err("cron does not count days over the end of a month".into()),
        _ => Err("cron's steps begin anew with each hour and day, and only a span that divides one stays even; `--every` counts elapsed time".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&str, &str>) {
        match (cron(text), expect) {
            (Ok(cron), Ok(expect)) => {
                assert_eq!(cron, expect, "{text}");
                assert!(crate::definition::cron::check_cron(&cron).is_ok(), "{cron}");
            }
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{text}: {error}");
                assert!(!error.hints.is_empty());
            }
            (read, _) => panic!("{text}: {read:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn days_and_times() {
        check("daily at 9", Ok("0 9 * * *"));
        check("Every day at 9 am and 5:30pm", Err("same minutes"));
        check("every day at 9am, 5pm", Ok("0 9,17 * * *"));
        check("daily at 9 and 17", Ok("0 9,17 * * *"));
        check("daily at 9:00, 9:30", Ok("0,30 9 * * *"));
        check("daily at noon", Ok("0 12 * * *"));
        check("at midnight every day", Ok("0 0 * * *"));
        check("midnight", Ok("0 0 * * *"));
        check("at noon", Ok("0 12 * * *"));
        check("mondays at midnight", Ok("0 0 * * 1"));
        check("weekdays at 8:30", Ok("30 8 * * 1-5"));
        check("weekends 10:00", Ok("0 10 * * 0,6"));
        check("monday and friday 18:00", Ok("0 18 * * 1,5"));
        check("mondays at 9", Ok("0 9 * * 1"));
        check("weekly on sunday at 20:15", Ok("15 20 * * 0"));
        check("mon-thu at 7", Ok("0 7 * * 1-4"));
        check("friday to monday at 7", Ok("0 7 * * 0,1,5,6"));
        check("monday to sunday at 7", Ok("0 7 * * *"));
        check("monthly on the 1st at 9", Ok("0 9 1 * *"));
        check("every month on the 1st and 15th at 9:05", Ok("5 9 1,15 * *"));
        check("monthly on 3 at 9", Ok("0 9 3 * *"));
        check("last day of the month at 9", Ok("0 9 L * *"));
        check("monthly on the last day at 18:30", Ok("30 18 L * *"));
        check("every month on the last day at noon", Ok("0 12 L * *"));
        check("at the end of each month at 9", Ok("0 9 L * *"));
        check("monthly on the 15th and the last day at 9", Ok("0 9 15,L * *"));
        check("last day of february at 9", Ok("0 9 L 2 *"));
        check("yearly on dec 31 at 9", Ok("0 9 31 12 *"));
        check("every year on the 1st of march at noon", Ok("0 12 1 3 *"));
        check("hourly", Ok("0 * * * *"));
        check("every minute", Ok("* * * * *"));
    }

    #[test]
    fn spans_that_divide_an_hour_or_a_day() {
        check("every 2h", Ok("0 */2 * * *"));
        check("every 15 minutes", Ok("*/15 * * * *"));
        check("every 60m", Ok("0 * * * *"));
        check("every 24h", Ok("0 0 * * *"));
        check("every 1m", Ok("* * * * *"));
        for (text, words) in [
            ("every 90m", "divides"),
            ("every 5h", "divides"),
            ("every 7m", "divides"),
            ("every 30s", "whole minutes"),
            ("every 2days", "end of a month"),
            ("every 1w", "day of the week"),
            ("every 3 apples", "no span"),
        ] {
            check(text, Err(words));
        }
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        for (text, words) in [
            ("daily", "no time of day"),
            ("monday", "no time of day"),
            ("at 9", "not clear"),
            ("weekly at 9", "day of the week"),
            ("monthly at 9", "day of the month"),
            ("daily on monday at 9", "not clear"),
            ("monday the 13th at 9", "not clear"),
            ("monthly on the 32nd at 9", "day 32"),
            ("last friday of the month at 9", "not clear"),
            ("last day of month", "no time of day"),
            ("every other week on monday at 9", "does not count weeks"),
            ("hourly at 9", "at once"),
            ("daily at 25", "no hour"),
            ("dec at 9", "not clear"),
            ("daily at nine", "`nine`"),
            ("often", "`often`"),
        ] {
            check(text, Err(words));
        }
    }

    #[test]
    fn cron_expressions_stay_as_they_are() {
        for text in
            ["30 8 * * 1-5", "@daily", "*/5 * * * *", "0 9 1 jan *", "0 9 * * mon-fri", "61 8 * * *", "*", "5", ""]
        {
            assert_eq!(cron(text).unwrap(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_gives_cron(text in r"(every |daily |at |mon|-|to |1st |31 |feb |[0-9]{1,12}[hm]? ?|am |:|and |\PC){0,8}") {
            if let Ok(made) = cron(&text) && !is_cron(text.trim()) {
                assert_eq!(made.split(' ').count(), 5, "{text}: {made}");
            }
        }
    }
}
