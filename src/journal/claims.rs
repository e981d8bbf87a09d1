//! Claims occurrences, so that each of them happens once.
//!
//! All occurrences that fall due together are claimed in one commit, before anything is started. The key
//! (definition, time) is unique. A claimant that finds a record leaves the occurrence alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, TimeDelta, Utc};

use super::delays::{Delay, delayed};
use super::events::{EventKind, NewEvent, insert_event};
use super::outbox::{NewMessage, insert_message};
use super::rows::{ms, state};
use super::{Journal, JournalError, Occasion, Occurrence, Origin, RunId, RunState};
use crate::definition::{DefinitionId, Kind};

/// The purpose of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Run the occurrence.
    Run,
    /// Run the occurrence because a person asked for it. Does not move the watermark.
    RunByHand,
    /// Leave the occurrence to the first host that may run it, since this one may not.
    RunElsewhere,
    /// Record it as skipped, with the reason.
    Skip(String),
    /// Record it as skipped for every occurrence of its definition since then, with the reason.
    SkipSince(DateTime<Utc>, String),
}

/// An occurrence to claim.
#[derive(Clone, Debug, PartialEq)]
pub struct NewClaim {
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// The definition's file, relative to the data folder.
    pub file: PathBuf,
    /// The file's text.
    pub text: Arc<str>,
    /// The purpose.
    pub purpose: Purpose,
    /// The cause of the occurrence; `None`: its scheduled time.
    pub occasion: Option<Occasion>,
    /// Its origin, if runs may have caused it.
    pub origin: Option<Origin>,
    /// The id of its first attempt, unless another one has it.
    pub run: RunId,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is claimed for this attempt, or recorded as skipped as requested.
    Claimed(RunId),
    /// It has a record already; holds the state of the last attempt.
    AlreadyRecorded(RunState),
}

/// The outcome of a delivery to a webhook.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryClaim {
    /// A new occurrence, with the claim as recorded.
    New(Box<NewClaim>, Claim),
    /// A repeated delivery, with the first attempt at its occurrence.
    Again(RunId),
}

impl Journal {
    /// Claims all of `claims` in one commit. Returns the answers in the same order. Of two claims for one
    /// occurrence the first wins.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then none of them is claimed.
    pub async fn claim(&self, claims: Vec<NewClaim>) -> Result<Vec<Claim>, JournalError> {
        self.claim_delayed(claims, Vec::new(), |texts| texts.join("\n")).await
    }

    /// As [`Self::claim`]. The same commit records the message about `delays` of the definitions that got a claim;
    /// `fold` joins their texts into one message.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then none of them is claimed.
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
                let answers = record_all(connection, &claims, now)?;
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

    /// As [`Self::claim_delayed`], for occurrences that another host has most likely recorded by now. Looks for their records first, which
    /// holds up no other host, and makes no commit if each has one.
    ///
    /// # Errors
    /// Fails when the journal cannot be read, or the commit cannot be made. Then none of them is claimed.
    pub async fn claim_rest(
        &self,
        claims: Vec<NewClaim>,
        delays: Vec<Delay>,
        fold: fn(&[String]) -> String,
    ) -> Result<Vec<Claim>, JournalError> {
        let due: Vec<(String, i64)> =
            claims.iter().map(|claim| (claim.occurrence.id.to_string(), ms(claim.occurrence.at))).collect();
        let asked = due.clone();
        let read = self.writer.read(move |connection| {
            let mut states = HashMap::new();
            for some in asked.chunks(BATCH_SIZE) {
                let some: Vec<(&str, i64)> = some.iter().map(|(id, at)| (id.as_str(), *at)).collect();
                states.extend(last_states(connection, &some)?);
            }
            Ok(states)
        });
        let recorded: Vec<Option<RunState>> = {
            let states = read.await?;
            due.iter().map(|due| states.get(due).copied()).collect()
        };
        let rest: Vec<NewClaim> =
            claims.into_iter().zip(&recorded).filter(|(_, state)| state.is_none()).map(|(claim, _)| claim).collect();
        let answers = if rest.is_empty() { Vec::new() } else { self.claim_delayed(rest, delays, fold).await? };
        let mut answers = answers.into_iter();
        let answer = |state: Option<RunState>| match state {
            Some(state) => Ok(Claim::AlreadyRecorded(state)),
            None => answers.next().ok_or(JournalError::Closed),
        };
        recorded.into_iter().map(answer).collect()
    }

    /// Claims an occurrence whose cause is not its time, like [`record_occasion`], and records `message` to the
    /// person. Returns the claim as recorded.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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

    /// Claims an occurrence for a delivery, like [`record_occasion`], unless the definition got the same delivery
    /// at `since` or later.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then it is unknown whether it was delivered.
    pub async fn claim_delivery(&self, claim: NewClaim, since: DateTime<Utc>) -> Result<DeliveryClaim, JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| match delivered(connection, &claim, since)? {
                Some(run) => Ok(DeliveryClaim::Again(run)),
                None => record_occasion(connection, &claim, clock.now())
                    .map(|(claim, answer)| DeliveryClaim::New(Box::new(claim), answer)),
            })
            .await
    }

    /// Begins another attempt at the occurrence of `last`. The last attempt must have ended, and the occurrence must be open.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the occurrence has its outcome already, or a running attempt.
    pub async fn attempt_again(&self, last: &RunId) -> Result<RunId, JournalError> {
        let last = last.clone();
        self.writer
            .commit(move |connection| {
                let found: Option<(i64, i64, String)> = connection.one(
                    "SELECT o.number, r.attempt, r.state FROM run r JOIN occurrence o ON o.number = r.occurrence
                         WHERE o.outcome IS NULL AND o.number = (SELECT occurrence FROM run WHERE run = ?1)
                         ORDER BY r.attempt DESC LIMIT 1",
                    [last.as_str()],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )?;
                match found {
                    Some((occurrence, attempt, word)) if state(&word)?.is_over() => {
                        connection.execute("UPDATE occurrence SET retry_at = NULL WHERE number = ?1", [occurrence])?;
                        insert_run(connection, occurrence, attempt + 1, RunState::Claimed, None, None)
                    }
                    _ => Err(JournalError::NotGoing(last.clone())),
                }
            })
            .await
    }
}

/// Returns the first attempt at the occurrence of the same delivery.
fn delivered(connection: &Connection, claim: &NewClaim, since: DateTime<Utc>) -> Result<Option<RunId>, JournalError> {
    let key = claim.occasion.as_ref().and_then(Occasion::delivery);
    let run: Option<String> = connection.one(
        "SELECT r.run FROM occurrence o JOIN run r ON r.occurrence = o.number AND r.attempt = 1
             WHERE o.id = ?1 AND o.delivery = ?2 AND o.claimed >= ?3 ORDER BY o.number DESC LIMIT 1",
        params![claim.occurrence.id.as_str(), key, ms(since)],
        |row| row.get(0),
    )?;
    Ok(run.map(RunId::new))
}

/// Claims an occurrence whose cause is not its time. Takes the first free time of its definition at or after the
/// claim's, by milliseconds, so that no two occurrences are mistaken for each other.
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

/// Claims all of them. Plain runs are recorded together, which matters when a thousand fall due at once and each
/// statement is a round trip to a server.
fn record_all(connection: &Connection, claims: &[NewClaim], now: DateTime<Utc>) -> Result<Vec<Claim>, JournalError> {
    let is_simple = |claim: &NewClaim| claim.purpose == Purpose::Run && claim.occasion.is_none();
    let mut answers: Vec<Option<Claim>> = claims.iter().map(|_| None).collect();
    // The last record of a definition is that of its newest time: what is skipped before it is recorded before it.
    let (mut simple, mut ids) = (Vec::new(), HashSet::new());
    for (answer, claim) in answers.iter_mut().zip(claims) {
        if is_simple(claim) {
            simple.push(claim);
            ids.insert(&claim.occurrence.id);
        } else if !ids.contains(&claim.occurrence.id) {
            *answer = Some(record(connection, claim, now)?);
        }
    }
    let mut together = Vec::with_capacity(simple.len());
    for some in simple.chunks(BATCH_SIZE) {
        together.extend(record_together(connection, some, now)?);
    }
    let mut together = together.into_iter();
    let rest = |(answer, claim): (Option<Claim>, &NewClaim)| match answer {
        Some(answer) => Ok(answer),
        None => match is_simple(claim).then(|| together.next()).flatten() {
            Some(answer) => Ok(answer),
            None => record(connection, claim, now),
        },
    };
    answers.into_iter().zip(claims).map(rest).collect()
}

/// Maximum number of occurrences that one statement records.
const BATCH_SIZE: usize = 500;

/// Returns the placeholders of a statement that inserts `rows` rows of `columns` parameters each: `(?1, ?2), (?3, ?4)`.
pub(super) fn places(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let places: Vec<String> = (1..=columns).map(|column| format!("?{}", row * columns + column)).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// Records occurrences that are to run. Of two for the same time it records the first.
fn record_together(
    connection: &Connection,
    claims: &[&NewClaim],
    now: DateTime<Utc>,
) -> Result<Vec<Claim>, JournalError> {
    let texts = text_numbers(connection, claims)?;
    let kinds: Vec<String> = claims.iter().map(|claim| claim.occurrence.kind.to_string()).collect();
    let files: Vec<_> = claims.iter().map(|claim| claim.file.to_string_lossy()).collect();
    let times: Vec<i64> = claims.iter().map(|claim| ms(claim.occurrence.at)).collect();
    let (now, host) = (ms(now), connection.host());
    let mut values: Vec<&dyn ToValue> = Vec::new();
    for (place, claim) in claims.iter().enumerate() {
        let id: &DefinitionId = &claim.occurrence.id;
        values.extend([
            id as &dyn ToValue,
            &kinds[place],
            &times[place],
            &files[place],
            &texts[id.as_str()],
            &now,
            &host,
        ]);
    }
    let sql = format!(
        "INSERT INTO occurrence (id, kind, at, file, text, claimed, host, by_hand)
         SELECT column1, column2, CAST(column3 AS BIGINT), column4, CAST(column5 AS BIGINT), CAST(column6 AS BIGINT), column7, FALSE
         FROM (VALUES {}) AS due WHERE TRUE ON CONFLICT (id, at) DO NOTHING RETURNING number, id, at",
        places(claims.len(), 7)
    );
    let read = |row: &Row<'_>| Ok(((row.get::<String>("id")?, row.get::<i64>("at")?), row.get::<i64>("number")?));
    let mut recorded: HashMap<(String, i64), i64> = connection.all(&sql, &values[..], read)?.into_iter().collect();
    // Keep the order of the claims, so that the numbers of the runs have it, too.
    let ours: Vec<Option<i64>> =
        claims.iter().zip(&times).map(|(claim, at)| recorded.remove(&(claim.occurrence.id.to_string(), *at))).collect();
    let new: Vec<(&RunId, i64)> =
        claims.iter().zip(&ours).filter_map(|(claim, ours)| Some((&claim.run, (*ours)?))).collect();
    let mut runs = insert_runs(connection, &new)?.into_iter();
    account_all(connection, claims)?;
    let due = || claims.iter().zip(&times).map(|(claim, at)| (claim.occurrence.id.as_str(), *at));
    let others: Vec<(&str, i64)> = due().zip(&ours).filter(|(_, ours)| ours.is_none()).map(|(due, _)| due).collect();
    let others = last_states(connection, &others)?;
    due()
        .zip(&ours)
        .map(|((id, at), ours)| match ours.and_then(|_| runs.next()) {
            Some(run) => Ok(Claim::Claimed(run)),
            None => others
                .get(&(id.to_owned(), at))
                .map(|state| Claim::AlreadyRecorded(*state))
                .ok_or_else(|| JournalError::Unreadable(format!("an occurrence of {id} without a run"))),
        })
        .collect()
}

/// Returns the states of the last attempts at these occurrences.
fn last_states(
    connection: &Connection,
    occurrences: &[(&str, i64)],
) -> Result<HashMap<(String, i64), RunState>, JournalError> {
    if occurrences.is_empty() {
        return Ok(HashMap::new());
    }
    let values: Vec<&dyn ToValue> = occurrences.iter().flat_map(|(id, at)| [id as &dyn ToValue, at]).collect();
    let sql = format!(
        "SELECT o.id, o.at, r.state FROM (VALUES {}) AS due
         JOIN occurrence o ON o.id = due.column1 AND o.at = CAST(due.column2 AS BIGINT)
         JOIN run r ON r.occurrence = o.number ORDER BY r.attempt",
        places(occurrences.len(), 2)
    );
    let read =
        |row: &Row<'_>| Ok(((row.get::<String>("id")?, row.get::<i64>("at")?), state(&row.get::<String>("state")?)?));
    // Of several attempts the map keeps the last.
    Ok(connection.all(&sql, &values[..], read)?.into_iter().collect())
}

/// Records the first attempt at each of these occurrences. Returns the attempts' ids: the given ones, unless another attempt has one.
fn insert_runs(connection: &Connection, new: &[(&RunId, i64)]) -> Result<Vec<RunId>, JournalError> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let host = connection.host();
    let values: Vec<&dyn ToValue> =
        new.iter().flat_map(|(run, occurrence)| [*run as &dyn ToValue, occurrence, &host]).collect();
    let sql = format!(
        "INSERT INTO run (run, occurrence, host, attempt, state)
         SELECT column1, CAST(column2 AS BIGINT), column3, 1, 'claimed' FROM (VALUES {}) AS new WHERE TRUE
         ON CONFLICT (run) DO NOTHING RETURNING occurrence",
        places(new.len(), 3)
    );
    let done: HashSet<i64> = connection.all(&sql, &values[..], |row| row.get(0))?.into_iter().collect();
    let run_of = |(run, occurrence): &(&RunId, i64)| match done.contains(occurrence) {
        true => Ok((*run).clone()),
        // The random id was taken.
        false => insert_run(connection, *occurrence, 1, RunState::Claimed, None, None),
    };
    new.iter().map(run_of).collect()
}

/// Like [`account`], for all claims.
fn account_all(connection: &Connection, claims: &[&NewClaim]) -> Result<(), JournalError> {
    let mut latest: BTreeMap<&DefinitionId, i64> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| claim.occurrence.kind == Kind::Routine) {
        let at = ms(claim.occurrence.at);
        latest.entry(&claim.occurrence.id).and_modify(|latest| *latest = at.max(*latest)).or_insert(at);
    }
    if latest.is_empty() {
        return Ok(());
    }
    let values: Vec<&dyn ToValue> = latest.iter().flat_map(|(id, at)| [*id as &dyn ToValue, at]).collect();
    let sql = format!(
        "UPDATE definition_seen SET accounted_until = CAST(due.column2 AS BIGINT) FROM (VALUES {}) AS due
         WHERE id = due.column1 AND accounted_until < CAST(due.column2 AS BIGINT)",
        places(latest.len(), 2)
    );
    connection.execute(&sql, &values[..])?;
    Ok(())
}

/// Returns the numbers of the claims' texts, by definition id.
fn text_numbers<'a>(connection: &Connection, claims: &[&'a NewClaim]) -> Result<HashMap<&'a str, i64>, JournalError> {
    let texts: BTreeMap<&str, &str> = claims.iter().map(|claim| (claim.occurrence.id.as_str(), &*claim.text)).collect();
    let ids: Vec<&dyn ToValue> = texts.keys().map(|id| id as &dyn ToValue).collect();
    let sql = format!(
        "SELECT number, id, text FROM definition_text WHERE number IN
           (SELECT max(number) FROM definition_text WHERE id IN {} GROUP BY id)",
        places(1, ids.len())
    );
    let read = |row: &Row<'_>| Ok((row.get::<i64>("number")?, row.get::<String>("id")?, row.get::<String>("text")?));
    let mut numbers = HashMap::new();
    for (number, id, text) in connection.all(&sql, &ids[..], read)? {
        if let Some((id, now)) = texts.get_key_value(&*id)
            && **now == *text
        {
            numbers.insert(*id, number);
        }
    }
    let new: Vec<(&str, &str)> = texts.into_iter().filter(|(id, _)| !numbers.contains_key(id)).collect();
    if new.is_empty() {
        return Ok(numbers);
    }
    let values: Vec<&dyn ToValue> = new.iter().flat_map(|(id, text)| [id as &dyn ToValue, text]).collect();
    let sql = format!("INSERT INTO definition_text (id, text) VALUES {} RETURNING number, id", places(new.len(), 2));
    let made = connection.all(&sql, &values[..], |row| Ok((row.get::<i64>("number")?, row.get::<String>("id")?)))?;
    let made: HashMap<String, i64> = made.into_iter().map(|(number, id)| (id, number)).collect();
    numbers.extend(new.into_iter().filter_map(|(id, _)| Some((id, *made.get(id)?))));
    Ok(numbers)
}

fn record(connection: &Connection, claim: &NewClaim, now: DateTime<Utc>) -> Result<Claim, JournalError> {
    let Occurrence { id, kind, at } = &claim.occurrence;
    if let Some(recorded) = last_state(connection, &claim.occurrence)? {
        account(connection, claim)?;
        return Ok(Claim::AlreadyRecorded(recorded));
    }
    let text = text_number(connection, claim)?;
    let (skipped, covers_from) = match &claim.purpose {
        Purpose::Run | Purpose::RunByHand | Purpose::RunElsewhere => (None, None),
        Purpose::Skip(why) => (Some(why), None),
        Purpose::SkipSince(from, why) => (Some(why), Some(ms(*from))),
    };
    let is_left = claim.purpose == Purpose::RunElsewhere;
    let occurrence = connection.row(
        "INSERT INTO occurrence (id, kind, at, covers_from, by_hand, file, text, claimed, outcome, occasion, delivery, host)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING number",
        params![
            id.as_str(),
            kind.to_string(),
            ms(*at),
            covers_from,
            claim.purpose == Purpose::RunByHand,
            claim.file.to_string_lossy(),
            text,
            ms(now),
            skipped.map(|_| RunState::Skipped.as_str()),
            claim.occasion.as_ref().map(|occasion| occasion.text(claim.origin.as_ref())).transpose()?,
            claim.occasion.as_ref().and_then(Occasion::delivery),
            connection.host().filter(|_| !is_left),
        ],
        |row| row.get(0),
    )?;
    account(connection, claim)?;
    if is_left {
        super::hosts::note_left(connection)?;
    }
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

/// Returns the state of the last attempt at an occurrence; `None` if it has no record.
pub(super) fn last_state(connection: &Connection, occurrence: &Occurrence) -> Result<Option<RunState>, JournalError> {
    let word: Option<String> = connection.one(
        "SELECT r.state FROM occurrence o JOIN run r ON r.occurrence = o.number
             WHERE o.id = ?1 AND o.at = ?2 ORDER BY r.attempt DESC LIMIT 1",
        params![occurrence.id.as_str(), ms(occurrence.at)],
        |row| row.get(0),
    )?;
    word.as_deref().map(state).transpose()
}

/// Moves a routine's watermark on: all occurrences up to this one have a record.
fn account(connection: &Connection, claim: &NewClaim) -> Result<(), JournalError> {
    if claim.occurrence.kind == Kind::Routine && claim.purpose != Purpose::RunByHand {
        connection.execute("UPDATE definition_seen SET accounted_until = CASE WHEN accounted_until < ?2 THEN ?2 ELSE accounted_until END WHERE id = ?1", params![claim.occurrence.id.as_str(), ms(claim.occurrence.at)])?;
    }
    Ok(())
}

/// Returns the number of the text. An unchanged text keeps its number.
pub(super) fn text_number(connection: &Connection, claim: &NewClaim) -> Result<i64, JournalError> {
    text_of(connection, claim.occurrence.id.as_str(), &claim.text)
}

/// Like [`text_number`], by definition id.
pub(super) fn text_of(connection: &Connection, id: &str, text: &str) -> Result<i64, JournalError> {
    let last: Option<(i64, String)> = connection.one(
        "SELECT number, text FROM definition_text WHERE id = ?1 ORDER BY number DESC LIMIT 1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    match last {
        Some((number, same)) if same == text => Ok(number),
        _ => connection.row(
            "INSERT INTO definition_text (id, text) VALUES (?1, ?2) RETURNING number",
            [id, text],
            |row| row.get(0),
        ),
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
    let sql =
        "INSERT INTO run (run, occurrence, attempt, state, ended, error, host) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (run) DO NOTHING";
    loop {
        let run = RunId::random();
        let values =
            params![run.as_str(), occurrence, attempt, state.as_str(), ended.map(ms), error, connection.host()];
        // The random id is taken, once in a few billion: try another one.
        if connection.execute(sql, values)? == 1 {
            return Ok(run);
        }
    }
}
