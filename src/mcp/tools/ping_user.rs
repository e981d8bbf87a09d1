//! `ping_user`: sends a plain message to the person.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// Arguments of `ping_user`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct PingUser {
    /// The text for the user, as you would text it to them. Plain text or Markdown.
    pub message: String,
    /// Send it even though the user is busy, you pinged before, or the ping budget is empty. Only for what cannot wait. It uses
    /// up one ping of the budget if one is left.
    #[serde(default)]
    pub critical: bool,
}

impl Arguments for PingUser {
    const NAME: &'static str = "ping_user";
    const DESCRIPTION: &'static str = "Send the user a message. Nothing else you write reaches them. It interrupts them, so \
        ask yourself first whether they would be sorry to have missed it; if not, do not send it. At most one ping or embed \
        in a run.";
}
