//! How many messages background jobs may still send.

use chrono::{DateTime, Utc};

use super::{App, runs};
use crate::bot::budget::{PingBudget, SETTING};
use crate::definition::Definition;
use crate::journal::{Caps, JournalReader, Purse, Spending};
use crate::refusal::Refusal;

/// What is left now.
pub(super) fn left(app: &App) -> Result<PingBudget, Refusal> {
    of(&runs::open(app)?, app.now())
}

/// What is spent of each cap of the settings.
pub(super) fn spending(app: &App) -> Result<Vec<Spending>, Refusal> {
    let config = app.config()?;
    Ok(runs::open(app)?.spending(config.budget, config.timezone, app.now())?)
}

/// The caps of which nothing is left: no job that costs begins.
pub(super) fn spent(app: &App) -> Result<Vec<Spending>, Refusal> {
    let mut caps = spending(app)?;
    caps.retain(|cap| cap.left() <= 0.0);
    Ok(caps)
}

/// What a run of a definition would be paid from if it began now.
pub(super) fn purse(definition: &Definition, app: &App) -> Result<Purse, Refusal> {
    let config = app.config()?;
    if definition.is_without_agent() {
        return Ok(Purse::default());
    }
    let caps = Caps::of(definition, config.budget, config.timezone);
    Ok(runs::open(app)?.purse(definition, &caps, app.now())?)
}

/// The budget that the journal keeps, as it is at `now`.
pub(super) fn of(journal: &JournalReader, now: DateTime<Utc>) -> Result<PingBudget, Refusal> {
    Ok(PingBudget::stored(journal.setting(SETTING)?.as_deref(), now))
}
