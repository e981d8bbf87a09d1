//! Shows events as they happen to the starter of the service: each event once, in order, the last ones included.

use std::io;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::journal::{Event, EventFilter, Journal, JournalError};

/// Shows one event.
pub type ShowEvent = Arc<dyn Fn(&Event) -> io::Result<()> + Send + Sync>;

/// The events since this service started.
pub struct EventStream {
    journal: Journal,
    show: ShowEvent,
    /// Number of the last event shown.
    told: Mutex<i64>,
}

impl EventStream {
    /// Starts the stream after the newest event.
    #[must_use]
    pub fn from_now(journal: Journal, show: ShowEvent) -> Self {
        let told = Mutex::new(*journal.newest_event().borrow());
        Self { journal, show, told }
    }

    /// Shows events until the future is dropped or showing one fails.
    pub async fn follow(&self) {
        let mut newest = self.journal.newest_event();
        loop {
            newest.mark_unchanged();
            if let Err(error) = self.send_new().await {
                tracing::warn!(%error, "events are not told any more; `ollim-bot runs follow` shows them");
                return;
            }
            if newest.changed().await.is_err() {
                return;
            }
        }
    }

    /// Shows the remaining events before the service ends.
    pub async fn finish(&self) {
        // Events that cannot be shown stay in the journal.
        let _untold = self.send_new().await;
    }

    async fn send_new(&self) -> Result<(), StreamError> {
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
