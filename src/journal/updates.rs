//! Reports of background jobs, kept until a turn of the main session receives them.

use std::collections::HashMap;

use super::database::{Connection, Row, params};
use chrono::{DateTime, Utc};

use super::events::{EventKind, NewEvent, insert_event};
use super::rows::ms;
use super::runs::mark;
use super::{Journal, JournalError, RunId};

/// Reports that no turn has received yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingUpdates {
    /// The texts of the newest ones, oldest first.
    pub texts: Vec<String>,
    /// Number of older ones.
    pub left_out: usize,
    /// Number of the newest one; the argument of [`Journal::updates_given`].
    pub newest: i64,
}

impl Journal {
    /// Records a report of a run and marks its side effect, in one commit.
    ///
    /// # Errors
    /// [`JournalError::NotGoing`] when the run is not running: then nothing is recorded.
    pub async fn report(&self, run: &RunId, text: String) -> Result<(), JournalError> {
        let (id, clock) = (run.clone(), self.clock.clone());
        self.writer.commit(move |connection| insert_report(connection, &id, &text, clock.now())).await?;
        self.marked_now(run);
        Ok(())
    }

    /// Returns the reports that no turn has received, at most `most` of them.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn pending_updates(&self, most: usize) -> Result<PendingUpdates, JournalError> {
        self.writer
            .commit(move |connection| {
                let sql = "SELECT p.number, p.text, o.id FROM pending_update p LEFT JOIN run r ON r.run = p.run
                           LEFT JOIN occurrence o ON o.number = r.occurrence ORDER BY p.number DESC";
                let row =
                    |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<Option<String>>(2)?));
                let rows = connection.all(sql, (), row)?;
                let left_out = rows.len().saturating_sub(most);
                let newest = rows.first().map_or(0, |(number, ..)| *number);
                // The newest one of each job comes before the second one of any, so that no job crowds the others out.
                let mut counts: HashMap<Option<String>, usize> = HashMap::new();
                let mut ranked: Vec<(usize, i64, String)> = Vec::with_capacity(rows.len());
                for (number, text, id) in rows {
                    let count = counts.entry(id).or_default();
                    ranked.push((*count, -number, text));
                    *count += 1;
                }
                ranked.sort();
                ranked.truncate(most);
                ranked.sort_by_key(|(_, number, _)| -number);
                let texts = ranked.into_iter().map(|(.., text)| text).collect();
                Ok(PendingUpdates { texts, left_out, newest })
            })
            .await
    }

    /// Deletes all reports up to this number, once a turn has received them.
    ///
    /// # Errors
    /// Fails when the commit cannot be made.
    pub async fn updates_given(&self, newest: i64) -> Result<(), JournalError> {
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM pending_update WHERE number <= ?1", [newest])?;
                Ok(())
            })
            .await
    }
}

/// Records a report of a run for the main session, and marks it as a side effect.
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
