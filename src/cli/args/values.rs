//! Values that are more than text, and what is said of one that is none.

use std::time::Duration;

use crate::definition::{OnMissed, OnOverlap};
use crate::policy::UpdateMode;

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
        Ok(0) => Err("the next check must be later than now".into()),
        Ok(minutes) => Ok(Duration::from_secs(u64::from(minutes) * 60)),
        Err(_) => span(text),
    }
}

/// A word of an enum that serde names.
fn word<T: serde::de::DeserializeOwned>(text: &str, choices: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.replace('-', "_"))).map_err(|_| format!("one of: {choices}"))
}

pub(super) fn update_mode(text: &str) -> Result<UpdateMode, String> {
    word(text, "always, on_ping, freely, blocked")
}

pub(super) fn on_missed(text: &str) -> Result<OnMissed, String> {
    word(text, "latest, all, skip")
}

pub(super) fn on_overlap(text: &str) -> Result<OnOverlap, String> {
    word(text, "skip, queue, cancel")
}
