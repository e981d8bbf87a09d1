//! Refused deliveries, recorded as events for the person: at most one a minute for each kind, however many arrive.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::definition::DefinitionId;
use crate::journal::{EventKind, Journal};

/// Time after the first record of a kind during which further refusals are only counted. Each further record doubles it.
pub(super) const COUNTED_FIRST: Duration = Duration::from_secs(1);

/// Maximum time for which refusals are only counted.
const COUNTED_LAST: Duration = Duration::from_secs(60);

/// Time after a record from which the next refusal of its kind is recorded at once again.
const QUIET: Duration = Duration::from_secs(600);

/// Maximum amount of a delivery that is kept, in bytes.
const MAX_BYTES: usize = 2048;

/// The record of a refused delivery.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) why: String,
    /// The delivered text, once the signature is verified.
    pub(super) payload: Option<String>,
}

/// Returns the text of a body up to the kept length.
pub(super) fn kept(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty())?;
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
    Some(if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() })
}

/// A webhook (`None`: unknown) and a status. Counting per kind keeps unsigned senders from hiding refusals of signed ones.
type OfKind = (Option<DefinitionId>, u16);

/// Counted refusals that are not recorded yet.
pub(super) struct Refusals {
    journal: Journal,
    clock: Clock,
    counted: Mutex<HashMap<OfKind, Counted>>,
}

struct Counted {
    /// When the last record of the kind was made.
    recorded: Instant,
    /// How long refusals are counted after that.
    counted_for: Duration,
    times: u64,
    /// The last counted refusal and its time, or `None` if there is none since the record.
    last: Option<(Refused, DateTime<Utc>)>,
}

impl Refusals {
    pub(super) fn new(journal: Journal, clock: Clock) -> Self {
        Self { journal, clock, counted: Mutex::default() }
    }

    /// Adds a refusal. `id`: an existing webhook.
    pub(super) fn add(&self, id: Option<&DefinitionId>, refused: Refused) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (id.cloned(), refused.status);
        match counted.get_mut(&kind) {
            Some(known) => {
                known.times += 1;
                let before = known.last.take().and_then(|(last, _)| last.payload);
                known.last = Some((Refused { payload: refused.payload.or(before), ..refused }, self.clock.now()));
            }
            None => {
                self.record(id, refused, 1, None);
                let recorded = Instant::now();
                counted.insert(kind, Counted { recorded, counted_for: COUNTED_FIRST, times: 0, last: None });
            }
        }
    }

    /// Records refusals that were counted for long enough, or `all` of them.
    pub(super) fn flush(&self, all: bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|(id, _), known| {
            if !all && known.recorded.elapsed() < known.counted_for {
                return true;
            }
            let Some((last, at)) = known.last.take() else { return known.recorded.elapsed() < QUIET };
            self.record(id.as_ref(), last, std::mem::take(&mut known.times), Some(at));
            known.recorded = Instant::now();
            known.counted_for = (known.counted_for * 2).min(COUNTED_LAST);
            true
        });
    }

    /// Returns whether no kind has been recorded lately, so that nothing can be counted.
    pub(super) fn is_empty(&self) -> bool {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn record(&self, id: Option<&DefinitionId>, refused: Refused, times: u64, last: Option<DateTime<Utc>>) {
        let Refused { status, why, payload } = refused;
        tracing::warn!(id = id.map(DefinitionId::as_str), status, times, "a delivery was refused: {why}");
        self.journal.record_apart(id, EventKind::DeliveryRefused { status, why, times, payload, last });
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
    use crate::journal::EventFilter;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_an_hour_is_counted_in_few_records() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let journal = Journal::open(&*folder.path().join("journal.db"), clock.clone()).unwrap();
        let refusals = Refusals::new(journal.clone(), clock);
        for _ in 0..3600 {
            for why in ["first", "last"] {
                refusals.add(None, Refused { status: 401, why: why.to_owned(), payload: None });
            }
            tokio::time::advance(Duration::from_secs(1)).await;
            refusals.flush(false);
        }
        refusals.flush(true);
        let recorded = journal.events(0, &EventFilter::default()).await.unwrap();
        let records = recorded.iter().map(|event| match &event.kind {
            EventKind::DeliveryRefused { times, why, .. } => (*times, &**why),
            other => panic!("{other:?}"),
        });
        let records: Vec<_> = records.collect();
        assert_eq!(records[..4], [(1, "first"), (1, "last"), (4, "last"), (8, "last")]);
        assert!(records.len() < 70, "{}", records.len());
        assert_eq!(records.iter().map(|(times, _)| times).sum::<u64>(), 7200);
    }

    #[test]
    fn two_kilobytes_of_a_text_are_kept() {
        assert_eq!(kept(b"{}").as_deref(), Some("{}"));
        assert_eq!(kept(b""), None);
        assert_eq!(kept(&[b'{', 0xff]), None);
        let long = kept("é".repeat(2000).as_bytes()).unwrap();
        assert!(long.ends_with("é…") && long.len() <= MAX_BYTES + "…".len(), "{}", long.len());
    }
}
