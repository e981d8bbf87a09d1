//! Runs within a span of time, as a timeline draws them.

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{Columns, kind, ms, state};
use super::{JournalError, JournalReader, RunId, RunState};
use crate::definition::{DefinitionId, Kind};

/// Maximum length of a run that a span is sure to include. A longer one may be missing if it began before the span.
const LONGEST: TimeDelta = TimeDelta::days(1);

/// An attempt, or an occurrence that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEntry {
    /// The attempt.
    pub run: RunId,
    /// The definition's id.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// When it began; if it never did, when it was due.
    pub from: DateTime<Utc>,
    /// When it ended; `None`: it is running.
    pub until: Option<DateTime<Utc>>,
    /// The state.
    pub state: RunState,
}

impl JournalReader {
    /// Returns what ran or was skipped between `from` and `until`, in the order of the claims.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn timeline_entries(
        &self,
        from: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<TimelineEntry>, JournalError> {
        let first = self.first_claimed(from - LONGEST)?;
        // The plus keeps SQLite from walking through all runs in their order.
        let sql = "SELECT r.run, o.id, o.kind, o.at, o.covers_from, coalesce(r.launched, r.started) AS started, r.ended, r.state
            FROM occurrence o JOIN run r ON r.occurrence = o.number WHERE o.number >= ?1 ORDER BY +r.number";
        let found = self.all(sql, &[&first], |row| {
            let (at, started) = (row.at("at")?, row.maybe_at("started")?);
            let covers = row.maybe_at("covers_from")?;
            Ok(TimelineEntry {
                run: row.run("run")?,
                id: row.id("id")?,
                kind: kind(&row.get::<String>("kind")?)?,
                from: started.or(covers).unwrap_or(at),
                // A skipped occurrence took no time. One that stands for several spans from the first to the last.
                until: if started.is_some() { row.maybe_at("ended")? } else { row.maybe_at("ended")?.map(|_| at) },
                state: state(&row.get::<String>("state")?)?,
            })
        })?;
        let within = |one: &TimelineEntry| one.from <= until && one.until.is_none_or(|ended| ended >= from);
        Ok(found.into_iter().filter(within).collect())
    }

    /// Returns the number of the first occurrence that was claimed at `from` or later. Numbers rise with the time
    /// of the claim, so a binary search finds it. After the clock was set back, it may return an earlier one.
    fn first_claimed(&self, from: DateTime<Utc>) -> Result<i64, JournalError> {
        let newest = self.all("SELECT coalesce(max(number), 0) FROM occurrence", &[], |row| row.get::<i64>(0))?;
        let (mut low, mut high) = (0, newest.first().map_or(0, |newest| newest + 1));
        let sql = "SELECT claimed FROM occurrence WHERE number >= ?1 ORDER BY number LIMIT 1";
        while low < high {
            let middle = low + (high - low) / 2;
            let claimed = self.all(sql, &[&middle], |row| row.get::<i64>(0))?.pop();
            match claimed {
                Some(claimed) if claimed < ms(from) => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}
