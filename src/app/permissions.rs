//! Limits what a run may create and change: never more than it has itself. The person is not limited.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::{App, Caller};
use crate::definition::{self, Definition, DefinitionId, Draft, Follows, Loaded};
use crate::refusal::Refusal;
use crate::run::delegation::{MADE_AT_MOST, MADE_BY_ONE_AT_MOST, WATCHED_AT_MOST};
use crate::run::memory::is_job;
use crate::run::tokens::RunAuthority;

impl App {
    /// Restricts a new draft to the permissions of its maker. The caller holds the guard until the file is written.
    ///
    /// # Errors
    /// If the draft asks for more, or runs have created too many jobs.
    pub(super) fn narrow(&self, draft: &mut Draft) -> Result<Option<MutexGuard<'static, ()>>, Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(None) };
        if draft.chain_depth > 0 || draft.chain_parent.is_some() || draft.created_by.is_some() {
            return Err(Refusal::denied("a chain's links and makers are noted by ollim-bot itself")
                .hint("`ollim-bot follow-up-chain` makes the next link of a chain"));
        }
        // Only what the run itself says counts: its job's own lists, which are added now, may be longer.
        run.limit.require_short(&draft.render(None))?;
        run.limit.narrow(draft)?;
        run.limit.silence(draft)?;
        self.require_readable(draft)?;
        let making = self.one_more()?;
        self.require_few_watched(draft)?;
        begin(run, "makes a job")?;
        Ok(making)
    }

    /// Checks that a job created by a run follows, and reads the answers of, only jobs created by the same job. The person's own jobs do
    /// not concern it, and its runs would not get the answers of other jobs. It may follow its maker, too.
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

    /// Checks that runs have created few jobs that watch a folder, since the kernel lets a user watch only few at a time. The caller holds
    /// the guard of [`Self::one_more`].
    pub(super) fn require_few_watched(&self, draft: &Draft) -> Result<(), Refusal> {
        let is_watching = |known: &&Arc<Definition>| known.created_by.is_some() && known.watches().is_some();
        if draft.created_by.is_none()
            || draft.watch.is_none()
            || self.load()?.definitions.values().filter(is_watching).count() < WATCHED_AT_MOST
        {
            return Ok(());
        }
        Err(Refusal::denied(format!(
            "there are {WATCHED_AT_MOST} jobs already that jobs have made and that watch a folder, and no more may be"
        ))
        .hint("cancel one, or look at the folder with `--every`"))
    }

    /// Checks that a run may create one more job. The caller holds the guard until the file is written, because only
    /// one writer at a time keeps the count right.
    ///
    /// # Errors
    /// If runs have created too many jobs.
    pub(super) fn one_more(&self) -> Result<Option<MutexGuard<'static, ()>>, Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(None) };
        let making = alone();
        if run.limit.is_counted() {
            let failed = definition::failed_reminders(&self.home, &self.defaults()?)?;
            // Files with errors count, too: what makes a file invalid makes no room for another.
            let failed = failed.iter().filter_map(|failed| failed.parsed.made_by());
            let loaded = self.load()?;
            let makers: Vec<&DefinitionId> = loaded.makers.iter().chain(failed).collect();
            let own = makers.iter().filter(|maker| run.limit.is_maker(maker)).count();
            let (made, whose) = match own >= MADE_BY_ONE_AT_MOST {
                true => (own, "this job has made"),
                false => (makers.len(), "jobs have made"),
            };
            if made >= MADE_AT_MOST || own >= MADE_BY_ONE_AT_MOST {
                return Err(Refusal::denied(format!(
                    "there are {made} jobs already that {whose}, failed ones included, and no more may be"
                ))
                .hint("report it: the person can cancel some, and remove files in reminders/failed/"));
            }
        }
        Ok(Some(making))
    }

    /// Checks that the caller may change, move or remove these jobs.
    ///
    /// # Errors
    /// If the caller did not create one of them, or one has more permissions than the caller.
    pub(super) fn may_change<'a>(&self, jobs: impl IntoIterator<Item = &'a Definition>) -> Result<(), Refusal> {
        let Caller::Run(run) = &self.caller else { return Ok(()) };
        jobs.into_iter().try_for_each(|job| run.limit.may_change(job))?;
        begin(run, "changes a job")
    }
}

/// Waits until no other run writes a job's file: only then does a count, or what a file follows, stay as it was read.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static MAKING: Mutex<()> = Mutex::new(());
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a routine that would follow itself, directly or through others: none of them would fire.
pub(super) fn require_no_circle(loaded: &Loaded, id: &DefinitionId, follows: Option<&Follows>) -> Result<(), Refusal> {
    match follows.map(|follows| &follows.job).filter(|job| loaded.closes_circle(id, job)) {
        None => Ok(()),
        Some(job) => Err(Refusal::user(format!("`{job}` follows `{id}` in turn, so none of them would fire"))
            .hint("give one of them times of its own: `--cron` or `--every`")),
    }
}

/// Records that the run has had a side effect.
fn begin(run: &RunAuthority, what: &'static str) -> Result<(), Refusal> {
    Handle::current().block_on(run.acts.mark_effect(what))
}
