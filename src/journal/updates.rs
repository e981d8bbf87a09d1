//! What background jobs have reported, kept until a turn of the main session has been given it.

use super::database::{Connection, params};
use chrono::{DateTime, Utc};

use super::events::{EventKind, NewEvent, insert_event};
use super::rows::ms;
use super::runs::mark;
use super::{Journal, JournalError, RunId};

/// Reports that no turn has been given yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingUpdates {
    /// The newest ones, oldest first.
    pub texts: Vec<String>,
    /// How many older ones there are.
    pub left_out: usize,
    /// The newest one's number: what [`Journal::updates_given`] takes.
    pub newest: i64,
}

impl Journal {
    /// Keeps a report of a run, which is an effect of it, in one commit.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when its run is not going: then nothing is kept.
    pub async fn report(&self, run: &RunId, text: String) -> Result<(), JournalError> {
        let (id, clock) = (run.clone(), self.clock.clone());
        self.writer.commit(move |connection| insert_report(connection, &id, &text, clock.now())).await?;
        self.marked_now(run);
        Ok(())
    }

    /// The reports that no turn has been given, at most `most` of them.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn pending_updates(&self, most: usize) -> Result<PendingUpdates, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = "SELECT number, text FROM pending_update ORDER BY number DESC";
                let rows: Vec<(i64, String)> = connection.all(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
                let left_out = rows.len().saturating_sub(most);
                let newest = rows.first().map_or(0, |(number, _)| *number);
                let texts = rows.into_iter().take(most).map(|(_, text)| text).rev().collect();
                Ok(PendingUpdates { texts, left_out, newest })
            })
            .await
    }

    /// A turn has been given all reports up to this number: they are not given again.
    ///
    /// # Errors
    /// When the commit cannot be made.
    pub async fn updates_given(&self, newest: i64) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM pending_update WHERE number <= ?1", [newest])?;
                Ok(())
            })
            .await
    }
}

/// A report of a run's for the main session, and the mark that it is an effect.
pub(super) fn insert_report(
    connection: &Connection,
    run: &RunId,
    text: &str,
    now: DateTime<Utc>,
) -> Result<(), JournalError> {
    mark(connection, run, "report", now)?;
    connection.execute(
        "INSERT INTO pending_update (at, run, text) VALUES (?1, ?2, ?3)",
        params![ms(now), run.as_str(), text],
    )?;
    let kind = EventKind::Update { text: text.to_owned() };
    insert_event(connection, NewEvent { run: Some(run.as_str()), id: None, kind }, now)
}
