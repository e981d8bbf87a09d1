//! Jobs that do not run at their time: told once, then counted until one runs on time again.

use std::fmt;

use super::database::{Connection, params};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::JournalError;
use super::outbox::{NewMessage, insert_message};
use super::rows::{ms, time};
use crate::definition::DefinitionId;

/// Why an occurrence begins late, waits, or was missed: what the schedule saw when it could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayCause {
    /// The service did not run at its time.
    ServiceOff,
    /// The person had paused everything.
    Paused,
    /// The client was not logged in.
    Login,
    /// There was no agent.
    Agent,
    /// The machine slept.
    Slept,
    /// The clock was set forward past its time.
    ClockForward,
    /// The journal could not be written.
    Disk,
    /// As many runs were going as may.
    Slot,
    /// As many runs of jobs that runs have made were going as may.
    SlotOfJobs,
    /// Another turn of the main session was going.
    MainSession,
    /// An earlier occurrence of the same definition was not over.
    EarlierRun,
    /// The machine lacked what its file requires.
    Requires,
    /// Its file was not valid.
    FileInvalid,
    /// The person had not said that it may begin (`approve`).
    Approval,
}

impl fmt::Display for DelayCause {
    /// `every slot was taken`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ServiceOff => "the service was not running",
            Self::Paused => "everything was paused",
            Self::Login => "the agent was not logged in",
            Self::Agent => "there was no agent",
            Self::Slept => "the machine slept",
            Self::ClockForward => "the clock was set forward",
            Self::Disk => "the journal could not be written",
            Self::Slot => "as many runs were going as may",
            Self::SlotOfJobs => "as many runs of jobs that jobs made were going as may",
            Self::MainSession => "the main session was busy",
            Self::EarlierRun => "its earlier run was not over",
            Self::Requires => "the machine lacked what it requires",
            Self::FileInvalid => "its file had an error",
            Self::Approval => "you had not approved it",
        })
    }
}

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
                .execute("UPDATE delay SET folded = folded + ?2 WHERE id = ?1", params![name.as_str(), occurrences])?;
            if counted > 0 {
                continue;
            }
            connection
                .execute("INSERT INTO delay (id, folded, since) VALUES (?1, 0, ?2)", params![name.as_str(), ms(now)])?;
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
            let found: Option<(u32, i64)> =
                connection.one("SELECT folded, since FROM delay WHERE id = ?1", [name.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let Some((occurrences, since)) = found else { return Ok(0) };
            connection.execute("DELETE FROM delay WHERE id = ?1", [name.as_str()])?;
            if occurrences == 0 {
                return Ok(0);
            }
            let text = words(Folded { occurrences, since: time(since)? });
            insert_message(connection, &NewMessage::of_service(text), now)
        }
    }
}
