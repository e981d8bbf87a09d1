//! Parsers of flag values, with their errors.

use std::str::FromStr;
use std::time::Duration;

use crate::app::Since;

/// Parses a span of time: `90s`, `10m`, `1h30m`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("a span of time must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(_) => Err("not a span of time; write it like `20m`, `90s` or `1h30m`".into()),
    }
}

/// Parses how far to look back: `2h`, or a time that has passed. The latter is checked when the time zone is known.
pub(super) fn since(text: &str) -> Result<Since, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("a span of time must be longer than nothing".into()),
        Ok(span) => Ok(Since::Span(span)),
        Err(_) => Ok(Since::Moment(text.to_owned())),
    }
}

/// Parses a number of minutes, or a span of time.
pub(super) fn minutes(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("a span of time must be longer than nothing".into()),
        Ok(minutes) => Ok(Duration::from_secs(u64::from(minutes) * 60)),
        Err(_) => span(text),
    }
}

/// Parses the value of `--in`, beside which there is `--at`.
pub(super) fn from_now(text: &str) -> Result<Duration, String> {
    minutes(text).map_err(|error| format!("{error}; `tomorrow 9am` and the like go with `--at`"))
}

/// Parses the time by which a reminder is put off.
pub(super) fn snooze(text: &str) -> Result<Duration, String> {
    minutes(text).map_err(|error| format!("{error}; `tomorrow 9am` and the like go with `reminder edit ID --at`"))
}

/// Parses a positive number.
pub(super) fn count<N: FromStr + PartialOrd + Default>(text: &str) -> Result<N, String> {
    text.parse().ok().filter(|count| *count > N::default()).ok_or_else(|| "write a whole number from 1".into())
}

/// Parses a positive number for an endless list, at most 10,000.
pub(super) fn limited_count(text: &str) -> Result<u16, String> {
    const MOST: u16 = 10_000;
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| "write a whole number from 1 to 10,000".into())
}

/// Converts the values of a list flag. One empty value means the empty list.
pub(in super::super) fn list(values: Vec<String>) -> Vec<String> {
    if values == [""] { Vec::new() } else { values }
}
