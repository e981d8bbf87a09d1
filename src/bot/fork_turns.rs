//! The turns of forks in which the person talks: one after the other in each fork, and concurrent across forks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::definition::DefinitionId;

/// The turns of all forks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ForkTurns(Arc<Mutex<HashMap<DefinitionId, Arc<tokio::sync::Mutex<()>>>>>);

impl ForkTurns {
    /// Waits for the previous turn to end, then holds the fork until the guard is dropped.
    pub async fn turn(&self, fork: &DefinitionId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(fork.clone()).or_default())
        };
        turn.lock_owned().await
    }
}
