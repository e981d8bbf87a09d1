//! Removes the buttons from messages that are answered elsewhere, or over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::{Channel, Outgoing, SendError};

/// Timeout of one attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time after the first failure during which the removal is retried.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// The removals that are retried. They end with this value. A button that is left says why it is of no use when it is pressed.
#[derive(Default)]
pub struct ButtonRemovals(Mutex<JoinSet<()>>);

/// A message whose buttons are removed on one channel.
pub struct ButtonRemoval {
    /// Name of the channel.
    pub name: String,
    /// The channel.
    pub channel: Arc<dyn Channel>,
    /// The channel's id of the message.
    pub external: String,
    /// The message as it was sent.
    pub message: Outgoing,
    /// Text that is shown in place of the buttons.
    pub outcome: String,
}

impl ButtonRemovals {
    /// Removes the buttons of a message. Returns after the first attempt. Temporary failures are retried for an hour.
    pub async fn remove(&self, removal: ButtonRemoval) {
        let Err(error) = removal.attempt().await else { return };
        if !error.retryable {
            return removal.given_up(&error);
        }
        tracing::debug!(channel = %removal.name, %error, "the buttons of a message stay for now");
        let mut retries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while retries.try_join_next().is_some() {}
        retries.spawn(removal.retry());
    }
}

impl ButtonRemoval {
    async fn attempt(&self) -> Result<(), SendError> {
        let late = |_| SendError::temporary(format!("it took more than {} s", TIMEOUT.as_secs()));
        let removed = self.channel.remove_buttons(&self.external, &self.message, &self.outcome);
        timeout(TIMEOUT, removed).await.map_err(late)?
    }

    async fn retry(self) {
        let (mut backoff, began) = (Backoff::default(), Instant::now());
        loop {
            sleep(backoff.failed()).await;
            match self.attempt().await {
                Ok(()) => return,
                Err(error) if error.retryable && began.elapsed() < PATIENCE => {
                    tracing::debug!(channel = %self.name, %error, "the buttons of a message stay for now");
                }
                Err(error) => return self.given_up(&error),
            }
        }
    }

    fn given_up(&self, error: &SendError) {
        tracing::warn!(channel = %self.name, %error, "the buttons of a message could not be taken away");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Notify;

    use super::*;
    use crate::channel::SentParts;

    /// A channel whose first removals fail, or hang.
    struct Failing {
        failures: usize,
        error: Option<SendError>,
        attempts: AtomicUsize,
        worked: Notify,
    }

    #[async_trait]
    impl Channel for Failing {
        async fn send(&self, _message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
            panic!("nothing is sent")
        }

        async fn remove_buttons(&self, external: &str, message: &Outgoing, outcome: &str) -> Result<(), SendError> {
            assert_eq!((external, message.number, outcome), ("m-17", 17, "Done."));
            if self.attempts.fetch_add(1, Ordering::Relaxed) < self.failures {
                return match &self.error {
                    Some(error) => Err(error.clone()),
                    None => std::future::pending().await,
                };
            }
            self.worked.notify_one();
            Ok(())
        }
    }

    fn failing(failures: usize, error: Option<SendError>) -> Arc<Failing> {
        Arc::new(Failing { failures, error, attempts: AtomicUsize::new(0), worked: Notify::new() })
    }

    fn removal(channel: &Arc<Failing>) -> ButtonRemoval {
        let message = Outgoing::plain(17, "2026-11-23T12:00:00Z".parse().unwrap(), "Tea is ready.");
        let (channel, external) = (Arc::clone(channel) as Arc<dyn Channel>, "m-17".to_owned());
        ButtonRemoval { name: "stub".into(), channel, external, message, outcome: "Done.".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_temporary_failure_is_retried() {
        for error in [Some(SendError::temporary("500")), None] {
            let (removals, channel) = (ButtonRemovals::default(), failing(3, error));
            removals.remove(removal(&channel)).await;
            assert_eq!(channel.attempts.load(Ordering::Relaxed), 1, "the caller waits for one attempt");
            timeout(PATIENCE, channel.worked.notified()).await.expect("it is retried");
            assert_eq!(channel.attempts.load(Ordering::Relaxed), 4);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_permanent_failure_is_not_retried_and_a_temporary_one_not_forever() {
        for (retryable, at_least, at_most) in [(false, 1, 1), (true, 60, 70)] {
            let error = SendError { why: "no".into(), retryable };
            let (removals, channel) = (ButtonRemovals::default(), failing(usize::MAX, Some(error)));
            removals.remove(removal(&channel)).await;
            let mut retries = removals.0.into_inner().unwrap();
            while retries.join_next().await.is_some() {}
            let attempts = channel.attempts.load(Ordering::Relaxed);
            assert!((at_least..=at_most).contains(&attempts), "{attempts}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retries_end_with_the_service() {
        let (removals, channel) = (ButtonRemovals::default(), failing(1, Some(SendError::temporary("500"))));
        removals.remove(removal(&channel)).await;
        drop(removals);
        tokio::time::advance(PATIENCE).await;
        tokio::task::yield_now().await;
        assert_eq!((channel.attempts.load(Ordering::Relaxed), Arc::strong_count(&channel)), (1, 1));
    }
}
