//! Reading the journal from another process than the daemon, or with no daemon at all.
//!
//! Never writes, never waits for the writer; no journal yet reads as an empty one.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::database::{Connection, Row, ToValue};
use chrono::{DateTime, Utc};

use super::generations::{FAILING, failing};
use super::open::open_reader;
use super::outbox::{MESSAGE, read_message};
use super::rows::{Columns, kind, maybe_time, ms, state, time};
use super::{
    ConsecutiveFailures, Denial, JournalError, JournalPlace, Message, Occasion, Occurrence, RunId, RunRecord, RunState,
};
use crate::agent::Tokens;
use crate::definition::DefinitionId;

/// The journal, open for reading. Synchronous: for the command line.
#[derive(Debug)]
pub struct JournalReader(Option<Connection>, JournalPlace);

impl Drop for JournalReader {
    fn drop(&mut self) {
        if let (Some(Connection::Postgres(link)), JournalPlace::Server(server)) = (self.0.take(), &self.1) {
            server.give_back(link);
        }
    }
}

/// Which runs are asked for. The default: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only this definition's.
    pub id: Option<DefinitionId>,
    /// Only those that failed or went over their time.
    pub failed: bool,
    /// Only those before this one, which is not among them.
    pub before: Option<RunId>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// What one run cost.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCost {
    /// Whose run.
    pub id: DefinitionId,
    /// When it began: the day for which it counts.
    pub launched: DateTime<Utc>,
    /// The model that it had, where the client says so.
    pub model: Option<String>,
    /// US dollars, as the client reports it.
    pub cost_usd: f64,
    /// What it counts besides in budgets: its cap, where it has ended without a figure.
    pub unreported_usd: f64,
    /// What it took of the model.
    pub tokens: Tokens,
}

/// An occurrence with its outcome: what every due one has exactly one of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceRecord {
    /// Whose, and when it was due.
    pub occurrence: Occurrence,
    /// A skipped one that stands for all of its definition's from then on that have no record of their own.
    pub covers_from: Option<DateTime<Utc>>,
    /// A person fired it.
    pub by_hand: bool,
    /// The outcome; `None`: still open.
    pub outcome: Option<RunState>,
    /// When the next attempt is due, where one is.
    pub retry_at: Option<DateTime<Utc>>,
    /// How many attempts it has had.
    pub attempts: u32,
}

/// How far a routine's occurrences have their records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Up to then each has one, or does not count.
    pub until: DateTime<Utc>,
    /// Later ones that have one all the same: the clock was set back since, or a person fired them.
    pub beyond: HashSet<DateTime<Utc>>,
}

const RUNS: &str = "
SELECT r.number, r.run, o.id, o.kind, o.at AS scheduled, coalesce(r.started, r.launched) AS started, r.ended, r.state, r.attempt, r.cost_usd, r.turns, r.model, r.tokens,
  r.host, r.client, r.client_version, r.api_retries, r.api_fault,
  r.error, r.transcript, t.text AS definition, o.claimed - o.at AS late_ms, o.by_hand, o.covers_from, json_remove(o.occasion, '$.payload') AS occasion,
  CASE WHEN o.retry_at IS NOT NULL AND r.attempt = (SELECT max(attempt) FROM run WHERE occurrence = o.number)
    THEN o.retry_at END AS retry_at
FROM run r JOIN occurrence o ON o.number = r.occurrence LEFT JOIN definition_text t ON t.number = o.text";

impl JournalReader {
    /// Opens the journal where there is one. It stays what it was at this moment: open anew to see a journal that
    /// was made since.
    ///
    /// # Errors
    /// When there is a journal and it cannot be read by this version.
    pub fn open(place: impl Into<JournalPlace>) -> Result<Self, JournalError> {
        let place = place.into();
        Ok(Self(open_reader(&place)?, place))
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &JournalPlace {
        &self.1
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// The ids of a definition's runs, the newest first, at most `limit`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn latest(&self, id: &DefinitionId, limit: u32) -> Result<Vec<RunId>, JournalError> {
        let sql = "SELECT r.run FROM run r JOIN occurrence o ON o.number = r.occurrence
            WHERE o.id = ?1 ORDER BY r.number DESC LIMIT ?2";
        self.all(sql, &[&id.as_str(), &limit], |row| row.run("run"))
    }

    /// What runs cost that began from then on, in no order.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn costs(&self, from: Option<DateTime<Utc>>) -> Result<Vec<RunCost>, JournalError> {
        // What was never launched has cost nothing, in budgets neither.
        let sql = "SELECT o.id, r.launched, r.model, coalesce(r.cost_usd, 0.0), coalesce(r.reserved_usd, 0.0), r.tokens
            FROM run r JOIN occurrence o ON o.number = r.occurrence
            WHERE r.launched >= ?1 AND (r.cost_usd IS NOT NULL OR r.reserved_usd IS NOT NULL AND r.ended IS NOT NULL)";
        // By their places: there are many rows, and a name is looked for in each.
        self.all(sql, &[&from.map_or(i64::MIN, ms)], |row| {
            Ok(RunCost {
                id: DefinitionId::new(row.get::<String>(0)?),
                launched: time(row.get(1)?)?,
                model: row.get(2)?,
                cost_usd: row.get(3)?,
                unreported_usd: row.get(4)?,
                tokens: read_tokens(row.get(5)?).unwrap_or_default(),
            })
        })
    }

    /// What runs cost that began from `from` on and before `until`, and when the first of them began.
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// The last attempt at every occurrence that has no outcome yet, the newest first: claimed, going, cut off, or
    /// failed and to be tried again.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn unfinished(&self) -> Result<Vec<RunRecord>, JournalError> {
        // From the few that are open, not from all that ever ran.
        let sql = format!(
            "{RUNS} WHERE r.number IN (SELECT max(number) FROM run
               WHERE occurrence IN (SELECT number FROM occurrence WHERE outcome IS NULL) GROUP BY occurrence)
             ORDER BY r.number DESC"
        );
        self.read_runs(&sql, &[])
    }

    /// The times of reminders that have their record already, though the file may still be there: they are claimed or
    /// going, or their file has not been dealt with yet. None of them falls due again.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn claimed_reminders(&self) -> Result<HashMap<DefinitionId, Vec<DateTime<Utc>>>, JournalError> {
        let claimed = self.all(
            "SELECT id, at FROM occurrence WHERE outcome IS NULL AND kind = 'reminder' UNION ALL
             SELECT id, at FROM occurrence WHERE kind = 'reminder' AND outcome IS NOT NULL AND NOT file_done",
            &[],
            |row| Ok((row.id("id")?, row.at("at")?)),
        )?;
        let mut by_id: HashMap<DefinitionId, Vec<DateTime<Utc>>> = HashMap::new();
        for (id, at) in claimed {
            by_id.entry(id).or_default().push(at);
        }
        Ok(by_id)
    }

    /// How far each routine's occurrences have their records.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn accounts(&self) -> Result<HashMap<DefinitionId, Account>, JournalError> {
        let sql = "SELECT d.id, d.accounted_until, o.at FROM definition_seen d
             LEFT JOIN occurrence o ON o.id = d.id AND o.at > d.accounted_until WHERE d.gone IS NULL";
        let read = |row: &Row<'_>| Ok((row.id("id")?, row.at("accounted_until")?, row.maybe_at("at")?));
        let mut accounts: HashMap<DefinitionId, Account> = HashMap::new();
        for (id, until, at) in self.all(sql, &[], read)? {
            accounts.entry(id).or_insert_with(|| Account { until, beyond: HashSet::new() }).beyond.extend(at);
        }
        Ok(accounts)
    }

    /// The definitions that have had a run by another client than `client`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn ran_by_other_than(&self, client: &str) -> Result<HashSet<DefinitionId>, JournalError> {
        let sql = "SELECT DISTINCT o.id FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE r.client NOT IN (?1, 'exec')";
        Ok(self.all(sql, &[&client], |row| row.id("id"))?.into_iter().collect())
    }

    /// Every id that something was recorded of, a spawned agent's among them.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn ids(&self) -> Result<Vec<DefinitionId>, JournalError> {
        self.all("SELECT id FROM occurrence UNION SELECT id FROM session", &[], |row| row.id("id"))
    }

    /// Whether anything was recorded of an id.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn knows(&self, id: &DefinitionId) -> Result<bool, JournalError> {
        let sql = "SELECT 1 FROM occurrence WHERE id = ?1 UNION ALL SELECT 1 FROM session WHERE id = ?1 LIMIT 1";
        Ok(!self.all(sql, &[&id.as_str()], |_| Ok(()))?.is_empty())
    }

    /// One run; `None`: there is no such run. The id may be cut short where that is unambiguous.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn run(&self, run: &RunId) -> Result<Option<RunRecord>, JournalError> {
        // Ids are hexadecimal, so those that begin with `?1` lie between it and it with a `g`: found by the index.
        let sql = format!("{RUNS} WHERE r.run = ?1 OR (length(?1) >= 4 AND r.run BETWEEN ?1 AND ?1 || 'g') LIMIT 2");
        let mut found = self.read_runs(&sql, &[&run.as_str()])?;
        let exact = found.iter().position(|record| record.run == *run);
        Ok(match (exact, found.len()) {
            (Some(place), _) => Some(found.swap_remove(place)),
            (None, 1) => found.pop(),
            _ => None,
        })
    }

    /// The newest event's number; 0 before the first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn newest_event(&self) -> Result<i64, JournalError> {
        let newest = self.all("SELECT coalesce(max(number), 0) FROM event", &[], |row| row.get(0))?;
        Ok(newest.first().copied().unwrap_or(0))
    }

    /// Messages to the person, the newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn messages(&self, limit: Option<u32>) -> Result<Vec<Message>, JournalError> {
        self.messages_where("m.run = ?1 OR ?1 IS NULL", None, limit)
    }

    /// Those whose text has these words in it, letters of either case; `before`: only older ones than this number.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn messages_with(&self, words: &str, before: Option<i64>, limit: u32) -> Result<Vec<Message>, JournalError> {
        let sql = format!(
            "SELECT {MESSAGE} FROM message m WHERE instr(lower(m.text), lower(?1)) > 0 AND (number < ?2 OR ?2 IS NULL)
             ORDER BY number DESC LIMIT ?3"
        );
        self.with_deliveries(self.all(&sql, &[&words, &before, &limit], read_message)?)
    }

    /// The same of those that a run has sent.
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// Occurrences, in the order in which they were claimed.
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// How a definition's latest run stands or ended, and since when; `None`: it has not run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn last(&self, id: &DefinitionId) -> Result<Option<(RunState, DateTime<Utc>)>, JournalError> {
        let sql = "SELECT r.state, coalesce(r.ended, r.started, r.launched, o.claimed) AS at
            FROM occurrence o JOIN run r ON r.occurrence = o.number
            WHERE o.number = (SELECT max(number) FROM occurrence WHERE id = ?1) ORDER BY r.attempt DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok((state(&row.get::<String>("state")?)?, row.at("at")?));
        Ok(self.all(sql, &[&id.as_str()], read)?.pop())
    }

    /// How many runs there are in each state.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn counts(&self) -> Result<Vec<(RunState, u64)>, JournalError> {
        self.all("SELECT state, count(*) FROM run GROUP BY state ORDER BY state", &[], |row| {
            let count: i64 = row.get(1)?;
            Ok((state(&row.get::<String>(0)?)?, u64::try_from(count).unwrap_or_default()))
        })
    }

    /// Definitions that have failed lately, or are paused because of it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn consecutive_failures(&self) -> Result<Vec<ConsecutiveFailures>, JournalError> {
        self.all(FAILING, &[], failing)
    }

    /// What is kept under `key`.
    ///
    /// # Errors
    /// When the journal cannot be read.
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
        read: impl Fn(&Row<'_>) -> Result<T, JournalError>,
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
    Ok(read_tokens(row.get("tokens")?))
}

fn read_tokens(text: Option<String>) -> Option<Tokens> {
    text.and_then(|text| serde_json::from_str(&text).ok())
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
