//! Deliveries to webhooks that were refused, out of the events that tell of them.

use chrono::{DateTime, Utc};

use super::events::{EventKind, event};
use super::rows::ms;
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
    /// What was delivered, of the last that was signed.
    pub payload: Option<String>,
}

impl JournalReader {
    /// What was refused since then, by webhook.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn refused_deliveries(&self, since: DateTime<Utc>) -> Result<Vec<RefusedDeliveries>, JournalError> {
        let sql = "SELECT number, at, run, id, data FROM event
                   WHERE kind = 'delivery_refused' AND at >= ?1 ORDER BY id, number";
        let mut refused: Vec<RefusedDeliveries> = Vec::new();
        for event in self.all(sql, &[&ms(since)], event)? {
            let EventKind::DeliveryRefused { status, why, times, payload } = event.kind else { continue };
            let last = RefusedDeliveries { id: event.id, times, last: event.at, status, why, payload };
            match refused.last_mut() {
                Some(before) if before.id == last.id => {
                    let payload = last.payload.or_else(|| before.payload.take());
                    *before = RefusedDeliveries { times: before.times + times, payload, ..last }
                }
                _ => refused.push(last),
            }
        }
        Ok(refused)
    }
}
