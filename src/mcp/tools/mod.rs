//! The tools that agents may be given: each with its name, description and arguments. The host implements them.

pub mod discord_embed;
pub mod enter_fork;
pub mod follow_up_chain;
pub mod ping_user;
pub mod report_updates;
pub mod spawn_agent;

use std::sync::Arc;

use rmcp::handler::server::tool::schema_for_input;
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use discord_embed::DiscordEmbed;
pub use enter_fork::EnterFork;
pub use follow_up_chain::FollowUpChain;
pub use ping_user::PingUser;
pub use report_updates::ReportUpdates;
pub use spawn_agent::SpawnAgent;

/// The arguments of a tool, with its description for the agent.
trait Arguments: DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
}

/// A tool as the server offers it.
#[derive(Clone, Copy)]
pub(super) struct OfferedTool {
    pub name: &'static str,
    pub description: &'static str,
    pub schema: fn() -> Arc<Map<String, Value>>,
    pub check: fn(&Value) -> Result<(), serde_json::Error>,
}

const fn offered<A: Arguments>() -> OfferedTool {
    OfferedTool { name: A::NAME, description: A::DESCRIPTION, schema: schema::<A>, check: check::<A> }
}

const OFFERED: &[OfferedTool] = &[
    offered::<PingUser>(),
    offered::<DiscordEmbed>(),
    offered::<ReportUpdates>(),
    offered::<FollowUpChain>(),
    offered::<EnterFork>(),
    offered::<SpawnAgent>(),
    OfferedTool { name: spawn_agent::OTHER_NAME, ..offered::<SpawnAgent>() },
];

/// Returns a tool by its bare name.
pub(super) fn find(name: &str) -> Option<OfferedTool> {
    OFFERED.iter().find(|tool| tool.name == name).copied()
}

fn check<A: Arguments>(arguments: &Value) -> Result<(), serde_json::Error> {
    A::deserialize(arguments).map(drop)
}

/// Returns the schema. All `Arguments` are structs, whose schema is an object; any other would be offered without a schema.
fn schema<A: Arguments>() -> Arc<Map<String, Value>> {
    schema_for_input::<A>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_read() {
        let shown: Vec<String> = OFFERED
            .iter()
            .map(|tool| {
                let schema = Value::Object((*(tool.schema)()).clone());
                let arguments = schema["properties"].as_object().unwrap();
                assert!(!arguments.is_empty(), "{}", tool.name);
                for (name, argument) in arguments {
                    assert!(argument["description"].is_string(), "{} {name} is explained", tool.name);
                }
                let names: Vec<&String> = arguments.keys().collect();
                format!("{} {names:?} required {}", tool.name, schema["required"])
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        ping_user ["critical", "message"] required ["message"]
        discord_embed ["buttons", "color", "critical", "description", "fields", "title"] required ["title"]
        report_updates ["message"] required ["message"]
        follow_up_chain ["minutes_from_now"] required ["minutes_from_now"]
        enter_fork ["topic"] required ["topic"]
        spawn_agent ["agent", "prompt", "timeout_minutes", "tools"] required ["prompt"]
        sessions_spawn ["agent", "prompt", "timeout_minutes", "tools"] required ["prompt"]
        "#);
    }
}
