//! Moves a journal from a file to a server, or back.
//!
//! Rows are copied in the order of their keys, in several commits. Then both journals are compared row by row. The
//! next copy empties an incomplete or unused one and starts again. A journal that was moved is marked, so that no
//! host uses it. A copy back from its successor, which has all its records, empties it.

use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use super::claims::places;
use super::database::{Connection, Row, ToValue, Value};
use super::open::{keep_aside, open, open_reader};
use super::{HostRecord, JournalError, JournalLocation, JournalReader, settings};
use crate::clock::Clock;

/// The tables, each after those that its rows refer to, with their key columns. Without those that are of hosts.
const TABLES: &[(&str, &[&str])] = &[
    ("definition_seen", &["id"]),
    ("streak", &["id"]),
    ("delay", &["id"]),
    ("definition_text", &["number"]),
    ("occurrence", &["number"]),
    ("run", &["number"]),
    ("denial", &["run", "position"]),
    ("message", &["number"]),
    ("pending_update", &["number"]),
    ("setting", &["key"]),
    ("session", &["id"]),
    ("event", &["number"]),
    ("delivery", &["message", "channel"]),
    ("failing_channel", &["name"]),
    ("hearing", &["channel"]),
    ("fork", &["id"]),
    ("press", &["message", "place"]),
    ("question", &["number"]),
    ("shared_file", &["path"]),
    ("definition", &["id"]),
];

/// Maximum number of rows in one commit.
const BATCH_SIZE: usize = 500;

/// Setting of a journal while another is copied into it: the source.
const COPYING: &str = "copied_from";

/// Setting of a copy until it is used: the source.
const COPY_OF: &str = "copy_of";

/// Setting of a moved journal: the journal used in its place.
const MOVED_TO: &str = "moved_to";

/// A copied table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub table: &'static str,
    /// Number of its rows.
    pub rows: u64,
}

/// The reason why a journal was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the two journals cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is nothing to copy.
    #[error("there is no journal at {0} yet")]
    Nothing(String),
    /// The target holds another journal.
    #[error("the journal at {0} has records of its own; copy into an empty database (`createdb NAME` makes one)")]
    Taken(String),
    /// A host is using one of the two.
    #[error("{0} is using one of the two; stop the service there first")]
    InUse(String),
    /// The two differ after the copy.
    #[error("the two differ in `{table}` ({from} rows, {to} rows there); nothing was removed; copy again")]
    Differs {
        /// The table.
        table: &'static str,
        /// Number of rows in the source.
        from: u64,
        /// Number of rows in the copy.
        to: u64,
    },
}

/// The result of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySummary {
    /// The copied tables.
    pub tables: Vec<CopiedTable>,
    /// Where an older file at the target was put.
    pub kept_aside: Option<PathBuf>,
}

/// Copies the journal at `from` to `to`. Gives open occurrences to the host `host` (`None`: the only one). Keeps a
/// file at `to` aside. Blocks the thread.
///
/// # Errors
/// [`CopyError`]. The journal at `from` is never changed.
pub fn copy_to(
    from: &JournalLocation,
    to: &JournalLocation,
    host: Option<&str>,
    clock: &Clock,
) -> Result<CopySummary, CopyError> {
    let source = open_reader(from)?.ok_or_else(|| CopyError::Nothing(from.to_string()))?;
    refuse_moved(&source, from)?;
    refuse_used(from)?;
    refuse_used(to)?;
    let kept_aside = move_old_file(from, to, clock)?;
    let target = open(to, clock.now())?.connection;
    begin(&target, from, to, host)?;
    for &(table, keys) in TABLES {
        copy_table(&source, &target, table, keys)?;
    }
    let mut tables = Vec::new();
    for &(table, keys) in TABLES {
        let (of_source, of_target) = (digest(&source, table, keys)?, digest(&target, table, keys)?);
        if of_source != of_target {
            return Err(CopyError::Differs { table, from: of_source.0, to: of_target.0 });
        }
        tables.push(CopiedTable { table, rows: of_source.0 });
    }
    finish(&source, &target, host)?;
    Ok(CopySummary { tables, kept_aside })
}

/// Keeps a file aside, unless it is an incomplete copy of `from`.
fn move_old_file(from: &JournalLocation, to: &JournalLocation, clock: &Clock) -> Result<Option<PathBuf>, CopyError> {
    let JournalLocation::File(path) = to else { return Ok(None) };
    if !path.exists() || JournalReader::open(to).is_ok_and(|file| is_begun(&file, from)) {
        return Ok(None);
    }
    let kept = keep_aside(path, "before", clock.now());
    let failed = |source| JournalError::Open { path: path.clone(), source: Arc::new(source) };
    Ok(Some(kept.map_err(failed)?))
}

fn is_begun(file: &JournalReader, from: &JournalLocation) -> bool {
    file.setting(COPYING).is_ok_and(|known| known == Some(from.to_string()))
}

fn refuse_used(place: &JournalLocation) -> Result<(), CopyError> {
    let hosts = match JournalReader::open(place) {
        Ok(journal) => journal.hosts()?,
        // A journal with an older schema has only hosts with an older program, and the fence stops those.
        Err(JournalError::OlderOnServer { .. } | JournalError::Older { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    match hosts.into_iter().find(|host: &HostRecord| host.alive) {
        Some(host) => Err(CopyError::InUse(format!("the host {}", host.name))),
        None => Ok(()),
    }
}

/// Marks the target as an incomplete copy. Empties an incomplete or unused copy, or a journal moved to `from`. Refuses any other.
fn begin(
    target: &Connection,
    from: &JournalLocation,
    to: &JournalLocation,
    host: Option<&str>,
) -> Result<(), CopyError> {
    let (from, moved_to) = (from.to_string(), known_as(from, host));
    let transaction = target.transaction()?;
    let is_empty = target.row("SELECT count(*) FROM occurrence", (), |row| row.get::<i64>(0))? == 0
        && target.row("SELECT count(*) FROM event", (), |row| row.get::<i64>(0))? == 0;
    let marks = [COPYING, COPY_OF, MOVED_TO].map(|mark| settings::get(target, mark));
    let marks = marks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let [copying, copy_of, moved] = &marks[..] else { return Err(CopyError::Taken(to.to_string())) };
    let is_ours = [copying, copy_of].contains(&&Some(from.clone())) || *moved == Some(moved_to);
    if !is_ours && (!is_empty || marks.iter().any(Option::is_some)) {
        return Err(CopyError::Taken(to.to_string()));
    }
    for (table, _) in TABLES.iter().rev() {
        target.execute(&format!("DELETE FROM {table}"), ())?;
    }
    target.execute("INSERT INTO setting (key, value) VALUES (?1, ?2)", [COPYING, &from])?;
    transaction.commit()?;
    Ok(())
}

/// Returns a place as other hosts know it: a path alone is the same on each.
fn known_as(place: &JournalLocation, host: Option<&str>) -> String {
    match (place, host) {
        (JournalLocation::File(_), Some(host)) => format!("{place} on {host}"),
        _ => place.to_string(),
    }
}

/// Marks the journal at `from` as moved by the host `host` to `to`. Blocks the thread.
///
/// # Errors
/// [`JournalError::Moved`] if another host has moved it meanwhile, or when the journal cannot be written.
pub fn mark_moved(from: &JournalLocation, to: &JournalLocation, host: &str, clock: &Clock) -> Result<(), JournalError> {
    let journal = open(from, clock.now())?.connection;
    let transaction = journal.transaction()?;
    refuse_moved(&journal, from)?;
    journal.execute("INSERT INTO setting (key, value) VALUES (?1, ?2)", [MOVED_TO, &known_as(to, Some(host))])?;
    transaction.commit()
}

/// Takes a journal into use. Fails if it is an incomplete copy, or was moved.
pub(super) fn take_into_use(journal: &Connection, place: &JournalLocation) -> Result<(), JournalError> {
    if let Some(from) = settings::get(journal, COPYING)? {
        return Err(JournalError::HalfCopied { place: place.to_string(), from });
    }
    refuse_moved(journal, place)?;
    if settings::get(journal, COPY_OF)?.is_some() {
        let transaction = journal.transaction()?;
        settings::delete(journal, COPY_OF)?;
        transaction.commit()?;
    }
    Ok(())
}

/// A second copy of a journal that was moved would be a second live journal.
pub(super) fn refuse_moved(journal: &Connection, place: &JournalLocation) -> Result<(), JournalError> {
    match settings::get(journal, MOVED_TO)? {
        Some(to) => Err(JournalError::Moved { place: place.to_string(), to }),
        None => Ok(()),
    }
}

/// Returns the columns to copy: all but the host, unless it says where something ran.
fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, JournalError> {
    let mut columns = connection.columns(table)?;
    columns.retain(|column| column != "host" || ["occurrence", "run"].contains(&table));
    Ok(columns)
}

fn copy_table(
    source: &Connection,
    target: &Connection,
    table: &'static str,
    keys: &[&str],
) -> Result<(), JournalError> {
    let columns = columns(source, table)?;
    let mut last = None;
    loop {
        let rows = batch(source, table, keys, &columns, last.as_deref())?;
        let Some(newest) = rows.last() else { return Ok(()) };
        last = Some(key_of(newest, keys, &columns));
        let transaction = target.transaction()?;
        let values: Vec<&dyn ToValue> = rows.iter().flatten().map(|value| value as &dyn ToValue).collect();
        let sql = format!("INSERT INTO {table} ({}) VALUES {}", columns.join(", "), places(rows.len(), columns.len()));
        target.execute(&sql, &values[..])?;
        transaction.commit()?;
    }
}

/// Returns the rows after the key `after`.
fn batch(
    connection: &Connection,
    table: &str,
    keys: &[&str],
    columns: &[String],
    after: Option<&[Value<'static>]>,
) -> Result<Vec<Vec<Value<'static>>>, JournalError> {
    let (shown, order) = (columns.join(", "), keys.join(", "));
    let read = |row: &Row<'_>| (0..columns.len()).map(|place| row.value(place)).collect::<Result<Vec<_>, _>>();
    // The marks of the two journals differ.
    let mine = match table {
        "setting" => format!("key NOT IN ('{COPYING}', '{COPY_OF}', '{MOVED_TO}')"),
        _ => "TRUE".to_owned(),
    };
    match after {
        None => {
            let sql = format!("SELECT {shown} FROM {table} WHERE {mine} ORDER BY {order} LIMIT {BATCH_SIZE}");
            connection.all(&sql, (), read)
        }
        Some(after) => {
            let sql = format!(
                "SELECT {shown} FROM {table} WHERE {mine} AND ({order}) > {} ORDER BY {order} LIMIT {BATCH_SIZE}",
                places(1, keys.len())
            );
            let values: Vec<&dyn ToValue> = after.iter().map(|value| value as &dyn ToValue).collect();
            connection.all(&sql, &values[..], read)
        }
    }
}

fn key_of(row: &[Value<'static>], keys: &[&str], columns: &[String]) -> Vec<Value<'static>> {
    let of = |key: &&str| columns.iter().position(|column| column == key).and_then(|place| row.get(place)).cloned();
    keys.iter().filter_map(of).collect()
}

/// Returns the number of rows of a table, and a hash of their content.
fn digest(connection: &Connection, table: &str, keys: &[&str]) -> Result<(u64, u64), JournalError> {
    let columns = columns(connection, table)?;
    let (mut count, mut hash, mut last) = (0, DefaultHasher::new(), None);
    loop {
        let rows = batch(connection, table, keys, &columns, last.as_deref())?;
        let Some(newest) = rows.last() else { return Ok((count, hash.finish())) };
        last = Some(key_of(newest, keys, &columns));
        for value in rows.iter().flatten() {
            hash.write(value.to_string().as_bytes());
            hash.write_u8(0);
        }
        count += rows.len() as u64;
    }
}

/// Continues the numbering, gives open occurrences to the host, and marks the copy as complete.
fn finish(source: &Connection, target: &Connection, host: Option<&str>) -> Result<(), JournalError> {
    let transaction = target.transaction()?;
    for table in ["message", "pending_update", "event", "question"] {
        target.set_next_number(table, source.last_number(table)?)?;
    }
    for table in ["definition_text", "occurrence", "run"] {
        let sql = format!("SELECT coalesce(max(number), 0) FROM {table}");
        target.set_next_number(table, source.row(&sql, (), |row| row.get(0))?)?;
    }
    // A host removes the files of those reminders that it has.
    target.execute(
        "UPDATE occurrence SET host = ?1 WHERE outcome IS NULL OR (kind = 'reminder' AND NOT file_done)",
        [host],
    )?;
    target.execute(
        "UPDATE run SET host = ?1 WHERE ended IS NULL OR occurrence IN (SELECT number FROM occurrence WHERE outcome IS NULL)",
        [host],
    )?;
    target.execute("UPDATE setting SET key = ?1 WHERE key = ?2", [COPY_OF, COPYING])?;
    transaction.commit()
}
