//! The button *Why?* below messages of a run that began late or was refused calls.

use super::JournalError;
use super::database::{Connection, params};
use super::outbox::NewMessage;

/// Label and action of the button. With a time behind a colon it asks about the occurrence of that time; with a blank and an id behind
/// that, about that job's.
pub const WHY: (&str, &str) = ("Why?", "why");

/// Maximum number of buttons below a message.
pub(super) const MAX_BUTTONS: usize = 5;

/// Delay from which a run is late, in milliseconds.
const LATE: i64 = 60_000;

/// Adds the button to a run's message if the run has something to explain. Questions have buttons of their own.
pub(super) fn with_why(connection: &Connection, message: &NewMessage) -> Result<NewMessage, JournalError> {
    let message = message.clone();
    let Some(run) = &message.run else { return Ok(message) };
    let buttons = message.rich.as_ref().map(|rich| rich.buttons.as_slice()).unwrap_or_default();
    let has_own = buttons.iter().any(|button| button.action == WHY.1 || button.action.starts_with("answer:"));
    if has_own || buttons.len() >= MAX_BUTTONS {
        return Ok(message);
    }
    let odd: Option<i64> = connection.one(
        "SELECT 1 FROM occurrence o WHERE o.number = (SELECT occurrence FROM run WHERE run = ?1) AND o.kind <> 'session'
           AND (NOT o.by_hand AND (SELECT min(launched) FROM run WHERE occurrence = o.number) - o.at >= ?2
             OR EXISTS (SELECT 1 FROM denial d JOIN run r ON r.number = d.run WHERE r.occurrence = o.number))",
        params![run.as_str(), LATE],
        |row| row.get(0),
    )?;
    Ok(if odd.is_some() { message.with_buttons(&[WHY]) } else { message })
}
