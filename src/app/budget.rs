//! How many messages background jobs may still send.

use chrono::{DateTime, Utc};

use super::{App, runs};
use crate::bot::budget::{PingBudget, SETTING};
use crate::journal::{JournalReader, Spending};
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

/// The budget that the journal keeps, as it is at `now`.
pub(super) fn of(journal: &JournalReader, now: DateTime<Utc>) -> Result<PingBudget, Refusal> {
    Ok(PingBudget::stored(journal.setting(SETTING)?.as_deref(), now))
}
