//! Files of definitions that the hosts of a journal keep equal.
//!
//! Each change has a version, and a later one has a higher version: a host reads what is newer than what it knows. A host publishes over the
//! version that it knows, and nothing where another one has published over it first.

use super::database::{Connection, params};
use super::{Journal, JournalError, JournalReader};

/// The setting with this journal's name.
const KEPT_BY: &str = "shared_files";

/// A file, as the newest host to change it has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// Relative to the data folder.
    pub path: String,
    /// The text; of a file that was removed, the one that it had.
    pub text: String,
    /// Whether it was removed.
    pub removed: bool,
    /// Higher than that of any earlier change.
    pub version: i64,
    /// Where it was changed.
    pub host: String,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Relative to the data folder.
    pub path: String,
    /// The new text; `None`: it is removed.
    pub text: Option<String>,
    /// The version that this host knows; 0: none.
    pub over: i64,
}

impl Journal {
    /// Names this journal, unless it has a name: versions of files count in one journal only.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn name_shared_files(&self, new: String) -> Result<(), JournalError> {
        let named = move |kept: Option<&str>| kept.is_none().then(|| (new.clone(), ()));
        self.change_setting(KEPT_BY, named).await.map(drop)
    }

    /// Publishes files of a host in one commit. Returns the version of each; `None`: another host was first.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn publish_files(&self, host: String, files: Vec<Publication>) -> Result<Vec<Option<i64>>, JournalError> {
        self.writer
            .commit(move |connection| {
                let newest = "SELECT coalesce(max(version), 0) FROM shared_file";
                let mut newest: i64 = connection.row(newest, (), |row| row.get(0))?;
                let mut published = Vec::with_capacity(files.len());
                for Publication { path, text, over } in &files {
                    let version = newest + 1;
                    let changed = match (text, over) {
                        (Some(text), 0) => connection.execute(
                            "INSERT INTO shared_file (path, text, version, changed_on) VALUES (?1, ?2, ?3, ?4)
                             ON CONFLICT (path) DO NOTHING",
                            params![path, text, version, host],
                        )?,
                        (Some(text), over) => connection.execute(
                            "UPDATE shared_file SET text = ?2, removed = FALSE, version = ?3, changed_on = ?4
                             WHERE path = ?1 AND version = ?5",
                            params![path, text, version, host, over],
                        )?,
                        (None, over) => connection.execute(
                            "UPDATE shared_file SET removed = TRUE, version = ?2, changed_on = ?3 WHERE path = ?1 AND version = ?4",
                            params![path, version, host, over],
                        )?,
                    };
                    newest += i64::from(changed > 0);
                    published.push((changed > 0).then_some(version));
                }
                Ok(published)
            })
            .await
    }
}

impl JournalReader {
    /// In what versions of files count, and the newest one. It is the journal's name, the table, and which history its server follows: a
    /// replica that takes over may have forgotten what was published last, and a restored copy has, and both give the same versions to other
    /// changes.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn history_of_shared_files(&self) -> Result<(String, i64), JournalError> {
        let Some(connection) = self.connection() else { return Ok((String::new(), 0)) };
        let sql = match connection {
            Connection::Sqlite(_) => "SELECT value FROM setting WHERE key = ?1",
            Connection::Postgres(_) => {
                "SELECT value || ' ' || CAST(CAST('shared_file' AS REGCLASS) AS OID) || ' '
                   || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) FROM setting WHERE key = ?1"
            }
        };
        let history = connection.one(sql, [KEPT_BY], |row| row.get(0))?.unwrap_or_default();
        let newest = connection.row("SELECT coalesce(max(version), 0) FROM shared_file", (), |row| row.get(0))?;
        Ok((history, newest))
    }

    /// The first files with a version over `known`, in the order of their versions, at most `count`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn shared_files(&self, known: i64, count: i64) -> Result<Vec<SharedFile>, JournalError> {
        let Some(connection) = self.connection() else { return Ok(Vec::new()) };
        let sql = "SELECT path, text, removed, version, changed_on FROM shared_file WHERE version > ?1 ORDER BY version LIMIT ?2";
        connection.all(sql, [known, count], |row| {
            Ok(SharedFile {
                path: row.get("path")?,
                text: row.get("text")?,
                removed: row.get("removed")?,
                version: row.get("version")?,
                host: row.get("changed_on")?,
            })
        })
    }
}
