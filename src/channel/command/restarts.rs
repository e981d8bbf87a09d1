//! When a kept process is started again, and whether the person is told that it cannot be.

use std::time::Duration;

use tokio::time::Instant;

use crate::channel::backoff::{Backoff, LONGEST};

/// The restarts of a process.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    backoff: Backoff,
    /// Time of the next start, if the process does not run.
    next: Option<Instant>,
}

impl Restarts {
    /// Records that the process ended after it had run for this time, or did not start. Returns whether the person must be told.
    pub(super) fn ended(&mut self, ran: Duration) -> bool {
        // A process that ran for the longest wait has worked.
        if ran >= LONGEST {
            self.backoff.worked();
        }
        self.next = Some(Instant::now() + self.backoff.failed());
        self.backoff.is_told()
    }

    /// Records that the process works.
    pub(super) fn worked(&mut self) {
        self.backoff.worked();
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
