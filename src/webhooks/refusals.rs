//! What was refused, for the person: recorded as events, a few an hour for each webhook, however many come.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;
use crate::journal::{EventKind, Journal};

/// After one that is recorded, more of the same webhook are counted for so long.
pub(super) const COUNTED_FOR: Duration = Duration::from_secs(600);

/// So many bytes are kept of what was delivered.
const KEPT: usize = 2048;

/// What is recorded of a refused delivery.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) why: String,
    /// What was delivered, once it is known that whoever sends has the secret.
    pub(super) payload: Option<String>,
}

/// The text of a body, as far as it is kept.
pub(super) fn kept(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty())?;
    let end = (0..=KEPT.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() })
}

/// Refusals that were counted and are not recorded yet.
pub(super) struct Refusals {
    journal: Journal,
    /// By webhook; `None`: those of no webhook.
    counted: Mutex<HashMap<Option<DefinitionId>, Counted>>,
}

struct Counted {
    since: Instant,
    times: u64,
    last: Refused,
}

impl Refusals {
    pub(super) fn new(journal: Journal) -> Self {
        Self { journal, counted: Mutex::default() }
    }

    /// One more. `id`: a webhook that there is.
    pub(super) fn add(&self, id: Option<&DefinitionId>, refused: Refused) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match counted.get_mut(&id.cloned()) {
            Some(known) => {
                known.times += 1;
                let payload = refused.payload.or_else(|| known.last.payload.take());
                known.last = Refused { payload, ..refused };
            }
            None => {
                self.record(id, refused, 1);
                let fresh = Counted { since: Instant::now(), times: 0, last: Refused::default() };
                counted.insert(id.cloned(), fresh);
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
            if known.times > 0 {
                self.record(id.as_ref(), std::mem::take(&mut known.last), known.times);
            }
            false
        });
    }

    fn record(&self, id: Option<&DefinitionId>, refused: Refused, times: u64) {
        let Refused { status, why, payload } = refused;
        tracing::warn!(id = id.map(DefinitionId::as_str), status, times, "a delivery was refused: {why}");
        self.journal.record_apart(id, EventKind::DeliveryRefused { status, why, times, payload });
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.flush(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kilobytes_of_a_text_are_kept() {
        assert_eq!(kept(b"{}").as_deref(), Some("{}"));
        assert_eq!(kept(b""), None);
        assert_eq!(kept(&[b'{', 0xff]), None);
        let long = kept("é".repeat(2000).as_bytes()).unwrap();
        assert!(long.ends_with("é…") && long.len() <= KEPT + "…".len(), "{}", long.len());
    }
}
