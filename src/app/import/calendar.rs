//! Converts systemd calendar expressions (systemd.time(7)) to equivalent cron expressions. Pure.

use std::collections::BTreeSet;

use chrono_tz::Tz;

/// A cron expression, and the zone in the calendar expression, if any.
pub(super) type Cron = (String, Option<Tz>);

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The expressions that systemd's words stand for.
const WORDS: [(&str, &str); 9] = [
    ("minutely", "* * * * *"),
    ("hourly", "0 * * * *"),
    ("daily", "0 0 * * *"),
    ("weekly", "0 0 * * 1"),
    ("monthly", "0 0 1 * *"),
    ("quarterly", "0 0 1 1,4,7,10 *"),
    ("semiannually", "0 0 1 1,7 *"),
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
];

/// Converts an expression.
///
/// # Errors
/// The reason why cron cannot express it, as a sentence without its full stop.
pub(super) fn cron(text: &str) -> Result<Cron, String> {
    let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
    let zone: Option<Tz> = words.last().and_then(|word| word.parse().ok());
    if zone.is_some() {
        words.pop();
    }
    if let [word] = words[..]
        && let Some((_, cron)) = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))
    {
        return Ok(((*cron).to_owned(), zone));
    }
    let weekday = words.first().filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic())).copied();
    let rest = &words[usize::from(weekday.is_some())..];
    let (date, time) = match *rest {
        [] if weekday.is_some() => ("*-*-*", "00:00:00"),
        [one] if one.contains(':') => ("*-*-*", one),
        [one] => (one, "00:00:00"),
        [date, time] => (date, time),
        _ => return Err(format!("`{text}` is no calendar expression that is known")),
    };
    let (month, day) = date_of(date)?;
    let (hour, minute) = time_of(time)?;
    let weekday = weekday.map_or_else(|| Ok("*".to_owned()), weekdays)?;
    if weekday != "*" && day != "*" {
        return Err("it names days of the week and of the month, and both must match: cron fires on either".into());
    }
    Ok((format!("{minute} {hour} {day} {month} {weekday}"), zone))
}

fn date_of(text: &str) -> Result<(String, String), String> {
    // The days behind `~` count from the end of the month, so that the first of them is the last day.
    let (before, from_end) = text.split_once('~').map_or((text, None), |(before, day)| (before, Some(day)));
    let mut parts: Vec<&str> = before.split('-').collect();
    let day = match from_end {
        None => parts.pop().map(|day| field(day, 1, 31)).transpose()?,
        Some(day) if day.parse() == Ok(1u32) => Some("L".to_owned()),
        Some(_) => return Err("it counts days from the end of the month".into()),
    };
    let (year, month) = match parts[..] {
        [month] => ("*", month),
        [year, month] => (year, month),
        _ => return Err(format!("`{text}` is no date")),
    };
    if year != "*" {
        return Err("it names a year, and cron knows none".into());
    }
    Ok((field(month, 1, 12)?, day.ok_or_else(|| format!("`{text}` is no date"))?))
}

fn time_of(text: &str) -> Result<(String, String), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        _ => return Err(format!("`{text}` is no time")),
    };
    if second.parse() != Ok(0u32) {
        return Err("it names seconds, and cron fires at the full minute".into());
    }
    Ok((field(hour, 0, 23)?, field(minute, 0, 59)?))
}

fn weekdays(text: &str) -> Result<String, String> {
    let day = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_it = |day: &&str| name == *day || is_long(&name, day);
        DAYS.iter().position(is_it).ok_or_else(|| format!("`{name}` is no day of the week"))
    };
    let mut days = BTreeSet::new();
    for part in text.trim_end_matches(',').split(',') {
        match part.split_once("..").or(part.split_once('-')) {
            None => drop(days.insert(day(part)?)),
            Some((from, to)) => {
                let (from, to) = (day(from)?, day(to)?);
                // The week begins on Monday.
                let place = |day: usize| (day + 6) % 7;
                if place(from) > place(to) {
                    return Err(format!("`{part}` ends before it begins"));
                }
                days.extend((place(from)..=place(to)).map(|place| (place + 1) % 7));
            }
        }
    }
    Ok(list(&days.into_iter().map(|day| day as u32).collect(), 0, 6))
}

fn is_long(name: &str, day: &str) -> bool {
    let long = match day {
        "tue" => "tuesday",
        "wed" => "wednesday",
        "thu" => "thursday",
        "sat" => "saturday",
        _ => return name == format!("{day}day"),
    };
    name == long
}

/// Converts one component: values, ranges and repetitions.
fn field(text: &str, first: u32, last: u32) -> Result<String, String> {
    let number = |text: &str| match text.parse::<u32>() {
        Ok(value) if (first..=last).contains(&value) => Ok(value),
        _ => Err(format!("`{text}` is not between {first} and {last}")),
    };
    let mut values = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let step = match step.map(str::parse::<u32>) {
            None => None,
            Some(Ok(step)) if step > 0 => Some(step),
            Some(_) => return Err(format!("`{part}` repeats by no number")),
        };
        let (from, to) = match range.split_once("..") {
            _ if range == "*" && step.is_some() => return Err(format!("`{part}` repeats from nowhere")),
            _ if range == "*" => (first, last),
            Some((from, to)) => (number(from)?, number(to)?),
            // A repetition continues to the end.
            None => (number(range)?, if step.is_some() { last } else { number(range)? }),
        };
        if from > to {
            return Err(format!("`{part}` ends before it begins"));
        }
        values.extend((from..=to).step_by(step.unwrap_or(1) as usize));
    }
    Ok(list(&values, first, last))
}

/// Formats values for cron.
fn list(values: &BTreeSet<u32>, first: u32, last: u32) -> String {
    if values.len() as u32 == last - first + 1 {
        return "*".to_owned();
    }
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == *value => *to = *value,
            _ => parts.push((*value, *value)),
        }
    }
    let part = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};

    use super::*;
    use crate::schedule::cron::Times;

    #[test]
    fn what_cron_can_say_is_said_in_cron() {
        for (calendar, expected) in [
            ("daily", "0 0 * * *"),
            ("Weekly", "0 0 * * 1"),
            ("hourly UTC", "0 * * * * UTC"),
            ("*-*-* 04:05:00", "5 4 * * *"),
            ("04:05", "5 4 * * *"),
            ("*:0/15", "0,15,30,45 * * * *"),
            ("*-*-* *:00/10:00", "0,10,20,30,40,50 * * * *"),
            ("Mon..Fri 8:30", "30 8 * * 1-5"),
            ("Sat,Sun *-*-* 10:00", "0 10 * * 0,6"),
            ("Fri..Sun 10:00", "0 10 * * 0,5-6"),
            ("Mon-Wed 10:00", "0 10 * * 1-3"),
            ("Mon..Sun 10:00", "0 10 * * *"),
            ("Monday", "0 0 * * 1"),
            ("Wednesday *-*-* 01:00", "0 1 * * 3"),
            ("*-*-01 00:00:00", "0 0 1 * *"),
            ("*-01,07-01", "0 0 1 1,7 *"),
            ("12-24 18:00", "0 18 24 12 *"),
            ("*-*~1 04:00:00", "0 4 L * *"),
            ("02~01 6:00", "0 6 L 2 *"),
            ("*-*-1/10 6:00", "0 6 1,11,21,31 * *"),
            ("9..17/2:00 Europe/Berlin", "0 9,11,13,15,17 * * * Europe/Berlin"),
        ] {
            let (cron, zone) = cron(calendar).unwrap();
            let found = zone.map_or(cron.clone(), |zone| format!("{cron} {zone}"));
            assert_eq!(found, expected, "{calendar}");
        }
        for (calendar, why) in [
            ("Mon *-*-1..7 09:00", "both must match"),
            ("*-*~03", "end of the month"),
            ("*-*~1/2", "end of the month"),
            ("2027-02~1", "a year"),
            ("2027-01-01", "a year"),
            ("*:*:00/30", "seconds"),
            ("25:00", "not between 0 and 23"),
            ("17..9:00", "ends before"),
            ("Fri..Mon 10:00", "ends before"),
            ("*:*/5", "repeats from nowhere"),
            ("*:0/0", "repeats by no number"),
            ("Someday", "no day of the week"),
            ("a b c d", "no calendar expression"),
        ] {
            let found = cron(calendar).unwrap_err();
            assert!(found.contains(why), "{calendar}: {found}");
        }
    }

    /// Whether an expression `DAYS Y-M-D H:M` elapses at `at`: an independent implementation of systemd.time(7), tried for each minute.
    fn elapses(calendar: &str, at: DateTime<Utc>) -> bool {
        let words: Vec<&str> = calendar.split(' ').collect();
        let matches = |part: &str, value: u32, least: u32| {
            part.split(',').any(|item| {
                let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
                let number = |text: &str| text.parse::<u32>().unwrap();
                let step = step.map(number);
                let (from, to) = match range.split_once("..") {
                    Some((from, to)) => (number(from), number(to)),
                    None if range == "*" => (least, 99),
                    None => (number(range), if step.is_some() { 99 } else { number(range) }),
                };
                from <= value && value <= to && (value - from).is_multiple_of(step.unwrap_or(1))
            })
        };
        let name = at.format("%a").to_string();
        let order = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let place = |name: &str| order.iter().position(|day| *day == name).unwrap();
        let on_day = words[0].split(',').any(|item| match item.split_once("..") {
            None => item == "*" || item == name,
            Some((from, to)) => place(from) <= place(&name) && place(&name) <= place(to),
        });
        let date: Vec<&str> = words[1].split('-').collect();
        let time: Vec<&str> = words[2].split(':').collect();
        on_day
            && matches(date[1], at.month(), 1)
            && matches(date[2], at.day(), 1)
            && matches(time[0], at.hour(), 0)
            && matches(time[1], at.minute(), 0)
    }

    #[test]
    fn both_fire_at_the_same_minutes() {
        let from: DateTime<Utc> = "2027-12-20T00:00:00Z".parse().unwrap();
        let until = from + TimeDelta::days(430);
        for calendar in [
            "* *-*-* 04:05",
            "Mon..Fri *-*-* 8:30",
            "Tue,Sat..Sun *-*-* 0/6:0/20",
            "* *-*-29..31 23:59",
            "* *-2..4,11-1/9 1,13:7",
            "Sun *-1/5-* *:59",
            "* *-02-29 12:00",
            "* *-*-1/2 0/7:3..50/11",
        ] {
            let (expression, _) = cron(calendar.trim_start_matches("* ")).unwrap();
            let times = Times::parse(&expression).unwrap();
            let fired = std::iter::successors(times.next(chrono_tz::UTC, from), |at| times.next(chrono_tz::UTC, *at));
            let fired: Vec<_> = fired.take_while(|at| *at < until).collect();
            let minutes = (1..430 * 24 * 60).map(|minute| from + TimeDelta::minutes(minute));
            let expected: Vec<_> = minutes.filter(|at| elapses(calendar, *at)).collect();
            assert!(!expected.is_empty() && fired == expected, "{calendar} is not {expression}");
        }
    }
}
