//! The check that a client shows the tools that it must, and no others.

use std::iter;

use crate::agent::Request;
use crate::agent::tools::SERVER;

/// Returns the tools that are shown and must not be. The client's list calls `Agent` `Task`.
pub(super) fn forbidden_tools(shown: &[String], request: &Request) -> Vec<String> {
    let of_servers: Vec<String> = servers(request).flat_map(|(_, tools)| tools).collect();
    let known = |name: &String| {
        let name = if name == "Task" { "Agent" } else { name };
        let same = |visible: &String| visible == name || (visible == "Task" && name == "Agent");
        request.visible_tools.iter().any(same) || of_servers.iter().any(|tool| tool == name)
    };
    shown.iter().filter(|name| !known(name)).cloned().collect()
}

/// Returns a server of which no tool is shown. Without it the job could reach nobody, or not do its work.
pub(super) fn missing_server<'a>(shown: &[String], request: &'a Request) -> Option<&'a str> {
    let mut servers = servers(request);
    servers.find(|(_, tools)| !shown.iter().any(|shown| tools.contains(shown))).map(|(name, _)| name)
}

/// Returns each server with its tools, by the client's names.
fn servers(request: &Request) -> impl Iterator<Item = (&str, Vec<String>)> {
    let ours = (!request.mcp_tools.is_empty())
        .then(|| (SERVER, request.mcp_tools.iter().map(|tool| format!("mcp__{SERVER}__{tool}")).collect()));
    let others = request.external.iter().map(|server| {
        let tools = server.tools.iter().map(|tool| format!("mcp__{}__{}", server.name, tool.name));
        (&*server.name, tools.collect())
    });
    iter::once(ours).flatten().chain(others)
}
