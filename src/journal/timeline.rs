//! What ran within a span of time, in few words each: what a timeline draws.

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{Columns, kind, ms, state};
use super::{JournalError, JournalReader, RunId, RunState};
use crate::definition::{DefinitionId, Kind};

/// A run that goes on for longer than this when a span begins may be missing from it.
const LONGEST: TimeDelta = TimeDelta::days(1);

/// An attempt, or an occurrence that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The attempt.
    pub run: RunId,
    /// The definition's id.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// When it was begun; where it never was, when it was due.
    pub from: DateTime<Utc>,
    /// When it ended; `None`: it is going.
    pub until: Option<DateTime<Utc>>,
    /// How it stands or ended.
    pub state: RunState,
}

impl JournalReader {
    /// What ran or was skipped between `from` and `until`, in the order in which it was claimed.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn stretches(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Result<Vec<Stretch>, JournalError> {
        let first = self.first_claimed(from - LONGEST)?;
        let sql = "SELECT r.run, o.id, o.kind, o.at, o.covers_from, coalesce(r.started, r.launched) AS started, r.ended, r.state
            FROM occurrence o JOIN run r ON r.occurrence = o.number WHERE o.number >= ?1 ORDER BY r.number";
        let found = self.all(sql, &[&first], |row| {
            let (at, started) = (row.at("at")?, row.maybe_at("started")?);
            let covers = row.maybe_at("covers_from")?;
            Ok(Stretch {
                run: row.run("run")?,
                id: row.id("id")?,
                kind: kind(&row.get::<String>("kind")?)?,
                from: started.or(covers).unwrap_or(at),
                // What never began took no time; one that stands for others, theirs.
                until: if started.is_some() { row.maybe_at("ended")? } else { row.maybe_at("ended")?.map(|_| at) },
                state: state(&row.get::<String>("state")?)?,
            })
        })?;
        let within = |one: &Stretch| one.from <= until && one.until.is_none_or(|ended| ended >= from);
        Ok(found.into_iter().filter(within).collect())
    }

    /// The number of the first occurrence that was claimed at `from` or later. Numbers rise with the time of the claim, so it is
    /// found by halving; after a clock that was set back it may be an earlier one.
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
