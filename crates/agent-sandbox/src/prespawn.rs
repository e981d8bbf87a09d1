//! A runner that is started before its run.
//!
//! Starting our own binary three times takes longer than all the other work before a run's client starts. A runner
//! knows no run until it receives its command, so it is started while the run is still being recorded. At most one waits,
//! and it stays until a run takes it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::runner::PrespawnedRunner;

/// The storage for the prespawned runner. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct PrespawnSlot(Arc<Mutex<Option<PrespawnedRunner>>>);

impl PrespawnSlot {
    /// Starts a runner if none is waiting.
    pub async fn fill(&self, shell_binary: &Path) {
        let mut place = self.0.lock().await;
        if place.as_mut().is_none_or(|waiting| !waiting.is_alive()) {
            // A failure is reported by `take`, which then starts a runner itself.
            *place = PrespawnedRunner::start(shell_binary).await.ok();
        }
    }

    /// Takes the waiting runner, or starts a new one.
    ///
    /// # Errors
    /// An error if the runner's program cannot be started.
    pub async fn take(&self, shell_binary: &Path) -> io::Result<PrespawnedRunner> {
        let waiting = self.0.lock().await.take();
        match waiting.and_then(|mut waiting| waiting.is_alive().then_some(waiting)) {
            Some(waiting) => Ok(waiting),
            None => PrespawnedRunner::start(shell_binary).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_one_at_most_and_a_dead_one_is_none() {
        // A program that runs until nobody reads its output.
        let lives = Path::new("yes");
        let ready = PrespawnSlot::default();
        let waits = async || ready.0.lock().await.as_ref().and_then(|waiting| waiting.child.id());
        ready.fill(lives).await;
        let first = waits().await;
        ready.fill(lives).await;
        assert_eq!(waits().await, first);
        assert_eq!(ready.take(lives).await.unwrap().child.id(), first);
        assert_eq!(waits().await, None);
        assert!(ready.take(lives).await.unwrap().child.id().is_some());
        // This program ends at once.
        ready.fill(Path::new("true")).await;
        while ready.0.lock().await.as_mut().unwrap().is_alive() {
            tokio::task::yield_now().await;
        }
        assert!(ready.take(lives).await.unwrap().is_alive());
        ready.fill(Path::new("/no/such/program")).await;
        assert_eq!(waits().await, None);
    }
}
