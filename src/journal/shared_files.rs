//! Files of definitions that the hosts of a journal keep equal.
//!
//! Each change gets a version higher than all before it, so a host reads the changes above the version that it knows. A
//! host publishes over the version that it knows. If another host has published over that version first, nothing changes.

use super::database::{Connection, params};
use super::{Journal, JournalError, JournalReader};

/// Key of the setting with this journal's name.
const KEPT_BY: &str = "shared_files";

/// A file, as its latest change left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// Path relative to the data folder.
    pub path: String,
    /// The text; for a removed file, its last text.
    pub text: String,
    /// Whether it was removed.
    pub removed: bool,
    /// Version of the change. Higher than that of any earlier change.
    pub version: i64,
    /// The host that changed it.
    pub host: String,
}

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Path relative to the data folder.
    pub path: String,
    /// The new text; `None`: the file is removed.
    pub text: Option<String>,
    /// The version that this host knows; 0: none.
    pub over: i64,
}

impl Journal {
    /// Names this journal, unless it has a name. The name scopes the versions of files, which are valid in one journal only.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn name_shared_files(&self, new: String) -> Result<(), JournalError> {
        let named = move |kept: Option<&str>| kept.is_none().then(|| (new.clone(), ()));
        self.change_setting(KEPT_BY, named).await.map(drop)
    }

    /// Publishes files of a host in one commit. Returns the version of each; `None` if another host was first.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
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
    /// Returns the history in which versions of files count, and the newest version. The history is the journal's
    /// name, the table, and the server's timeline. A replica that takes over may lack the last changes, and a
    /// restored copy does. Both give their versions to other changes.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
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

    /// Returns the files with a version above `known`, in order of version, at most `count`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
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
