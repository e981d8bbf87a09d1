//! Combines several messages into one digest at the end of quiet hours.

use chrono_tz::Tz;

use super::Outgoing;
use super::split::closed;
use super::terminal::plain_lines;
use crate::definition::Urgency;
use crate::journal::Message;

/// Combines these messages into one. Returns `None` if there are none.
pub(super) fn digest(mut messages: Vec<&Message>, zone: Tz) -> Option<Outgoing> {
    messages.sort_by_key(|message| message.number);
    let (first, last) = (messages.first()?, messages.last()?);
    if messages.len() == 1 {
        return Some(Outgoing::from(*first));
    }
    let mut text = format!("{} messages waited for the end of quiet hours.", messages.len());
    for message in &messages {
        let time = message.at.with_timezone(&zone).format("%H:%M");
        let job = message.id.as_ref().map(|id| format!(" {id}:")).unwrap_or_default();
        text.push_str(&format!("\n\n{time}{job} {}", closed(&plain_lines(message.text.trim()))));
    }
    Some(Outgoing {
        number: last.number,
        at: last.at,
        job: None,
        run: None,
        title: None,
        text,
        urgency: Urgency::Normal,
        buttons: Vec::new(),
        asks: messages.iter().any(|message| Outgoing::from(*message).asks),
        answers: None,
        rich: None,
        reply_to: None,
    })
}
