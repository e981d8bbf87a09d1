//! Definitions as the journal last observed them, and their consecutive failures.
//!
//! A routine's missed occurrences count only from when the journal first observed this cron expression, zone and
//! `enabled`. A new, edited or re-enabled routine never has a backlog.

use std::collections::HashMap;
use std::sync::Arc;

use super::claims::places;
use super::database::{Connection, Row, ToValue, params};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::oneshot;

use super::reader::LAST_DUE;
use super::rows::{Columns, ms, time};
use super::{Journal, JournalError, pushed};
use crate::definition::DefinitionId;

/// Absence shorter than this is ignored, since editors and sync tools replace files by removing them.
const REPLACED: TimeDelta = TimeDelta::seconds(10);

/// Maximum number of ids in one statement.
const BATCH_SIZE: usize = 500;

/// A definition as currently observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedGeneration {
    /// The definition.
    pub id: DefinitionId,
    /// Everything that its backlog depends on, in one string. The journal only compares it.
    pub trigger: String,
    /// The file's text.
    pub text: Arc<str>,
}

impl ObservedGeneration {
    /// The value of [`Self::trigger`] for a disabled reminder. Enabled reminders are not recorded.
    pub const DISABLED_REMINDER: &str = "disabled";

    /// Number of definitions that are recorded on a server without a look at which of them have changed.
    pub const AT_ONCE: usize = 100;
}

/// A definition's consecutive failures. All zero means none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsecutiveFailures {
    /// The definition.
    pub id: DefinitionId,
    /// Number of consecutive occurrences that failed.
    pub failures: u32,
    /// Whether the person was notified of them.
    pub notified: bool,
    /// When it was suppressed because of them.
    pub paused: Option<DateTime<Utc>>,
}

/// Selects the recorded ones, by id.
pub(super) const FAILING: &str = "SELECT id, failures, told, paused FROM streak ORDER BY id";

pub(super) fn failing(row: &Row<'_>) -> Result<ConsecutiveFailures, JournalError> {
    Ok(ConsecutiveFailures {
        id: row.id("id")?,
        failures: row.get("failures")?,
        notified: row.get("told")?,
        paused: row.maybe_at("paused")?,
    })
}

impl ConsecutiveFailures {
    /// Returns a value without failures.
    #[must_use]
    pub fn none(id: DefinitionId) -> Self {
        Self { id, failures: 0, notified: false, paused: None }
    }
}

impl Journal {
    /// Records definitions as currently observed. Returns their watermarks, in order: now for a definition that is
    /// new, changed or back after a while, else the previous watermark. `latest`: the latest time that the clock
    /// has shown. While the clock is behind it, it counts as now.
    ///
    /// A later call, such as a claim, finds them recorded: the commit is enqueued before this returns. On a server this holds for up to
    /// 100 definitions.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub fn observe(
        &self,
        generations: Arc<[ObservedGeneration]>,
        latest: DateTime<Utc>,
    ) -> impl Future<Output = Result<Vec<DateTime<Utc>>, JournalError>> + Send + use<> {
        let journal = self.clone();
        let at_once = !self.is_shared() || generations.len() <= ObservedGeneration::AT_ONCE;
        let commit = at_once.then(|| self.enqueue_observed(Arc::clone(&generations), latest));
        async move {
            match commit {
                Some(commit) => commit.await.unwrap_or(Err(JournalError::Closed)),
                None => journal.observe_changed(generations, latest).await,
            }
        }
    }

    fn enqueue_observed(
        &self,
        generations: Arc<[ObservedGeneration]>,
        latest: DateTime<Utc>,
    ) -> oneshot::Receiver<Result<Vec<DateTime<Utc>>, JournalError>> {
        let clock = self.clock.clone();
        self.writer.enqueue(move |connection| {
            let now = clock.now();
            generations.iter().map(|generation| observe(connection, generation, now, latest)).collect()
        })
    }

    /// Like [`Self::observe`], for many definitions of which almost all are unchanged: a read holds up no other host.
    async fn observe_changed(
        &self,
        generations: Arc<[ObservedGeneration]>,
        latest: DateTime<Utc>,
    ) -> Result<Vec<DateTime<Utc>>, JournalError> {
        let asked = Arc::clone(&generations);
        let known = self.writer.read(move |connection| unchanged(connection, &asked)).await?;
        let changed = generations.iter().filter(|generation| !known.contains_key(&generation.id)).cloned();
        let changed: Arc<[ObservedGeneration]> = changed.collect();
        let mut observed = Vec::new();
        if !changed.is_empty() {
            observed = self.enqueue_observed(changed, latest).await.unwrap_or(Err(JournalError::Closed))?;
        }
        let mut observed = observed.into_iter();
        let watermark = |generation: &ObservedGeneration| match known.get(&generation.id) {
            Some(watermark) => Ok(*watermark),
            None => observed.next().ok_or(JournalError::Closed),
        };
        generations.iter().map(watermark).collect()
    }

    /// Moves a definition's watermark to `from`, as for a new one, since it was resumed.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_watermark(&self, id: DefinitionId, from: DateTime<Utc>) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute(
                        "UPDATE definition_seen SET accounted_until = CASE WHEN accounted_until < ?2 THEN ?2 ELSE accounted_until END WHERE id = ?1", params![id.as_str(), ms(from)])?;
                Ok(())
            })
            .await
    }

    /// Returns a routine's last scheduled time, not after now, that fired or was skipped.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn last_due(&self, id: &DefinitionId) -> Result<Option<DateTime<Utc>>, JournalError> {
        let (id, clock) = (id.clone(), self.clock.clone());
        self.writer
            .commit(move |connection| {
                let last: Option<i64> =
                    connection.one(LAST_DUE, params![id.as_str(), ms(clock.now())], |row| row.get(0))?;
                last.map(time).transpose()
            })
            .await
    }

    /// Deletes the observed generation. The definition has no watermark until it is observed again.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn forget(&self, id: DefinitionId) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM definition_seen WHERE id = ?1", [id.as_str()])?;
                Ok(())
            })
            .await
    }

    /// Records that these definitions are gone. One that comes back starts afresh, unless it is back at once.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn record_removed(&self, ids: Vec<DefinitionId>) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer.commit(move |connection| record_gone(connection, &ids, clock.now())).await
    }

    /// Returns the definitions with files that the journal has observed and that are not gone.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn known(&self) -> Result<Vec<DefinitionId>, JournalError> {
        self.writer
            .commit(|connection| {
                let sql = "SELECT id FROM definition_seen s WHERE gone IS NULL
                             AND NOT EXISTS (SELECT 1 FROM definition d WHERE d.id = s.id)";
                connection.all(sql, (), |row| row.id("id"))
            })
            .await
    }

    /// Moves watermarks ahead of the clock back to now, after a wrong clock was corrected. Other records stay; those of a
    /// range of skipped occurrences end at the present, or are deleted if the range begins later.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn rewind_watermarks(&self) -> Result<(), JournalError> {
        let clock = self.clock.clone();
        self.writer
            .commit(move |connection| {
                pushed::rewind(connection, clock.now())?;
                let now = ms(clock.now());
                connection
                    .execute("UPDATE definition_seen SET accounted_until = ?1 WHERE accounted_until > ?1", [now])?;
                connection.execute("DELETE FROM occurrence WHERE covers_from > ?1", [now])?;
                connection.execute(
                    "UPDATE occurrence SET at = ?1 WHERE covers_from IS NOT NULL AND at > ?1
                       AND NOT EXISTS (SELECT 1 FROM occurrence other WHERE other.id = occurrence.id AND other.at = ?1)
                       AND number = (SELECT min(number) FROM occurrence other
                                     WHERE other.id = occurrence.id AND covers_from IS NOT NULL AND at > ?1)",
                    [now],
                )?;
                Ok(())
            })
            .await
    }

    /// Sets a definition's consecutive failures outside of a run: after `resume` or an edit.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn set_consecutive_failures(&self, failing: ConsecutiveFailures) -> Result<(), JournalError> {
        self.writer.commit(move |connection| save_consecutive_failures(connection, &failing)).await
    }
}

/// Returns the latest watermark of all definitions.
pub(super) fn latest(connection: &Connection) -> Result<Option<DateTime<Utc>>, JournalError> {
    let latest: Option<i64> =
        connection.row("SELECT max(accounted_until) FROM definition_seen", (), |row| row.get(0))?;
    latest.map(time).transpose()
}

/// Records that definitions are gone.
pub(super) fn record_gone(
    connection: &Connection,
    ids: &[DefinitionId],
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    let now = ms(now);
    for some in ids.chunks(BATCH_SIZE) {
        let values: Vec<&dyn ToValue> =
            std::iter::once(&now as &dyn ToValue).chain(some.iter().map(|id| id as &dyn ToValue)).collect();
        let marks: Vec<String> = (2..some.len() + 2).map(|mark| format!("?{mark}")).collect();
        let sql = format!("UPDATE definition_seen SET gone = ?1 WHERE gone IS NULL AND id IN ({})", marks.join(", "));
        connection.execute(&sql, &values[..])?;
    }
    Ok(())
}

/// Returns the watermarks of definitions that are observed already as they are.
fn unchanged(
    connection: &Connection,
    generations: &[ObservedGeneration],
) -> Result<HashMap<DefinitionId, DateTime<Utc>>, JournalError> {
    let mut found = HashMap::new();
    for some in generations.chunks(BATCH_SIZE) {
        let triggers: HashMap<&str, &str> =
            some.iter().map(|generation| (generation.id.as_str(), generation.trigger.as_str())).collect();
        let ids: Vec<&dyn ToValue> = some.iter().map(|generation| &generation.id as &dyn ToValue).collect();
        let sql = format!(
            "SELECT id, trigger, accounted_until FROM definition_seen WHERE gone IS NULL AND id IN {}",
            places(1, ids.len())
        );
        let read = |row: &Row<'_>| Ok((row.id("id")?, row.get::<String>("trigger")?, row.at("accounted_until")?));
        let rows = connection.all(&sql, &ids[..], read)?;
        let is_same =
            |(id, trigger, _): &(DefinitionId, String, _)| triggers.get(id.as_str()) == Some(&trigger.as_str());
        found.extend(rows.into_iter().filter(is_same).map(|(id, _, watermark)| (id, watermark)));
    }
    Ok(found)
}

pub(super) fn observe(
    connection: &Connection,
    generation: &ObservedGeneration,
    now: DateTime<Utc>,
    latest: DateTime<Utc>,
) -> Result<DateTime<Utc>, JournalError> {
    let id = generation.id.as_str();
    let known: Option<(String, i64, Option<i64>)> =
        connection.one("SELECT trigger, accounted_until, gone FROM definition_seen WHERE id = ?1", [id], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let mut is_back = false;
    if let Some((trigger, watermark, gone)) = known {
        let replaced = match gone {
            None => true,
            // A time ahead of now: the clock was set back since, so the length of the absence is unknown.
            Some(at) => (now - time(at)?).abs() < REPLACED,
        };
        if trigger == generation.trigger && replaced {
            if gone.is_some() {
                connection.execute("UPDATE definition_seen SET gone = NULL WHERE id = ?1", [id])?;
            }
            return time(watermark);
        }
        is_back = !replaced;
    }
    if is_back {
        forget_another(connection, generation)?;
    }
    let watermark = now.max(latest);
    connection.execute(
        "INSERT INTO definition_seen (id, trigger, accounted_until) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE
             SET trigger = excluded.trigger, accounted_until = excluded.accounted_until, gone = NULL",
        params![id, generation.trigger, ms(watermark)],
    )?;
    Ok(watermark)
}

/// Makes a job forget its runs if its file was away and its text differs from the last run's: it is another job.
fn forget_another(connection: &Connection, back: &ObservedGeneration) -> Result<(), JournalError> {
    connection.execute(
        "UPDATE run SET forgotten = TRUE
         WHERE NOT forgotten AND occurrence IN (SELECT number FROM occurrence WHERE id = ?1) AND NOT EXISTS
           (SELECT 1 FROM occurrence o JOIN definition_text t ON t.number = o.text WHERE t.text = ?2 AND o.number =
             (SELECT max(number) FROM occurrence WHERE id = ?1 AND text IS NOT NULL))",
        params![back.id.as_str(), &*back.text],
    )?;
    Ok(())
}

pub(super) fn save_consecutive_failures(
    connection: &Connection,
    failing: &ConsecutiveFailures,
) -> Result<(), JournalError> {
    if *failing == ConsecutiveFailures::none(failing.id.clone()) {
        connection.execute("DELETE FROM streak WHERE id = ?1", [failing.id.as_str()])?;
    } else {
        connection.execute(
            "INSERT INTO streak (id, failures, told, paused) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE
             SET failures = excluded.failures, told = excluded.told, paused = excluded.paused",
            params![failing.id.as_str(), failing.failures, failing.notified, failing.paused.map(ms)],
        )?;
    }
    Ok(())
}
