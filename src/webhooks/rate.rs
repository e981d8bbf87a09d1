//! The rate limit of each webhook: a token bucket that refills continuously.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::DefinitionId;

/// The buckets of all webhooks.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<DefinitionId, Bucket>>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    /// Takes one of `per_minute` tokens. `Err` holds the time until the next one.
    pub(super) fn take(&self, id: &DefinitionId, per_minute: u32) -> Result<(), Duration> {
        let (now, most) = (Instant::now(), f64::from(per_minute));
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(id.clone()).or_insert(Bucket { left: most, at: now });
        let passed = now.duration_since(bucket.at).as_secs_f64();
        (bucket.left, bucket.at) = ((bucket.left + passed * most / 60.0).min(most), now);
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) * 60.0 / most));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_fills_up_by_the_minute() {
        let (rates, id) = (Rates::default(), DefinitionId::new("deploy"));
        assert_eq!((0..6).filter(|_| rates.take(&id, 6).is_ok()).count(), 6);
        assert_eq!(rates.take(&id, 6), Err(Duration::from_secs(10)));
        assert_eq!(rates.take(&DefinitionId::new("other"), 6), Ok(()));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(rates.take(&id, 6), Ok(()));
        assert!(rates.take(&id, 6).is_err());
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!((0..100).filter(|_| rates.take(&id, 6).is_ok()).count(), 6);
    }
}
