//! When a kept process is started again, and when it is known to work.

use tokio::time::Instant;

use crate::channel::backoff::{Backoff, LONGEST, MANY};

/// The restarts of a process.
#[derive(Debug)]
pub(super) struct Restarts {
    backoff: Backoff,
    next: Next,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The process starts.
    Start(Instant),
    /// The process has run for so long that it works.
    Works(Instant),
    /// Nothing: it works.
    Nothing,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { backoff: Backoff::default(), next: Next::Start(Instant::now()) }
    }
}

impl Restarts {
    /// Records that the process ended, or did not start. Returns whether the person must be told.
    pub(super) fn ended(&mut self) -> bool {
        self.next = Next::Start(Instant::now() + self.backoff.failed());
        self.backoff.failures() == MANY
    }

    /// Records that the process works. Returns whether that is news.
    pub(super) fn worked(&mut self) -> bool {
        self.backoff.worked();
        std::mem::replace(&mut self.next, Next::Nothing) != Next::Nothing
    }

    /// Whether the process may be started now.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.next, Next::Start(at) if at <= Instant::now())
    }

    /// Whether the process has run for long enough to be known to work.
    pub(super) fn has_run(&self) -> bool {
        matches!(self.next, Next::Works(at) if at <= Instant::now())
    }

    /// Records that the process runs.
    pub(super) fn started(&mut self) {
        self.next = Next::Works(Instant::now() + LONGEST);
    }

    /// Waits for what comes next. Pending if that is nothing.
    pub(super) async fn due(&self) {
        match self.next {
            Next::Start(at) | Next::Works(at) => tokio::time::sleep_until(at).await,
            Next::Nothing => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_failure_waits_longer_and_one_of_them_is_told() {
        let (mut restarts, begin) = (Restarts::default(), Instant::now());
        assert!(restarts.is_due());
        let (mut waits, mut told) = (Vec::new(), Vec::new());
        for _ in 0..9 {
            let before = Instant::now();
            told.push(restarts.ended());
            assert!(!restarts.is_due());
            restarts.due().await;
            assert!(restarts.is_due());
            restarts.started();
            waits.push(before.elapsed().as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(told.iter().position(|told| *told), Some(4));
        assert_eq!(told.iter().filter(|told| **told).count(), 1);
        // What has run for long has worked, which is said once. It begins anew when it ends.
        assert!(!restarts.is_due() && !restarts.has_run());
        restarts.due().await;
        assert!(restarts.has_run() && restarts.worked() && !restarts.worked());
        let before = Instant::now();
        assert!(!restarts.ended());
        restarts.due().await;
        assert_eq!(before.elapsed().as_secs(), 1);
        assert!(begin.elapsed().as_secs() > 240);
    }
}
