//! What a run may make and change by the command line: never more than it has itself. The person is not held.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::context::{Caller, Context};
use super::error::CliError;
use crate::definition::{Definition, Draft};
use crate::run::cap::MADE_AT_MOST;
use crate::run::tokens::RunAuthority;

impl Context {
    /// Narrows a job that is about to be written to what its maker has. What it gives is held until that is done: of jobs that are
    /// counted one is made at a time.
    ///
    /// # Errors
    /// When it asks for more, or there are too many jobs that runs have made.
    pub(super) fn narrow(&self, draft: &mut Draft) -> Result<Option<MutexGuard<'static, ()>>, CliError> {
        static MAKING: Mutex<()> = Mutex::new(());
        let Caller::Run(run) = &self.caller else { return Ok(None) };
        if draft.chain_depth > 0 || draft.chain_parent.is_some() || draft.created_by.is_some() {
            return Err(CliError::denied("a chain's links and makers are noted by ollim-bot itself")
                .hint("`ollim-bot follow-up-chain` makes the next link of a chain"));
        }
        run.cap.narrow(draft).map_err(CliError::denied)?;
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if run.cap.is_counted() {
            let made = self.load()?.definitions.values().filter(|known| known.created_by.is_some()).count();
            if made >= MADE_AT_MOST {
                return Err(CliError::denied(format!(
                    "there are {made} jobs already that jobs have made, and no more may be"
                ))
                .hint("report it: the person can cancel some"));
            }
        }
        begin(run, "makes a job")?;
        Ok(Some(making))
    }

    /// Whether whoever asks may change, move or remove these jobs.
    ///
    /// # Errors
    /// When one of them is not its own, or has more than it has.
    pub(super) fn may_change<'a>(&self, jobs: impl IntoIterator<Item = &'a Definition>) -> Result<(), CliError> {
        let Caller::Run(run) = &self.caller else { return Ok(()) };
        jobs.into_iter().try_for_each(|job| run.cap.may_change(job)).map_err(CliError::denied)?;
        begin(run, "changes a job")
    }
}

/// From here on the run has had an effect.
fn begin(run: &RunAuthority, what: &'static str) -> Result<(), CliError> {
    Handle::current().block_on(run.acts.mark_effect(what)).map_err(CliError::user)
}
