//! Whether a channel will work again before the service is started anew.

use tokio::sync::watch;

use super::NotSent;

/// Why a channel will not work again; nothing, as long as it may.
pub(super) struct Lost(watch::Sender<Option<String>>);

impl Lost {
    pub(super) fn new(why: Option<String>) -> Self {
        Self(watch::Sender::new(why))
    }

    /// Nothing is sent by one that is lost.
    pub(super) fn check(&self) -> Result<(), NotSent> {
        match self.0.borrow().clone() {
            Some(why) => Err(NotSent { why, again: false }),
            None => Ok(()),
        }
    }

    pub(super) fn set(&self, why: String) {
        self.0.send_replace(Some(why));
    }

    /// Waits until it is lost. Why.
    pub(super) async fn until(&self) -> String {
        let mut lost = self.0.subscribe();
        match lost.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            // The sender lives as long as we do.
            _ => std::future::pending().await,
        }
    }
}
