//! The channel of `ollim-bot chat`. Its client reads the answers as events, so this channel sends nothing.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Channel, Outgoing, SendError, SentParts};

/// Number of open chat terminals. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct OpenChats(Arc<watch::Sender<usize>>);

/// An open chat terminal, until it is dropped.
#[derive(Debug)]
pub struct OpenChat(OpenChats);

impl OpenChats {
    /// Opens a chat terminal.
    #[must_use]
    pub fn open(&self) -> OpenChat {
        self.0.send_modify(|open| *open += 1);
        OpenChat(self.clone())
    }

    /// Whether any chat terminal is open.
    #[must_use]
    pub fn any(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Returns a receiver of the number of open chat terminals.
    pub(super) fn count(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

impl Drop for OpenChat {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

#[async_trait]
impl Channel for OpenChats {
    async fn send(&self, _message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        match self.any() {
            true => Ok(None),
            false => Err(SendError { why: "the terminal was closed".into(), retryable: false }),
        }
    }
}
