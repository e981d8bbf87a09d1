//! Turns of forks that the person talks in: in each fork one after the other, forks beside each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::definition::DefinitionId;

/// Clones share the turns.
#[derive(Clone, Debug, Default)]
pub struct ForkTurns(Arc<Mutex<HashMap<DefinitionId, Arc<tokio::sync::Mutex<()>>>>>);

impl ForkTurns {
    /// Waits for the turn before, then has the fork for itself until the guard is dropped.
    pub async fn turn(&self, fork: &DefinitionId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(fork.clone()).or_default())
        };
        turn.lock_owned().await
    }
}
