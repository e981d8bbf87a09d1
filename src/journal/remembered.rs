//! The answers of a job's earlier runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::claims::places;
use super::database::{Row, ToValue};
use chrono::{DateTime, Utc};

use super::rows::Columns;
use super::{Journal, JournalError, JournalReader, RunId};
use crate::definition::DefinitionId;

/// Maximum number of runs in one statement.
const AT_ONCE: usize = 500;

/// A completed run, as later runs know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// The last text of its agent.
    pub answer: Option<String>,
    /// The client's transcript, if there was one.
    pub transcript: Option<PathBuf>,
    /// Whether the person made the job forget it.
    pub forgotten: bool,
}

impl Journal {
    /// Makes a job forget its runs so far, running ones included. Other jobs still receive its answers. Returns
    /// how many runs there were.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn forget_runs(&self, lineage: String) -> Result<usize, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = "UPDATE run SET forgotten = TRUE WHERE lineage = ?1 AND NOT forgotten";
                connection.execute(sql, [&lineage])
            })
            .await
    }

    /// Returns those of the runs that the journal holds.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn recorded_runs(&self, runs: Vec<RunId>) -> Result<BTreeSet<RunId>, JournalError> {
        self.writer
            .read(move |connection| {
                let mut found = BTreeSet::new();
                for some in runs.chunks(AT_ONCE) {
                    let sql = format!("SELECT run FROM run WHERE run IN {}", places(1, some.len()));
                    let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
                    let values: Vec<&dyn ToValue> = ids.iter().map(|id| id as &dyn ToValue).collect();
                    found.extend(connection.all(&sql, &values[..], |row| row.run("run"))?);
                }
                Ok(found)
            })
            .await
    }
}

impl JournalReader {
    /// Returns the last completed run of this [lineage](crate::definition::Definition::lineage).
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn remembered(&self, lineage: &str) -> Result<Option<Remembered>, JournalError> {
        let sql = "SELECT run, ended, answer, transcript, forgotten FROM run
            WHERE lineage = ?1 AND state = 'completed' AND ended IS NOT NULL ORDER BY number DESC LIMIT 1";
        let read = |row: &Row<'_>| {
            Ok(Remembered {
                run: row.run("run")?,
                ended: row.at("ended")?,
                answer: row.get("answer")?,
                transcript: row.get::<Option<String>>("transcript")?.map(PathBuf::from),
                forgotten: row.get("forgotten")?,
            })
        };
        Ok(self.all(sql, &[&lineage], read)?.pop())
    }

    /// Returns the transcripts of completed runs of this lineage, the newest first, at most 50. Leaves out the last `kept`.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn older_transcripts(&self, lineage: &str, kept: u32) -> Result<Vec<(RunId, PathBuf)>, JournalError> {
        let sql =
            "SELECT run, transcript FROM run WHERE lineage = ?1 AND state = 'completed' AND transcript IS NOT NULL
            ORDER BY number DESC LIMIT 50 OFFSET ?2";
        self.all(sql, &[&lineage, &kept], |row| Ok((row.run("run")?, row.path("transcript")?)))
    }

    /// Returns the lineage of the last run under this id.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn lineage_of(&self, id: &DefinitionId) -> Result<Option<String>, JournalError> {
        let sql = "SELECT r.lineage FROM occurrence o JOIN run r ON r.occurrence = o.number
            WHERE o.id = ?1 AND r.lineage IS NOT NULL ORDER BY r.number DESC LIMIT 1";
        Ok(self.all(sql, &[&id.as_str()], |row| row.get("lineage"))?.pop())
    }

    /// Returns the id of the job that the last run of this lineage was of: of a chain, its last check that began.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn last_of_lineage(&self, lineage: &str) -> Result<Option<DefinitionId>, JournalError> {
        let sql = "SELECT o.id FROM run r JOIN occurrence o ON r.occurrence = o.number
            WHERE r.lineage = ?1 ORDER BY r.number DESC LIMIT 1";
        Ok(self.all(sql, &[&lineage], |row| Ok(DefinitionId::new(row.get::<String>("id")?)))?.pop())
    }
}
