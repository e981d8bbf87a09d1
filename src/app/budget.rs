//! How many messages background jobs may still send, and how much may still be spent.

use chrono::{DateTime, Utc};

use super::{App, runs};
use crate::bot::budget::{PingBudget, SETTING};
use crate::definition::Definition;
use crate::journal::{ApplicableBudget, Caps, JournalReader, Spending};
use crate::refusal::Refusal;

/// Returns the current ping budget.
pub(super) fn left(app: &App) -> Result<PingBudget, Refusal> {
    of(&runs::open(app)?, app.now())
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
