//! Renders webhooks: where they listen, and what they refused.

use anstyle::Style;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::app::{ListenerState, Status, times};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, WARN};
use crate::journal::RefusedDeliveries;

/// Adds the webhooks to the facts of `status`.
pub(super) fn facts(status: &Status, now: DateTime<Utc>, fact: &mut impl FnMut(&str, Cell)) {
    if status.webhooks > 0 {
        let listener = status.service.as_ref().map(|service| service.webhooks.as_ref());
        let (at, style) = match (&status.webhooks_at, listener) {
            (None, _) => ("not taken: `webhooks` of config.yaml says where".to_owned(), WARN),
            (Some(_), Some(Some(ListenerState::Failed(why)))) => (format!("not taken: {why}"), BAD),
            (Some(at), Some(Some(ListenerState::Served(_)))) => (format!("taken on {at}"), Style::new()),
            (Some(at), Some(None)) => (format!("not taken: start the service again to listen on {at}"), BAD),
            (Some(at), None) => (format!("taken on {at} while the service runs"), Style::new()),
        };
        fact("webhooks", Cell::new(format!("{}, {at}", status.webhooks), style));
    }
    for refused in &status.refused {
        fact("", Cell::new(line(refused, now), WARN));
    }
}

/// Returns a line such as `deploy: 3 deliveries refused (5m ago): 401, the signature is not right`.
fn line(refused: &RefusedDeliveries, now: DateTime<Utc>) -> String {
    let name = refused.id.as_ref().map_or("unknown webhooks", |id| id.as_str());
    let times = if refused.times == 1 { "1 delivery".to_owned() } else { format!("{} deliveries", refused.times) };
    let last = times::relative(refused.last, now);
    plain(&format!("{name}: {times} refused ({last}): {}, {}", refused.status, refused.why))
}

/// Returns refused deliveries as JSON with stable keys.
pub(super) fn as_json(refused: &RefusedDeliveries, zone: Tz) -> Value {
    json!({
        "id": refused.id,
        "times": refused.times,
        "last": times::rfc3339(refused.last, zone),
        "status": refused.status,
        "why": refused.why,
    })
}
