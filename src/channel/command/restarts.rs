//! When a kept process is started again, and whether the person is told that it cannot be.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest and longest wait before a restart. A process that ran for the longest wait has worked.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Number of failed starts in a row after which the person is told: 15 seconds after the first.
const MANY: u32 = 5;

/// The restarts of a process.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Number of failed starts in a row.
    failed: u32,
    /// Time of the next start, if the process does not run.
    next: Option<Instant>,
}

impl Restarts {
    /// Records that the process ended after it had run for this time, or did not start. Returns whether the person must be told.
    pub(super) fn ended(&mut self, ran: Duration) -> bool {
        if ran >= BACKOFF.1 {
            self.failed = 0;
        }
        let pause = BACKOFF.0.saturating_mul(1 << self.failed.min(10)).min(BACKOFF.1);
        self.failed = self.failed.saturating_add(1);
        self.next = Some(Instant::now() + pause);
        self.failed == MANY
    }

    /// Records that the process works.
    pub(super) fn worked(&mut self) {
        self.failed = 0;
    }

    /// Whether the process may be started now.
    pub(super) fn is_due(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }

    /// Records that the process runs.
    pub(super) fn started(&mut self) {
        self.next = None;
    }

    /// Waits for the time of the next start. Pending if the process runs.
    pub(super) async fn due(&self) {
        match self.next {
            Some(next) => tokio::time::sleep_until(next).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_failure_waits_longer_and_one_of_them_is_told() {
        let (mut restarts, begin) = (Restarts::default(), Instant::now());
        assert!(restarts.is_due());
        let mut waits = Vec::new();
        let mut told = Vec::new();
        for _ in 0..9 {
            let before = Instant::now();
            told.push(restarts.ended(Duration::from_millis(20)));
            assert!(!restarts.is_due());
            restarts.due().await;
            waits.push(before.elapsed().as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(told.iter().position(|told| *told), Some(4));
        assert_eq!(told.iter().filter(|told| **told).count(), 1);
        // What has worked begins anew.
        restarts.started();
        advance(Duration::from_secs(100)).await;
        assert!(!restarts.ended(Duration::from_secs(100)));
        let before = Instant::now();
        restarts.due().await;
        assert_eq!(before.elapsed().as_secs(), 1);
        assert!(begin.elapsed() > Duration::from_secs(100));
    }
}
