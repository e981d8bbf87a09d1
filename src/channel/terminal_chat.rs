//! `ollim-bot chat`: who sits there reads the answers as events, so that there is nothing to send.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Channel, NotSent, Outgoing, Sent};

/// How many terminals are talking with the bot. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct OpenChats(Arc<watch::Sender<usize>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct OpenChat(OpenChats);

impl OpenChats {
    /// A terminal begins to talk.
    #[must_use]
    pub fn open(&self) -> OpenChat {
        self.0.send_modify(|open| *open += 1);
        OpenChat(self.clone())
    }

    /// Whether there is one.
    #[must_use]
    pub fn any(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// How many there are, and each change of that.
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
    async fn send(&self, _message: &Outgoing, _sent: &mut Sent) -> Result<Option<String>, NotSent> {
        match self.any() {
            true => Ok(None),
            false => Err(NotSent { why: "the terminal was closed".into(), again: false }),
        }
    }
}
