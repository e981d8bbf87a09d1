//! `spawn_agent`, also under the name `sessions_spawn`: starts an agent for one task.

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
    /// The agent's task. It knows nothing else: say all that it needs.
    pub prompt: String,
    /// The named agent that it runs as, e.g. Explore.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its tools; by default those that you have.
    #[serde(default)]
    pub tools: Option<Tools>,
    /// Maximum working time, in minutes.
    #[serde(default)]
    pub timeout_minutes: Option<u32>,
}

/// The tools of an agent. Unknown fields are errors, so that a misspelled list is not silently ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Only these of your tools: `Read`, `Bash(git log *)`.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    /// Never these, whatever is allowed.
    #[serde(default)]
    pub deny: Option<Vec<String>>,
}

impl Arguments for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const DESCRIPTION: &'static str = "Start an agent that does one task by itself, in a session of its own, with at most the tools that \
        you have. You do not wait for it and it does not answer you: its result is kept with its session, whose id you get.";
}
