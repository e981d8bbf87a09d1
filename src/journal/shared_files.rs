//! Files of definitions that the hosts of a journal keep equal.
//!
//! Each change has a version, and a later one has a higher version: a host reads what is newer than what it knows. A host publishes over the
//! version that it knows, and nothing where another one has published over it first.

use super::database::params;
use super::{Journal, JournalError, JournalReader};

/// What the hosts of this journal know it by: versions count in one journal only.
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
    /// What this journal's versions of files are known by.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn shared_files_known_by(&self, new: String) -> Result<String, JournalError> {
        let known = move |kept: Option<&str>| {
            let known = kept.unwrap_or(&new).to_owned();
            Some((known.clone(), known))
        };
        Ok(self.change_setting(KEPT_BY, known).await?.unwrap_or_default())
    }

    /// Publishes files in one commit. Returns the version of each; `None`: another host was first.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn publish_files(&self, files: Vec<Publication>) -> Result<Vec<Option<i64>>, JournalError> {
        self.writer
            .commit(move |connection| {
                let newest = "SELECT coalesce(max(version), 0) FROM shared_file";
                let mut newest: i64 = connection.row(newest, (), |row| row.get(0))?;
                let host = connection.host().unwrap_or_default().to_owned();
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
    /// The files with a version over `known`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn shared_files(&self, known: i64) -> Result<Vec<SharedFile>, JournalError> {
        let Some(connection) = self.connection() else { return Ok(Vec::new()) };
        let sql =
            "SELECT path, text, removed, version, changed_on FROM shared_file WHERE version > ?1 ORDER BY version";
        connection.all(sql, [known], |row| {
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
