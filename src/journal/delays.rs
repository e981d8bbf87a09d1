//! Delayed jobs: the first delay is reported, later ones are counted until a run is on time again.

use std::collections::BTreeMap;
use std::fmt;

use super::database::{Connection, params};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::JournalError;
use super::outbox::{NewMessage, Subject, insert_message};
use super::rows::{ms, time};
use super::why_button::{MAX_BUTTONS, WHY};
use crate::definition::DefinitionId;

/// Maximum number of characters of an id on a button.
const LONGEST_ID: usize = 40;

/// Why an occurrence begins late, waits, or was missed, as the schedule saw it at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayCause {
    /// The service was off at the scheduled time.
    ServiceOff,
    /// The person had paused everything.
    Paused,
    /// The client was not logged in.
    Login,
    /// There was no agent.
    Agent,
    /// The machine slept.
    Slept,
    /// The service was suspended, and its machine was not: by a signal, or with its container.
    Suspended,
    /// The clock was set forward past the scheduled time.
    ClockForward,
    /// The journal could not be written.
    Disk,
    /// The maximum number of runs was running.
    Slot,
    /// The maximum number of runs of jobs made by runs was running.
    SlotOfJobs,
    /// Another turn of the main session was running.
    MainSession,
    /// An earlier occurrence of the same definition had not ended.
    EarlierRun,
    /// The machine lacked what the definition's file requires.
    Requires,
    /// The definition's file was not valid.
    FileInvalid,
    /// No file gave the reminder this time until the time had passed.
    FileLate,
    /// The person had not approved the job (`approve`).
    Approval,
}

impl DelayCause {
    /// Returns what keeps something from beginning now: `as many runs are going as may`.
    #[must_use]
    pub const fn waits_for(self) -> &'static str {
        match self {
            Self::ServiceOff => "the service did not run",
            Self::Paused => "everything is paused",
            Self::Login => "the agent is not logged in",
            Self::Agent => "there is no agent",
            Self::Slept | Self::Suspended | Self::ClockForward | Self::Disk | Self::FileLate => "it is about to begin",
            Self::Slot => "as many runs are going as may",
            Self::SlotOfJobs => "as many runs of jobs that jobs made are going as may",
            Self::MainSession => "the main session is busy",
            Self::EarlierRun => "its earlier run is not over",
            Self::Requires => "the machine lacks what it requires",
            Self::FileInvalid => "its file has an error or cannot be read",
            Self::Approval => "you have not approved it yet (`ollim-bot questions`)",
        }
    }
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
            Self::Suspended => "the service was suspended",
            Self::ClockForward => "the clock was set forward",
            Self::Disk => "the journal could not be written",
            Self::Slot => "as many runs were going as may",
            Self::SlotOfJobs => "as many runs of jobs that jobs made were going as may",
            Self::MainSession => "the main session was busy",
            Self::EarlierRun => "its earlier run was not over",
            Self::Requires => "the machine lacked what it requires",
            Self::FileInvalid => "its file had an error or could not be read",
            Self::FileLate => "no file gave it this time",
            Self::Approval => "you had not approved it",
        })
    }
}

/// Occurrences of one definition that run late, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The definition.
    pub id: DefinitionId,
    /// The job that made it, if a job did.
    pub made_by: Option<DefinitionId>,
    /// The channel that the definition asks for.
    pub channel: Option<String>,
    /// Minimum number of occurrences.
    pub occurrences: u32,
    /// The name under which delays are counted: a definition's id, or an empty id for all reminders. A delay is
    /// reported only if none of this name was since the last run on time. `None`: always reported.
    pub folds: Option<DefinitionId>,
    /// The scheduled time of the last of them.
    pub last: DateTime<Utc>,
    /// The message to the person.
    pub text: String,
}

/// Delays that were counted and not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreportedDelays {
    /// Number of occurrences.
    pub occurrences: u32,
    /// When the message about the delay before them was recorded.
    pub since: DateTime<Utc>,
}

/// Whether an attempt begins at its scheduled time.
pub enum Punctuality {
    /// Irrelevant: a person fired it, the delay was reported before, or it is a retry.
    Unknown,
    /// It begins late.
    Late(Delay),
    /// It begins on time. If earlier delays of this name were not reported, the person gets this message about them.
    OnTime {
        /// See [`Delay::folds`].
        name: DefinitionId,
        /// The job that made what begins, if a job did.
        made_by: Option<DefinitionId>,
        /// The message.
        words: Box<dyn Fn(UnreportedDelays) -> String + Send>,
    },
}

/// Records delays. Joins those to report into one message for each maker of the definitions, with `fold`.
pub(super) fn delayed<'a>(
    connection: &Connection,
    delays: impl IntoIterator<Item = &'a Delay>,
    fold: fn(&[String]) -> String,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    let mut reported: BTreeMap<(&Option<DefinitionId>, &Option<String>), Vec<&Delay>> = BTreeMap::new();
    for delay in delays {
        let Delay { occurrences, folds, made_by, channel, .. } = delay;
        if let Some(name) = folds {
            let counted = connection
                .execute("UPDATE delay SET folded = folded + ?2 WHERE id = ?1", params![name.as_str(), occurrences])?;
            if counted > 0 {
                continue;
            }
            connection
                .execute("INSERT INTO delay (id, folded, since) VALUES (?1, 0, ?2)", params![name.as_str(), ms(now)])?;
        }
        reported.entry((made_by, channel)).or_default().push(delay);
    }
    let mut newest = 0;
    for ((maker, channel), delays) in reported {
        let message = NewMessage { channel: channel.clone(), ..message(maker, &delays, fold) };
        newest = insert_message(connection, &message, now)?.max(newest);
    }
    Ok(newest)
}

/// Returns the message about delays of definitions with the same maker.
fn message(maker: &Option<DefinitionId>, delays: &[&Delay], fold: fn(&[String]) -> String) -> NewMessage {
    let texts: Vec<String> = delays.iter().map(|delay| delay.text.clone()).collect();
    let (label, action) = WHY;
    let asks = |last: &DateTime<Utc>| format!("{action}:{}", last.to_rfc3339_opts(SecondsFormat::Secs, true));
    match delays {
        [Delay { id, last, .. }] => {
            let subject = Subject::job_with(id, maker.clone());
            NewMessage::about(subject, fold(&texts)).with_buttons(&[(label, &asks(last))])
        }
        _ => {
            let message = NewMessage::about(Subject::jobs_of(maker.clone()), fold(&texts));
            delays.iter().take(MAX_BUTTONS).fold(message, |message, Delay { id, last, .. }| {
                message.with_buttons(&[(&label_for(id), &format!("{} {id}", asks(last)))])
            })
        }
    }
}

/// Returns the label of a button that asks about one of several jobs.
fn label_for(id: &DefinitionId) -> String {
    let shown: String = id.as_str().chars().take(LONGEST_ID).collect();
    let cut = if shown.len() < id.as_str().len() { "…" } else { "" };
    format!("Why {shown}{cut}?")
}

/// Records how punctual an attempt is. Returns the number of the message about it, or 0 if there is none.
pub(super) fn begins(
    connection: &Connection,
    punctuality: &Punctuality,
    now: DateTime<Utc>,
) -> Result<i64, JournalError> {
    match punctuality {
        Punctuality::Unknown => Ok(0),
        Punctuality::Late(delay) => delayed(connection, [delay], |texts| texts.join("\n"), now),
        Punctuality::OnTime { name, made_by, words } => {
            let found: Option<(u32, i64)> =
                connection.one("SELECT folded, since FROM delay WHERE id = ?1", [name.as_str()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let Some((occurrences, since)) = found else { return Ok(0) };
            connection.execute("DELETE FROM delay WHERE id = ?1", [name.as_str()])?;
            if occurrences == 0 {
                return Ok(0);
            }
            let text = words(UnreportedDelays { occurrences, since: time(since)? });
            insert_message(connection, &NewMessage::about(Subject::jobs_of(made_by.clone()), text), now)
        }
    }
}
