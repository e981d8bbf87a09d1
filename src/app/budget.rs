//! How many messages background jobs may still send.

use chrono::{DateTime, Utc};

use super::{App, runs};
use crate::bot::budget::{PingBudget, SETTING};
use crate::journal::JournalReader;
use crate::refusal::Refusal;

/// What is left now.
pub(super) fn left(app: &App) -> Result<PingBudget, Refusal> {
    of(&runs::open(app)?, app.now())
}

/// The budget that the journal keeps, as it is at `now`.
pub(super) fn of(journal: &JournalReader, now: DateTime<Utc>) -> Result<PingBudget, Refusal> {
    let kept = journal.setting(SETTING)?.and_then(|text| serde_json::from_str::<PingBudget>(&text).ok());
    Ok(kept.map_or_else(|| PingBudget::full(now), |kept| kept.at(now)))
}
