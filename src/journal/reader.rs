//! Reads the journal from another process than the daemon, or without a daemon.
//!
//! Never writes, and never waits for the writer. A missing journal reads as an empty one.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::claims::places;
use super::database::{Connection, Row, ToValue};
use chrono::{DateTime, Utc};

use super::generations::{FAILING, failing};
use super::open::open_reader;
use super::outbox::{MESSAGE, read_message};
use super::rows::{Columns, kind, maybe_time, ms, state, time};
use super::{
    ConsecutiveFailures, Denial, JournalError, JournalLocation, Message, Occasion, Occurrence, RunId, RunRecord,
    RunState,
};
use crate::agent::Tokens;
use crate::definition::DefinitionId;

/// Maximum number of ids in one statement.
const BATCH_SIZE: usize = 500;

/// The journal, open for reading. Synchronous: for the command line.
#[derive(Debug)]
pub struct JournalReader(Option<Connection>, JournalLocation);

impl Drop for JournalReader {
    fn drop(&mut self) {
        if let (Some(Connection::Postgres(link)), JournalLocation::Server(server)) = (self.0.take(), &self.1) {
            server.give_back(Some(link));
        }
    }
}

/// A selection of runs. The default: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this definition.
    pub id: Option<DefinitionId>,
    /// Only runs that failed or exceeded their time limit.
    pub failed: bool,
    /// Only runs before this one.
    pub before: Option<RunId>,
    /// Maximum number of runs, the newest first.
    pub limit: Option<u32>,
}

/// Finds a run of the definition `?1` by another client than `?2`.
pub(super) const RAN_BY_OTHER: &str = "SELECT 1 FROM occurrence o JOIN run r ON r.occurrence = o.number
    WHERE o.id = ?1 AND r.client NOT IN (?2, 'exec') LIMIT 1";

/// The cost of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCost {
    /// The definition.
    pub id: DefinitionId,
    /// When it began. Its cost counts for that day.
    pub launched: DateTime<Utc>,
    /// The model, if the client reported it.
    pub model: Option<Arc<str>>,
    /// Cost in US dollars, as reported by the client.
    pub cost_usd: f64,
    /// Amount that budgets count in addition: the run's cap, if it ended without a reported cost.
    pub unreported_usd: f64,
    /// Tokens that the run used.
    pub tokens: Tokens,
}

/// An occurrence with its outcome. Each due occurrence has exactly one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceRecord {
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// For a skipped one that stands for several without a record of their own: the scheduled time of the first.
    pub covers_from: Option<DateTime<Utc>>,
    /// Whether a person fired it.
    pub by_hand: bool,
    /// The outcome; `None`: it is open.
    pub outcome: Option<RunState>,
    /// When the next attempt is due, if one is.
    pub retry_at: Option<DateTime<Utc>>,
    /// Number of attempts so far.
    pub attempts: u32,
}

/// The watermark of a routine, and its records beyond it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceAccount {
    /// The watermark: each occurrence up to then has a record, or does not count.
    pub until: DateTime<Utc>,
    /// Later occurrences that have a record: the clock was set back since, or a person fired them.
    pub beyond: HashSet<DateTime<Utc>>,
}

const RUNS: &str = "
SELECT r.number, r.run, o.id, o.kind, o.at AS scheduled, coalesce(r.launched, r.started) AS started, r.ended, r.state, r.attempt, r.cost_usd, r.turns, r.model, r.tokens,
  r.host, r.client, r.client_version, r.api_retries, r.api_fault,
  r.error, r.transcript, t.text AS definition, o.claimed - o.at AS late_ms, o.by_hand, o.covers_from, json_remove(o.occasion, '$.payload') AS occasion,
  CASE WHEN o.retry_at IS NOT NULL AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)
    THEN o.retry_at END AS retry_at
FROM run r JOIN occurrence o ON o.number = r.occurrence LEFT JOIN definition_text t ON t.number = o.text";

/// A routine's last scheduled time, until a time, that has a record.
pub(super) const LAST_DUE: &str = "SELECT at FROM occurrence
     WHERE id = ?1 AND at <= ?2 AND kind = 'routine' AND NOT by_hand AND occasion IS NULL ORDER BY at DESC LIMIT 1";

/// Reminders with a record, though their file may still exist.
pub(super) const CLAIMED_REMINDERS: &str =
    "SELECT id, at FROM occurrence WHERE outcome IS NULL AND kind = 'reminder' UNION ALL
     SELECT id, at FROM occurrence WHERE kind = 'reminder' AND outcome IS NOT NULL AND NOT file_done";

impl JournalReader {
    /// Opens the journal, if there is one. Does not notice a journal that is created later: open it again to see
    /// that one.
    ///
    /// # Errors
    /// Fails when there is a journal that this version cannot read.
    pub fn open(place: impl Into<JournalLocation>) -> Result<Self, JournalError> {
        let place = place.into();
        Ok(Self(open_reader(&place)?, place))
    }

    /// Returns the location of the journal.
    #[must_use]
    pub fn place(&self) -> &JournalLocation {
        &self.1
    }

    /// Returns runs, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, JournalError> {
        let id = filter.id.as_ref().map(DefinitionId::as_str);
        let limit = filter.limit.map_or(i64::MAX, i64::from);
        let sql = format!(
            "{RUNS} WHERE (o.id = ?1 OR ?1 IS NULL)
               AND (NOT ?2 OR r.state IN ('failed', 'timed_out'))
               AND (r.number < (SELECT number FROM run WHERE run = ?4) OR ?4 IS NULL)
             ORDER BY r.number DESC LIMIT ?3"
        );
        let before = filter.before.as_ref().map(RunId::as_str);
        self.read_runs(&sql, &[&id, &filter.failed, &limit, &before])
    }

    /// Returns the ids of a definition's runs, the newest first, at most `limit`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn latest(&self, id: &DefinitionId, limit: u32) -> Result<Vec<RunId>, JournalError> {
        let sql = "SELECT r.run FROM run r JOIN occurrence o ON o.number = r.occurrence
            WHERE o.id = ?1 ORDER BY r.number DESC LIMIT ?2";
        self.all(sql, &[&id.as_str(), &limit], |row| row.run("run"))
    }

    /// Returns the costs of runs that began at `from` or later and before `until`, in no order.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn costs(
        &self,
        from: Option<DateTime<Utc>>,
        until: Option<DateTime<Utc>>,
    ) -> Result<Vec<RunCost>, JournalError> {
        // A run that was never launched costs nothing, in budgets neither.
        let sql = "SELECT o.id, r.launched, r.model, coalesce(r.cost_usd, 0.0), coalesce(r.reserved_usd, 0.0), r.tokens
            FROM run r JOIN occurrence o ON o.number = r.occurrence
            WHERE r.launched >= ?1 AND r.launched < ?2 AND (r.cost_usd IS NOT NULL OR r.reserved_usd IS NOT NULL AND r.ended IS NOT NULL)";
        let mut ids = HashMap::new();
        let mut models = HashMap::new();
        // Columns by index: there are many rows, and a name is searched for in each.
        self.all(sql, &[&from.map_or(i64::MIN, ms), &until.map_or(i64::MAX, ms)], |row| {
            Ok(RunCost {
                id: shared(row.text(&0)?.unwrap_or_default(), &mut ids, |id: &str| DefinitionId::new(id)),
                launched: time(row.get(1)?)?,
                model: row.text(&2)?.map(|model| shared(model, &mut models, |model: &str| Arc::from(model))),
                cost_usd: row.get(3)?,
                unreported_usd: row.get(4)?,
                tokens: row.text(&5)?.and_then(read_tokens).unwrap_or_default(),
            })
        })
    }

    /// Returns the cost of runs that began from `from` until before `until`, and when the first of them began.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn cost_between(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<(f64, Option<DateTime<Utc>>), JournalError> {
        let sql = "SELECT coalesce(sum(cost_usd), 0.0) AS cost, min(launched) AS first FROM run WHERE launched >= ?1 AND launched < ?2";
        let found = self.all(sql, &[&ms(from), &ms(until)], |row| {
            let first: Option<i64> = row.get("first")?;
            Ok((row.get::<f64>("cost")?, first.and_then(DateTime::from_timestamp_millis)))
        })?;
        Ok(found.first().copied().unwrap_or_default())
    }

    /// Returns the last attempt at every open occurrence, the newest first: claimed, running, cut off, or failed
    /// with a pending retry.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn unfinished(&self) -> Result<Vec<RunRecord>, JournalError> {
        // Begin with the few open occurrences, not with all runs.
        let sql = format!(
            "{RUNS} WHERE r.number IN (SELECT max(number) FROM run
               WHERE occurrence IN (SELECT number FROM occurrence WHERE outcome IS NULL) GROUP BY occurrence)
             ORDER BY r.number DESC"
        );
        self.read_runs(&sql, &[])
    }

    /// Returns what was delivered to the webhook of a run; `None` if nothing was, or its occurrence has ended.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn delivered(&self, run: &RunId) -> Result<Option<String>, JournalError> {
        let sql = "SELECT o.occasion FROM run r JOIN occurrence o ON o.number = r.occurrence
                   WHERE r.run = ?1 AND o.outcome IS NULL AND o.delivery IS NOT NULL";
        let found = self.all(sql, &[&run.as_str()], |row| Ok(Occasion::read(row.get("occasion")?)))?;
        Ok(found.into_iter().flatten().find_map(|occasion| match occasion {
            Occasion::Delivered { payload, .. } => Some(payload).filter(|payload| !payload.is_empty()),
            _ => None,
        }))
    }

    /// Returns the times of reminders that have a record, though their file may still exist: they are claimed or
    /// running, or their file is not dealt with yet. They do not fall due again.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn claimed_reminders(&self) -> Result<HashMap<DefinitionId, Vec<DateTime<Utc>>>, JournalError> {
        let claimed = self.all(CLAIMED_REMINDERS, &[], |row| Ok((row.id("id")?, row.at("at")?)))?;
        let mut by_id: HashMap<DefinitionId, Vec<DateTime<Utc>>> = HashMap::new();
        for (id, at) in claimed {
            by_id.entry(id).or_default().push(at);
        }
        Ok(by_id)
    }

    /// Returns a routine's last scheduled time, not after `now`, that fired or was skipped.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_due(&self, id: &DefinitionId, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, JournalError> {
        Ok(self.all(LAST_DUE, &[&id.as_str(), &ms(now)], |row| row.at("at"))?.pop())
    }

    /// Returns the watermarks of those of these definitions that are routines.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn accounts<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a DefinitionId>,
    ) -> Result<HashMap<DefinitionId, OccurrenceAccount>, JournalError> {
        let ids: Vec<&dyn ToValue> = ids.into_iter().map(|id| id as &dyn ToValue).collect();
        let read = |row: &Row<'_>| Ok((row.id("id")?, row.at("accounted_until")?, row.maybe_at("at")?));
        let mut accounts: HashMap<DefinitionId, OccurrenceAccount> = HashMap::new();
        for some in ids.chunks(BATCH_SIZE) {
            let sql = format!(
                "SELECT d.id, d.accounted_until, o.at FROM definition_seen d
                 LEFT JOIN occurrence o ON o.id = d.id AND o.at > d.accounted_until WHERE d.gone IS NULL AND d.id IN {}",
                places(1, some.len())
            );
            for (id, until, at) in self.all(&sql, some, read)? {
                let new = || OccurrenceAccount { until, beyond: HashSet::new() };
                accounts.entry(id).or_insert_with(new).beyond.extend(at);
            }
        }
        Ok(accounts)
    }

    /// Returns whether a definition has had a run by another client than `client`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn ran_with_another_client(&self, client: &str, id: &DefinitionId) -> Result<bool, JournalError> {
        Ok(!self.all(RAN_BY_OTHER, &[&id.as_str(), &client], |_| Ok(()))?.is_empty())
    }

    /// Returns every id in the journal, those of spawned agents included.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn ids(&self) -> Result<Vec<DefinitionId>, JournalError> {
        self.all("SELECT id FROM occurrence UNION SELECT id FROM session", &[], |row| row.id("id"))
    }

    /// Returns the ids whose every occurrence was skipped.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn only_skipped(&self) -> Result<Vec<DefinitionId>, JournalError> {
        let sql =
            "SELECT id FROM occurrence GROUP BY id HAVING count(*) = count(CASE WHEN outcome = 'skipped' THEN 1 END)";
        self.all(sql, &[], |row| row.id("id"))
    }

    /// Returns whether the journal has a record of an id.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn has_record_of(&self, id: &DefinitionId) -> Result<bool, JournalError> {
        let sql = "SELECT 1 FROM occurrence WHERE id = ?1 UNION ALL SELECT 1 FROM session WHERE id = ?1 LIMIT 1";
        Ok(!self.all(sql, &[&id.as_str()], |_| Ok(()))?.is_empty())
    }

    /// Returns one run; `None` if there is no such run. Accepts an unambiguous prefix of the id, of four digits or more.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn run(&self, run: &RunId) -> Result<Option<RunRecord>, JournalError> {
        // Ids are hexadecimal, so those that begin with `?1` lie between `?1` and `?1 || 'g'`, and the index finds them.
        let sql = format!("{RUNS} WHERE r.run = ?1 OR (length(?1) >= 4 AND r.run BETWEEN ?1 AND ?1 || 'g') LIMIT 2");
        let mut found = self.read_runs(&sql, &[&run.as_str()])?;
        let exact = found.iter().position(|record| record.run == *run);
        Ok(match (exact, found.len()) {
            (Some(place), _) => Some(found.swap_remove(place)),
            (None, 1) => found.pop(),
            _ => None,
        })
    }

    /// Returns the number of the newest event; 0 if there is none.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn newest_event(&self) -> Result<i64, JournalError> {
        let newest = self.all("SELECT coalesce(max(number), 0) FROM event", &[], |row| row.get(0))?;
        Ok(newest.first().copied().unwrap_or(0))
    }

    /// Returns messages to the person, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn messages(&self, limit: Option<u32>) -> Result<Vec<Message>, JournalError> {
        self.messages_where("m.run = ?1 OR ?1 IS NULL", None, limit)
    }

    /// Returns messages whose text contains `words`, in upper or lower case. `before`: only older ones than this number.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn messages_with(&self, words: &str, before: Option<i64>, limit: u32) -> Result<Vec<Message>, JournalError> {
        let sql = format!(
            "SELECT {MESSAGE} FROM message m WHERE instr(lower(m.text), lower(?1)) > 0 AND (number < ?2 OR ?2 IS NULL)
             ORDER BY number DESC LIMIT ?3"
        );
        self.with_deliveries(self.all(&sql, &[&words, &before, &limit], read_message)?)
    }

    /// Returns messages that a run has sent, the newest first.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn messages_of(&self, run: &RunId, limit: u32) -> Result<Vec<Message>, JournalError> {
        self.messages_where("m.run = ?1", Some(run), Some(limit))
    }

    fn messages_where(
        &self,
        condition: &str,
        run: Option<&RunId>,
        limit: Option<u32>,
    ) -> Result<Vec<Message>, JournalError> {
        let limit = limit.map_or(i64::MAX, i64::from);
        let sql = format!("SELECT {MESSAGE} FROM message m WHERE {condition} ORDER BY number DESC LIMIT ?2");
        self.with_deliveries(self.all(&sql, &[&run.map(RunId::as_str), &limit], read_message)?)
    }

    fn with_deliveries(&self, mut messages: Vec<Message>) -> Result<Vec<Message>, JournalError> {
        for message in &mut messages {
            message.deliveries = self.deliveries(message.number)?;
        }
        Ok(messages)
    }

    /// Returns occurrences, in the order of their claims.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn occurrences(&self, id: Option<&DefinitionId>) -> Result<Vec<OccurrenceRecord>, JournalError> {
        let id = id.map(DefinitionId::as_str);
        self.all(
            "SELECT id, kind, at, covers_from, by_hand, outcome, retry_at,
               (SELECT count(*) FROM run WHERE occurrence = occurrence.number) AS attempts
             FROM occurrence WHERE id = ?1 OR ?1 IS NULL ORDER BY number",
            &[&id],
            occurrence_record,
        )
    }

    /// Returns the state of a definition's latest run, and since when; `None` if it has not run.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last(&self, id: &DefinitionId) -> Result<Option<(RunState, DateTime<Utc>)>, JournalError> {
        let sql = "SELECT r.state, coalesce(r.ended, r.started, r.launched, o.claimed) AS at
            FROM occurrence o JOIN run r ON r.occurrence = o.number
            WHERE o.number = (SELECT max(number) FROM occurrence WHERE id = ?1) ORDER BY r.attempt DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok((state(&row.get::<String>("state")?)?, row.at("at")?));
        Ok(self.all(sql, &[&id.as_str()], read)?.pop())
    }

    /// Returns how many runs are in each state.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn counts(&self) -> Result<Vec<(RunState, u64)>, JournalError> {
        self.all("SELECT state, count(*) FROM run GROUP BY state ORDER BY state", &[], |row| {
            let count: i64 = row.get(1)?;
            Ok((state(&row.get::<String>(0)?)?, u64::try_from(count).unwrap_or_default()))
        })
    }

    /// Returns definitions that failed lately, or are suppressed because of failures.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn consecutive_failures(&self) -> Result<Vec<ConsecutiveFailures>, JournalError> {
        self.all(FAILING, &[], failing)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn setting(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.all("SELECT value FROM setting WHERE key = ?1", &[&key], |row| row.get(0))?.pop())
    }

    fn read_runs(&self, sql: &str, values: &[&dyn ToValue]) -> Result<Vec<RunRecord>, JournalError> {
        let mut found = self.all(sql, values, |row| Ok((row.get::<i64>("number")?, run_record(row)?)))?;
        for (number, record) in &mut found {
            record.denials = self.all(
                "SELECT tool, input, layer, rule, reason FROM denial WHERE run = ?1 ORDER BY position",
                &[number],
                denial,
            )?;
        }
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.0.as_ref()
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        values: &[&dyn ToValue],
        read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
    ) -> Result<Vec<T>, JournalError> {
        self.0.as_ref().map_or(Ok(Vec::new()), |connection| connection.all(sql, values, read))
    }
}

fn run_record(row: &Row<'_>) -> Result<RunRecord, JournalError> {
    Ok(RunRecord {
        run: row.run("run")?,
        id: row.id("id")?,
        kind: kind(&row.get::<String>("kind")?)?,
        scheduled: time(row.get("scheduled")?)?,
        started: maybe_time(row.get("started")?)?,
        ended: maybe_time(row.get("ended")?)?,
        outcome: state(&row.get::<String>("state")?)?,
        attempt: row.get("attempt")?,
        late_ms: row.get("late_ms")?,
        cost_usd: row.get("cost_usd")?,
        turns: row.get("turns")?,
        model: row.get("model")?,
        tokens: tokens(row)?,
        denials: Vec::new(),
        error: row.get("error")?,
        retry_at: row.maybe_at("retry_at")?,
        covers_from: row.maybe_at("covers_from")?,
        occasion: Occasion::read(row.get("occasion")?),
        by_hand: row.get("by_hand")?,
        host: row.get("host")?,
        client: row.get("client")?,
        client_version: row.get("client_version")?,
        api_retries: row.get("api_retries")?,
        api_fault: row.get("api_fault")?,
        transcript: row.get::<Option<String>>("transcript")?.map(PathBuf::from),
        definition: row.get("definition")?,
    })
}

pub(super) fn tokens(row: &Row<'_>) -> Result<Option<Tokens>, JournalError> {
    Ok(row.text(&"tokens")?.and_then(read_tokens))
}

fn read_tokens(text: &str) -> Option<Tokens> {
    serde_json::from_str(text).ok()
}

/// Returns the value that a text stands for. Many rows have the same text, and share its value.
fn shared<T: Clone>(text: &str, known: &mut HashMap<String, T>, new: impl FnOnce(&str) -> T) -> T {
    if let Some(value) = known.get(text) {
        return value.clone();
    }
    let value = new(text);
    known.insert(text.to_owned(), value.clone());
    value
}

fn denial(row: &Row<'_>) -> Result<Denial, JournalError> {
    let input: String = row.get("input")?;
    Ok(Denial {
        tool: row.get("tool")?,
        input: serde_json::from_str(&input).unwrap_or(serde_json::Value::String(input)),
        layer: row.get("layer")?,
        rule: row.get("rule")?,
        reason: row.get("reason")?,
    })
}

fn occurrence_record(row: &Row<'_>) -> Result<OccurrenceRecord, JournalError> {
    Ok(OccurrenceRecord {
        occurrence: Occurrence { id: row.id("id")?, kind: kind(&row.get::<String>("kind")?)?, at: row.at("at")? },
        covers_from: row.maybe_at("covers_from")?,
        by_hand: row.get("by_hand")?,
        outcome: row.get::<Option<String>>("outcome")?.as_deref().map(state).transpose()?,
        retry_at: row.maybe_at("retry_at")?,
        attempts: row.get("attempts")?,
    })
}
