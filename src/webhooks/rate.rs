//! The rate limit of each webhook.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;

/// The time for which a delivery counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The deliveries of the last minute to each webhook.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<DefinitionId, VecDeque<Instant>>>);

impl Rates {
    /// Counts a delivery. `Err` holds the time until the next one is taken: no minute has more than `per_minute`.
    pub(super) fn take(&self, id: &DefinitionId, per_minute: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let mut webhooks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = webhooks.entry(id.clone()).or_default();
        while taken.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            taken.pop_front();
        }
        // The setting may have become smaller since.
        let most = usize::try_from(per_minute).unwrap_or(usize::MAX);
        if let Some(at) = taken.len().checked_sub(most).and_then(|next| taken.get(next)) {
            return Err(MINUTE - now.duration_since(*at));
        }
        taken.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_minute_has_more() {
        let (rates, id) = (Rates::default(), DefinitionId::new("deploy"));
        assert_eq!((0..100).filter(|_| rates.take(&id, 3).is_ok()).count(), 3);
        assert_eq!(rates.take(&id, 3), Err(Duration::from_secs(60)));
        assert_eq!(rates.take(&DefinitionId::new("other"), 3), Ok(()));
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(rates.take(&id, 4), Ok(()));
        assert_eq!(rates.take(&id, 4), Err(Duration::from_secs(10)));
        // With a smaller setting, all of the surplus must be over.
        assert_eq!(rates.take(&id, 1), Err(Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!((0..100).filter(|_| rates.take(&id, 4).is_ok()).count(), 3);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!((0..100).filter(|_| rates.take(&id, 4).is_ok()).count(), 4);
    }
}
