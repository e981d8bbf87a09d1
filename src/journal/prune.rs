//! Deletes old records, but keeps those that still matter.
//!
//! A journal may have millions of rows, and all other commits wait for one that deletes. So each commit looks at a page of rows only,
//! in the order of their numbers, from the oldest one. That is about the order of their times, so the first page without an old row
//! is the last one.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::channel_state::prune_handled;
use super::claims::places;
use super::database::{Connection, Row, ToValue};
use super::rows::ms;
use super::{Journal, JournalError};
use crate::definition::DefinitionId;

/// Number of rows in a page. Deleting one takes less than 100 ms.
pub(super) const PAGE: u32 = 500;

/// A table with many rows.
struct Table {
    name: &'static str,
    /// The column with the time of the record.
    recorded: &'static str,
    delete: fn(&Connection, Page, &BTreeSet<DefinitionId>) -> Result<usize, JournalError>,
}

/// Rows with numbers above the first up to the second, and the time from which on they are kept.
type Page = [i64; 3];

const TABLES: [Table; 4] = [
    Table { name: "occurrence", recorded: "claimed", delete: delete_occurrences },
    Table {
        name: "message",
        recorded: "at",
        delete: |connection, page, _| {
            connection.execute("DELETE FROM message WHERE number > ?1 AND number <= ?2 AND delivered < ?3", page)
        },
    },
    Table {
        name: "question",
        recorded: "asked",
        delete: |connection, page, _| {
            connection.execute("DELETE FROM question WHERE number > ?1 AND number <= ?2 AND answered < ?3", page)
        },
    },
    Table {
        name: "event",
        recorded: "at",
        delete: |connection, page, _| {
            connection.execute("DELETE FROM event WHERE number > ?1 AND number <= ?2 AND at < ?3", page)
        },
    },
];

impl Journal {
    /// Deletes occurrences claimed before `before`, and messages delivered, questions answered, events recorded, forks ended and input
    /// handled before then. Keeps open occurrences, undelivered messages, reminders whose file is not dealt with (they would fire again), and each
    /// existing routine's last completed occurrence (later runs may read its answer). Of `makers`, which have made jobs, it keeps the last occurrence,
    /// which says what these may do at most. Returns how many occurrences it deleted.
    ///
    /// Other commits are made in between.
    ///
    /// # Errors
    /// Fails when a commit cannot be made.
    pub async fn prune(&self, before: DateTime<Utc>, makers: BTreeSet<DefinitionId>) -> Result<usize, JournalError> {
        let (before, makers) = (ms(before), Arc::new(makers));
        let [occurrences, others @ ..] = &TABLES;
        let count = self.prune_table(occurrences, before, &makers).await?;
        for table in others {
            self.prune_table(table, before, &makers).await?;
        }
        self.writer
            .commit(move |connection| {
                connection.execute("DELETE FROM definition_seen WHERE gone < ?1", [before])?;
                connection.execute("DELETE FROM fork WHERE ended < ?1", [before])?;
                prune_handled(connection, before)
            })
            .await?;
        Ok(count)
    }

    async fn prune_table(
        &self,
        table: &'static Table,
        before: i64,
        makers: &Arc<BTreeSet<DefinitionId>>,
    ) -> Result<usize, JournalError> {
        let (mut after, mut count) = (0, 0);
        loop {
            let page = self.writer.read(move |connection| table.page(connection, after)).await?;
            let Some((last, _)) = page.filter(|(_, oldest)| *oldest < before) else { return Ok(count) };
            let makers = Arc::clone(makers);
            let page = [after, last, before];
            count += self.writer.commit(move |connection| (table.delete)(connection, page, &makers)).await?;
            after = last;
        }
    }
}

impl Table {
    /// Returns the number of the last row of the page after a number, and the earliest time in it.
    fn page(&self, connection: &Connection, after: i64) -> Result<Option<(i64, i64)>, JournalError> {
        let Self { name, recorded, .. } = self;
        let sql = format!(
            "SELECT max(number) AS last, min({recorded}) AS oldest FROM
               (SELECT number, {recorded} FROM {name} WHERE number > ?1 ORDER BY number LIMIT {PAGE}) page"
        );
        let read = |row: &Row<'_>| Ok((row.get::<Option<i64>>("last")?, row.get::<Option<i64>>("oldest")?));
        let (last, oldest) = connection.row(&sql, [after], read)?;
        Ok(last.zip(oldest))
    }
}

/// Returns the last occurrences of `makers` on a page, as a list for SQL.
fn last_of(connection: &Connection, page: Page, makers: &BTreeSet<DefinitionId>) -> Result<String, JournalError> {
    if makers.is_empty() {
        return Ok("0".to_owned());
    }
    let sql = "SELECT number, id FROM occurrence
         WHERE number > ?1 AND number <= ?2 AND claimed < ?3
           AND NOT EXISTS (SELECT 1 FROM occurrence later WHERE later.id = occurrence.id AND later.number > occurrence.number)";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("number")?, DefinitionId::new(row.get::<String>("id")?)));
    let last = connection.all(sql, page, read)?.into_iter().filter(|(_, id)| makers.contains(id));
    Ok(std::iter::once(0)
        .chain(last.map(|(number, _)| number))
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(", "))
}

/// Deletes occurrences, with their runs, and with what only they needed: sessions and texts.
fn delete_occurrences(
    connection: &Connection,
    page: Page,
    makers: &BTreeSet<DefinitionId>,
) -> Result<usize, JournalError> {
    let kept = last_of(connection, page, makers)?;
    connection.execute(
        "DELETE FROM session WHERE id IN
           (SELECT id FROM occurrence
            WHERE number > ?1 AND number <= ?2 AND claimed < ?3 AND outcome IS NOT NULL AND kind = 'session')",
        page,
    )?;
    // A later one is found by the index of (id, at).
    let sql = format!(
        "DELETE FROM occurrence
         WHERE number > ?1 AND number <= ?2 AND claimed < ?3 AND outcome IS NOT NULL AND (kind <> 'reminder' OR file_done)
           AND number NOT IN ({kept})
           AND NOT (kind = 'routine' AND outcome = 'completed'
             AND EXISTS (SELECT 1 FROM definition_seen s WHERE s.id = occurrence.id AND s.gone IS NULL)
             AND NOT EXISTS (SELECT 1 FROM occurrence later
               WHERE later.id = occurrence.id AND later.at > occurrence.at AND later.number > occurrence.number
                 AND later.kind = 'routine' AND later.outcome = 'completed'))
         RETURNING id"
    );
    let deleted = connection.all(&sql, page, |row| row.get::<String>("id"))?;
    let ids: BTreeSet<&String> = deleted.iter().collect();
    if !ids.is_empty() {
        let sql = format!(
            "DELETE FROM definition_text WHERE id IN {}
               AND NOT EXISTS (SELECT 1 FROM occurrence WHERE occurrence.text = definition_text.number)",
            places(1, ids.len())
        );
        let ids: Vec<&dyn ToValue> = ids.into_iter().map(|id| id as &dyn ToValue).collect();
        connection.execute(&sql, &ids[..])?;
    }
    Ok(deleted.len())
}
