//! A runner that is there before its run is.
//!
//! Starting our own binary twice takes longer than all else that a run waits for before its client starts. A runner
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
    pub(super) async fn fill(&self, shell_binary: &Path) {
        let mut place = self.0.lock().await;
        if place.as_mut().is_none_or(|waiting| !waiting.is_alive()) {
            // Whoever needs one starts it then, and says what is wrong.
            *place = Waiting::start(shell_binary).ok();
        }
    }

    /// The one that waits, or else a new one.
    ///
    /// # Errors
    /// Our own binary cannot be started.
    pub(super) async fn take(&self, shell_binary: &Path) -> io::Result<Waiting> {
        let waiting = self.0.lock().await.take();
        match waiting.and_then(|mut waiting| waiting.is_alive().then_some(waiting)) {
            Some(waiting) => Ok(waiting),
            None => Waiting::start(shell_binary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_is_one_at_most_and_a_dead_one_is_none() {
        // Any program that lives until nobody reads what it says.
        let lives = Path::new("yes");
        let ready = Ready::default();
        let waits = async || ready.0.lock().await.as_ref().and_then(Waiting::pid);
        ready.fill(lives).await;
        let first = waits().await;
        ready.fill(lives).await;
        assert_eq!(waits().await, first);
        assert_eq!(ready.take(lives).await.unwrap().pid(), first);
        assert_eq!(waits().await, None);
        assert!(ready.take(lives).await.unwrap().pid().is_some());
        // It ends at once.
        ready.fill(Path::new("true")).await;
        while ready.0.lock().await.as_mut().unwrap().is_alive() {
            tokio::task::yield_now().await;
        }
        assert!(ready.take(lives).await.unwrap().is_alive());
        ready.fill(Path::new("/no/such/program")).await;
        assert_eq!(waits().await, None);
    }
}
