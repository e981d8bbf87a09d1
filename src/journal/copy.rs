//! Moving a journal from a file to a server, or back.
//!
//! Rows are copied in the order of their keys, some in each commit. At the end both are compared, row by row. A copy that was cut off, or
//! that nobody has used yet, is emptied by the next and made anew. A journal that was moved away from is marked, so that no host goes on
//! with it, and is emptied by a copy of the one that it was moved to, which has all that it has.

use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use super::claims::places;
use super::database::{Connection, Row, ToValue, Value};
use super::open::{keep_aside, open, open_reader};
use super::{HostRecord, JournalError, JournalPlace, JournalReader};
use crate::clock::Clock;

/// The tables in an order in which what a row refers to comes first, and the columns that are their keys.
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
];

/// How many rows one commit copies.
const TOGETHER: usize = 500;

/// The setting that a journal has while another is being copied into it: where from.
const COPYING: &str = "copied_from";

/// The setting that a copy has until it is used: of which journal it is one.
const COPY_OF: &str = "copy_of";

/// The setting that a journal has that another is used in the place of: which.
const MOVED_TO: &str = "moved_to";

/// How many rows a table had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub table: &'static str,
    /// Its rows.
    pub rows: u64,
}

/// Why a journal was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the two cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is nothing to copy.
    #[error("there is no journal at {0} yet")]
    Nothing(String),
    /// It is another one's.
    #[error("the journal at {0} has records of its own; copy into an empty database (`createdb NAME` makes one)")]
    Taken(String),
    /// Somebody writes meanwhile.
    #[error("{0} is using one of the two; stop the service there first")]
    InUse(String),
    /// The two differ after all was copied.
    #[error("the two differ in `{table}` ({from} rows, {to} rows there); nothing was removed; copy again")]
    Differs {
        /// The table.
        table: &'static str,
        /// Rows of the one that was copied.
        from: u64,
        /// Rows of the copy.
        to: u64,
    },
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Each table, with its rows.
    pub tables: Vec<CopiedTable>,
    /// Where an older file was put that stood in the place.
    pub kept_aside: Option<PathBuf>,
}

/// Copies the journal at `from` to `to`. What is open there belongs to the host `host` (`None`: to the only one). A file that stands at `to` is
/// put aside. Blocks.
///
/// # Errors
/// [`CopyError`]. The journal at `from` is never changed.
pub fn copy_to(from: &JournalPlace, to: &JournalPlace, host: Option<&str>, clock: &Clock) -> Result<Copied, CopyError> {
    let source = open_reader(from)?.ok_or_else(|| CopyError::Nothing(from.to_string()))?;
    refuse_used(from)?;
    refuse_used(to)?;
    let kept_aside = put_aside(from, to, clock)?;
    let target = open(to, clock.now())?.connection;
    begin(&target, from, to)?;
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
    Ok(Copied { tables, kept_aside })
}

/// Puts a file aside that is no copy which was begun.
fn put_aside(from: &JournalPlace, to: &JournalPlace, clock: &Clock) -> Result<Option<PathBuf>, CopyError> {
    let JournalPlace::File(path) = to else { return Ok(None) };
    if !path.exists() || JournalReader::open(to).is_ok_and(|file| is_begun(&file, from)) {
        return Ok(None);
    }
    let kept = keep_aside(path, "before", clock.now());
    let failed = |source| JournalError::Open { path: path.clone(), source: Arc::new(source) };
    Ok(Some(kept.map_err(failed)?))
}

fn is_begun(file: &JournalReader, from: &JournalPlace) -> bool {
    file.setting(COPYING).is_ok_and(|known| known == Some(from.to_string()))
}

fn refuse_used(place: &JournalPlace) -> Result<(), CopyError> {
    let hosts = match JournalReader::open(place) {
        Ok(journal) => journal.hosts()?,
        // One that is to be brought to a newer schema has hosts of an older program at most; the fence holds them.
        Err(JournalError::OlderOnServer { .. } | JournalError::Older { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    match hosts.into_iter().find(|host: &HostRecord| host.alive) {
        Some(host) => Err(CopyError::InUse(format!("the host {}", host.name))),
        None => Ok(()),
    }
}

/// Marks the copy as one that is being made, and empties one that was begun, is unused, or was moved to `from`. It is another one's otherwise.
fn begin(target: &Connection, from: &JournalPlace, to: &JournalPlace) -> Result<(), CopyError> {
    let from = from.to_string();
    let transaction = target.transaction()?;
    let is_empty = target.row("SELECT count(*) FROM occurrence", (), |row| row.get::<i64>(0))? == 0
        && target.row("SELECT count(*) FROM event", (), |row| row.get::<i64>(0))? == 0;
    let marks = [COPYING, COPY_OF, MOVED_TO].map(|mark| setting(target, mark));
    let marks = marks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let is_ours = marks.iter().flatten().any(|journal| *journal == from);
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

fn setting(connection: &Connection, key: &str) -> Result<Option<String>, JournalError> {
    connection.one("SELECT value FROM setting WHERE key = ?1", [key], |row| row.get("value"))
}

/// Marks the journal at `from` as one that `to` is used in the place of. Blocks.
///
/// # Errors
/// When it cannot be written.
pub fn mark_moved(from: &JournalPlace, to: &JournalPlace, clock: &Clock) -> Result<(), JournalError> {
    let journal = open(from, clock.now())?.connection;
    let transaction = journal.transaction()?;
    let sql = "INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    journal.execute(sql, [MOVED_TO, &to.to_string()])?;
    transaction.commit()
}

/// Takes a journal into use: what was copied into it is all there, and nothing else is used in its place.
pub(super) fn take_into_use(journal: &Connection, place: &JournalPlace) -> Result<(), JournalError> {
    if let Some(from) = setting(journal, COPYING)? {
        return Err(JournalError::HalfCopied { place: place.to_string(), from });
    }
    if let Some(to) = setting(journal, MOVED_TO)? {
        return Err(JournalError::Moved { place: place.to_string(), to });
    }
    if setting(journal, COPY_OF)?.is_some() {
        let transaction = journal.transaction()?;
        journal.execute("DELETE FROM setting WHERE key = ?1", [COPY_OF])?;
        transaction.commit()?;
    }
    Ok(())
}

/// The columns of a table that are copied: which host has something is said anew.
fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, JournalError> {
    let mut columns = connection.columns(table)?;
    columns.retain(|column| column != "host");
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

/// The next rows after those with the key `after`.
fn batch(
    connection: &Connection,
    table: &str,
    keys: &[&str],
    columns: &[String],
    after: Option<&[Value<'static>]>,
) -> Result<Vec<Vec<Value<'static>>>, JournalError> {
    let (shown, order) = (columns.join(", "), keys.join(", "));
    let read = |row: &Row<'_>| (0..columns.len()).map(|place| row.value(place)).collect::<Result<Vec<_>, _>>();
    // The marks of the two differ.
    let mine = match table {
        "setting" => format!("key NOT IN ('{COPYING}', '{COPY_OF}', '{MOVED_TO}')"),
        _ => "TRUE".to_owned(),
    };
    match after {
        None => {
            let sql = format!("SELECT {shown} FROM {table} WHERE {mine} ORDER BY {order} LIMIT {TOGETHER}");
            connection.all(&sql, (), read)
        }
        Some(after) => {
            let sql = format!(
                "SELECT {shown} FROM {table} WHERE {mine} AND ({order}) > {} ORDER BY {order} LIMIT {TOGETHER}",
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

/// How many rows a table has, and what they are, in one number.
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

/// Numbers go on where they were, what is open has its host, and the copy is one that can be used.
fn finish(source: &Connection, target: &Connection, host: Option<&str>) -> Result<(), JournalError> {
    let transaction = target.transaction()?;
    for table in ["message", "pending_update", "event", "question"] {
        target.go_on_from(table, source.last_number(table)?)?;
    }
    for table in ["definition_text", "occurrence", "run"] {
        let sql = format!("SELECT coalesce(max(number), 0) FROM {table}");
        target.go_on_from(table, source.row(&sql, (), |row| row.get(0))?)?;
    }
    target.execute("UPDATE occurrence SET host = ?1 WHERE outcome IS NULL", [host])?;
    target.execute(
        "UPDATE run SET host = ?1 WHERE ended IS NULL OR occurrence IN (SELECT number FROM occurrence WHERE outcome IS NULL)",
        [host],
    )?;
    target.execute("UPDATE setting SET key = ?1 WHERE key = ?2", [COPY_OF, COPYING])?;
    transaction.commit()
}
