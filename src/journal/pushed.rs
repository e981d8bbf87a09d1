//! Definitions that only the journal's database has: a host holds one in memory only when it is nearly due.
//!
//! `next_due` says when a host needs the definition. It may be too early, but never too late: it moves past a time only
//! once that time has its record. So a crash between a claim and the move loses nothing, and since an occurrence is unique by
//! definition and time, it repeats nothing either.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::claims::places;
use super::copy::take_into_use;
use super::database::{Connection, Row, ToValue, params};
use super::generations::{observe, record_gone};
use super::open::open;
use super::rows::{Columns as _, kind, ms};
use super::{Journal, JournalError, JournalLocation, JournalReader, ObservedGeneration, settings};
use crate::clock::Clock;
use crate::definition::{DefinitionId, Kind};

/// Key of the setting that counts changes. Each change gets a version above all earlier ones.
pub(super) const VERSION: &str = "definitions";

/// Maximum number of rows in one statement.
const BATCH_SIZE: usize = 500;

/// A definition to put into the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPushed {
    /// Its id.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// Its text, like that of a file.
    pub text: String,
    /// The time zone that applies if the text names none.
    pub zone: String,
    /// When it next falls due; `None`: never, or it is disabled.
    pub next_due: Option<DateTime<Utc>>,
    /// What its backlog depends on; `None` for an enabled reminder.
    pub generation: Option<ObservedGeneration>,
}

/// The outcome for one definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// It is new.
    Added,
    /// It has another text now.
    Changed,
    /// It has the same text already.
    Unchanged,
    /// A reminder that has fired at this time already. It is not put into the database again.
    HadItsRun,
    /// The id belongs to a definition of another kind.
    OfOtherKind(Kind),
    /// A reminder that fell due while it was disabled.
    DueWhileDisabled,
}

/// A definition in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// Its id.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// Its text, like that of a file.
    pub text: String,
    /// The time zone that applies if the text names none.
    pub zone: String,
    /// From when on a host needs it in memory; `None`: it does not fall due.
    pub next_due: Option<DateTime<Utc>>,
    /// The version of its last change.
    pub version: i64,
}

/// A definition that is nearly due, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearlyDue {
    /// Its id.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// The version of its last change.
    pub version: i64,
    /// When it falls due.
    pub next_due: DateTime<Utc>,
    /// The watermark of a routine.
    pub accounted_until: Option<DateTime<Utc>>,
    /// Whether the occurrence of that time has a record.
    pub is_recorded: bool,
    /// Whether that occurrence has its outcome.
    pub has_outcome: bool,
    /// Whether its text may name hosts.
    pub may_name_hosts: bool,
}

impl NearlyDue {
    /// Returns the time up to which all occurrences have a record; `None` if that of `next_due` has none.
    #[must_use]
    pub fn passed(&self) -> Option<DateTime<Utc>> {
        let accounted = self.accounted_until.filter(|until| *until >= self.next_due);
        (self.kind == Kind::Routine).then_some(accounted.or(self.is_recorded.then_some(self.next_due))).flatten()
    }
}

/// A later time for a routine whose occurrence has its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextDue {
    /// The routine.
    pub id: DefinitionId,
    /// The version for which the time was computed.
    pub version: i64,
    /// The time before.
    pub from: DateTime<Utc>,
    /// The next time; `None`: it never falls due again.
    pub to: Option<DateTime<Utc>>,
}

/// How many definitions are in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushedCounts {
    /// All of them.
    pub all: u64,
    /// Those that fall due.
    pub coming: u64,
}

/// Writes definitions into the database for a person, beside the running services.
#[derive(Debug)]
pub struct PushWriter {
    connection: Connection,
    clock: Clock,
}

impl PushWriter {
    /// Opens the journal for writing. Creates it if there is none yet, but migrates none: its services do that.
    ///
    /// # Errors
    /// Fails when the journal cannot be used by this version of the program.
    pub fn open(place: &JournalLocation, clock: Clock) -> Result<Self, JournalError> {
        drop(JournalReader::open(place)?);
        let connection = open(place, clock.now())?.connection;
        take_into_use(&connection, place)?;
        Ok(Self { connection, clock })
    }

    /// Puts definitions into the database in one commit. Returns the outcome of each, in order. If two have one id, the last counts.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then nothing has changed.
    pub fn push(&self, new: &[NewPushed]) -> Result<Vec<PushOutcome>, JournalError> {
        self.commit(|connection, now| push(connection, new, now))
    }

    /// Removes definitions from the database in one commit. Returns those that were there.
    ///
    /// # Errors
    /// Fails when the commit cannot be made. Then nothing has changed.
    pub fn remove(&self, ids: &[DefinitionId]) -> Result<Vec<DefinitionId>, JournalError> {
        self.commit(|connection, now| {
            let mut removed = Vec::new();
            for some in ids.chunks(BATCH_SIZE) {
                let sql = format!("DELETE FROM definition WHERE id IN {} RETURNING id", places(1, some.len()));
                let values: Vec<&dyn ToValue> = some.iter().map(|id| id as &dyn ToValue).collect();
                removed.extend(connection.all(&sql, &values[..], |row| row.id("id"))?);
            }
            if !removed.is_empty() {
                next_version(connection)?;
                record_gone(connection, &removed, now)?;
            }
            Ok(removed)
        })
    }

    /// Makes one commit. Another process may hold the lock of a file for a moment.
    fn commit<T>(
        &self,
        work: impl Fn(&Connection, DateTime<Utc>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let mut tries = 0;
        loop {
            let done = self.connection.transaction().and_then(|transaction| {
                let done = work(&self.connection, self.clock.now())?;
                transaction.commit().map(|()| done)
            });
            match done {
                Err(JournalError::Locked(_)) if tries < LOCKED_TRIES => tries += 1,
                done => return done,
            }
        }
    }
}

/// How often a commit is tried while another process holds the lock. Each try waits for a while.
const LOCKED_TRIES: u32 = 100;

/// Counts a change, and returns its version.
fn next_version(connection: &Connection) -> Result<i64, JournalError> {
    let next = version(connection)? + 1;
    settings::set(connection, VERSION, &next.to_string())?;
    Ok(next)
}

/// Returns the version of the last change; 0 if there was none.
pub(super) fn version(connection: &Connection) -> Result<i64, JournalError> {
    Ok(settings::get(connection, VERSION)?.and_then(|count| count.parse().ok()).unwrap_or(0))
}

fn push(connection: &Connection, new: &[NewPushed], now: DateTime<Utc>) -> Result<Vec<PushOutcome>, JournalError> {
    let mut outcomes = Vec::with_capacity(new.len());
    let mut is_changed = None;
    for some in new.chunks(BATCH_SIZE) {
        let found = compare(connection, some, now)?;
        let writes = |outcome: &PushOutcome| matches!(outcome, PushOutcome::Added | PushOutcome::Changed);
        // The last of those with one id.
        let last: HashMap<&DefinitionId, &NewPushed> = some.iter().map(|new| (&new.id, new)).collect();
        let of_batch = some.iter().zip(&found).filter(|(new, outcome)| writes(outcome) && last[&new.id] == *new);
        let mut ids = HashSet::new();
        let changed: Vec<&NewPushed> = of_batch.map(|(new, _)| new).filter(|new| ids.insert(&new.id)).collect();
        if !changed.is_empty() {
            let version = match is_changed {
                Some(version) => version,
                None => *is_changed.insert(next_version(connection)?),
            };
            write(connection, &changed, version)?;
            note_generations(connection, &changed, now)?;
            end_pauses(connection, &changed, now)?;
        }
        outcomes.extend(found);
    }
    Ok(outcomes)
}

/// Compares new definitions with the database.
fn compare(connection: &Connection, new: &[NewPushed], now: DateTime<Utc>) -> Result<Vec<PushOutcome>, JournalError> {
    let times: Vec<Option<i64>> = new.iter().map(|new| new.next_due.map(ms)).collect();
    let values: Vec<&dyn ToValue> =
        new.iter().zip(&times).flat_map(|(new, at)| [&new.id as &dyn ToValue, &new.text, &new.zone, at]).collect();
    let sql = format!(
        "SELECT new.column1 AS id, d.kind, d.text = new.column2 AND d.zone = new.column3 AS same, d.next_due IS NOT NULL AS coming,
           EXISTS (SELECT 1 FROM occurrence o WHERE o.id = new.column1 AND o.at = CAST(new.column4 AS BIGINT)) AS recorded
         FROM (VALUES {}) AS new LEFT JOIN definition d ON d.id = new.column1",
        places(new.len(), 4)
    );
    type Known = (Option<(String, bool, bool)>, bool);
    let read = |row: &Row<'_>| {
        let there = match row.get::<Option<String>>("kind")? {
            Some(kind) => Some((kind, row.get::<bool>("same")?, row.get::<bool>("coming")?)),
            None => None,
        };
        Ok((row.get::<String>("id")?, (there, row.get::<bool>("recorded")?)))
    };
    let known: HashMap<String, Known> = connection.all(&sql, &values[..], read)?.into_iter().collect();
    new.iter()
        .map(|new| {
            let (there, is_recorded) = known.get(new.id.as_str()).cloned().unwrap_or((None, false));
            let is_due = new.kind == Kind::Reminder && new.next_due.is_some_and(|at| at <= now);
            Ok(match there {
                Some((other, ..)) if kind(&other)? != new.kind => PushOutcome::OfOtherKind(kind(&other)?),
                Some((_, true, _)) => PushOutcome::Unchanged,
                _ if is_recorded && new.kind == Kind::Reminder => PushOutcome::HadItsRun,
                Some((_, _, false)) if is_due => PushOutcome::DueWhileDisabled,
                Some(_) => PushOutcome::Changed,
                None => PushOutcome::Added,
            })
        })
        .collect()
}

fn write(connection: &Connection, new: &[&NewPushed], version: i64) -> Result<(), JournalError> {
    let kinds: Vec<String> = new.iter().map(|new| new.kind.to_string()).collect();
    let times: Vec<Option<i64>> = new.iter().map(|new| new.next_due.map(ms)).collect();
    let mut values: Vec<&dyn ToValue> = Vec::new();
    for (place, new) in new.iter().enumerate() {
        values.extend([&new.id as &dyn ToValue, &kinds[place], &new.text, &new.zone, &times[place], &version]);
    }
    let sql = format!(
        "INSERT INTO definition (id, kind, text, zone, next_due, version)
         SELECT column1, column2, column3, column4, CAST(column5 AS BIGINT), CAST(column6 AS BIGINT) FROM (VALUES {}) AS new WHERE TRUE
         ON CONFLICT (id) DO UPDATE SET text = excluded.text, zone = excluded.zone, next_due = excluded.next_due,
           version = excluded.version",
        places(new.len(), 6)
    );
    connection.execute(&sql, &values[..]).map(drop)
}

/// Records from when on occurrences count, as for a file that was seen.
fn note_generations(connection: &Connection, new: &[&NewPushed], now: DateTime<Utc>) -> Result<(), JournalError> {
    let without: Vec<&dyn ToValue> =
        new.iter().filter(|new| new.generation.is_none()).map(|new| &new.id as &dyn ToValue).collect();
    if !without.is_empty() {
        let sql = format!("DELETE FROM definition_seen WHERE id IN {}", places(1, without.len()));
        connection.execute(&sql, &without[..])?;
    }
    let generations: Vec<&ObservedGeneration> = new.iter().filter_map(|new| new.generation.as_ref()).collect();
    if generations.is_empty() {
        return Ok(());
    }
    let time = ms(now);
    let values: Vec<&dyn ToValue> =
        generations.iter().flat_map(|new| [&new.id as &dyn ToValue, &new.trigger, &time]).collect();
    let sql = format!(
        "INSERT INTO definition_seen (id, trigger, accounted_until)
         SELECT column1, column2, CAST(column3 AS BIGINT) FROM (VALUES {}) AS new WHERE TRUE
         ON CONFLICT (id) DO NOTHING RETURNING id",
        places(generations.len(), 3)
    );
    let made: HashSet<DefinitionId> = connection.all(&sql, &values[..], |row| row.id("id"))?.into_iter().collect();
    for known in generations.into_iter().filter(|generation| !made.contains(&generation.id)) {
        observe(connection, known, now, now)?;
    }
    Ok(())
}

/// Ends the pauses after failures, as the change of a file does. A routine has no backlog of the time before.
fn end_pauses(connection: &Connection, new: &[&NewPushed], now: DateTime<Utc>) -> Result<(), JournalError> {
    let ids: Vec<&dyn ToValue> = new.iter().map(|new| &new.id as &dyn ToValue).collect();
    let sql = format!("DELETE FROM streak WHERE paused IS NOT NULL AND id IN {} RETURNING id", places(1, ids.len()));
    for id in connection.all(&sql, &ids[..], |row| row.id("id"))? {
        let sql = "UPDATE definition_seen SET accounted_until = ?2 WHERE id = ?1 AND accounted_until < ?2";
        connection.execute(sql, params![id, ms(now)])?;
    }
    Ok(())
}

impl Journal {
    /// Moves the times of routines whose occurrences have their records. One that was pushed or moved meanwhile stays.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn move_next_due(&self, moves: Vec<NextDue>) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| moves.chunks(BATCH_SIZE).try_for_each(|some| move_next_due(connection, some)))
            .await
    }

    /// Removes a reminder that still has this text, since it has its outcome. Returns whether there is one with another text.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn remove_pushed(&self, id: &DefinitionId, text: &str) -> Result<bool, JournalError> {
        let (id, text) = (id.clone(), text.to_owned());
        self.writer
            .commit(move |connection| {
                let removed = "DELETE FROM definition WHERE id = ?1 AND text = ?2";
                if connection.execute(removed, [id.as_str(), text.as_str()])? > 0 {
                    return Ok(false);
                }
                let other = "SELECT 1 FROM definition WHERE id = ?1";
                Ok(connection.one(other, [id.as_str()], |_| Ok(()))?.is_some())
            })
            .await
    }
}

fn move_next_due(connection: &Connection, moves: &[NextDue]) -> Result<(), JournalError> {
    let times: Vec<(i64, Option<i64>)> = moves.iter().map(|next| (ms(next.from), next.to.map(ms))).collect();
    let values: Vec<&dyn ToValue> = moves
        .iter()
        .zip(&times)
        .flat_map(|(next, (from, to))| [&next.id as &dyn ToValue, &next.version, from, to])
        .collect();
    let sql = format!(
        "UPDATE definition SET next_due = CAST(new.column4 AS BIGINT) FROM (VALUES {}) AS new
         WHERE id = new.column1 AND version = CAST(new.column2 AS BIGINT) AND next_due = CAST(new.column3 AS BIGINT)",
        places(moves.len(), 4)
    );
    connection.execute(&sql, &values[..]).map(drop)
}

/// Makes hosts look at the routines whose watermark is ahead of `now`, since the clock was wrong.
pub(super) fn rewind(connection: &Connection, now: DateTime<Utc>) -> Result<(), JournalError> {
    let sql = "UPDATE definition SET next_due = ?1 WHERE kind = 'routine' AND next_due > ?1
                 AND id IN (SELECT id FROM definition_seen WHERE accounted_until > ?1)";
    connection.execute(sql, [ms(now)]).map(drop)
}

const COLUMNS: &str = "d.id, d.kind, d.text, d.zone, d.next_due, d.version";

fn pushed(row: &Row<'_>) -> Result<Pushed, JournalError> {
    Ok(Pushed {
        id: row.id("id")?,
        kind: kind(&row.get::<String>("kind")?)?,
        text: row.get("text")?,
        zone: row.get("zone")?,
        next_due: row.maybe_at("next_due")?,
        version: row.get("version")?,
    })
}

fn nearly_due(row: &Row<'_>) -> Result<NearlyDue, JournalError> {
    Ok(NearlyDue {
        id: row.id("id")?,
        kind: kind(&row.get::<String>("kind")?)?,
        version: row.get("version")?,
        next_due: row.at("next_due")?,
        accounted_until: row.maybe_at("accounted_until")?,
        is_recorded: row.get("recorded")?,
        has_outcome: row.get("ended")?,
        may_name_hosts: row.get("named")?,
    })
}

impl JournalReader {
    /// Returns a value that changes with each change of definitions in the database, by any process.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_version(&self) -> Result<i64, JournalError> {
        self.connection().map_or(Ok(0), version)
    }

    /// Returns at most `count` definitions that fall due until `until`, in order, those after `after` only. Leaves out routines that
    /// are paused after failures.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn nearly_due(
        &self,
        until: DateTime<Utc>,
        after: Option<(DateTime<Utc>, DefinitionId)>,
        count: i64,
    ) -> Result<Vec<NearlyDue>, JournalError> {
        let (after, id) = after.map_or((i64::MIN, String::new()), |(at, id)| (ms(at), id.to_string()));
        let sql = "SELECT d.id, d.kind, d.version, d.next_due, s.accounted_until,
               o.number IS NOT NULL AS recorded, o.outcome IS NOT NULL AS ended,
               instr(d.text, 'hosts') > 0 AS named
             FROM definition d LEFT JOIN definition_seen s ON s.id = d.id
             LEFT JOIN occurrence o ON o.id = d.id AND o.at = d.next_due
             WHERE d.next_due <= ?1 AND (d.next_due, d.id) > (?2, ?3)
               AND NOT EXISTS (SELECT 1 FROM streak k WHERE k.id = d.id AND k.paused IS NOT NULL)
             ORDER BY d.next_due, d.id LIMIT ?4";
        self.all(sql, &[&ms(until), &after, &id, &count], nearly_due)
    }

    /// Returns what a push of these definitions would do at `now`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn would_push(&self, new: &[NewPushed], now: DateTime<Utc>) -> Result<Vec<PushOutcome>, JournalError> {
        let Some(connection) = self.connection() else { return Ok(vec![PushOutcome::Added; new.len()]) };
        let mut outcomes = Vec::with_capacity(new.len());
        for some in new.chunks(BATCH_SIZE) {
            outcomes.extend(compare(connection, some, now)?);
        }
        Ok(outcomes)
    }

    /// Returns when the first definition falls due after `after`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn soonest_pushed(&self, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, JournalError> {
        let sql = "SELECT next_due FROM definition WHERE next_due > ?1 ORDER BY next_due LIMIT 1";
        Ok(self.all(sql, &[&ms(after)], |row| row.at("next_due"))?.pop())
    }

    /// Returns these definitions, as far as they are in the database.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed(&self, ids: &[DefinitionId]) -> Result<Vec<Pushed>, JournalError> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(BATCH_SIZE) {
            let sql = format!("SELECT {COLUMNS} FROM definition d WHERE d.id IN {}", places(1, some.len()));
            let values: Vec<&dyn ToValue> = some.iter().map(|id| id as &dyn ToValue).collect();
            found.extend(self.all(&sql, &values, pushed)?);
        }
        Ok(found)
    }

    /// Returns whether an id is the beginning of that of a definition in the database. Small and large letters are the same here.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn is_beginning_of_pushed(&self, id: &DefinitionId) -> Result<bool, JournalError> {
        let pattern = format!("{}%", escaped(&id.as_str().to_lowercase()));
        let sql = r"SELECT 1 FROM definition WHERE lower(id) LIKE ?1 ESCAPE '\' LIMIT 1";
        Ok(!self.all(sql, &[&pattern], |_| Ok(()))?.is_empty())
    }

    /// Returns the texts of definitions in the database that may read the answers of a job: they contain its id. `None` if there are too
    /// many.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_that_may_read(&self, id: &DefinitionId) -> Result<Option<Vec<String>>, JournalError> {
        let pattern = format!("%{}%", escaped(id.as_str()));
        let sql = format!(
            r"SELECT text FROM definition WHERE text LIKE '%context\_from%' ESCAPE '\' AND text LIKE ?1 ESCAPE '\' LIMIT {}",
            BATCH_SIZE + 1
        );
        let texts = self.all(&sql, &[&pattern], |row| row.get("text"))?;
        Ok((texts.len() <= BATCH_SIZE).then_some(texts))
    }

    /// Returns the versions of these definitions, as far as they are in the database.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_versions(&self, ids: &[DefinitionId]) -> Result<HashMap<DefinitionId, i64>, JournalError> {
        let mut found = HashMap::with_capacity(ids.len());
        for some in ids.chunks(BATCH_SIZE) {
            let sql = format!("SELECT id, version FROM definition WHERE id IN {}", places(1, some.len()));
            let values: Vec<&dyn ToValue> = some.iter().map(|id| id as &dyn ToValue).collect();
            found.extend(self.all(&sql, &values, |row| Ok((row.id("id")?, row.get("version")?)))?);
        }
        Ok(found)
    }

    /// Returns the definitions with an occurrence that is open, or that has an outcome but not yet its effect on the reminder.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_in_use(&self) -> Result<Vec<Pushed>, JournalError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM definition d WHERE d.id IN
               (SELECT id FROM occurrence WHERE outcome IS NULL
                UNION SELECT id FROM occurrence WHERE kind = 'reminder' AND outcome IS NOT NULL AND NOT file_done)"
        );
        self.all(&sql, &[], pushed)
    }

    /// Returns the definitions with an open occurrence of one of these hosts.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_open_on(&self, hosts: &[String]) -> Result<Vec<Pushed>, JournalError> {
        if hosts.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM definition d WHERE d.id IN
               (SELECT id FROM occurrence WHERE outcome IS NULL AND host IN {})",
            places(1, hosts.len())
        );
        let values: Vec<&dyn ToValue> = hosts.iter().map(|host| host as &dyn ToValue).collect();
        self.all(&sql, &values, pushed)
    }

    /// Returns the `count` definitions that fall due next, in order: all, or those of a kind.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn next_pushed(&self, of: Option<Kind>, count: usize) -> Result<Vec<Pushed>, JournalError> {
        let which = of.map_or_else(String::new, |kind| format!(" AND d.kind = '{kind}'"));
        let sql = format!(
            "SELECT {COLUMNS} FROM definition d WHERE d.next_due IS NOT NULL{which} ORDER BY d.next_due, d.id LIMIT ?1"
        );
        self.all(&sql, &[&i64::try_from(count).unwrap_or(i64::MAX)], pushed)
    }

    /// Counts the definitions in the database: all, or those of a kind.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn pushed_counts(&self, of: Option<Kind>) -> Result<PushedCounts, JournalError> {
        let which = of.map_or_else(String::new, |kind| format!(" WHERE kind = '{kind}'"));
        let sql = format!("SELECT count(*) AS every, count(next_due) AS coming FROM definition{which}");
        let read = |row: &Row<'_>| {
            let count = |name: &str| row.get::<i64>(name).map(|count| u64::try_from(count).unwrap_or(0));
            Ok(PushedCounts { all: count("every")?, coming: count("coming")? })
        };
        Ok(self.all(&sql, &[], read)?.pop().unwrap_or_default())
    }
}

/// Returns a text as a pattern of `LIKE … ESCAPE '\\'` that it alone matches.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use chrono::{TimeDelta, TimeZone as _};
    use tempfile::TempDir;

    use super::super::{Claim, NewClaim, Occurrence, Purpose, RunId, testing};
    use super::*;

    struct Scene {
        folder: TempDir,
        clock: Clock,
        place: JournalLocation,
    }

    impl Scene {
        fn new() -> Self {
            let noon = Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap();
            let folder = TempDir::new().unwrap();
            let place = testing::place(&folder.path().join("state/journal.db"));
            Self { folder, clock: Clock::simulated(noon), place }
        }

        fn at(&self, minutes: i64) -> DateTime<Utc> {
            Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap() + TimeDelta::minutes(minutes)
        }

        fn writer(&self) -> PushWriter {
            PushWriter::open(&self.place, self.clock.clone()).unwrap()
        }

        fn reader(&self) -> JournalReader {
            JournalReader::open(&self.place).unwrap()
        }

        fn routine(&self, id: &str, text: &str, due: Option<i64>) -> NewPushed {
            let id = DefinitionId::new(id);
            let generation = ObservedGeneration { id: id.clone(), trigger: "hourly".into(), text: text.into() };
            let next_due = due.map(|minutes| self.at(minutes));
            let (text, zone) = (text.to_owned(), "UTC".to_owned());
            NewPushed { id, kind: Kind::Routine, text, zone, next_due, generation: Some(generation) }
        }

        fn reminder(&self, id: &str, text: &str, due: Option<i64>) -> NewPushed {
            NewPushed { kind: Kind::Reminder, generation: None, ..self.routine(id, text, due) }
        }

        fn claim(&self, id: &str, kind: Kind, minutes: i64) -> NewClaim {
            NewClaim {
                occurrence: Occurrence { id: DefinitionId::new(id), kind, at: self.at(minutes) },
                file: PathBuf::from(format!("database/{kind}s/{id}.md")),
                text: "one".into(),
                purpose: Purpose::Run,
                occasion: None,
                origin: None,
                run: RunId::random(),
            }
        }

        fn near(&self, minutes: i64) -> Vec<NearlyDue> {
            self.reader().nearly_due(self.at(minutes), None, 100).unwrap()
        }
    }

    fn ids(near: &[NearlyDue]) -> Vec<&str> {
        near.iter().map(|one| one.id.as_str()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_says_what_it_changed_and_each_change_has_a_higher_version() {
        use PushOutcome::{Added, Changed, DueWhileDisabled, OfOtherKind, Unchanged};
        let scene = Scene::new();
        let writer = scene.writer();
        assert_eq!(scene.reader().pushed_version().unwrap(), 0);
        let tea = scene.routine("tea", "one", Some(60));
        assert_eq!(writer.push(&[tea.clone(), scene.reminder("call", "x", None)]).unwrap(), [Added, Added]);
        assert_eq!(scene.reader().pushed_version().unwrap(), 1);
        assert_eq!(writer.push(std::slice::from_ref(&tea)).unwrap(), [Unchanged]);
        assert_eq!(scene.reader().pushed_version().unwrap(), 1, "nothing has changed");
        assert_eq!(writer.push(&[scene.routine("tea", "two", Some(30))]).unwrap(), [Changed]);
        assert_eq!(writer.push(&[scene.reminder("tea", "two", Some(30))]).unwrap(), [OfOtherKind(Kind::Routine)]);
        assert_eq!(writer.push(&[scene.reminder("call", "y", Some(-1))]).unwrap(), [DueWhileDisabled]);
        let found = scene.reader().pushed(&[tea.id.clone(), DefinitionId::new("none")]).unwrap();
        let [now] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*now.text, now.next_due, now.version), ("two", Some(scene.at(30)), 2));
        let counts = scene.reader().pushed_counts(None).unwrap();
        assert_eq!(counts, PushedCounts { all: 2, coming: 1 });
        assert_eq!(scene.reader().pushed_counts(Some(Kind::Reminder)).unwrap().coming, 0);
        assert_eq!(writer.remove(&[tea.id.clone(), DefinitionId::new("none")]).unwrap(), [tea.id]);
        assert_eq!(scene.reader().pushed_version().unwrap(), 3);
        assert_eq!(scene.near(90), []);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_new_id_could_mean_is_found_in_whatever_spelling() {
        let scene = Scene::new();
        let reads = scene.routine("Tea-2", "context_from: [a_b, c%d]", None);
        scene.writer().push(&[reads, scene.routine("other", "context: [e]", None)]).unwrap();
        let reader = scene.reader();
        let begins = |id: &str| reader.is_beginning_of_pushed(&DefinitionId::new(id)).unwrap();
        assert_eq!(
            ["t", "tea", "TEA-2", "Tea-22", "t_a", "%", "oth"].map(begins),
            [true, true, true, false, false, false, true]
        );
        let texts = |id: &str| reader.pushed_that_may_read(&DefinitionId::new(id)).unwrap().unwrap().len();
        assert_eq!(["a_b", "c%d", "acb", "e", "context: ["].map(texts), [1, 1, 0, 1, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_nearly_due_come_in_order_and_page_by_page() {
        let scene = Scene::new();
        let all: Vec<NewPushed> =
            (0..1200).map(|number| scene.routine(&format!("r{number:04}"), "one", Some(number % 40))).collect();
        assert_eq!(scene.writer().push(&all).unwrap(), vec![PushOutcome::Added; 1200]);
        let reader = scene.reader();
        let mut found: Vec<NearlyDue> = Vec::new();
        loop {
            let after = found.last().map(|last| (last.next_due, last.id.clone()));
            let page = reader.nearly_due(scene.at(9), after, 77).unwrap();
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found.len(), 300);
        assert!(found.is_sorted_by_key(|one| (one.next_due, one.id.clone())));
        assert_eq!(reader.soonest_pushed(scene.at(9)).unwrap(), Some(scene.at(10)));
        assert_eq!(reader.soonest_pushed(scene.at(39)).unwrap(), None);
        let next = reader.next_pushed(Some(Kind::Routine), 2).unwrap();
        assert_eq!(next.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["r0000", "r0040"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_passes_with_its_record_and_moves_once() {
        let scene = Scene::new();
        scene.writer().push(&[scene.routine("tea", "one", Some(1)), scene.reminder("call", "x", Some(1))]).unwrap();
        let journal = Journal::open(&scene.place, scene.clock.clone()).unwrap();
        assert!(scene.near(1).iter().all(|one| one.passed().is_none() && !one.is_recorded));
        let claims = vec![scene.claim("tea", Kind::Routine, 1), scene.claim("call", Kind::Reminder, 1)];
        assert!(journal.claim(claims).await.unwrap().iter().all(|claim| matches!(claim, Claim::Claimed(_))));
        let near = scene.near(1);
        let tea = near.iter().find(|one| one.kind == Kind::Routine).unwrap();
        assert_eq!(tea.passed(), Some(scene.at(1)));
        let call = near.iter().find(|one| one.kind == Kind::Reminder).unwrap();
        assert_eq!((call.passed(), call.is_recorded, call.has_outcome), (None, true, false));
        let next = |version, from, to| NextDue { id: tea.id.clone(), version, from: scene.at(from), to };
        journal.move_next_due(vec![next(tea.version + 1, 1, None)]).await.unwrap();
        assert_eq!(ids(&scene.near(1)), ["call", "tea"], "it was pushed meanwhile");
        journal.move_next_due(vec![next(tea.version, 1, Some(scene.at(61)))]).await.unwrap();
        journal.move_next_due(vec![next(tea.version, 1, Some(scene.at(121)))]).await.unwrap();
        assert_eq!(ids(&scene.near(1)), ["call"]);
        assert_eq!(ids(&scene.near(61)), ["call", "tea"]);
        assert_eq!(scene.reader().pushed_in_use().unwrap().len(), 2);
        journal.move_next_due(vec![next(tea.version, 61, None)]).await.unwrap();
        assert_eq!(ids(&scene.near(200)), ["call"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reminder_leaves_with_its_text_and_does_not_come_back_for_the_same_time() {
        let scene = Scene::new();
        let writer = scene.writer();
        writer.push(&[scene.reminder("call", "one", Some(1))]).unwrap();
        let journal = Journal::open(&scene.place, scene.clock.clone()).unwrap();
        let call = DefinitionId::new("call");
        assert!(journal.remove_pushed(&call, "other").await.unwrap(), "it has another text");
        assert!(!journal.remove_pushed(&call, "one").await.unwrap());
        assert!(!journal.remove_pushed(&call, "one").await.unwrap(), "again");
        assert_eq!(scene.near(200), []);
        journal.claim(vec![scene.claim("call", Kind::Reminder, 1)]).await.unwrap();
        assert_eq!(writer.push(&[scene.reminder("call", "one", Some(1))]).unwrap(), [PushOutcome::HadItsRun]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_routine_counts_from_its_push_and_is_not_taken_for_removed() {
        let scene = Scene::new();
        let tea = scene.routine("tea", "one", Some(1));
        scene.writer().push(std::slice::from_ref(&tea)).unwrap();
        scene.clock.jump(TimeDelta::hours(5));
        let journal = Journal::open(&scene.place, scene.clock.clone()).unwrap();
        assert_eq!(journal.known().await.unwrap(), []);
        let seen = vec![tea.generation.clone().unwrap()];
        assert_eq!(journal.observe(seen.clone().into(), scene.at(0)).await.unwrap(), [scene.at(0)]);
        // Another time begins anew; another text does not.
        scene.writer().push(&[scene.routine("tea", "two", Some(1))]).unwrap();
        assert_eq!(journal.observe(seen.into(), scene.at(0)).await.unwrap(), [scene.at(0)]);
        let other = ObservedGeneration { trigger: "daily".into(), ..tea.generation.clone().unwrap() };
        scene.writer().push(&[NewPushed { generation: Some(other.clone()), text: "three".into(), ..tea }]).unwrap();
        assert_eq!(journal.observe(vec![other].into(), scene.at(0)).await.unwrap(), [scene.at(300)]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_wrong_clock_a_routine_is_looked_at_again() {
        let scene = Scene::new();
        scene.writer().push(&[scene.routine("tea", "one", Some(60)), scene.routine("far", "one", Some(60))]).unwrap();
        let journal = Journal::open(&scene.place, scene.clock.clone()).unwrap();
        journal.claim(vec![scene.claim("tea", Kind::Routine, 60)]).await.unwrap();
        let version = scene.near(60)[1].version;
        let next = NextDue { id: DefinitionId::new("tea"), version, from: scene.at(60), to: Some(scene.at(120)) };
        journal.move_next_due(vec![next]).await.unwrap();
        journal.rewind_watermarks().await.unwrap();
        assert_eq!(ids(&scene.near(1)), ["tea"]);
        drop(scene.folder);
    }
}
