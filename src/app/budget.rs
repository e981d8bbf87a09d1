//! How many messages background jobs may still send, and how much may still be spent.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::status::for_person;
use super::{App, runs};
use crate::bot::budget::{PingBudget, SETTING};
use crate::definition::{Definition, DefinitionId};
use crate::journal::{ApplicableBudget, Caps, JournalReader, Spending};
use crate::refusal::Refusal;

/// The current budgets.
#[derive(Debug)]
pub struct Budgets {
    /// How many messages background jobs may still send.
    pub pings: PingBudget,
    /// The spending under each limit of the settings.
    pub caps: Vec<Spending>,
    /// The spending of today under `max_cost_day_usd`, of each job that has it, by id. Empty for a run.
    pub jobs: Vec<(DefinitionId, Spending)>,
}

/// Returns the current budgets.
pub(super) fn budgets(app: &App) -> Result<Budgets, Refusal> {
    Ok(Budgets {
        pings: of(&runs::open(app)?, app.now())?,
        caps: spending(app)?,
        jobs: for_person(app, || of_jobs(app))?,
    })
}

fn of_jobs(app: &App) -> Result<Vec<(DefinitionId, Spending)>, Refusal> {
    let loaded = app.load_without_settings()?;
    let (config, journal) = (app.config()?, runs::open(app)?);
    let mut jobs = Vec::new();
    // What a job has made, and a chain's further checks, count against the cap of another one.
    let is_own = |definition: &&Arc<Definition>| {
        !definition.is_without_agent()
            && definition.created_by.is_none()
            && definition.chain().is_none_or(|chain| chain.depth == 0)
    };
    for definition in loaded.definitions.values().filter(is_own) {
        let Some(cap) = definition.max_cost_day_usd else { continue };
        let spent = journal.spending_of(&definition.id, cap, config.timezone, app.now())?;
        jobs.extend(spent.map(|spent| (definition.id.clone(), spent)));
    }
    Ok(jobs)
}

/// Returns the spending for each limit of the settings.
pub(super) fn spending(app: &App) -> Result<Vec<Spending>, Refusal> {
    let config = app.config()?;
    Ok(runs::open(app)?.spending(config.budget, config.timezone, app.now())?)
}

/// Returns the exhausted limits. While there is one, no job that costs money starts.
pub(super) fn spent(app: &App) -> Result<Vec<Spending>, Refusal> {
    let mut caps = spending(app)?;
    caps.retain(|cap| cap.left() <= 0.0);
    Ok(caps)
}

/// Returns the limits that would apply to a run of a definition if it began now.
pub(super) fn applicable_budget(definition: &Definition, app: &App) -> Result<ApplicableBudget, Refusal> {
    let config = app.config()?;
    if definition.is_without_agent() {
        return Ok(ApplicableBudget::default());
    }
    let caps = Caps::of(definition, config.budget, config.timezone);
    Ok(runs::open(app)?.applicable_budget(definition, &caps, app.now())?)
}

/// Returns the ping budget that the journal stores, as it is at `now`.
pub(super) fn of(journal: &JournalReader, now: DateTime<Utc>) -> Result<PingBudget, Refusal> {
    Ok(PingBudget::stored(journal.setting(SETTING)?.as_deref(), now))
}
