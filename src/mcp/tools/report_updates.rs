//! `report_updates`: a report to the main session.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// Arguments of `report_updates`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct ReportUpdates {
    /// What the main session should know: what you did or found, in a sentence or two, with the names and times that matter.
    pub message: String,
}

impl Arguments for ReportUpdates {
    const NAME: &'static str = "report_updates";
    const DESCRIPTION: &'static str = "Leave word for the main conversation, which reads it at its next turn. Use it so that \
        the conversation knows what you did or told the user. It interrupts nobody. The rest of your work is forgotten.";
}
