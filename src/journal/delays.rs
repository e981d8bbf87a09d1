//! Jobs that do not run at their time: told once, then counted until one runs on time again.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::JournalError;
use super::outbox::{NewMessage, insert_message};
use super::rows::{ms, time};
use crate::definition::DefinitionId;

/// Occurrences of one definition that run late, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Whose.
    pub id: DefinitionId,
    /// How many there are at least.
    pub occurrences: u32,
    /// It is told only if none of this name was told since one ran on time: the definition's id, or that of a kind.
    /// `None`: it is always told.
    pub folds: Option<DefinitionId>,
    /// What the person is told.
    pub text: String,
}

/// Delays that were counted and not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folded {
    /// How many occurrences.
    pub occurrences: u32,
    /// When the message before them was recorded.
    pub since: DateTime<Utc>,
}

/// Whether an attempt begins at its occurrence's time.
pub enum Punctuality {
    /// It does not matter: a person fired it, it was told before, or it is another attempt.
    Unknown,
    /// It begins late.
    Late(Delay),
    /// It begins on time. If delays of this name before it were not told, the person is told this of them.
    OnTime(DefinitionId, Box<dyn Fn(Folded) -> String + Send>),
}

/// Records delays. Those that are to be told become one message, by `fold`.
pub(super) fn delayed<'a>(
    connection: &Connection,
    delays: impl IntoIterator<Item = &'a Delay>,
    fold: fn(&[String]) -> String,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let mut ids = Vec::new();
    let mut texts = Vec::new();
    for Delay { id, occurrences, folds, text } in delays {
        if let Some(name) = folds {
            let counted = connection
                .prepare_cached("UPDATE delay SET folded = folded + ?2 WHERE id = ?1")?
                .execute(params![name.as_str(), occurrences])?;
            if counted > 0 {
                continue;
            }
            connection
                .prepare_cached("INSERT INTO delay (id, folded, since) VALUES (?1, 0, ?2)")?
                .execute(params![name.as_str(), ms(now)])?;
        }
        ids.push(id);
        texts.push(text.clone());
    }
    if texts.is_empty() {
        return Ok(0);
    }
    let id = if let [id] = ids[..] { Some(id.clone()) } else { None };
    insert_message(connection, &NewMessage { id, ..NewMessage::of_service(fold(&texts)) }, now)
}

/// Records how punctual an attempt is. Returns the number of a message about it; 0 where there is none.
pub(super) fn begins(
    connection: &Connection,
    punctuality: &Punctuality,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    match punctuality {
        Punctuality::Unknown => Ok(0),
        Punctuality::Late(delay) => delayed(connection, [delay], |texts| texts.join("\n"), now),
        Punctuality::OnTime(name, words) => {
            let found: Option<(u32, i64)> = connection
                .prepare_cached("SELECT folded, since FROM delay WHERE id = ?1")?
                .query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((occurrences, since)) = found else { return Ok(0) };
            connection.prepare_cached("DELETE FROM delay WHERE id = ?1")?.execute([name.as_str()])?;
            if occurrences == 0 {
                return Ok(0);
            }
            let text = words(Folded { occurrences, since: time(since)? });
            insert_message(connection, &NewMessage::of_service(text), now)
        }
    }
}
