//! Parses times as people type them: RFC 3339, a local date and time, or plain English.
//!
//! Pure. `interim` parses the English, but it silently stops at what it does not understand (it reads `9am tomorrow` as
//! today) and refuses `tomorrow at 9am`. So this module sorts the words first, passes only known ones, and checks that
//! the result has every number and weekday of the text. It guesses nothing: it refuses a time that has passed, and a
//! local time that the clocks skip or repeat. A day without a time gets the caller's default, which is shown whenever
//! something is scheduled.

use chrono::{DateTime, Datelike, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use interim::{Dialect, Interval};

use super::times;
use crate::definition::time_with_offset;
use crate::refusal::Refusal;

const HINT: &str =
    "write a time like `tomorrow 9am`, `friday 18:30`, `end of month`, `31.12. 12:00` or `2030-12-31 09:00`";

/// Default time of a reminder on a day without one.
const MORNING: NaiveTime = of_day(9, 0, 0);
/// Default time of `tonight`, and the time at which an evening begins.
const TONIGHT: NaiveTime = of_day(20, 0, 0);
const EVENING: NaiveTime = of_day(17, 0, 0);
/// The first and the last second of a day.
pub(super) const BEGINS: NaiveTime = NaiveTime::MIN;
pub(super) const ENDS: NaiveTime = of_day(23, 59, 59);

const fn of_day(hour: u32, minute: u32, second: u32) -> NaiveTime {
    match NaiveTime::from_hms_opt(hour, minute, second) {
        Some(time) => time,
        None => NaiveTime::MIN,
    }
}

/// Parses a time, which must be in the future.
///
/// # Errors
/// If the text is ambiguous, or its time has passed.
pub(super) fn future(text: &str, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    let at = read(text, MORNING, now, zone)?;
    if at <= now {
        let shown = format!(
            "`{text}` is {}, which has passed ({})",
            times::local(at.with_timezone(&Utc), now, zone),
            times::relative(at.with_timezone(&Utc), now)
        );
        let hint = match names_a_day(text) {
            true => "name a later time of that day, as in `today 23:00`, or a later day",
            false => "name the day too: `tomorrow 9am`",
        };
        return Err(Refusal::user(shown).hint(hint));
    }
    Ok(at)
}

fn names_a_day(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let word = word.to_lowercase();
        matches!(&*word, "today" | "tonight" | "this")
            || name(&word, &WEEKDAYS).or(name(&word, &MONTHS)).is_some()
            || dotted(&word).is_some()
    }) || text.contains('-')
}

/// Parses a time that has passed. A day without a time means its beginning.
///
/// # Errors
/// If the text is ambiguous, or its time is to come.
pub(super) fn past(text: &str, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    const HINT: &str =
        "write a span of time, `2h`, or a time that has passed: `yesterday 18:00`, `today`, `2026-11-22`";
    let at = any(text, BEGINS, now, zone).map_err(|refusal| Refusal { hints: Vec::new(), ..refusal }.hint(HINT))?;
    if at > now {
        let shown = times::local(at.with_timezone(&Utc), now, zone);
        return Err(Refusal::user(format!("`{text}` is {shown}, which is to come")).hint(HINT));
    }
    Ok(at)
}

/// Parses a time, past or future. `unsaid`: the default for a day without a time.
///
/// # Errors
/// If the text is ambiguous.
pub(super) fn any(text: &str, unsaid: NaiveTime, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    if text.trim().eq_ignore_ascii_case("now") {
        return Ok(now.with_timezone(&zone));
    }
    let is_yesterday = |word: &str| word.trim_end_matches(',').eq_ignore_ascii_case("yesterday");
    if !text.split_whitespace().any(is_yesterday) {
        return read(text, unsaid, now, zone);
    }
    // Replaces `yesterday` by its date, which `read` understands.
    let local = now.with_timezone(&zone).date_naive();
    let date = local.pred_opt().ok_or_else(|| unreadable(text, "it is too far away"))?.to_string();
    let words: Vec<_> = text.split_whitespace().map(|word| if is_yesterday(word) { &*date } else { word }).collect();
    read(&words.join(" "), unsaid, now, zone)
}

fn read(text: &str, unsaid: NaiveTime, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    let text = text.trim();
    if let Some(at) = time_with_offset(text) {
        return Ok(at.with_timezone(&zone));
    }
    let local = now.with_timezone(&zone).naive_local();
    let read = match numeric(text) {
        Some(written) => written,
        None => match english(text, unsaid, local)? {
            TimePhrase::Local(written) => written,
            TimePhrase::After(span) => {
                let at = now.checked_add_signed(span).ok_or_else(|| unreadable(text, "it is too far away"))?;
                return Ok(at.with_timezone(&zone));
            }
        },
    };
    match zone.from_local_datetime(&read) {
        LocalResult::Single(at) => Ok(at),
        LocalResult::None => {
            let refusal = Refusal::user(format!("{} does not exist in {zone}: the clocks skip it", show(read)));
            // The time on a clock that was not set forward.
            let span = chrono::TimeDelta::hours(6);
            let before = zone.from_local_datetime(&(read - span)).latest();
            Err(match before.map(|before| before + span) {
                Some(at) => refusal.hint(format!("write the time with its offset, as in `{}`", at.to_rfc3339())),
                None => refusal.hint(HINT),
            })
        }
        LocalResult::Ambiguous(first, second) => {
            Err(Refusal::user(format!("{} happens twice in {zone}: the clocks repeat it", show(read))).hint(format!(
                "write `{}` for the first or `{}` for the second",
                first.to_rfc3339(),
                second.to_rfc3339()
            )))
        }
    }
}

fn show(local: NaiveDateTime) -> String {
    local.format("%Y-%m-%d %H:%M").to_string()
}

fn unreadable(text: &str, why: &str) -> Refusal {
    Refusal::user(format!("cannot read the time `{text}`: {why}")).hint(HINT)
}

/// Parses `2026-11-22 09:00` and `2026-11-22T09:00:30`.
fn numeric(text: &str) -> Option<NaiveDateTime> {
    ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
}

/// A time as English words name it.
enum TimePhrase {
    /// A local date and time.
    Local(NaiveDateTime),
    /// A time from now.
    After(chrono::TimeDelta),
}

fn english(text: &str, unsaid: NaiveTime, local: NaiveDateTime) -> Result<TimePhrase, Refusal> {
    let fail = |why: &str| unreadable(text, why);
    if text.is_empty() {
        return Err(fail("it is empty"));
    }
    let (words, time) = split(text).map_err(|why| fail(&why))?;
    if words.iter().any(|word| word == "midnight") {
        return match (&words[..], time) {
            ([_], None) => {
                let day = local.date().succ_opt().ok_or_else(|| fail("it is too far away"))?;
                Ok(TimePhrase::Local(day.and_time(BEGINS)))
            }
            _ => Err(fail("midnight begins a day and ends another one").hint("write `00:00`, which begins the day")),
        };
    }
    if words.iter().any(|word| word == "tonight") {
        return match (&words[..], time.unwrap_or(TONIGHT)) {
            ([_], time) if time >= EVENING => Ok(TimePhrase::Local(local.date().and_time(time))),
            ([_], _) => Err(fail("`tonight` goes with a time from 17:00 on")
                .hint("name the day, as in `tomorrow 1:00` for the hours after midnight")),
            _ => Err(fail("`tonight` names the day already")),
        };
    }
    if words.join(" ") == "day after tomorrow" {
        let date =
            local.date().checked_add_signed(chrono::TimeDelta::days(2)).ok_or_else(|| fail("it is too far away"))?;
        return Ok(TimePhrase::Local(date.and_time(time.unwrap_or(unsaid))));
    }
    if let Some(interval) = from_now(&words).map_err(|why| fail(&why))? {
        return match (interval, time) {
            (Interval::Seconds(_), Some(_)) => {
                Err(fail("a span of hours or minutes and a time of day do not go together"))
            }
            (Interval::Seconds(seconds), None) => Ok(TimePhrase::After(chrono::TimeDelta::seconds(seconds.into()))),
            (Interval::Days(days), time) => {
                let date = local.date().checked_add_signed(chrono::TimeDelta::days(days.into()));
                let date = date.ok_or_else(|| fail("it is too far away"))?;
                Ok(TimePhrase::Local(date.and_time(time.unwrap_or(local.time()))))
            }
            (Interval::Months(months), time) => {
                let months = chrono::Months::new(months.unsigned_abs());
                let date = local.date().checked_add_months(months).ok_or_else(|| fail("it is too far away"))?;
                Ok(TimePhrase::Local(date.and_time(time.unwrap_or(local.time()))))
            }
        };
    }
    let time_or_unsaid = time.unwrap_or(unsaid);
    let date = match &words[..] {
        [] => local.date(),
        _ => day(&words, text, time_or_unsaid, local).map_err(|why| fail(&why))?,
    };
    Ok(TimePhrase::Local(date.and_time(time_or_unsaid)))
}

/// Splits a text into the words for a day or a span, and the time of day, which can be anywhere.
fn split(text: &str) -> Result<(Vec<String>, Option<NaiveTime>), String> {
    let lower = text.to_lowercase().replace(',', " ");
    let mut rest: Vec<&str> = lower.split_whitespace().filter(|word| !matches!(*word, "on" | "the" | "of")).collect();
    let mut time = None;
    let mut words = Vec::new();
    rest.reverse();
    let mut is_time = false;
    while let Some(word) = rest.pop() {
        if word == "at" {
            is_time = true;
            continue;
        }
        let half = rest.last().copied().filter(|next| matches!(*next, "am" | "pm"));
        let read = match half {
            Some(half) => {
                let joined = time_of_day(&format!("{word}{half}"));
                if joined.is_some() {
                    rest.pop();
                }
                joined
            }
            // `at 9` names an hour, unless it is the day of a month.
            None if is_time && rest.last().is_none_or(|next| name(next, &MONTHS).is_none()) => {
                time_of_day(word).or_else(|| time_of_day(&format!("{word}:00")))
            }
            None => time_of_day(word),
        };
        is_time = false;
        match read {
            None => words.push(word.to_owned()),
            Some(_) if time.is_some() => return Err("it names two times of day".into()),
            Some(read) => time = Some(read),
        }
    }
    Ok((words, time))
}

/// Parses `9am`, `9.30pm`, `9:30`, `21:00`, `21:00:30`, `noon`. A bare number is not a time.
pub(super) fn time_of_day(word: &str) -> Option<NaiveTime> {
    if word == "noon" {
        return NaiveTime::from_hms_opt(12, 0, 0);
    }
    let (digits, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (word, None),
    };
    let parts: Vec<&str> = digits.split([':', '.']).collect();
    let number = |at: usize| -> Option<u32> {
        let part = parts.get(at)?;
        let shape = if at == 0 { (1..=2).contains(&part.len()) } else { part.len() == 2 };
        if shape && part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None }
    };
    let hour = match (half, number(0)?) {
        (Some(half), hour @ 1..=12) => hour % 12 + half,
        (Some(_), _) => return None,
        (None, hour) => hour,
    };
    match (parts.len(), half) {
        (1, Some(_)) => NaiveTime::from_hms_opt(hour, 0, 0),
        (2, Some(_)) => NaiveTime::from_hms_opt(hour, number(1)?, 0),
        // `9.30` alone could be a date or a decimal number.
        (2, None) if digits.contains(':') => NaiveTime::from_hms_opt(hour, number(1)?, 0),
        (3, _) if digits.matches(':').count() == 2 => NaiveTime::from_hms_opt(hour, number(1)?, number(2)?),
        _ => None,
    }
}

/// Parses `in 20 minutes`, `3 days`, `an hour`, `1h30m`, `half an hour`. Returns `None` if the words name a day.
fn from_now(words: &[String]) -> Result<Option<Interval>, String> {
    let said_in = words.first().is_some_and(|word| word == "in");
    let words = &words[usize::from(said_in)..];
    let Some(first) = words.first() else {
        return if said_in { Err("it says `in`, but not how long".into()) } else { Ok(None) };
    };
    let text = match words.join(" ").as_str() {
        "half an hour" | "half hour" => "30 minutes".to_owned(),
        joined => match first.as_str() {
            "a" | "an" | "one" => format!("1 {}", words[1..].join(" ")),
            _ => joined.replace(" and ", " "),
        },
    };
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return if said_in { Err("it says `in`, but not how long".into()) } else { Ok(None) };
    }
    // Days, weeks and months keep the local time, even if the clocks change in between.
    let mut pair = text.split(' ');
    if let (Some(count), Some(unit), None) = (pair.next(), pair.next(), pair.next())
        && let Ok(count) = count.parse::<i32>()
    {
        let days = match unit {
            "day" | "days" => Some(1),
            "week" | "weeks" => Some(7),
            _ => None,
        };
        if let Some(days) = days {
            return count.checked_mul(days).map(Interval::Days).map(Some).ok_or_else(|| "it is too far away".into());
        }
        if matches!(unit, "month" | "months") {
            return Ok(Some(Interval::Months(count)));
        }
    }
    match humantime::parse_duration(&text) {
        Ok(span) => match i32::try_from(span.as_secs()) {
            Ok(seconds) => Ok(Some(Interval::Seconds(seconds))),
            Err(_) => Err("it is too far away".into()),
        },
        Err(_) if said_in => Err("after `in` comes a span like `20 minutes` or `1h30m`".into()),
        Err(_) => Ok(None),
    }
}

pub(super) const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Returns the index of the name that equals `word` or begins with it (at least three letters).
pub(super) fn name(word: &str, names: &[&str]) -> Option<u32> {
    let at = names.iter().position(|name| word.len() >= 3 && name.starts_with(word))?;
    u32::try_from(at).ok()
}

/// The content of the words that name a day.
#[derive(Default)]
struct DayWords {
    /// 0 is Monday.
    weekday: Option<u32>,
    month: Option<u32>,
    /// The day of the month.
    number: Option<u32>,
    year: Option<u32>,
    /// The same words for `interim`.
    phrase: Vec<String>,
}

impl DayWords {
    /// Reads the words. `text` is the original input, from which an unknown word is quoted.
    fn read(words: &[String], text: &str) -> Result<Self, String> {
        let typed = |word: &String| {
            let mut all = text.split(|c: char| c.is_whitespace() || c == ',');
            all.find(|typed| typed.to_lowercase() == *word).map_or_else(|| word.clone(), str::to_owned)
        };
        let mut said = Self::default();
        for word in words {
            let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
            if matches!(word.as_str(), "today" | "tomorrow") {
                said.phrase.push(word.clone());
            } else if word == "this" {
                // The word adds nothing to the day.
            } else if word == "next" {
                return Err("`next` means different days to different people".into());
            } else if let Some(index) = name(word, &WEEKDAYS) {
                said.weekday = Some(index);
                said.phrase.push(WEEKDAYS[index as usize].to_owned());
            } else if let Some(index) = name(word, &MONTHS) {
                said.month = Some(index + 1);
                said.phrase.push(MONTHS[index as usize].to_owned());
            } else if let Ok(date) = NaiveDate::parse_from_str(word, "%Y-%m-%d") {
                return Err(format!("it says more than {date} and a time"));
            } else if let Some((day, of_month, of_year)) = dotted(word) {
                if said.number.replace(day).is_some() || said.month.replace(of_month).is_some() {
                    return Err(format!("it is not clear what `{word}` is"));
                }
                said.year = of_year;
                said.phrase.push(word.clone());
            } else if let Ok(value) = digits.parse::<u32>() {
                let slot = if digits.len() == 4 { &mut said.year } else { &mut said.number };
                if slot.replace(value).is_some() {
                    return Err(format!("it is not clear what `{word}` is"));
                }
                said.phrase.push(digits.to_owned());
            } else {
                return Err(format!("`{}` is not a word of a time that is understood", typed(word)));
            }
        }
        Ok(said)
    }
}

/// Parses a day by name or date. `interim` reads names, and its result is checked against the words. Dates are read here.
fn day(words: &[String], text: &str, time: NaiveTime, local: NaiveDateTime) -> Result<NaiveDate, String> {
    if let [first, rest @ ..] = words
        && first == "end"
    {
        return last_day(rest, local.date());
    }
    if let [word] = words
        && let Ok(date) = NaiveDate::parse_from_str(word, "%Y-%m-%d")
    {
        return Ok(date);
    }
    let DayWords { weekday, month, number, year, phrase } = DayWords::read(words, text)?;
    if phrase.is_empty() || (weekday.is_some() && month.is_some()) || (number.is_some() != month.is_some()) {
        return Err("it is not clear which day is meant".into());
    }
    if let (Some(day), Some(month)) = (number, month) {
        if phrase.iter().any(|word| matches!(word.as_str(), "today" | "tomorrow")) {
            return Err("it is not clear which day is meant".into());
        }
        // Without a year it is the next such date. A 29 February can be years away.
        let years = match year {
            Some(year) => i32::try_from(year).map(|year| year..=year).map_err(|_| "there is no such year")?,
            None => local.year()..=local.year() + 8,
        };
        let mut dates = years.filter_map(|year| NaiveDate::from_ymd_opt(year, month, day));
        return dates
            .find(|date| year.is_some() || *date >= local.date())
            .ok_or_else(|| "there is no such date".into());
    }
    if year.is_some() {
        return Err("it is not clear which day is meant".into());
    }
    let text = format!("{} {}", phrase.join(" "), time.format("%H:%M:%S"));
    // `interim` computes in local time only; the caller applies the time zone.
    let read = interim::parse_date_string(&text, local.and_utc(), Dialect::Uk)
        .map_err(|_| "it is not clear which day is meant".to_owned())?
        .naive_utc();
    let held = weekday.is_none_or(|index| read.weekday().num_days_from_monday() == index)
        && read.num_seconds_from_midnight() == time.num_seconds_from_midnight();
    if held { Ok(read.date()) } else { Err("it is not clear which day is meant".into()) }
}

/// Parses `31.12.2026`, and `31.12.` for the next one. With dots the day always comes first.
fn dotted(word: &str) -> Option<(u32, u32, Option<u32>)> {
    let number = |text: &str, longest: usize| {
        let plain = !text.is_empty() && text.len() <= longest && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    match word.split('.').collect::<Vec<_>>()[..] {
        [day, month, ""] => Some((number(day, 2)?, number(month, 2)?, None)),
        [day, month, year] if year.len() == 4 => Some((number(day, 2)?, number(month, 2)?, number(year, 4))),
        _ => None,
    }
}

/// Returns the last day of `month`, `year`, `february` or `february 2027`.
fn last_day(words: &[String], today: NaiveDate) -> Result<NaiveDate, String> {
    let unclear = || "it is not clear which day is meant".to_owned();
    let last = |year: i32, month: u32| {
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        NaiveDate::from_ymd_opt(next.0, next.1, 1).and_then(|first| first.pred_opt())
    };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "this").collect();
    let date = match words[..] {
        ["month"] => last(today.year(), today.month()),
        ["year"] => last(today.year(), 12),
        [month] => {
            let month = name(month, &MONTHS).ok_or_else(unclear)? + 1;
            last(today.year(), month).filter(|date| *date >= today).or_else(|| last(today.year() + 1, month))
        }
        [month, year] => {
            let month = name(month, &MONTHS).ok_or_else(unclear)? + 1;
            let year = year.parse().ok().filter(|_| year.len() == 4).ok_or_else(unclear)?;
            last(year, month)
        }
        _ => None,
    };
    date.ok_or_else(unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sat 21 Nov 2026, 13:56 in Berlin.
    const NOW: &str = "2026-11-21T12:56:00Z";

    #[track_caller]
    fn check(text: &str, expect: Result<&str, &str>) {
        let read = future(text, NOW.parse().unwrap(), chrono_tz::Europe::Berlin);
        match (read, expect) {
            (Ok(at), Ok(expect)) => assert_eq!(at.to_rfc3339(), expect, "{text}"),
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{text}: {error}");
                assert!(!error.hints.is_empty(), "{text}");
            }
            (read, _) => panic!("{text}: {read:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn what_has_passed_is_answered_by_what_was_left_out() {
        for (text, hint) in [
            ("9am", "name the day too"),
            ("today", "name a later time of that day"),
            ("today 9am", "name a later time of that day"),
            ("2026-11-20 09:00", "name a later time of that day"),
        ] {
            let refused = future(text, NOW.parse().unwrap(), chrono_tz::Europe::Berlin).unwrap_err();
            assert!(refused.hints[0].starts_with(hint), "{text}: {refused:?}");
        }
    }

    #[test]
    fn exact_times() {
        check("2026-11-22T09:00+01:00", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22T08:00:00Z", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22T08:00Z", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22 08:00z", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22T09:00X", Err("`2026-11-22T09:00X` is not a word"));
        check("2026-11-22 09:00", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22T09:00:30", Ok("2026-11-22T09:00:30+01:00"));
        check("2026-11-22 9am", Ok("2026-11-22T09:00:00+01:00"));
        check("2026-11-22", Ok("2026-11-22T09:00:00+01:00"));
        check("9", Err("not clear"));
    }

    #[test]
    fn english_in_every_order() {
        for text in [
            "tomorrow 9am",
            "9am tomorrow",
            "tomorrow at 9am",
            "Tomorrow at 9 AM",
            "at 9:00 tomorrow",
            "tomorrow, 9.00am",
        ] {
            check(text, Ok("2026-11-22T09:00:00+01:00"));
        }
        check("18:30", Ok("2026-11-21T18:30:00+01:00"));
        check("today 6.30pm", Ok("2026-11-21T18:30:00+01:00"));
        check("tomorrow noon", Ok("2026-11-22T12:00:00+01:00"));
        check("12am tomorrow", Ok("2026-11-22T00:00:00+01:00"));
        check("friday 18:30", Ok("2026-11-27T18:30:00+01:00"));
        check("on fri at 18:30", Ok("2026-11-27T18:30:00+01:00"));
        check("saturday 20:00", Ok("2026-11-21T20:00:00+01:00"));
        check("saturday 9am", Ok("2026-11-28T09:00:00+01:00"));
        check("1 dec 9am", Ok("2026-12-01T09:00:00+01:00"));
        check("December 1st at 9am", Ok("2026-12-01T09:00:00+01:00"));
        check("5 jan 9am", Ok("2027-01-05T09:00:00+01:00"));
        check("29 february 9am", Ok("2028-02-29T09:00:00+01:00"));
        check("9am on the 5th of July 2027", Ok("2027-07-05T09:00:00+02:00"));
    }

    #[test]
    fn a_day_alone_is_its_morning() {
        check("tomorrow", Ok("2026-11-22T09:00:00+01:00"));
        check("friday", Ok("2026-11-27T09:00:00+01:00"));
        check("saturday", Ok("2026-11-28T09:00:00+01:00"));
        check("today", Err("has passed"));
        check("Dec 31", Ok("2026-12-31T09:00:00+01:00"));
        check("31 December 2027", Ok("2027-12-31T09:00:00+01:00"));
        check("31.12.2026", Ok("2026-12-31T09:00:00+01:00"));
        check("31.12. 12:00", Ok("2026-12-31T12:00:00+01:00"));
        check("5.1.2027 18:30", Ok("2027-01-05T18:30:00+01:00"));
        check("1.2.", Ok("2027-02-01T09:00:00+01:00"));
        check("at noon on 24.12.", Ok("2026-12-24T12:00:00+01:00"));
        for (text, words) in [("31.2.2027", "no such date"), ("31.12", "`31.12`"), ("1.2.27", "`1.2.27`")] {
            check(text, Err(words));
        }
    }

    #[test]
    fn noon_midnight_and_ends() {
        check("midnight", Ok("2026-11-22T00:00:00+01:00"));
        check("at midnight", Ok("2026-11-22T00:00:00+01:00"));
        check("tomorrow midnight", Err("begins a day and ends another"));
        check("noon", Err("has passed"));
        check("end of month", Ok("2026-11-30T09:00:00+01:00"));
        check("end of the month at 18:00", Ok("2026-11-30T18:00:00+01:00"));
        check("end of this year", Ok("2026-12-31T09:00:00+01:00"));
        check("end of february", Ok("2027-02-28T09:00:00+01:00"));
        check("end of feb 2028 noon", Ok("2028-02-29T12:00:00+01:00"));
        for text in ["end of week", "end", "end of friday", "end of next month", "end of month friday"] {
            check(text, Err("not clear"));
        }
        let shown =
            |text, unsaid| any(text, unsaid, NOW.parse().unwrap(), chrono_tz::Europe::Berlin).unwrap().to_rfc3339();
        assert_eq!(shown("friday", BEGINS), "2026-11-27T00:00:00+01:00");
        assert_eq!(shown("friday", ENDS), "2026-11-27T23:59:59+01:00");
    }

    #[test]
    fn tonight_is_the_evening_of_today() {
        check("tonight", Ok("2026-11-21T20:00:00+01:00"));
        check("Tonight at 9:30 pm", Ok("2026-11-21T21:30:00+01:00"));
        check("17:00 tonight", Ok("2026-11-21T17:00:00+01:00"));
        for (text, words) in [
            ("tonight 1:00", "from 17:00 on"),
            ("tonight noon", "from 17:00 on"),
            ("tonight midnight", "begins a day and ends another"),
            ("tonight friday", "the day already"),
            ("in tonight", "the day already"),
        ] {
            check(text, Err(words));
        }
        // Later in the evening it is over. The next day's evening is not meant.
        let late = "2026-11-21T20:30:00+01:00".parse().unwrap();
        let refused = future("tonight", late, chrono_tz::Europe::Berlin).unwrap_err();
        assert!(refused.to_string().contains("which has passed"), "{refused:?}");
        assert_eq!(refused.hints, ["name a later time of that day, as in `today 23:00`, or a later day"]);
        assert_eq!(
            future("tonight 21:00", late, chrono_tz::Europe::Berlin).unwrap().to_rfc3339(),
            "2026-11-21T21:00:00+01:00"
        );
        // A time without a default keeps the evening, rather than the end of the day.
        let shown = any("tonight", ENDS, NOW.parse().unwrap(), chrono_tz::Europe::Berlin).unwrap();
        assert_eq!(shown.to_rfc3339(), "2026-11-21T20:00:00+01:00");
    }

    #[test]
    fn spans_from_now() {
        check("in 20 minutes", Ok("2026-11-21T14:16:00+01:00"));
        check("20 minutes", Ok("2026-11-21T14:16:00+01:00"));
        check("in 1h30m", Ok("2026-11-21T15:26:00+01:00"));
        check("in 1 hour and 30 minutes", Ok("2026-11-21T15:26:00+01:00"));
        check("in half an hour", Ok("2026-11-21T14:26:00+01:00"));
        check("in an hour", Ok("2026-11-21T14:56:00+01:00"));
        check("in 3 days", Ok("2026-11-24T13:56:00+01:00"));
        check("in a week at 9am", Ok("2026-11-28T09:00:00+01:00"));
        check("day after tomorrow 9am", Ok("2026-11-23T09:00:00+01:00"));
        check("day after tomorrow at 17", Ok("2026-11-23T17:00:00+01:00"));
        check("day after tomorrow", Ok("2026-11-23T09:00:00+01:00"));
        check("tomorrow at 9", Ok("2026-11-22T09:00:00+01:00"));
        check("at 19", Ok("2026-11-21T19:00:00+01:00"));
        check("at 9:30 tomorrow", Ok("2026-11-22T09:30:00+01:00"));
        check("in 2 months at 9am", Ok("2027-01-21T09:00:00+01:00"));
        // The clocks are set forward within these five months; the local time stays.
        check("in 20 weeks", Ok("2027-04-10T13:56:00+02:00"));
    }

    #[test]
    fn nothing_is_guessed() {
        check("9am", Err("has passed"));
        check("2026-11-20 09:00", Err("has passed"));
        check("2020-01-01T00:00:00Z", Err("has passed"));
        check("", Err("cannot read"));
        check("soon", Err("`soon`"));
        check("soon 9am", Err("`soon`"));
        check("9am tomorrow or so", Err("`or`"));
        check("9am 10am", Err("two times"));
        check("25:00", Err("cannot read"));
        check("13pm", Err("cannot read"));
        check("8/11 9am", Err("`8/11`"));
        check("tomorrow friday 9am", Err("not clear"));
        check("31 feb 9am", Err("no such date"));
        check("next friday 9am", Err("different days"));
        check("2026 friday 9am", Err("not clear"));
        check("30 feb 2027 9am", Err("no such date"));
        check("in 20 minutes 9am", Err("do not go together"));
        check("in tomorrow 9am", Err("how long"));
        check("in 99999999999 days", Err("cannot read"));
        check("in 2000000000 weeks", Err("too far"));
        check("in 2147483647 days", Err("too far"));
        check("in 9999999 months", Err("too far"));
        check("yesterday 9am", Err("`yesterday`"));
        check("last friday 9am", Err("`last`"));
        check("5 9am", Err("not clear"));
        check("2026 9am", Err("not clear"));
    }

    #[test]
    fn yesterday_is_a_day_where_a_time_may_have_passed() {
        let read = |text: &str| any(text, BEGINS, NOW.parse().unwrap(), chrono_tz::Europe::Berlin);
        for (text, expect) in [
            ("yesterday", "2026-11-20T00:00:00+01:00"),
            ("yesterday 8:00", "2026-11-20T08:00:00+01:00"),
            ("Yesterday, at 8:30:05", "2026-11-20T08:30:05+01:00"),
            ("6pm yesterday", "2026-11-20T18:00:00+01:00"),
            ("now", "2026-11-21T13:56:00+01:00"),
        ] {
            assert_eq!(read(text).unwrap().to_rfc3339(), expect, "{text}");
        }
        for text in ["yesterday friday", "yesterday yesterday", "in yesterday", "yesterday midnight"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_hour_that_the_clocks_skip_or_repeat() {
        check("2027-03-28 02:30", Err("skip it"));
        let skipped = future("2027-03-28 02:30", NOW.parse().unwrap(), chrono_tz::Europe::Berlin).unwrap_err();
        assert_eq!(skipped.hints, ["write the time with its offset, as in `2027-03-28T03:30:00+02:00`"]);
        check("2027-10-31 02:30", Err("repeat it"));
        check("2027-03-28 03:30", Ok("2027-03-28T03:30:00+02:00"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in r"(in |at |next |tonight |[0-9]{1,12} ?|am|pm|mon|tuesday |dec |end |month|31\.12\.|midnight|:|\.|days |months |\PC){0,8}") {
            let _ = any(&text, MORNING, NOW.parse().unwrap(), chrono_tz::Europe::Berlin);
        }
    }
}
