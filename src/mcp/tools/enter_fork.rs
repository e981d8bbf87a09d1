//! `enter_fork`: a conversation beside the main session.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// Arguments of `enter_fork`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct EnterFork {
    /// The topic, in a few words.
    pub topic: String,
}

impl Arguments for EnterFork {
    const NAME: &'static str = "enter_fork";
    const DESCRIPTION: &'static str = "Open a fork: a conversation with the user beside this one, which knows what was said here and \
        leaves nothing behind unless the user saves it or has it reported. What the user says next is said there. For what would \
        clutter this conversation. End your turn after it: you do not see what is said in it.";
}
