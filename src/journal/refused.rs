//! Deliveries to webhooks that were refused, out of the events that tell of them.

use chrono::{DateTime, Utc};

use super::rows::{Columns, ms};
use super::{JournalError, JournalReader};
use crate::definition::DefinitionId;

/// What a webhook has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedDeliveries {
    /// Which; `None`: there was no such webhook.
    pub id: Option<DefinitionId>,
    /// How often.
    pub times: u64,
    /// When the last one was recorded.
    pub last: DateTime<Utc>,
    /// What that was answered.
    pub status: u16,
    /// Why.
    pub why: String,
}

impl JournalReader {
    /// What was refused since then, by webhook.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn refused_deliveries(&self, since: DateTime<Utc>) -> Result<Vec<RefusedDeliveries>, JournalError> {
        // Of each group, SQLite takes the other columns out of the row with the highest number.
        let sql = "SELECT id, at, max(number), sum(json_extract(data, '$.times')) AS times,
                     json_extract(data, '$.status') AS status, json_extract(data, '$.why') AS why
                   FROM event WHERE kind = 'delivery_refused' AND at >= ?1 GROUP BY id ORDER BY id";
        self.all(sql, &[&ms(since)], |row| {
            let times: i64 = row.get("times")?;
            Ok(RefusedDeliveries {
                id: row.get::<_, Option<String>>("id")?.map(DefinitionId::new),
                times: u64::try_from(times).unwrap_or(0),
                last: row.at("at")?,
                status: row.get("status")?,
                why: row.get("why")?,
            })
        })
    }
}
