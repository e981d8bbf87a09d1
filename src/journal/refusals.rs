//! Refused calls of runs, counted by job and rule.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::rows::{Columns, ms};
use super::{JournalError, JournalReader, RunId};
use crate::definition::DefinitionId;

/// Calls of one job that the same rule, or the lack of the same rule, refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedCalls {
    /// The job.
    pub id: DefinitionId,
    /// The tool.
    pub tool: String,
    /// The layer that refused them.
    pub layer: String,
    /// The rule that matched, if one did.
    pub rule: Option<String>,
    /// Number of calls.
    pub count: u64,
    /// When the last one was refused.
    pub last: DateTime<Utc>,
    /// The run that made the last one.
    pub run: RunId,
    /// Input of the last one.
    pub input: serde_json::Value,
    /// The sentence that the agent received.
    pub reason: String,
}

impl JournalReader {
    /// Returns calls refused since `from`, counted by job, tool, rule and reason, the latest first, at most `limit` rows.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn refused_calls(&self, from: Option<DateTime<Utc>>, limit: u32) -> Result<Vec<RefusedCalls>, JournalError> {
        let sql = "SELECT * FROM (
              SELECT o.id, d.tool, d.layer, d.rule, d.at AS last, r.run, d.input, d.reason,
                count(*) OVER (PARTITION BY o.id, d.tool, d.layer, d.rule, d.reason) AS count,
                row_number() OVER (PARTITION BY o.id, d.tool, d.layer, d.rule, d.reason
                  ORDER BY d.at DESC, d.run DESC, d.position DESC) AS place
              FROM denial d JOIN run r ON r.number = d.run JOIN occurrence o ON o.number = r.occurrence
              WHERE d.at >= ?1 OR ?1 IS NULL) refused
            WHERE place = 1 ORDER BY last DESC LIMIT ?2";
        self.all(sql, &[&from.map(ms), &limit], |row| {
            let input: String = row.get("input")?;
            Ok(RefusedCalls {
                id: row.id("id")?,
                tool: row.get("tool")?,
                layer: row.get("layer")?,
                rule: row.get("rule")?,
                count: row.get::<i64>("count")?.unsigned_abs(),
                last: row.at("last")?,
                run: row.run("run")?,
                input: serde_json::from_str(&input).unwrap_or(serde_json::Value::String(input)),
                reason: row.get("reason")?,
            })
        })
    }
}
