//! What happens, told as it happens to whoever started the service: each event once, in order, the last ones too.

use std::io;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::journal::{Event, EventFilter, Journal, JournalError};

/// Tells of one event.
pub type ShowEvent = Arc<dyn Fn(&Event) -> io::Result<()> + Send + Sync>;

/// The events of this service from its start.
pub struct EventStream {
    journal: Journal,
    show: ShowEvent,
    /// The number of the last event that was told.
    told: Mutex<i64>,
}

impl EventStream {
    /// From now on.
    #[must_use]
    pub fn from_now(journal: Journal, show: ShowEvent) -> Self {
        let told = Mutex::new(*journal.newest_event().borrow());
        Self { journal, show, told }
    }

    /// Tells until the future is dropped, or nobody reads any more.
    pub async fn follow(&self) {
        let mut newest = self.journal.newest_event();
        loop {
            newest.mark_unchanged();
            if let Err(error) = self.tell().await {
                tracing::warn!(%error, "events are not told any more; `ollim-bot runs follow` shows them");
                return;
            }
            if newest.changed().await.is_err() {
                return;
            }
        }
    }

    /// Tells what is left before the service ends.
    pub async fn finish(&self) {
        // What cannot be told stays in the journal.
        let _untold = self.tell().await;
    }

    async fn tell(&self) -> Result<(), StreamError> {
        let mut told = self.told.lock().await;
        loop {
            let events = self.journal.events(*told, &EventFilter::default()).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                (self.show)(&event)?;
                *told = event.number;
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("they cannot be written: {0}")]
    Show(#[from] io::Error),
}
