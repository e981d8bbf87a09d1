//! Combines several messages into one digest at the end of quiet hours.

use chrono_tz::Tz;

use super::split::closed;
use super::{Channel, Outgoing};
use crate::journal::Message;

/// Combines these messages into one. Returns `None` if there are none.
pub(super) fn digest(mut messages: Vec<&Message>, zone: Tz, channel: &dyn Channel) -> Option<Outgoing> {
    messages.sort_by_key(|message| message.number);
    let (first, last) = (messages.first()?, messages.last()?);
    if messages.len() == 1 {
        return Some(Outgoing::on(channel, first));
    }
    let mut text = format!("{} messages waited for the end of quiet hours.", messages.len());
    let shown: Vec<Outgoing> = messages.iter().map(|message| Outgoing::on(channel, message)).collect();
    for message in &shown {
        let time = message.at.with_timezone(&zone).format("%H:%M");
        let job = message.job.as_ref().map(|id| format!(" {id}:")).unwrap_or_default();
        text.push_str(&format!("\n\n{time}{job} {}", closed(message.text.trim())));
    }
    let asks = shown.iter().any(|message| message.asks);
    Some(Outgoing { asks, ..Outgoing::plain(last.number, last.at, text) })
}
