//! Refused deliveries to webhooks, read from their events.

use chrono::{DateTime, Utc};

use super::events::{EventKind, event};
use super::rows::ms;
use super::{JournalError, JournalReader};
use crate::definition::DefinitionId;

/// Refused deliveries of one webhook with one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedDeliveries {
    /// The webhook; `None`: there was no such webhook.
    pub id: Option<DefinitionId>,
    /// The HTTP status of the answer.
    pub status: u16,
    /// Number of refused deliveries.
    pub times: u64,
    /// When the last one came.
    pub last: DateTime<Utc>,
    /// Why the last one was refused.
    pub why: String,
    /// The payload of the last one that was signed.
    pub payload: Option<String>,
}

impl JournalReader {
    /// Returns deliveries refused since then, grouped by webhook and status.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub fn refused_deliveries(&self, since: DateTime<Utc>) -> Result<Vec<RefusedDeliveries>, JournalError> {
        let sql = "SELECT number, at, run, id, data FROM event
                   WHERE kind = 'delivery_refused' AND at >= ?1 ORDER BY id, number";
        let mut refused: Vec<RefusedDeliveries> = Vec::new();
        for event in self.all(sql, &[&ms(since)], event)? {
            let EventKind::DeliveryRefused { status, why, times, payload, last } = event.kind else { continue };
            let last = last.unwrap_or(event.at);
            let newer = RefusedDeliveries { id: event.id, status, times, last, why, payload };
            match refused.iter_mut().rfind(|known| known.id == newer.id && known.status == status) {
                Some(known) => {
                    let payload = newer.payload.or_else(|| known.payload.take());
                    *known = RefusedDeliveries { times: known.times + times, payload, ..newer }
                }
                None => refused.push(newer),
            }
        }
        Ok(refused)
    }
}
