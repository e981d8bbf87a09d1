//! The service's lock, socket and token: kept where they belong, though someone deletes `state/` and brings it back.
//!
//! The journal notices first that its file is gone, says so, and writes itself back when its folder is there again. Then
//! these are made anew too. If another service has come in meanwhile, this one ends: two on one folder must not be.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch::Receiver;

use super::control::{Answers, Control};
use super::lock::{Lock, LockError};
use crate::home::Home;
use crate::journal::{Journal, JournalError};
use crate::run::tokens::Tokens;
use crate::schedule::Schedule;

/// What is kept, and for whom.
pub(super) struct Belongings {
    pub(super) home: Home,
    pub(super) lock: Arc<Mutex<Lock>>,
    pub(super) tokens: Tokens,
    pub(super) journal: Journal,
    pub(super) schedule: Schedule,
    pub(super) answers: Arc<dyn Answers>,
}

impl Belongings {
    /// Serves the socket, and keeps it, until the future is dropped.
    pub(super) async fn keep(self, mut control: Control) {
        let mut trouble = self.journal.trouble();
        loop {
            tokio::select! {
                () = control.serve(Arc::clone(&self.answers)) => return,
                anew = self.lost(&mut trouble) => control = anew,
            }
        }
    }

    /// Waits until the socket was lost and its folder is there again; the new one.
    async fn lost(&self, trouble: &mut Receiver<Option<JournalError>>) -> Control {
        loop {
            if trouble.changed().await.is_err() {
                return std::future::pending().await;
            }
            let (home, lock) = (self.home.clone(), Arc::clone(&self.lock));
            let renewed =
                tokio::task::spawn_blocking(move || lock.lock().unwrap_or_else(PoisonError::into_inner).renew(&home));
            match renewed.await {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => match Control::open(&self.home, self.tokens.clone()) {
                    Ok(control) => {
                        tracing::warn!(folder = %self.home.state().display(), "the folder was deleted; what belongs there was made anew");
                        return control;
                    }
                    Err(error) => {
                        tracing::error!(%error, "the control socket cannot be made anew; restart the service")
                    }
                },
                Ok(Err(error @ (LockError::Taken { .. } | LockError::Original { .. }))) => {
                    tracing::error!(%error, "the data folder is another service's now: this one ends");
                    self.schedule.end_now();
                }
                // The folder is not there, or cannot be written: the journal says when it is again.
                Ok(Err(error)) => tracing::debug!(%error, "the lock cannot be taken anew"),
                Err(error) => tracing::error!(%error, "looking at the lock failed"),
            }
        }
    }
}
