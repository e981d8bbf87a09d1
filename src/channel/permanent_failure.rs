//! Permanent failure of a channel until the service restarts.

use tokio::sync::watch;

use super::SendError;

/// The reason why a channel cannot work again. Empty while it can.
pub(super) struct PermanentFailure(watch::Sender<Option<String>>);

impl PermanentFailure {
    pub(super) fn new(why: Option<String>) -> Self {
        Self(watch::Sender::new(why))
    }

    /// Fails permanently if the channel is lost.
    pub(super) fn check(&self) -> Result<(), SendError> {
        match self.0.borrow().clone() {
            Some(why) => Err(SendError { why, retryable: false }),
            None => Ok(()),
        }
    }

    pub(super) fn set(&self, why: String) {
        self.0.send_replace(Some(why));
    }

    /// Waits until the channel is lost. Returns the reason.
    pub(super) async fn until(&self) -> String {
        let mut lost = self.0.subscribe();
        match lost.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            // Never happens: `self` owns the sender.
            _ => std::future::pending().await,
        }
    }
}
