//! A command that is prepared a moment before it falls due. Its rules are read, its sandbox is made, and its shell prepares itself
//! meanwhile, so that it begins at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_sandbox::leftovers;
use tokio::task::JoinHandle;

use super::exec::PreparedCommand;
use super::runner::Runner;
use crate::definition::Definition;
use crate::journal::RunId;
use crate::refusal::Refusal;
use crate::schedule::Launcher as _;

/// Time for which a prepared command is of use. Later its rules may have changed.
const LASTS: Duration = Duration::from_secs(1);

/// The place of the command that falls due next.
#[derive(Debug, Default)]
pub struct PreparedSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    ahead: Option<Ahead>,
    /// Those that are being removed.
    removals: Vec<(RunId, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Ahead {
    run: RunId,
    definition: Arc<Definition>,
    /// `None` if the command cannot begin at once. Its run finds out why.
    command: JoinHandle<Option<PreparedCommand>>,
}

impl Slot {
    /// Has a command removed that no attempt has used.
    fn remove(&mut self, unused: Ahead, runner: &Arc<Runner>) {
        let (run, runner) = (unused.run.clone(), Arc::clone(runner));
        self.removals.retain(|(_, removal)| !removal.is_finished());
        self.removals.push((run, tokio::spawn(async move { runner.remove(unused).await })));
    }
}

impl PreparedSlot {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner {
    /// Prepares the command of a definition that is about to fall due, for the attempt `run`. What is not used soon is removed.
    pub(super) fn prepare_ahead(self: Arc<Self>, definition: &Arc<Definition>, run: &RunId) {
        // An earlier run may have this random id. Its folder stays as it is.
        if definition.approve || self.home.runs().join(run.as_str()).exists() {
            return;
        }
        let (runner, of, by) = (Arc::clone(&self), Arc::clone(definition), run.clone());
        let command = tokio::spawn(async move {
            let is_met = runner.unmet_requirement(&of).await.is_none();
            if is_met { runner.prepare_command(&of, &by).await.ok() } else { None }
        });
        let ahead = Ahead { run: run.clone(), definition: Arc::clone(definition), command };
        {
            let mut slot = self.prepared.lock();
            if let Some(replaced) = slot.ahead.replace(ahead) {
                slot.remove(replaced, &self);
            }
        }
        let run = run.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LASTS).await;
            let mut slot = self.prepared.lock();
            if let Some(unused) = slot.ahead.take_if(|ahead| ahead.run == run) {
                slot.remove(unused, &self);
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
        let (ahead, removals) = {
            let mut slot = self.prepared.lock();
            let ahead = slot.ahead.take_if(|ahead| ahead.run == *run);
            (ahead, slot.removals.extract_if(.., |(of, _)| of == run).collect::<Vec<_>>())
        };
        // Its folder is this attempt's.
        for (_, removal) in removals {
            let _removed = removal.await;
        }
        match ahead {
            Some(ahead) if Arc::ptr_eq(&ahead.definition, definition) => {
                if let Ok(Some(command)) = ahead.command.await {
                    return Ok(command);
                }
            }
            // The definition was edited meanwhile. The folder is the same.
            Some(ahead) => self.remove(ahead).await,
            None => {}
        }
        self.prepare_command(definition, run).await
    }

    /// Ends a command that no attempt has used, and removes its folder.
    async fn remove(&self, unused: Ahead) {
        if let Ok(Some(command)) = unused.command.await {
            command.discard().await;
        }
        let folder = self.home.runs().join(unused.run.as_str());
        let removed = tokio::task::spawn_blocking(move || leftovers::remove(&folder)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "the folder of a run that did not begin was not removed");
        }
    }
}
