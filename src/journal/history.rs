//! The full record of one occurrence, which explains what happened to it.

use std::collections::HashMap;
use std::path::PathBuf;

use super::database::{Row, ToValue};
use chrono::{DateTime, TimeDelta, Utc};

use super::events::event;
use super::reader::tokens;
use super::rows::{Columns, kind, ms, state};
use super::{DelayCause, Event, EventKind, JournalError, JournalReader, Occasion, Occurrence, RunId, RunState};
use crate::agent::Tokens;
use crate::definition::DefinitionId;

/// Number of newest events searched for those without a run, since they have no index.
const LOOKED_THROUGH: i64 = 20_000;

/// Maximum number of rows in one read.
const MAX_ROWS: u32 = 50;

/// The cost of a completed run in time, money and tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// Time from launch to end.
    pub took: TimeDelta,
    /// Cost in US dollars; `None`: its client did not report it.
    pub cost_usd: Option<f64>,
    /// Tokens used; `None`: its client did not report them.
    pub tokens: Option<Tokens>,
}

/// An occurrence, and each attempt at it.
#[derive(Clone, Debug, PartialEq)]
pub struct OccurrenceHistory {
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// For a skipped one that stands for several: the scheduled time of the first.
    pub covers_from: Option<DateTime<Utc>>,
    /// The cause; `None`: its scheduled time.
    pub occasion: Option<Occasion>,
    /// Whether a person fired it.
    pub by_hand: bool,
    /// The file, relative to the data folder.
    pub file: PathBuf,
    /// The text of the file when it fired.
    pub text: Option<String>,
    /// When it was claimed.
    pub claimed: DateTime<Utc>,
    /// The host that has it, if hosts share the journal.
    pub host: Option<String>,
    /// The outcome; `None`: it is open.
    pub outcome: Option<RunState>,
    /// When the next attempt is due, if one is.
    pub retry_at: Option<DateTime<Utc>>,
    /// The attempts, in order; at most 50.
    pub attempts: Vec<Attempt>,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its id.
    pub run: RunId,
    /// The host that ran it, if hosts share the journal.
    pub host: Option<String>,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The state.
    pub state: RunState,
    /// When it began; `None`: never.
    pub started: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended: Option<DateTime<Utc>>,
    /// Kind of failure, as the journal names it.
    pub class: Option<String>,
    /// Why it failed, was skipped or waits.
    pub error: Option<String>,
    /// Cost in US dollars, as reported by its client.
    pub cost_usd: Option<f64>,
}

/// A definition's trigger as the journal last observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedTrigger {
    /// The watermark: each occurrence up to then has a record, or does not count.
    pub until: DateTime<Utc>,
    /// When its file went missing.
    pub gone: Option<DateTime<Utc>>,
}

const STORY: &str = "
SELECT o.number, o.id, o.kind, o.at, o.covers_from, json_remove(o.occasion, '$.payload') AS occasion, o.by_hand, o.file, t.text, o.claimed, o.host, o.outcome, o.retry_at
FROM occurrence o LEFT JOIN definition_text t ON t.number = o.text WHERE o.id = ?1";

impl JournalReader {
    /// Returns the occurrence of a definition that was recorded last.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_history(&self, id: &DefinitionId) -> Result<Option<OccurrenceHistory>, JournalError> {
        let sql = format!("{STORY} ORDER BY o.number DESC LIMIT 1");
        Ok(self.stories(&sql, &[&id.as_str()])?.pop())
    }

    /// Returns a definition's occurrences due from `from` until before `to`, in order. A shared record is returned once.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn histories_within(
        &self,
        id: &DefinitionId,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> Result<Vec<OccurrenceHistory>, JournalError> {
        let sql =
            format!("{STORY} AND o.at >= ?2 AND coalesce(o.covers_from, o.at) < ?3 ORDER BY o.at LIMIT {MAX_ROWS}");
        self.stories(&sql, &[&id.as_str(), &ms(from), &ms(to)])
    }

    /// Returns the recorded times around `at`: the last before it, and the first from then on.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn recorded_around(
        &self,
        id: &DefinitionId,
        at: DateTime<Utc>,
    ) -> Result<[Option<DateTime<Utc>>; 2], JournalError> {
        let one = |sql: &str| -> Result<Option<DateTime<Utc>>, JournalError> {
            Ok(self.all(sql, &[&id.as_str(), &ms(at)], |row| row.maybe_at("at"))?.pop().flatten())
        };
        Ok([
            one("SELECT max(at) AS at FROM occurrence WHERE id = ?1 AND at < ?2")?,
            one("SELECT min(at) AS at FROM occurrence WHERE id = ?1 AND at >= ?2")?,
        ])
    }

    /// Returns the occurrence of a run.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn history_of(&self, run: &RunId) -> Result<Option<OccurrenceHistory>, JournalError> {
        let sql = "SELECT o.id, o.at FROM occurrence o JOIN run r ON r.occurrence = o.number WHERE r.run = ?1";
        let found = self.all(sql, &[&run.as_str()], |row| Ok((row.id("id")?, row.at("at")?)))?.pop();
        let Some((id, at)) = found else { return Ok(None) };
        Ok(self.histories_within(&id, at, at + TimeDelta::milliseconds(1))?.pop())
    }

    /// Returns the open occurrences of a definition, the oldest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn open_histories(&self, id: &DefinitionId) -> Result<Vec<OccurrenceHistory>, JournalError> {
        let sql = format!("{STORY} AND o.outcome IS NULL ORDER BY o.number LIMIT {MAX_ROWS}");
        self.stories(&sql, &[&id.as_str()])
    }

    /// Returns the events that say why a run was late and who asked for it, in order.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn delays_of(&self, run: &RunId) -> Result<Vec<Event>, JournalError> {
        let sql = format!(
            "SELECT number, at, run, id, data FROM event
             WHERE run = ?1 AND kind IN ('delayed', 'requested') ORDER BY number LIMIT {MAX_ROWS}"
        );
        self.all(&sql, &[&run.as_str()], event)
    }

    /// Returns for what each claimed run waits, as far as it is recorded.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_delays(&self) -> Result<HashMap<RunId, DelayCause>, JournalError> {
        let sql = "SELECT number, at, run, id, data FROM event
                   WHERE kind = 'delayed' AND run IN (SELECT run FROM run WHERE state = 'claimed') ORDER BY number";
        let cause = |event: Event| match event.kind {
            EventKind::Delayed { by, .. } => event.run.map(|run| (run, by)),
            _ => None,
        };
        // Of several, the last counts.
        Ok(self.all(sql, &[], event)?.into_iter().filter_map(cause).collect())
    }

    /// Returns recent events of a definition's file and of the clock, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn recent_events(&self, id: &DefinitionId) -> Result<Vec<Event>, JournalError> {
        let sql = format!(
            "SELECT number, at, run, id, data FROM event
             WHERE number > (SELECT coalesce(max(number), 0) FROM event) - {LOOKED_THROUGH} AND run IS NULL
               AND (id = ?1 AND kind IN ('definition_changed', 'definition_removed', 'due_moved') OR kind = 'clock_set')
             ORDER BY number DESC LIMIT {MAX_ROWS}"
        );
        self.all(&sql, &[&id.as_str()], event)
    }

    /// Returns a routine's trigger as last observed; `None` if it never was.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn seen(&self, id: &DefinitionId) -> Result<Option<ObservedTrigger>, JournalError> {
        let sql = "SELECT accounted_until, gone FROM definition_seen WHERE id = ?1";
        let read =
            |row: &Row<'_>| Ok(ObservedTrigger { until: row.at("accounted_until")?, gone: row.maybe_at("gone")? });
        Ok(self.all(sql, &[&id.as_str()], read)?.pop())
    }

    /// Returns the cost of a definition's completed runs, the newest first, at most `limit`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn completed_lately(&self, id: &DefinitionId, limit: u32) -> Result<Vec<PastRun>, JournalError> {
        let sql =
            "SELECT r.launched, r.ended, r.cost_usd, r.tokens FROM run r JOIN occurrence o ON o.number = r.occurrence
            WHERE o.id = ?1 AND r.state = 'completed' AND r.launched IS NOT NULL AND r.ended IS NOT NULL
            ORDER BY r.number DESC LIMIT ?2";
        self.all(sql, &[&id.as_str(), &limit], |row| {
            let took = row.at("ended")? - row.at("launched")?;
            Ok(PastRun { took, cost_usd: row.get("cost_usd")?, tokens: tokens(row)? })
        })
    }

    fn stories(&self, sql: &str, values: &[&dyn ToValue]) -> Result<Vec<OccurrenceHistory>, JournalError> {
        let mut found = self.all(sql, values, |row| Ok((row.get::<i64>("number")?, story(row)?)))?;
        let sql = format!(
            "SELECT run, host, attempt, state, coalesce(launched, started) AS started, ended, class, error, cost_usd FROM run
             WHERE occurrence = ?1 ORDER BY attempt LIMIT {MAX_ROWS}"
        );
        for (number, story) in &mut found {
            story.attempts = self.all(&sql, &[number], attempt)?;
        }
        Ok(found.into_iter().map(|(_, story)| story).collect())
    }
}

fn story(row: &Row<'_>) -> Result<OccurrenceHistory, JournalError> {
    let outcome: Option<String> = row.get("outcome")?;
    Ok(OccurrenceHistory {
        occurrence: Occurrence { id: row.id("id")?, kind: kind(&row.get::<String>("kind")?)?, at: row.at("at")? },
        covers_from: row.maybe_at("covers_from")?,
        occasion: Occasion::read(row.get("occasion")?),
        by_hand: row.get("by_hand")?,
        file: row.path("file")?,
        text: row.get("text")?,
        claimed: row.at("claimed")?,
        host: row.get("host")?,
        outcome: outcome.as_deref().map(state).transpose()?,
        retry_at: row.maybe_at("retry_at")?,
        attempts: Vec::new(),
    })
}

fn attempt(row: &Row<'_>) -> Result<Attempt, JournalError> {
    Ok(Attempt {
        run: row.run("run")?,
        host: row.get("host")?,
        number: row.get("attempt")?,
        state: state(&row.get::<String>("state")?)?,
        started: row.maybe_at("started")?,
        ended: row.maybe_at("ended")?,
        class: row.get("class")?,
        error: row.get("error")?,
        cost_usd: row.get("cost_usd")?,
    })
}
