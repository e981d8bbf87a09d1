//! Renders the person's MCP servers.

use serde_json::{Value, json};

use super::View;
use crate::agent::ExternalAnswer;
use crate::agent::ServerState;
use crate::app::ServerTools;
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, Output, STRONG, paint};

/// Lists the servers, and whether each runs.
pub(super) fn servers(servers: &[ServerState], is_running: bool, view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!(servers));
        return;
    }
    if servers.is_empty() {
        output.line("no MCP servers: `mcp_servers` in config.yaml names them");
        return;
    }
    let header = ["SERVER", "TOOLS", "STATE", "REACHED BY"];
    let mut rows = vec![header.iter().map(|name| Cell::new(name, FAINT)).collect::<Vec<_>>()];
    for server in servers {
        let state = match (&server.wrong, &server.tools) {
            (Some(why), _) => Cell::new(plain(why), BAD),
            (None, Some(_)) => Cell::new(plain(server.says.as_deref().unwrap_or("runs")), GOOD),
            (None, None) if server.says.is_some() => Cell::new("is starting", FAINT),
            (None, None) if server.per_run => Cell::new("starts with each run", FAINT),
            (None, None) => Cell::new("starts when it is needed", FAINT),
        };
        let tools = server.tools.map_or_else(String::new, |count| count.to_string());
        rows.push(vec![Cell::new(&server.name, STRONG), tools.into(), state, plain(&server.reached_by).into()]);
    }
    output.table(&rows);
    if !is_running {
        output.note("the service does not run, so no server does; `ollim-bot run` starts it");
    }
}

/// Lists the tools of servers, by the names that rules use.
pub(super) fn tools(servers: &[ServerTools], view: &View, output: &mut Output) {
    if view.json {
        let shown = |of: &ServerTools| match &of.tools {
            Ok(tools) => json!({ "server": of.server, "tools": tools }),
            Err(why) => json!({ "server": of.server, "error": why }),
        };
        output.json(&json!(servers.iter().map(shown).collect::<Vec<_>>()));
        return;
    }
    let mut rows = Vec::new();
    for of in servers {
        match &of.tools {
            Ok(tools) => rows.extend(tools.iter().map(|tool| {
                let first = plain(tool.description.lines().next().unwrap_or_default());
                vec![Cell::new(format!("mcp__{}__{}", of.server, tool.name), STRONG), first.into()]
            })),
            Err(why) => rows.push(vec![Cell::new(&of.server, STRONG), Cell::new(plain(why), BAD)]),
        }
    }
    if rows.is_empty() {
        output.line("no tools");
        return;
    }
    output.table(&rows);
}

/// Renders the answer of a tool.
pub(super) fn called(answer: &ExternalAnswer, view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!(answer));
        return;
    }
    for block in &answer.content {
        match block.get("text").and_then(Value::as_str) {
            Some(text) => text.lines().for_each(|line| output.line(plain(line))),
            None => output.line(paint(FAINT, &format!("({})", block["type"].as_str().unwrap_or("something else")))),
        }
    }
}
