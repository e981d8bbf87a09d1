//! The jobs whose present files limit a run, besides its own file.
//!
//! A job that another job has made gets at most what its maker's file grants now, so a right that the person takes from a job is
//! taken from what it has made, too. The same holds for an agent that a run has started, and for a turn that continues a job's
//! conversation: they come of a run, and the job's file may have changed since.

use std::sync::Arc;

use super::setup::Spawned;
use super::spawn::Spawner;
use crate::definition::{Definition, DefinitionId, Kind, Mode, next_maker, parse_pushed};
use crate::journal::{ForkRecord, RunId};
use crate::policy::BgForkConfig;
use crate::refusal::Refusal;

impl Spawner {
    /// Returns the jobs that limit a run of a definition. `fork` is given for a turn of a fork.
    ///
    /// # Errors
    /// An error if the journal cannot be read, or no longer has the run that this one comes of.
    pub(super) async fn limits_of(
        &self,
        definition: &Definition,
        spawned: Option<&Spawned>,
        fork: Option<&ForkRecord>,
    ) -> Result<Vec<Arc<Definition>>, Refusal> {
        let continued = fork.and_then(|fork| fork.from_run.as_ref());
        let Some(run) = continued.or_else(|| spawned?.by.as_ref()) else {
            return self.makers_of(definition).await;
        };
        let fired = self.job_of(run).await?;
        let mut limits = self.makers_of(&fired).await?;
        match self.present(&fired.id).await? {
            Some(present) => limits.push(present),
            // The file of a reminder is removed once it has fired; that of another job is removed by the person.
            None if continued.is_some() && matches!(fired.kind(), Kind::Routine | Kind::Webhook) => {
                limits.push(Arc::new(without_tools(fired)));
            }
            None => {}
        }
        Ok(limits)
    }

    /// Returns the makers of a job that still exist, the nearest first, as their files are now.
    ///
    /// # Errors
    /// An error if the journal cannot be read.
    pub(super) async fn makers_of(&self, job: &Definition) -> Result<Vec<Arc<Definition>>, Refusal> {
        let mut makers = Vec::new();
        while let Some(id) = next_maker(job, &makers) {
            let Some(maker) = self.present(id).await? else { break };
            makers.push(maker);
        }
        Ok(makers)
    }

    /// Returns the present definition with an id, from a file or from the database.
    async fn present(&self, id: &DefinitionId) -> Result<Option<Arc<Definition>>, Refusal> {
        if let Some(found) = self.definitions.fresh(id).await {
            return Ok(Some(found));
        }
        let Some(row) = self.journal.read(|journal| journal.pushed(std::slice::from_ref(id))).await?.pop() else {
            return Ok(None);
        };
        let zone = Some(&*row.zone);
        let parsed = parse_pushed(&self.home, row.kind, &row.id, row.text.as_bytes(), zone, &self.defaults);
        Ok(parsed.definition.map(Arc::new))
    }

    /// Returns the definition of a run, as it was when the run fired.
    async fn job_of(&self, run: &RunId) -> Result<Definition, Refusal> {
        let gone = || Refusal::environment(format!("there is no record of run {run}, and this one comes of it"));
        let record = self.journal.read(|journal| journal.run(run)).await?.ok_or_else(gone)?;
        let text = record.definition.as_deref().ok_or_else(gone)?;
        self.as_fired(&record.id, record.kind, text).ok_or_else(gone)
    }
}

fn without_tools(mut job: Definition) -> Definition {
    if let Mode::Background(background) = &mut job.mode
        && let Ok(none) = BgForkConfig::new(background.restrictions.update_main_session, false, Some(Vec::new()), None)
    {
        background.restrictions = none;
    }
    job
}
