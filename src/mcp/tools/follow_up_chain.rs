//! `follow_up_chain`: schedules the next check of a chain of reminders.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// Arguments of `follow_up_chain`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct FollowUpChain {
    /// Number of minutes until you look again; at least 1.
    pub minutes_from_now: u32,
}

impl Arguments for FollowUpChain {
    const NAME: &'static str = "follow_up_chain";
    const DESCRIPTION: &'static str = "Look at this reminder again later: it fires once more after the given minutes, with the same \
        text and the same tools. Call it only if the matter is still open. A second call in a run replaces the first one's time.";
}
