//! Values that are more than text, and what is said of one that is none.

use std::time::Duration;

/// A span of time: `90s`, `10m`, `1h30m`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("a span of time must be longer than nothing".into()),
        Ok(span) => Ok(span),
        Err(_) => Err("not a span of time; write it like `20m`, `90s` or `1h30m`".into()),
    }
}

/// Bare minutes, or a span of time.
pub(super) fn minutes(text: &str) -> Result<Duration, String> {
    match text.parse::<u32>() {
        Ok(0) => Err("a span of time must be longer than nothing".into()),
        Ok(minutes) => Ok(Duration::from_secs(u64::from(minutes) * 60)),
        Err(_) => span(text),
    }
}

/// A flag's list; one empty value is the empty list.
pub(in super::super) fn list(values: Vec<String>) -> Vec<String> {
    if values == [""] { Vec::new() } else { values }
}
