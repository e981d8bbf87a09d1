//! A wrapper that is there before its run is.
//!
//! Starting our own binary twice takes longer than all else that a run waits for before its client starts. A wrapper
//! knows nothing of a run until it is told, so one is started while the run is still being recorded. There is one at most,
//! and it stays until a run takes it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::process::Waiting;

/// Where it waits. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<Mutex<Option<Waiting>>>);

impl Ready {
    /// Sees to it that there is one.
    pub(super) async fn fill(&self, own_binary: &Path) {
        let mut place = self.0.lock().await;
        if place.as_mut().is_none_or(|waiting| !waiting.is_alive()) {
            // Whoever needs one starts it then, and says what is wrong.
            *place = Waiting::start(own_binary).ok();
        }
    }

    /// The one that waits, or else a new one.
    ///
    /// # Errors
    /// Our own binary cannot be started.
    pub(super) async fn take(&self, own_binary: &Path) -> io::Result<Waiting> {
        let waiting = self.0.lock().await.take();
        match waiting.and_then(|mut waiting| waiting.is_alive().then_some(waiting)) {
            Some(waiting) => Ok(waiting),
            None => Waiting::start(own_binary),
        }
    }
}
