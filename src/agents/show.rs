//! Agents as the command line shows them: text and JSON.
//!
//! A name whose highest source is broken is shown with what is wrong, never left out.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::definition::Problem;
use crate::policy::{PermissionMode, ToolPattern};

use super::resolve::Entry;
use super::{AgentError, Agents, NamedAgent, Source};

/// One line an agent: name, scope, model, tools, description.
#[must_use]
pub fn list_text(agents: &Agents) -> String {
    let rows: Vec<[String; 4]> = agents.entries().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (name, scope, tools) = (width(0), width(1), width(2).min(48));
    rows.iter().fold(String::new(), |mut text, row| {
        let line = format!("{:name$}  {:scope$}  {:tools$}  {}", row[0], row[1], row[2], row[3]);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

fn row(entry: &Entry) -> [String; 4] {
    let scope = entry.source().scope.as_str().to_owned();
    match entry {
        Entry::Usable(agent) => {
            let read_only = if agent.read_only { " (read-only)" } else { "" };
            let description: String = one_line(&agent.description, 72);
            [agent.name.clone(), scope, tools_text(agent) + read_only, description]
        }
        Entry::Broken { name, problem, .. } => {
            [one_line(name, 64), scope, "error".into(), format!("{}: {}", place(problem), problem.message)]
        }
    }
}

/// What the file says of one agent, and then its prompt.
///
/// # Errors
/// Those of [`Agents::get`].
pub fn show_text(agents: &Agents, name: &str) -> Result<String, AgentError> {
    let agent = agents.get(name)?;
    let mode = match agent.permission_mode {
        PermissionMode::Default => "default",
        PermissionMode::DontAsk => "dontAsk",
    };
    let scope = agent.source.scope;
    let mut lines = vec![
        ("name", agent.name.clone()),
        ("description", one_line(&agent.description, usize::MAX)),
        ("file", agent.source.path.display().to_string()),
        ("scope", format!("{} (priority {})", scope.as_str(), scope.priority())),
        ("model", agent.model.as_str().to_owned()),
        ("tools", tools_text(agent)),
    ];
    if !agent.disallowed_tools.is_empty() {
        lines.push(("never", words(&agent.disallowed_tools).join(", ")));
    }
    lines.push(("mode", mode.to_owned()));
    lines.extend(agent.max_turns.map(|turns| ("max turns", turns.to_string())));
    if agent.read_only {
        lines.push(("read-only", "yes: of Bash only commands that read".to_owned()));
    }
    if agent.main_session_only {
        lines.push(("only in", "the main session".to_owned()));
    }
    let head = lines.iter().map(|(key, value)| format!("{key:<12} {value}\n")).collect::<String>();
    Ok(format!("{head}\n{}\n", agent.prompt))
}

/// An array with one object an agent, without prompts. A broken one has `error` in place of what its file says.
#[must_use]
pub fn list_json(agents: &Agents) -> Value {
    agents
        .entries()
        .map(|entry| match entry {
            Entry::Usable(agent) => about(agent),
            Entry::Broken { name, source, problem } => {
                let mut value = json!({ "name": name, "error": problem });
                place_json(&mut value, source);
                value
            }
        })
        .collect()
}

/// One agent with its `prompt`.
///
/// # Errors
/// Those of [`Agents::get`].
pub fn show_json(agents: &Agents, name: &str) -> Result<Value, AgentError> {
    let agent = agents.get(name)?;
    let mut value = about(agent);
    value["prompt"] = agent.prompt.as_str().into();
    Ok(value)
}

fn about(agent: &NamedAgent) -> Value {
    let mut value = json!({
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "tools": agent.tools.as_deref().map_or_else(|| vec!["*".to_owned()], words),
        "disallowedTools": words(&agent.disallowed_tools),
        "permissionMode": agent.permission_mode,
        "maxTurns": agent.max_turns,
        "readOnly": agent.read_only,
        "mainSessionOnly": agent.main_session_only,
    });
    place_json(&mut value, &agent.source);
    value
}

fn place_json(value: &mut Value, source: &Source) {
    value["filePath"] = source.path.display().to_string().into();
    value["scope"] = source.scope.as_str().into();
    value["priority"] = source.scope.priority().into();
}

fn words(tools: &[ToolPattern]) -> Vec<String> {
    tools.iter().map(ToString::to_string).collect()
}

fn tools_text(agent: &NamedAgent) -> String {
    agent.tools.as_deref().map_or_else(|| "*".to_owned(), |tools| words(tools).join(", "))
}

fn place(problem: &Problem) -> String {
    format!("{}:{}:{}", problem.file.display(), problem.line, problem.column)
}

/// On one line, at most so many characters, without what would drive a terminal.
fn one_line(text: &str, longest: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= longest {
        return line;
    }
    line.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
