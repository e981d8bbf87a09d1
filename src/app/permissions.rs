//! What a run may make and change: never more than it has itself. The person may all.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::{App, Caller};
use crate::definition::{Definition, DefinitionId, Draft};
use crate::refusal::Refusal;
use crate::run::delegation::MADE_AT_MOST;
use crate::run::memory::is_job;
use crate::run::tokens::RunAuthority;

impl App {
    /// Narrows a draft that is about to be written to what its maker has. The caller keeps the guard until the file is written.
    ///
    /// # Errors
    /// When it asks for more, or there are too many jobs that runs have made.
    pub(super) fn narrow(&self, draft: &mut Draft) -> Result<Option<MutexGuard<'static, ()>>, Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(None) };
        if draft.chain_depth > 0 || draft.chain_parent.is_some() || draft.created_by.is_some() {
            return Err(Refusal::denied("a chain's links and makers are noted by ollim-bot itself")
                .hint("`ollim-bot follow-up-chain` makes the next link of a chain"));
        }
        run.limit.narrow(draft)?;
        self.require_readable(draft)?;
        let making = self.one_more()?;
        begin(run, "makes a job")?;
        Ok(making)
    }

    /// That a job which a run makes follows, and is told the answers of, only jobs that the same job has made. The person's own jobs are
    /// no concern of its, and what it named otherwise its runs would not be given. It may follow its maker, too.
    pub(super) fn require_readable(&self, draft: &Draft) -> Result<(), Refusal> {
        let Some(maker) = &draft.created_by else { return Ok(()) };
        let loaded = self.load()?;
        let is_own = |id: &DefinitionId| {
            id == maker || loaded.definitions.get(id).is_some_and(|known| known.created_by.as_ref() == Some(maker))
        };
        if let Some(follows) = draft.after.as_ref().filter(|follows| !is_own(&follows.job)) {
            return Err(Refusal::denied(format!(
                "`{}` is no job that {maker} has made, so what {maker} makes does not follow it",
                follows.job
            ))
            .hint("follow the job itself, or one that it has made"));
        }
        let is_sibling = |id: &DefinitionId| {
            loaded.definitions.values().any(|known| is_job(known, id) && known.created_by.as_ref() == Some(maker))
        };
        match draft.context_from.iter().find(|id| !is_sibling(id)) {
            None => Ok(()),
            Some(id) => Err(Refusal::denied(format!(
                "`{id}` is no job that {maker} has made, so its answers are not handed on"
            ))
            .hint("leave it out of `--context-from`, or name a job that you have made")),
        }
    }

    /// Whether a run may have one more job of those that runs have made. The caller keeps the guard until the file is written: one
    /// is written at a time, so that the count holds.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn one_more(&self) -> Result<Option<MutexGuard<'static, ()>>, Refusal> {
        static MAKING: Mutex<()> = Mutex::new(());
        let Caller::Run(run) = &self.caller else { return Ok(None) };
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if run.limit.is_counted() {
            let made = self.load()?.definitions.values().filter(|known| known.created_by.is_some()).count();
            if made >= MADE_AT_MOST {
                return Err(Refusal::denied(format!(
                    "there are {made} jobs already that jobs have made, and no more may be"
                ))
                .hint("report it: the person can cancel some"));
            }
        }
        Ok(Some(making))
    }

    /// Whether whoever asks may change, move or remove these jobs.
    ///
    /// # Errors
    /// When one of them is not its own, or has more than it has.
    pub(super) fn may_change<'a>(&self, jobs: impl IntoIterator<Item = &'a Definition>) -> Result<(), Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(()) };
        jobs.into_iter().try_for_each(|job| run.limit.may_change(job))?;
        begin(run, "changes a job")
    }
}

/// From here on the run has had an effect.
fn begin(run: &RunAuthority, what: &'static str) -> Result<(), Refusal> {
    Handle::current().block_on(run.acts.mark_effect(what))
}
