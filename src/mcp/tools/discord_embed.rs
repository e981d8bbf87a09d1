//! `discord_embed`: a message with a title, fields and buttons.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// Arguments of `discord_embed`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct DiscordEmbed {
    /// The headline.
    pub title: String,
    /// The text under it. Markdown.
    #[serde(default)]
    pub description: Option<String>,
    /// The color of the edge: `#rrggbb`, or one of blue, green, orange, purple, red, yellow.
    #[serde(default)]
    pub color: Option<String>,
    /// Short facts, each with a name.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Buttons that the user can press.
    #[serde(default)]
    pub buttons: Vec<Button>,
    /// Send it even though the user is busy, you pinged before, or the ping budget is empty. Only for what cannot wait. It uses
    /// up one ping of the budget if one is left.
    #[serde(default)]
    pub critical: bool,
}

/// A short fact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether it may stand beside the next one.
    #[serde(default)]
    pub inline: bool,
}

/// A button that the user can press.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub struct Button {
    /// Its text.
    pub label: String,
    /// Its effect: `agent:` and the prompt that this conversation then gets. That of a background job continues in a fork.
    pub action: String,
}

impl Arguments for DiscordEmbed {
    const NAME: &'static str = "discord_embed";
    const DESCRIPTION: &'static str = "Send the user a structured message: a title, a text, short facts, buttons. For lists and \
        overviews; for a sentence use ping_user. From a background job it interrupts the user as a ping does, and counts as one.";
}
