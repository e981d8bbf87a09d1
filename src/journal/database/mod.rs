//! One SQL for both databases: SQLite and PostgreSQL.
//!
//! Every statement of the journal is written once, in the SQL that both understand, with parameters as `?1`, `?2`. This module
//! holds the differences: how a statement is sent, how values are read, what ends a transaction, and what an error means.

mod postgres;
mod sqlite;
mod value;

pub(super) use postgres::{Link, ServerAddress};
pub(super) use value::{Params, Row, ToValue, Value};

use std::time::Duration;

use super::{JournalError, Server};

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &dyn $crate::journal::database::ToValue),*] as &[&dyn $crate::journal::database::ToValue]
    };
}
pub(super) use params;

/// A connection to either database.
#[derive(Debug)]
pub(super) enum Connection {
    /// A file on this machine.
    Sqlite(rusqlite::Connection),
    /// A server that several hosts share.
    Postgres(Link),
}

impl Connection {
    /// Executes one statement. Returns how many rows changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, JournalError> {
        match self {
            Self::Sqlite(file) => sqlite::execute(file, sql, &params.values()),
            Self::Postgres(link) => link.execute(sql, &params.values()),
        }
    }

    /// Reads every row that a statement returns.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
    ) -> Result<Vec<T>, JournalError> {
        match self {
            Self::Sqlite(file) => sqlite::all(file, sql, &params.values(), usize::MAX, read),
            Self::Postgres(link) => {
                link.query(sql, &params.values())?.iter().map(Row::Postgres).map(by_ref(read)).collect()
            }
        }
    }

    /// Reads the first row that a statement returns; `None` if it returned none.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
    ) -> Result<Option<T>, JournalError> {
        let found = match self {
            Self::Sqlite(file) => sqlite::all(file, sql, &params.values(), 1, read)?.pop(),
            Self::Postgres(link) => {
                let rows = link.query(sql, &params.values())?;
                rows.first().map(Row::Postgres).map(by_ref(read)).transpose()?
            }
        };
        Ok(found)
    }

    /// Reads the first row of a statement that always returns one.
    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.one(sql, params, read)?
            .ok_or_else(|| JournalError::Unreadable("no row where there must be one".to_owned()))
    }

    /// Returns the highest number that a row of `table` ever had, deleted ones included; 0 if there was none.
    pub(super) fn last_number(&self, table: &str) -> Result<i64, JournalError> {
        match self {
            Self::Sqlite(_) => {
                let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?1";
                self.row(sql, [table], |row| row.get(0))
            }
            Self::Postgres(_) => self.row(&last_on_server(table), (), |row| row.get(0)),
        }
    }

    /// Returns the columns of a table, in order.
    pub(super) fn columns(&self, table: &str) -> Result<Vec<String>, JournalError> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT name FROM pragma_table_info(?1) ORDER BY cid",
            Self::Postgres(_) => {
                "SELECT column_name AS name FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name = ?1 ORDER BY ordinal_position"
            }
        };
        self.all(sql, [table], |row| row.get("name"))
    }

    /// Makes the next row of `table` get a number above `number`.
    pub(super) fn set_next_number(&self, table: &str, number: i64) -> Result<(), JournalError> {
        if number == 0 {
            return Ok(());
        }
        match self {
            // Tables without AUTOINCREMENT are not in `sqlite_sequence`. They continue from their highest number.
            Self::Sqlite(_) => {
                self.execute("UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1 AND seq < ?2", params![table, number])
            }
            Self::Postgres(_) => self.execute(&format!("SELECT setval('{table}_number_seq', ?1)"), [number]),
        }
        .map(drop)
    }

    /// Begins a transaction that writes. Dropping it rolls it back.
    pub(super) fn transaction(&self) -> Result<Transaction<'_>, JournalError> {
        match self {
            Self::Sqlite(file) => file.execute_batch("BEGIN IMMEDIATE")?,
            Self::Postgres(link) => link.begin()?,
        }
        Ok(Transaction { connection: self, ended: false })
    }

    /// Begins a transaction that only reads. Dropping it ends it.
    pub(super) fn reading(&self) -> Result<Transaction<'_>, JournalError> {
        match self {
            Self::Sqlite(file) => file.execute_batch("BEGIN IMMEDIATE")?,
            Self::Postgres(link) => link.begin_reading()?,
        }
        Ok(Transaction { connection: self, ended: false })
    }

    /// Connects again if the connection has broken.
    pub(super) fn reconnect(&mut self, server: &Server) -> Result<(), JournalError> {
        match self {
            Self::Postgres(link) if link.is_closed() => {
                *link = server.connect()?.like(link);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a commit was made whose answer was lost.
    pub(super) fn was_committed(&self) -> Result<bool, JournalError> {
        match self {
            Self::Sqlite(_) => Ok(false),
            Self::Postgres(link) => link.was_committed(),
        }
    }

    /// Forgets a commit whose answer was lost, since nobody waits for its outcome any more.
    pub(super) fn discard_lost_commit(&self) {
        if let Self::Postgres(link) = self {
            link.discard_lost_commit();
        }
    }

    /// Sets how long to wait for an answer of a server from now on.
    pub(super) fn set_timeout(&mut self, patience: Duration) {
        if let Self::Postgres(link) = self {
            link.set_timeout(patience);
        }
    }

    /// Returns whether the connection is unusable.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Postgres(link) if link.is_closed())
    }

    /// Returns the host that writes here; `None` if there is only one.
    pub(super) fn host(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(link) => link.host(),
        }
    }

    /// Executes statements that have no parameters and return nothing.
    pub(super) fn batch(&self, sql: &str) -> Result<(), JournalError> {
        match self {
            Self::Sqlite(file) => Ok(file.execute_batch(sql)?),
            Self::Postgres(link) => link.batch(sql),
        }
    }
}

fn last_on_server(table: &str) -> String {
    format!("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {table}_number_seq")
}

fn by_ref<'a, T>(
    mut read: impl FnMut(&Row<'a>) -> Result<T, JournalError>,
) -> impl FnMut(Row<'a>) -> Result<T, JournalError> {
    move |row| read(&row)
}

/// Statements that are committed together. A single one may fail and be rolled back alone.
#[derive(Debug)]
pub(super) struct Transaction<'a> {
    connection: &'a Connection,
    ended: bool,
}

impl Transaction<'_> {
    /// Sets the savepoint.
    pub(super) fn savepoint(&self) -> Result<(), JournalError> {
        self.connection.batch("SAVEPOINT operation")
    }

    /// Keeps the changes since the savepoint, or rolls them back.
    pub(super) fn end_savepoint(&self, keep: bool) -> Result<(), JournalError> {
        let back = if keep { "" } else { "ROLLBACK TO SAVEPOINT operation; " };
        self.connection.batch(&format!("{back}RELEASE SAVEPOINT operation"))
    }

    /// Commits. The changes are on the disk when this returns.
    pub(super) fn commit(mut self) -> Result<(), JournalError> {
        match self.connection {
            Connection::Sqlite(file) => file.execute_batch("COMMIT")?,
            Connection::Postgres(link) => link.commit()?,
        }
        self.ended = true;
        Ok(())
    }

    /// Commits as [`Self::commit`] does. Returns what [`Connection::last_number`] returns right before it.
    pub(super) fn commit_and_last_number(mut self, table: &str) -> Result<i64, JournalError> {
        let number = match self.connection {
            Connection::Sqlite(file) => {
                let number = self.connection.last_number(table)?;
                file.execute_batch("COMMIT")?;
                number
            }
            Connection::Postgres(link) => match link.commit_after(&last_on_server(table))? {
                Some(row) => row.try_get(0)?,
                None => 0,
            },
        };
        self.ended = true;
        Ok(number)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended
            && let Err(error) = self.connection.batch("ROLLBACK")
        {
            tracing::debug!(%error, "a transaction could not be rolled back; its connection is gone");
        }
    }
}
