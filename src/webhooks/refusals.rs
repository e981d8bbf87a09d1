//! What was refused, for the person: recorded as events, a few an hour for each webhook, however many come.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;
use crate::journal::{EventKind, Journal};

/// After one that is recorded, more of the same webhook are counted for so long.
pub(super) const COUNTED_FOR: Duration = Duration::from_secs(600);

/// Refusals that were counted and are not recorded yet.
pub(super) struct Refusals {
    journal: Journal,
    /// By webhook; `None`: those of no webhook.
    counted: Mutex<HashMap<Option<DefinitionId>, Counted>>,
}

struct Counted {
    since: Instant,
    times: u64,
    last: (u16, String),
}

impl Refusals {
    pub(super) fn new(journal: Journal) -> Self {
        Self { journal, counted: Mutex::default() }
    }

    /// One more. `id`: a webhook that there is.
    pub(super) fn add(&self, id: Option<&DefinitionId>, status: u16, why: &str) {
        let now = Instant::now();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match counted.get_mut(&id.cloned()) {
            Some(known) => {
                known.times += 1;
                known.last = (status, why.to_owned());
            }
            None => {
                self.record(id, status, why.to_owned(), 1);
                let last = (status, String::new());
                counted.insert(id.cloned(), Counted { since: now, times: 0, last });
            }
        }
    }

    /// Records those that were counted for long enough. `all`: the others, too.
    pub(super) fn flush(&self, all: bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|id, known| {
            if !all && known.since.elapsed() < COUNTED_FOR {
                return true;
            }
            let (status, why) = std::mem::take(&mut known.last);
            if known.times > 0 {
                self.record(id.as_ref(), status, why, known.times);
            }
            false
        });
    }

    fn record(&self, id: Option<&DefinitionId>, status: u16, why: String, times: u64) {
        tracing::warn!(id = id.map(DefinitionId::as_str), status, times, "a delivery was refused: {why}");
        self.journal.record_apart(id, EventKind::DeliveryRefused { status, why, times });
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.flush(true);
    }
}
