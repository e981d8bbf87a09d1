//! Renders named agents and their sources.

use serde_json::{Value, json};

use super::View;
use crate::agents::{AgentEntry, Agents, NamedAgent, Source};
use crate::channel::terminal::plain_lines;
use crate::cli::output::{BAD, Cell, FAINT, Output, STRONG};
use crate::policy::{PermissionMode, ToolPattern};

/// Lists all agents. A name whose highest source is broken is listed with the problem.
pub(super) fn list(agents: &Agents, view: &View, output: &mut Output) {
    if view.json {
        output.json(&agents.entries().map(entry_json).collect::<Value>());
        return;
    }
    let mut rows = vec![["AGENT", "FROM", "MODEL", "TOOLS", ""].map(|title| Cell::new(title, FAINT)).to_vec()];
    rows.extend(agents.entries().map(row));
    output.table(&rows);
    for problem in agents.problems() {
        output.note(problem.to_string());
    }
}

fn row(entry: &AgentEntry) -> Vec<Cell> {
    let scope = entry.source().scope.as_str();
    match entry {
        AgentEntry::Usable(agent) => {
            let only = if agent.read_only { " (read-only)" } else { "" };
            vec![
                Cell::new(&agent.name, STRONG),
                scope.into(),
                agent.model.as_str().into(),
                format!("{}{only}", tools(agent)).into(),
                Cell::new(shortened(&agent.description), FAINT),
            ]
        }
        AgentEntry::Broken { name, .. } => {
            vec![Cell::new(name, STRONG), scope.into(), "-".into(), Cell::new("cannot be used", BAD)]
        }
    }
}

/// Shows one agent: its tools, its mode, its prompt.
pub(super) fn show(agent: &NamedAgent, view: &View, output: &mut Output) {
    if view.json {
        let mut value = agent_json(agent);
        value["prompt"] = agent.prompt.as_str().into();
        output.json(&value);
        return;
    }
    let scope = agent.source.scope;
    let mut rows = vec![
        ("name", agent.name.clone()),
        ("description", agent.description.clone()),
        ("file", agent.source.path.display().to_string()),
        ("scope", format!("{} (priority {})", scope.as_str(), scope.priority())),
        ("model", agent.model.as_str().to_owned()),
        ("tools", tools(agent)),
    ];
    if !agent.disallowed_tools.is_empty() {
        rows.push(("never", words(&agent.disallowed_tools).join(", ")));
    }
    rows.push(("mode", mode(agent.permission_mode).to_owned()));
    rows.extend(agent.max_turns.map(|turns| ("max turns", turns.to_string())));
    if agent.read_only {
        rows.push(("read-only", "yes: of Bash only commands that read".into()));
    }
    if agent.main_session_only {
        rows.push(("only in", "the main session".into()));
    }
    output.facts(&rows.iter().map(|(key, value)| vec![Cell::new(key, FAINT), value.into()]).collect::<Vec<_>>());
    output.line("");
    output.line(plain_lines(&agent.prompt));
}

fn entry_json(entry: &AgentEntry) -> Value {
    match entry {
        AgentEntry::Usable(agent) => agent_json(agent),
        AgentEntry::Broken { name, source, problem } => {
            let mut value = json!({ "name": name, "error": problem });
            place(&mut value, source);
            value
        }
    }
}

/// Returns the keys of the agent's file in snake_case, like all our keys, and its location.
fn agent_json(agent: &NamedAgent) -> Value {
    let mut value = json!({
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "tools": agent.tools.as_deref().map_or_else(|| vec!["*".to_owned()], words),
        "disallowed_tools": words(&agent.disallowed_tools),
        "permission_mode": agent.permission_mode,
        "max_turns": agent.max_turns,
        "read_only": agent.read_only,
        "main_session_only": agent.main_session_only,
    });
    place(&mut value, &agent.source);
    value
}

fn place(value: &mut Value, source: &Source) {
    value["file_path"] = source.path.display().to_string().into();
    value["scope"] = source.scope.as_str().into();
    value["priority"] = source.scope.priority().into();
}

fn words(tools: &[ToolPattern]) -> Vec<String> {
    tools.iter().map(ToString::to_string).collect()
}

fn tools(agent: &NamedAgent) -> String {
    agent.tools.as_deref().map_or_else(|| "*".to_owned(), |tools| words(tools).join(", "))
}

fn mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "default",
        PermissionMode::DontAsk => "dontAsk",
    }
}

/// Returns the first words of a description, for a list.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let start: String = line.chars().take(LONGEST).collect();
    format!("{}…", start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words))
}
