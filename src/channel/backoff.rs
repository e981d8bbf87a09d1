//! The wait before something that failed is tried again.

use std::time::Duration;

/// Longest wait.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Number of failures in a row after which the person is told. With a shortest wait of a second that is 15 seconds after the first.
pub(super) const MANY: u32 = 5;

/// The failures in a row. Each wait is twice the one before.
#[derive(Debug)]
pub(super) struct Backoff {
    shortest: Duration,
    failures: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::from(Duration::from_secs(1))
    }
}

impl From<Duration> for Backoff {
    /// Begins with this wait.
    fn from(shortest: Duration) -> Self {
        Self { shortest, failures: 0 }
    }
}

impl Backoff {
    /// Records a failure. Returns the wait before the next attempt.
    pub(super) fn failed(&mut self) -> Duration {
        let wait = self.shortest.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Records that an attempt worked.
    pub(super) fn worked(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_waits_longer() {
        let mut backoff = Backoff::default();
        assert_eq!([(); 9].map(|()| backoff.failed().as_secs()), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.failures(), 9);
        backoff.worked();
        assert_eq!((backoff.failures(), backoff.failed().as_secs()), (0, 1));
        let mut slow = Backoff::from(Duration::from_secs(5));
        assert_eq!([(); 6].map(|()| slow.failed().as_secs()), [5, 10, 20, 40, 60, 60]);
    }
}
