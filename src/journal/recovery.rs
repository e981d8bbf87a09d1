//! What an earlier life of the service left: attempts that were going, occurrences that are still open, and
//! reminders whose outcome is recorded but whose file may still be there.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, Utc};

use super::events::{EventKind, NewEvent, insert_event};
use super::generations::{ConsecutiveFailures, ObservedGeneration, failing};
use super::rows::{Columns, kind, ms, state};
use super::{Journal, JournalError, Occasion, Occurrence, ProcessIdentity, RunId, RunState};
use crate::definition::DefinitionId;

/// An occurrence without an outcome, as its last attempt left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// The last attempt.
    pub run: RunId,
    /// Whose, and when it was due.
    pub occurrence: Occurrence,
    /// The definition's file, relative to the data folder.
    pub file: PathBuf,
    /// The file's text as it fired last.
    pub text: Arc<str>,
    /// A person fired it.
    pub by_hand: bool,
    /// The last attempt's number.
    pub attempt: u32,
    /// `Claimed`: nothing was ever launched. `Interrupted`: it was cut off. Otherwise it failed, and is to be retried.
    pub state: RunState,
    /// When it was claimed.
    pub claimed: DateTime<Utc>,
    /// When the next attempt is due, where one is.
    pub retry_at: Option<DateTime<Utc>>,
    /// How many of its attempts failed; those that found no login do not count.
    pub failures: u32,
    /// Why the last of those failed.
    pub failure: Option<String>,
    /// Why the last attempt ended, if it failed.
    pub error: Option<String>,
    /// How many of its attempts were cut off.
    pub interruptions: u32,
    /// What its first effect was, in whichever attempt; `None`: it had none.
    pub effect: Option<String>,
    /// What it fell due for; `None`: its time.
    pub occasion: Option<Occasion>,
}

/// A reminder's occurrence that has its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Whose, and when it was due.
    pub occurrence: Occurrence,
    /// The reminder's file, relative to the data folder, when it fired.
    pub file: PathBuf,
    /// The file's text as it fired.
    pub text: Arc<str>,
    /// The outcome.
    pub outcome: RunState,
    /// Why, where it was not completed.
    pub error: Option<String>,
}

/// All that a start has to see to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// Occurrences without an outcome, in the order in which they were claimed.
    pub unfinished: Vec<Unfinished>,
    /// Reminders that have their outcome and whose file was not dealt with.
    pub recorded: Vec<Recorded>,
    /// Definitions that have failed lately, and the text of each as it fired last.
    pub consecutive_failures: Vec<(ConsecutiveFailures, Option<Arc<str>>)>,
    /// Reminders that were disabled when they were last seen.
    pub disabled: HashSet<DefinitionId>,
}

impl Journal {
    /// Processes of attempts that stand as running. At a start none of them is ours any more: to be ended before
    /// [`Self::recover`], which takes their attempts for interrupted.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn leftovers(&self) -> Result<Vec<ProcessIdentity>, JournalError> {
        self.writer
            .commit(|connection| {
                let sql = "SELECT pid, process FROM run
                     WHERE state = 'running' AND pid IS NOT NULL AND process IS NOT NULL AND host IS NOT DISTINCT FROM ?1";
                connection.all(sql, [connection.host()], |row| Ok(ProcessIdentity { pid: row.get(0)?, start: row.get(1)? }))
            })
            .await
    }

    /// Takes every attempt that stands as running for interrupted, and tells all that is unfinished. To be called
    /// once, at a start, before anything is claimed.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn recover(&self) -> Result<Recovered, JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                let ours = "host IS NOT DISTINCT FROM ?3";
                interrupt(connection, ours, &connection.host(), "the service ended while it was going", clock.now())?;
                let of_host =
                    UNFINISHED.replace("o.outcome IS NULL", "o.outcome IS NULL AND o.host IS NOT DISTINCT FROM ?1");
                Ok(Recovered {
                    unfinished: connection.all(&of_host, [connection.host()], unfinished)?,
                    recorded: connection.all(
                        &recorded_sql("NOT o.file_done AND o.host IS NOT DISTINCT FROM ?1"),
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

    /// The record of a reminder's occurrence that has its outcome; `None` while it has none.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn recorded(&self, occurrence: &Occurrence) -> Result<Option<Recorded>, JournalError> {
        let occurrence = occurrence.clone();
        self.writer
            .commit(move |connection| {
                let found = connection.one(
                    &recorded_sql("o.id = ?1 AND o.at = ?2"),
                    params![occurrence.id.as_str(), ms(occurrence.at)],
                    |row| Ok(recorded(row)),
                )?;
                found.transpose()
            })
            .await
    }

    /// A reminder's file was removed or moved away: nothing is left to do for this occurrence.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn file_done(&self, occurrence: &Occurrence) -> Result<(), JournalError> {
        let occurrence = occurrence.clone();
        self.writer
            .commit(move |connection| {
                connection.execute(
                    "UPDATE occurrence SET file_done = TRUE WHERE id = ?1 AND at = ?2",
                    params![occurrence.id.as_str(), ms(occurrence.at)],
                )?;
                Ok(())
            })
            .await
    }
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

fn recorded_sql(which: &str) -> String {
    format!(
        "SELECT o.id, o.kind, o.at, o.file, o.outcome, t.text, r.error
         FROM occurrence o
         JOIN run r ON r.occurrence = o.number
           AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)
         LEFT JOIN definition_text t ON t.number = o.text
         WHERE o.kind = 'reminder' AND o.outcome IS NOT NULL AND {which} ORDER BY o.number"
    )
}

fn occurrence(row: &Row<'_>) -> Result<Occurrence, JournalError> {
    Ok(Occurrence { id: row.id("id")?, kind: kind(&row.get::<String>("kind")?)?, at: row.at("at")? })
}

fn text(row: &Row<'_>) -> Result<Arc<str>, JournalError> {
    Ok(row.get::<Option<String>>("text")?.unwrap_or_default().into())
}

pub(super) fn unfinished(row: &Row<'_>) -> Result<Unfinished, JournalError> {
    Ok(Unfinished {
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

fn recorded(row: &Row<'_>) -> Result<Recorded, JournalError> {
    Ok(Recorded {
        occurrence: occurrence(row)?,
        file: row.path("file")?,
        text: text(row)?,
        outcome: state(&row.get::<String>("outcome")?)?,
        error: row.get("error")?,
    })
}

/// Closes the attempts that somebody left running: those of which `which` holds, where `of` is `?3`.
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
