//! Agents in the form that the client takes: the value of its `--agents` flag, and the rules that hide its own agents.
//!
//! The client, version 2.1.197, treats the flag as follows; tests check this against the real client. An entry replaces
//! the client's own agent of the same name. The client silently drops an entry with a value that it does not know, so
//! that its own agent runs. `permissionMode: acceptEdits` or `bypassPermissions` overrides the session's `dontAsk`. A
//! `disallowedTools` entry with parentheses takes the whole tool away; parentheses in `tools` are ignored. Subagents may
//! call further agents. An agent sees no tool that the session's `--tools` lacks. So the client receives only plain
//! restrictions, and the policy enforces the finer ones, call by call.

use serde_json::{Map, Value, json};

use crate::policy::{PermissionMode, ToolPattern, blocked_for_subagents};

use super::{AgentError, AgentModel, NamedAgent};

/// Length of the longest single argument that Linux takes (`MAX_ARG_STRLEN`), in bytes, without the final NUL.
pub const LONGEST_ARGUMENT: usize = 131_071;

/// The client's own agents. The client offers some of them only in some kinds of session.
pub(super) const CLIENT_AGENTS: &[&str] =
    &["claude", "Explore", "general-purpose", "Plan", "statusline-setup", "claude-code-guide", "Bash"];

/// Tools that lists may name but that the client does not offer here.
const NOT_OFFERED: &[&str] = &["LS", "LSP"];

/// Returns the value of `--agents`: an object with one entry for each agent, keyed by its name.
#[must_use]
pub fn agents_json<'a>(agents: impl IntoIterator<Item = &'a NamedAgent>) -> Value {
    Value::Object(agents.into_iter().map(|agent| (agent.name.clone(), entry(agent))).collect())
}

/// Returns [`agents_json`] as one command-line argument; `None` if there is no agent.
///
/// # Errors
/// [`AgentError::TooLong`] if the kernel would not start the client with this argument.
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

/// Returns the rules for `--disallowedTools` that hide the client's own agents, except the `granted` ones, which
/// [`agents_json`] replaces. Without these rules the client would list its own `claude` or `Plan` beside ours.
#[must_use]
pub fn hidden_agents<'a>(granted: impl IntoIterator<Item = &'a NamedAgent>) -> Vec<String> {
    let granted: Vec<&str> = granted.into_iter().map(|agent| agent.name.as_str()).collect();
    CLIENT_AGENTS.iter().filter(|name| !granted.contains(name)).map(|name| format!("Agent({name})")).collect()
}

fn entry(agent: &NamedAgent) -> Value {
    // The description is put on one line: the client lists one agent a line, and a line break could forge another agent.
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
    // `default` means the session's mode, `dontAsk` in a fork. If sent, it would replace that mode.
    if agent.permission_mode == PermissionMode::DontAsk {
        entry["permissionMode"] = "dontAsk".into();
    }
    if let Some(turns) = agent.max_turns {
        entry["maxTurns"] = turns.into();
    }
    entry
}

/// Returns the names of the tools that the client can offer, each once and without parentheses.
fn tools_seen(tools: &[ToolPattern]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for tool in tools {
        if !names.contains(&tool.tool()) && !NOT_OFFERED.contains(&tool.tool()) {
            names.push(tool.tool());
        }
    }
    names
}

/// Returns the tools to take away whole: the agent's own denials without parentheses, and the tools blocked for subagents.
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
