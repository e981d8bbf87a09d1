//! A command that is prepared a moment before it falls due. Its rules are read, its sandbox is made, and its shell prepares itself
//! meanwhile, so that it begins at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::leftovers;
use tokio::task::JoinHandle;

use super::exec::PreparedCommand;
use super::runner::Runner;
use crate::definition::Definition;
use crate::journal::RunId;
use crate::refusal::Refusal;

/// Time for which a prepared command is of use. Later its rules may have changed.
const LASTS: Duration = Duration::from_secs(1);

/// The place of the command that falls due next.
#[derive(Debug, Default)]
pub struct PreparedSlot(Mutex<Option<Ahead>>);

#[derive(Debug)]
struct Ahead {
    run: RunId,
    definition: Arc<Definition>,
    command: JoinHandle<Result<PreparedCommand, Refusal>>,
}

impl PreparedSlot {
    /// Takes what is prepared, if `is_wanted` says so of it.
    fn take(&self, is_wanted: impl FnOnce(&Ahead) -> bool) -> Option<Ahead> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take_if(|ahead| is_wanted(ahead))
    }
}

impl Runner {
    /// Prepares the command of a definition that is about to fall due, for the attempt `run`. What is not used soon is removed.
    pub(super) fn prepare_ahead(self: Arc<Self>, definition: &Arc<Definition>, run: &RunId) {
        // An earlier run may have this random id. Its folder stays as it is.
        if self.home.runs().join(run.as_str()).exists() {
            return;
        }
        let (runner, of, by) = (Arc::clone(&self), Arc::clone(definition), run.clone());
        let command = tokio::spawn(async move { runner.prepare_command(&of, &by).await });
        let ahead = Ahead { run: run.clone(), definition: Arc::clone(definition), command };
        let replaced = self.prepared.0.lock().unwrap_or_else(PoisonError::into_inner).replace(ahead);
        let run = run.clone();
        tokio::spawn(async move {
            if let Some(replaced) = replaced {
                self.remove(replaced).await;
            }
            tokio::time::sleep(LASTS).await;
            if let Some(unused) = self.prepared.take(|ahead| ahead.run == run) {
                self.remove(unused).await;
            }
        });
    }

    /// Returns the command of an attempt: what is prepared, if that is still true, or else a new one.
    ///
    /// # Errors
    /// An error if our own part failed.
    pub(super) async fn command_of(
        &self,
        definition: &Arc<Definition>,
        run: &RunId,
    ) -> Result<PreparedCommand, Refusal> {
        match self.prepared.take(|ahead| ahead.run == *run) {
            Some(ahead) if Arc::ptr_eq(&ahead.definition, definition) => {
                if let Ok(Ok(command)) = ahead.command.await {
                    return Ok(command);
                }
            }
            // The definition was edited meanwhile. The folder is the same.
            Some(ahead) => self.remove(ahead).await,
            None => {}
        }
        self.prepare_command(definition, run).await
    }

    /// Removes the folder of a command that no attempt has used.
    async fn remove(&self, unused: Ahead) {
        if let Ok(Ok(command)) = unused.command.await {
            command.discard().await;
        }
        let folder = self.home.runs().join(unused.run.as_str());
        let removed = tokio::task::spawn_blocking(move || leftovers::remove(&folder)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "the folder of a run that did not begin was not removed");
        }
    }
}
