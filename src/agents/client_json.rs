//! Agents in the form that the client takes: the value of its `--agents` flag, and the rules that hide its own.
//!
//! What version 2.1.197 does with the flag was seen on the real client, and the tests hold it there: an entry of a name
//! that the client has replaces the client's own; an entry with a value that it does not know is dropped in silence, so
//! that its own agent runs; `permissionMode: acceptEdits` or `bypassPermissions` takes effect over the session's
//! `dontAsk`; a `disallowedTools` entry with parentheses takes the whole tool away; parentheses in `tools` are ignored;
//! subagents may call further agents; an agent sees no tool that the session's `--tools` lacks. So what is sent is
//! narrow and plain, and what is finer is held by the policy, call by call.

use serde_json::{Map, Value, json};

use crate::policy::{PermissionMode, ToolPattern, blocked_for_subagents};

use super::{AgentError, AgentModel, NamedAgent};

/// The longest single argument that Linux takes (`MAX_ARG_STRLEN`), without its end.
pub const LONGEST_ARGUMENT: usize = 131_071;

/// The agents that the client has by itself; some only in some kinds of session.
pub(super) const CLIENT_AGENTS: &[&str] =
    &["claude", "Explore", "general-purpose", "Plan", "statusline-setup", "claude-code-guide", "Bash"];

/// Tools that lists may name and the client does not offer here.
const NOT_OFFERED: &[&str] = &["LS", "LSP"];

/// The value of `--agents`: each agent once, by its name.
#[must_use]
pub fn agents_json<'a>(agents: impl IntoIterator<Item = &'a NamedAgent>) -> Value {
    Value::Object(agents.into_iter().map(|agent| (agent.name.clone(), entry(agent))).collect())
}

/// [`agents_json`] as the one argument it is handed over in; `None` where there is no agent.
///
/// # Errors
/// [`AgentError::TooLong`]: the client could not be started with it.
pub fn agents_argument<'a>(agents: impl IntoIterator<Item = &'a NamedAgent>) -> Result<Option<String>, AgentError> {
    let value = agents_json(agents);
    if value.as_object().is_none_or(Map::is_empty) {
        return Ok(None);
    }
    let text = value.to_string();
    if text.len() > LONGEST_ARGUMENT {
        return Err(AgentError::TooLong { length: text.len(), limit: LONGEST_ARGUMENT });
    }
    Ok(Some(text))
}

/// The rules for `--disallowedTools` that take every agent of the client's own out of sight, save the `granted` ones
/// (which [`agents_json`] replaces): without them its own `claude` or `Plan` would be listed beside ours.
#[must_use]
pub fn hidden_agents<'a>(granted: impl IntoIterator<Item = &'a NamedAgent>) -> Vec<String> {
    let granted: Vec<&str> = granted.into_iter().map(|agent| agent.name.as_str()).collect();
    CLIENT_AGENTS.iter().filter(|name| !granted.contains(name)).map(|name| format!("Agent({name})")).collect()
}

fn entry(agent: &NamedAgent) -> Value {
    // On one line: the client lists agents one a line, and a line break could pass for another agent.
    let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut entry = json!({
        "description": description,
        "prompt": agent.prompt,
        "disallowedTools": disallowed(agent),
    });
    if let Some(tools) = &agent.tools {
        entry["tools"] = tools_seen(tools).into();
    }
    match &agent.model {
        AgentModel::Default => {}
        AgentModel::Inherit | AgentModel::Named(_) => entry["model"] = agent.model.as_str().into(),
    }
    // `default` is what the session has: `dontAsk` in a fork. Sent, it would replace that.
    if agent.permission_mode == PermissionMode::DontAsk {
        entry["permissionMode"] = "dontAsk".into();
    }
    if let Some(turns) = agent.max_turns {
        entry["maxTurns"] = turns.into();
    }
    entry
}

/// The names alone, each once, of what the client can offer.
fn tools_seen(tools: &[ToolPattern]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        if !names.contains(&tool.tool()) && !NOT_OFFERED.contains(&tool.tool()) {
            names.push(tool.tool());
        }
    }
    names
}

/// What is taken away whole: the agent's own denials without parentheses, and what no subagent has.
fn disallowed(agent: &NamedAgent) -> Vec<&str> {
    let own = agent.disallowed_tools.iter().filter(|rule| matches!(rule.specifier(), None | Some("*")));
    let mut names: Vec<&str> = own.map(ToolPattern::tool).collect();
    names.extend(blocked_for_subagents().map(|name| -> &str { name }));
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    names
}

#[cfg(test)]
mod tests;
