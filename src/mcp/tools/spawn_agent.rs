//! `spawn_agent`, also under the name `sessions_spawn`: an agent of one's own for one task.

use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Arguments;

/// The tool's other name.
pub const OTHER_NAME: &str = "sessions_spawn";

/// Arguments of `spawn_agent`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct SpawnAgent {
    /// What the agent is to do. It knows nothing else: say all that it needs.
    pub prompt: String,
    /// The named agent that it runs as, e.g. Explore.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its tools; without it those that you have.
    #[serde(default)]
    pub tools: Option<Tools>,
    /// How long it may work.
    #[serde(default)]
    pub timeout_minutes: Option<u32>,
}

/// Which tools an agent has. A list that is misspelled must not look as if it held.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Only these of what you have: `Read`, `Bash(git log *)`.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// Not these, whatever is allowed.
    #[serde(default)]
    pub deny: Option<Vec<String>>,
}

impl Arguments for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const DESCRIPTION: &'static str = "Start an agent that does one task by itself, in a session of its own, with at most the tools that \
        you have. You do not wait for it and it does not answer you: its result is kept with its session, whose id you get.";
}
