//! What earlier runs of a job have answered.

use std::path::PathBuf;

use super::database::Row;
use chrono::{DateTime, Utc};

use super::rows::Columns;
use super::{Journal, JournalError, JournalReader, RunId};
use crate::definition::DefinitionId;

/// A completed run as later ones know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// What its agent said last.
    pub answer: Option<String>,
    /// The client's transcript, where it had one.
    pub transcript: Option<PathBuf>,
    /// The person has had the job forget it.
    pub forgotten: bool,
}

impl Journal {
    /// Has a job forget its runs so far, those that are going too. Other jobs are told its answers as before. Returns how many there
    /// were.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn forget_runs(&self, lineage: String) -> Result<usize, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = "UPDATE run SET forgotten = TRUE WHERE lineage = ?1 AND NOT forgotten";
                connection.execute(sql, [&lineage])
            })
            .await
    }
}

impl JournalReader {
    /// The last completed run of this [lineage](crate::definition::Definition::lineage).
    ///
    /// # Errors
    /// When the journal cannot be read.
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

    /// The transcripts of completed runs of this lineage but for the last `kept`, the newest first, at most 50.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn older_transcripts(&self, lineage: &str, kept: u32) -> Result<Vec<(RunId, PathBuf)>, JournalError> {
        let sql =
            "SELECT run, transcript FROM run WHERE lineage = ?1 AND state = 'completed' AND transcript IS NOT NULL
            ORDER BY number DESC LIMIT 50 OFFSET ?2";
        self.all(sql, &[&lineage, &kept], |row| Ok((row.run("run")?, row.path("transcript")?)))
    }

    /// The lineage of the last run under this id.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn lineage_of(&self, id: &DefinitionId) -> Result<Option<String>, JournalError> {
        let sql = "SELECT r.lineage FROM occurrence o JOIN run r ON r.occurrence = o.number
            WHERE o.id = ?1 AND r.lineage IS NOT NULL ORDER BY r.number DESC LIMIT 1";
        Ok(self.all(sql, &[&id.as_str()], |row| row.get("lineage"))?.pop())
    }
}
