//! Claiming occurrences: what makes each of them happen once.
//!
//! All that fall due together are claimed in one commit, before anything is started. The unique key (definition,
//! time) decides: whoever finds a record there leaves the occurrence alone.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, OptionalExtension, params};

use super::delays::{Delay, delayed};
use super::events::{EventKind, NewEvent, insert_event};
use super::outbox::{NewMessage, insert_message};
use super::rows::{ms, state};
use super::{Journal, JournalError, Occasion, Occurrence, RunId, RunState};
use crate::definition::{DefinitionId, Kind};

/// What a due occurrence is claimed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run.
    Run,
    /// To run because a person said so, not because it fell due: does not count as accounted for.
    RunByHand,
    /// To be recorded as skipped, and why.
    Skip(String),
    /// To be recorded as skipped together with every occurrence of its definition from then on, and why.
    SkipSince(DateTime<Utc>, String),
}

/// An occurrence to be claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct NewClaim {
    /// Whose, and when it was due.
    pub occurrence: Occurrence,
    /// The definition's file, relative to the data folder.
    pub file: PathBuf,
    /// The file's text.
    pub text: Arc<str>,
    /// What for.
    pub purpose: Purpose,
    /// What it fell due for; `None`: its time.
    pub occasion: Option<Occasion>,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours: the attempt (claimed, or skipped as asked).
    Claimed(RunId),
    /// It has a record; the state of its last attempt.
    AlreadyRecorded(RunState),
}

/// What came of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivered {
    /// It is a new occurrence: the claim as it was made.
    New(NewClaim, Claim),
    /// It has its occurrence: the first attempt at that.
    Again(RunId),
}

impl Journal {
    /// Claims all of `claims` in one commit; the answers are in their order. Of two for the same occurrence the
    /// first wins.
    ///
    /// # Errors
    /// When the commit cannot be made; then none of them is claimed.
    pub async fn claim(&self, claims: Vec<NewClaim>) -> Result<Vec<Claim>, JournalError> {
        self.claim_delayed(claims, Vec::new(), |texts| texts.join("\n")).await
    }

    /// As [`Self::claim`]. In the same commit, the person is told of `delays` of the definitions of which something was
    /// claimed; `fold` makes one message of their texts.
    ///
    /// # Errors
    /// When the commit cannot be made; then none of them is claimed.
    pub async fn claim_delayed(
        &self,
        claims: Vec<NewClaim>,
        delays: Vec<Delay>,
        fold: fn(&[String]) -> String,
    ) -> Result<Vec<Claim>, JournalError> {
        let clock = self.clock.clone();
        let (answers, newest) = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let answers: Vec<Claim> =
                    claims.iter().map(|claim| record(connection, claim, now)).collect::<Result<_, _>>()?;
                let ours: HashSet<&DefinitionId> = claims
                    .iter()
                    .zip(&answers)
                    .filter(|(_, answer)| matches!(answer, Claim::Claimed(_)))
                    .map(|(claim, _)| &claim.occurrence.id)
                    .collect();
                let told = delays.iter().filter(|delay| ours.contains(&delay.id));
                let newest = delayed(connection, told, fold, now)?;
                Ok((answers, newest))
            })
            .await?;
        self.announce(newest);
        Ok(answers)
    }

    /// Claims an occurrence that is due for something else than its time, as [`record_occasion`] says, and tells the person of it.
    /// Returns the claim as it was made.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn claim_occasion(
        &self,
        claim: NewClaim,
        message: Option<NewMessage>,
    ) -> Result<(NewClaim, Claim), JournalError> {
        let clock = self.clock.clone();
        let (claimed, newest) = self
            .writer
            .commit(move |connection| {
                let now = clock.now();
                let claimed = record_occasion(connection, &claim, now)?;
                let told = message.as_ref().map(|message| insert_message(connection, message, now)).transpose()?;
                Ok((claimed, told.unwrap_or(0)))
            })
            .await?;
        self.announce(newest);
        Ok(claimed)
    }

    /// Claims an occurrence for something that was delivered, as [`record_occasion`] says, unless the same was delivered to its definition
    /// at `since` or later.
    ///
    /// # Errors
    /// When the commit cannot be made; then it is not known whether it was delivered.
    pub async fn claim_delivery(&self, claim: NewClaim, since: DateTime<Utc>) -> Result<Delivered, JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| match delivered(connection, &claim, since)? {
                Some(run) => Ok(Delivered::Again(run)),
                None => record_occasion(connection, &claim, clock.now())
                    .map(|(claim, answer)| Delivered::New(claim, answer)),
            })
            .await
    }

    /// Begins another attempt at the occurrence of `last`, which must be over and its occurrence open.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the occurrence has its outcome already, or an attempt that is going.
    pub async fn attempt_again(&self, last: &RunId) -> Result<RunId, JournalError> {
        let last = last.clone();
        self.writer
            .commit(move |connection| {
                let found: Option<(i64, i64, String)> = connection
                    .prepare_cached(
                        "SELECT o.number, max(r.attempt), r.state FROM run r JOIN occurrence o ON o.number = r.occurrence
                         WHERE o.outcome IS NULL AND o.number = (SELECT occurrence FROM run WHERE run = ?1)
                         GROUP BY o.number",
                    )?
                    .query_row([last.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                    .optional()?;
                match found {
                    Some((occurrence, attempt, word)) if state(&word)?.is_over() => {
                        connection
                            .prepare_cached("UPDATE occurrence SET retry_at = NULL WHERE number = ?1")?
                            .execute([occurrence])?;
                        insert_run(connection, occurrence, attempt + 1, RunState::Claimed, None, None)
                    }
                    _ => Err(JournalError::NotGoing(last.clone())),
                }
            })
            .await
    }
}

/// The first attempt at the occurrence of the same delivery.
fn delivered(connection: &Connection, claim: &NewClaim, since: DateTime<Utc>) -> Result<Option<RunId>, JournalError> {
    let key = claim.occasion.as_ref().and_then(Occasion::delivery);
    let run: Option<String> = connection
        .prepare_cached(
            "SELECT r.run FROM occurrence o JOIN run r ON r.occurrence = o.number AND r.attempt = 1
             WHERE o.id = ?1 AND o.delivery = ?2 AND o.claimed >= ?3 ORDER BY o.number DESC LIMIT 1",
        )?
        .query_row(params![claim.occurrence.id.as_str(), key, ms(since)], |row| row.get(0))
        .optional()?;
    Ok(run.map(RunId::new))
}

/// Claims an occurrence that is due for something else than its time: at its time, or as soon after it as its definition has no other.
/// So none is taken for another.
pub(super) fn record_occasion(
    connection: &Connection,
    claim: &NewClaim,
    now: DateTime<Utc>,
) -> Result<(NewClaim, Claim), JournalError> {
    let mut claim = claim.clone();
    while last_state(connection, &claim.occurrence)?.is_some() {
        claim.occurrence.at += TimeDelta::milliseconds(1);
    }
    let recorded = record(connection, &claim, now)?;
    Ok((claim, recorded))
}

fn record(connection: &Connection, claim: &NewClaim, now: DateTime<Utc>) -> Result<Claim, JournalError> {
    let Occurrence { id, kind, at } = &claim.occurrence;
    if let Some(recorded) = last_state(connection, &claim.occurrence)? {
        account(connection, claim)?;
        return Ok(Claim::AlreadyRecorded(recorded));
    }
    let text = text_number(connection, claim)?;
    let (skipped, covers_from) = match &claim.purpose {
        Purpose::Run | Purpose::RunByHand => (None, None),
        Purpose::Skip(why) => (Some(why), None),
        Purpose::SkipSince(from, why) => (Some(why), Some(ms(*from))),
    };
    connection
        .prepare_cached(
            "INSERT INTO occurrence (id, kind, at, covers_from, by_hand, file, text, claimed, outcome, occasion, delivery)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            id.as_str(),
            kind.to_string(),
            ms(*at),
            covers_from,
            claim.purpose == Purpose::RunByHand,
            claim.file.to_string_lossy(),
            text,
            ms(now),
            skipped.map(|_| RunState::Skipped.as_str()),
            claim.occasion.as_ref().map(Occasion::text).transpose()?,
            claim.occasion.as_ref().and_then(Occasion::delivery),
        ])?;
    let occurrence = connection.last_insert_rowid();
    account(connection, claim)?;
    let run = match skipped {
        None => insert_run(connection, occurrence, 1, RunState::Claimed, None, None)?,
        Some(why) => {
            let run = insert_run(connection, occurrence, 1, RunState::Skipped, Some(now), Some(why))?;
            let kind = EventKind::RunEnded { outcome: RunState::Skipped, error: Some(why.clone()), retry_at: None };
            insert_event(connection, NewEvent { run: Some(run.as_str()), id: Some(id.as_str()), kind }, now)?;
            run
        }
    };
    Ok(Claim::Claimed(run))
}

/// The state of the last attempt at an occurrence; `None`: it has no record.
pub(super) fn last_state(connection: &Connection, occurrence: &Occurrence) -> Result<Option<RunState>, JournalError> {
    let word: Option<String> = connection
        .prepare_cached(
            "SELECT r.state FROM occurrence o JOIN run r ON r.occurrence = o.number
             WHERE o.id = ?1 AND o.at = ?2 ORDER BY r.attempt DESC LIMIT 1",
        )?
        .query_row(params![occurrence.id.as_str(), ms(occurrence.at)], |row| row.get(0))
        .optional()?;
    word.as_deref().map(state).transpose()
}

/// Moves a routine's account on: all up to this occurrence have a record.
fn account(connection: &Connection, claim: &NewClaim) -> Result<(), JournalError> {
    if claim.occurrence.kind == Kind::Routine && claim.purpose != Purpose::RunByHand {
        connection
            .prepare_cached("UPDATE definition_seen SET accounted_until = max(accounted_until, ?2) WHERE id = ?1")?
            .execute(params![claim.occurrence.id.as_str(), ms(claim.occurrence.at)])?;
    }
    Ok(())
}

/// The text's number: the one it had last time, while it stays the same.
pub(super) fn text_number(connection: &Connection, claim: &NewClaim) -> Result<i64, JournalError> {
    text_of(connection, claim.occurrence.id.as_str(), &claim.text)
}

/// As [`text_number`], by the definition's id.
pub(super) fn text_of(connection: &Connection, id: &str, text: &str) -> Result<i64, JournalError> {
    let last: Option<(i64, String)> = connection
        .prepare_cached("SELECT number, text FROM definition_text WHERE id = ?1 ORDER BY number DESC LIMIT 1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match last {
        Some((number, same)) if same == text => Ok(number),
        _ => {
            connection.prepare_cached("INSERT INTO definition_text (id, text) VALUES (?1, ?2)")?.execute([id, text])?;
            Ok(connection.last_insert_rowid())
        }
    }
}

fn insert_run(
    connection: &Connection,
    occurrence: i64,
    attempt: i64,
    state: RunState,
    ended: Option<DateTime<Utc>>,
    error: Option<&str>,
) -> Result<RunId, JournalError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO run (run, occurrence, attempt, state, ended, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (run) DO NOTHING",
    )?;
    loop {
        let run = RunId::random();
        // Taken already, once in a few billion: another one.
        if insert.execute(params![run.as_str(), occurrence, attempt, state.as_str(), ended.map(ms), error])? == 1 {
            return Ok(run);
        }
    }
}
