//! Work that the previous process left: running attempts, open occurrences, and reminders that have an outcome but
//! may still have a file.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, TimeDelta, Utc};

use super::events::{EventKind, NewEvent, insert_event};
use super::generations::{ConsecutiveFailures, ObservedGeneration, failing};
use super::outbox::{NewMessage, insert_message};
use super::rows::{Columns, kind, ms, state};
use super::{Journal, JournalError, Occasion, Occurrence, ProcessIdentity, RunId, RunState};
use crate::definition::DefinitionId;

/// Why a run was cut off, unless something else is known.
pub const SERVICE_ENDED: &str = "the service ended while it was going";

/// Whether a run with this error was cut off with the service. When is then not known, only when the next one noticed.
#[must_use]
pub fn ended_unseen(error: Option<&str>) -> bool {
    error.is_some_and(|error| error.starts_with(SERVICE_ENDED))
}

/// Time in which the person is told only once of a file that comes back on several hosts: they keep their files equal.
const TOLD_ONCE: TimeDelta = TimeDelta::minutes(1);

/// An occurrence without an outcome, as its last attempt left it.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfinishedOccurrence {
    /// The last attempt.
    pub run: RunId,
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// The definition's file, relative to the data folder.
    pub file: PathBuf,
    /// The text of the file when it last fired.
    pub text: Arc<str>,
    /// Whether a person fired it.
    pub by_hand: bool,
    /// The number of the last attempt.
    pub attempt: u32,
    /// `Claimed`: never launched. `Interrupted`: cut off. Otherwise it failed, and a retry is pending.
    pub state: RunState,
    /// When it was claimed.
    pub claimed: DateTime<Utc>,
    /// When the next attempt is due, if one is.
    pub retry_at: Option<DateTime<Utc>>,
    /// Number of failed attempts, not counting those without a login.
    pub failures: u32,
    /// Why the last counted attempt failed.
    pub failure: Option<String>,
    /// Why the last attempt ended, if it failed.
    pub error: Option<String>,
    /// Number of attempts that were cut off.
    pub interruptions: u32,
    /// The first side effect of any attempt; `None`: there was none.
    pub effect: Option<String>,
    /// The cause; `None`: its scheduled time.
    pub occasion: Option<Occasion>,
}

/// A reminder's occurrence that has its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcludedReminder {
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// The reminder's file, relative to the data folder, when it fired.
    pub file: PathBuf,
    /// The text of the file when it fired.
    pub text: Arc<str>,
    /// The outcome.
    pub outcome: RunState,
    /// Why it was not completed.
    pub error: Option<String>,
    /// Whether its file was removed or moved away before, on this host.
    pub file_was_done: bool,
    /// Whether a person fired it before its time.
    pub ran_early: bool,
}

/// The work that a starting service has to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryWork {
    /// Occurrences without an outcome, in the order in which they were claimed.
    pub unfinished: Vec<UnfinishedOccurrence>,
    /// Reminders that have an outcome but whose file was not dealt with.
    pub recorded: Vec<ConcludedReminder>,
    /// Definitions that failed lately, with the text of each when it last fired.
    pub consecutive_failures: Vec<(ConsecutiveFailures, Option<Arc<str>>)>,
    /// Reminders that were disabled when last observed.
    pub disabled: HashSet<DefinitionId>,
}

impl Journal {
    /// Returns the processes of attempts recorded as running. At a start all are leftovers. End them before
    /// [`Self::recover`], which records their attempts as interrupted.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn leftovers(&self) -> Result<Vec<ProcessIdentity>, JournalError> {
        self.writer
            .commit(|connection| {
                let sql = "SELECT pid, process FROM run
                     WHERE state = 'running' AND pid IS NOT NULL AND process IS NOT NULL AND host IS NOT DISTINCT FROM ?1";
                connection.all(sql, [connection.host()], |row| Ok(ProcessIdentity { pid: row.get(0)?, start: row.get(1)? }))
            })
            .await
    }

    /// Records every running attempt as interrupted, and returns all unfinished work. Call it once at a start,
    /// before any claim.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn recover(&self) -> Result<RecoveryWork, JournalError> {
        let (clock, why) = (self.clock.clone(), self.cut_off);
        self.writer
            .commit(move |connection| {
                let ours = "host IS NOT DISTINCT FROM ?3";
                interrupt(connection, ours, &connection.host(), why, clock.now())?;
                let of_host =
                    UNFINISHED.replace("o.outcome IS NULL", "o.outcome IS NULL AND o.host IS NOT DISTINCT FROM ?1");
                Ok(RecoveryWork {
                    unfinished: connection.all(&of_host, [connection.host()], unfinished)?,
                    recorded: connection.all(
                        &recorded_sql(
                            "?1",
                            "o.kind = 'reminder' AND NOT o.file_done AND o.host IS NOT DISTINCT FROM ?1",
                        ),
                        [connection.host()],
                        recorded,
                    )?,
                    consecutive_failures: connection.all(
                        "SELECT id, failures, told, paused,
                           (SELECT text FROM definition_text t WHERE t.id = s.id ORDER BY number DESC LIMIT 1) AS text
                         FROM streak s",
                        (),
                        consecutive_failures,
                    )?,
                    disabled: disabled(connection)?,
                })
            })
            .await
    }

    /// Returns the record of a reminder's occurrence; `None` while it has no outcome. If a routine had the same id, and an occurrence at
    /// the same time, that is the record.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn recorded(&self, occurrence: &Occurrence) -> Result<Option<ConcludedReminder>, JournalError> {
        let occurrence = occurrence.clone();
        self.writer
            .read(move |connection| {
                let found = connection.one(
                    &recorded_sql("?3", "o.id = ?1 AND o.at = ?2"),
                    params![occurrence.id.as_str(), ms(occurrence.at), connection.host()],
                    |row| Ok(recorded(row)),
                )?;
                found.transpose()
            })
            .await
    }

    /// Records that a reminder's file was removed or moved away, so this occurrence needs nothing more. `message` notifies the person of
    /// it, in the same commit, unless another host has done so at this moment.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn file_done(&self, occurrence: &Occurrence, message: Option<NewMessage>) -> Result<(), JournalError> {
        let (occurrence, clock) = (occurrence.clone(), self.clock.clone());
        let number = self
            .writer
            .commit(move |connection| {
                connection.execute(
                    "UPDATE occurrence SET file_done = TRUE WHERE id = ?1 AND at = ?2",
                    params![occurrence.id.as_str(), ms(occurrence.at)],
                )?;
                let now = clock.now();
                let is_told = message.is_some() && told_elsewhere(connection, &occurrence, now)?;
                note_gone(connection, &occurrence, message.as_ref().map(|_| now))?;
                let message = message.as_ref().filter(|_| !is_told);
                message.map(|message| insert_message(connection, message, now)).transpose()
            })
            .await?;
        if let Some(number) = number {
            self.announce(number);
        }
        Ok(())
    }

    /// Records that a reminder's file is gone on this host, if the reminder has an outcome by now: another host ran it, and this one took
    /// over the removal of the file.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn file_gone(&self, occurrence: Occurrence) -> Result<(), JournalError> {
        self.writer.commit(move |connection| note_gone(connection, &occurrence, None)).await
    }
}

fn note_gone(
    connection: &Connection,
    occurrence: &Occurrence,
    told_at: Option<DateTime<Utc>>,
) -> Result<(), JournalError> {
    let Some(host) = connection.host() else { return Ok(()) };
    let sql = "INSERT INTO file_gone (occurrence, host, told_at)
         SELECT number, ?3, CAST(?4 AS BIGINT) FROM occurrence WHERE id = ?1 AND at = ?2 AND outcome IS NOT NULL
         ON CONFLICT (occurrence, host) DO UPDATE SET told_at = coalesce(excluded.told_at, file_gone.told_at)";
    let values = params![occurrence.id.as_str(), ms(occurrence.at), host, told_at.map(ms)];
    connection.execute(sql, values).map(drop)
}

/// Returns whether the person has just been told that the file came back on another host.
fn told_elsewhere(connection: &Connection, occurrence: &Occurrence, now: DateTime<Utc>) -> Result<bool, JournalError> {
    let Some(host) = connection.host() else { return Ok(false) };
    let sql = "SELECT g.host FROM file_gone g JOIN occurrence o ON o.number = g.occurrence
         WHERE o.id = ?1 AND o.at = ?2 AND g.host <> ?3 AND g.told_at > ?4";
    let values = params![occurrence.id.as_str(), ms(occurrence.at), host, ms(now - TOLD_ONCE)];
    Ok(connection.one(sql, values, |row| row.get::<String>(0))?.is_some())
}

pub(super) const UNFINISHED: &str = "
SELECT o.id, o.kind, o.at, o.file, o.by_hand, o.claimed, o.retry_at, o.occasion, t.text, r.run, r.attempt, r.state, r.error,
  (SELECT count(*) FROM run WHERE occurrence = o.number AND state IN ('failed', 'timed_out')
     AND class IS DISTINCT FROM 'not_logged_in') AS failures,
  (SELECT error FROM run WHERE occurrence = o.number AND state IN ('failed', 'timed_out')
     AND class IS DISTINCT FROM 'not_logged_in' ORDER BY attempt DESC LIMIT 1) AS failure,
  (SELECT count(*) FROM run WHERE occurrence = o.number AND state = 'interrupted') AS interruptions,
  (SELECT effect FROM run WHERE occurrence = o.number AND effect IS NOT NULL ORDER BY attempt LIMIT 1) AS effect
FROM occurrence o
JOIN run r ON r.occurrence = o.number AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)
LEFT JOIN definition_text t ON t.number = o.text
WHERE o.outcome IS NULL ORDER BY o.number";

/// `host`: the parameter that is this host.
fn recorded_sql(host: &str, which: &str) -> String {
    format!(
        "SELECT o.id, o.kind, o.at, o.file, o.outcome, o.claimed, t.text, r.error,
           o.file_done AND (CAST({host} AS TEXT) IS NULL
             OR EXISTS (SELECT 1 FROM file_gone g WHERE g.occurrence = o.number AND g.host = {host})) AS file_done
         FROM occurrence o
         JOIN run r ON r.occurrence = o.number
           AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)
         LEFT JOIN definition_text t ON t.number = o.text
         WHERE o.outcome IS NOT NULL AND {which} ORDER BY o.number"
    )
}

fn occurrence(row: &Row<'_>) -> Result<Occurrence, JournalError> {
    Ok(Occurrence { id: row.id("id")?, kind: kind(&row.get::<String>("kind")?)?, at: row.at("at")? })
}

fn text(row: &Row<'_>) -> Result<Arc<str>, JournalError> {
    Ok(row.get::<Option<String>>("text")?.unwrap_or_default().into())
}

pub(super) fn unfinished(row: &Row<'_>) -> Result<UnfinishedOccurrence, JournalError> {
    Ok(UnfinishedOccurrence {
        run: row.run("run")?,
        occurrence: occurrence(row)?,
        file: row.path("file")?,
        text: text(row)?,
        by_hand: row.get("by_hand")?,
        attempt: row.get("attempt")?,
        state: state(&row.get::<String>("state")?)?,
        claimed: row.at("claimed")?,
        retry_at: row.maybe_at("retry_at")?,
        failures: row.get("failures")?,
        failure: row.get("failure")?,
        error: row.get("error")?,
        interruptions: row.get("interruptions")?,
        effect: row.get("effect")?,
        occasion: Occasion::read(row.get("occasion")?),
    })
}

fn recorded(row: &Row<'_>) -> Result<ConcludedReminder, JournalError> {
    Ok(ConcludedReminder {
        occurrence: occurrence(row)?,
        file: row.path("file")?,
        text: text(row)?,
        outcome: state(&row.get::<String>("outcome")?)?,
        error: row.get("error")?,
        file_was_done: row.get("file_done")?,
        ran_early: row.at("claimed")? < row.at("at")?,
    })
}

/// Interrupts running attempts that satisfy the condition `which`, in which `?3` is `of`.
pub(super) fn interrupt(
    connection: &Connection,
    which: &str,
    of: &dyn ToValue,
    why: &str,
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    let sql = format!(
        "UPDATE run SET state = 'interrupted', ended = ?1, error = ?2 WHERE state = 'running' AND {which} RETURNING run"
    );
    let runs: Vec<String> = connection.all(&sql, &[&ms(now) as &dyn ToValue, &why, of][..], |row| row.get(0))?;
    for run in runs {
        let kind = EventKind::RunEnded { outcome: RunState::Interrupted, error: Some(why.into()), retry_at: None };
        insert_event(connection, NewEvent { run: Some(&run), id: None, kind }, now)?;
    }
    Ok(())
}

fn consecutive_failures(row: &Row<'_>) -> Result<(ConsecutiveFailures, Option<Arc<str>>), JournalError> {
    Ok((failing(row)?, row.get::<Option<String>>("text")?.map(Arc::from)))
}

fn disabled(connection: &Connection) -> Result<HashSet<DefinitionId>, JournalError> {
    let sql = "SELECT id FROM definition_seen WHERE trigger = ?1";
    let found = connection.all(sql, [ObservedGeneration::DISABLED_REMINDER], |row| row.id("id"))?;
    Ok(found.into_iter().collect())
}
