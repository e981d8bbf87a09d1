//! Statements on an SQLite file.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::{JournalError, Row, Value};

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

pub(super) fn execute(file: &Connection, sql: &str, values: &[Value<'_>]) -> Result<usize, JournalError> {
    Ok(file.prepare_cached(sql)?.execute(params_from_iter(values))?)
}

/// Reads at most `limit` rows.
pub(super) fn all<T>(
    file: &Connection,
    sql: &str,
    values: &[Value<'_>],
    limit: usize,
    mut read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
) -> Result<Vec<T>, JournalError> {
    let mut query = file.prepare_cached(sql)?;
    let mut rows = query.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        found.push(read(&Row::Sqlite(row))?);
    }
    Ok(found)
}
