//! The check that a client shows the tools that it must, and no others.

use std::iter;

use crate::agent::tools::SERVER;
use crate::agent::{ExternalServer, Request};

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

/// Returns a tool that is not shown although the job's own rules name it, by the client's name.
pub(super) fn missing_tool(shown: &[String], request: &Request) -> Option<String> {
    let of_server = |server: &ExternalServer| {
        let own = server.tools.iter().filter(|tool| server.named.contains(&tool.name));
        own.map(|tool| shown_name(&server.name, &tool.name)).collect::<Vec<_>>()
    };
    request.external.iter().flat_map(of_server).find(|tool| !shown.contains(tool))
}

/// Returns each server with its tools, by the client's names.
fn servers(request: &Request) -> impl Iterator<Item = (&str, Vec<String>)> {
    let ours = (!request.mcp_tools.is_empty())
        .then(|| (SERVER, request.mcp_tools.iter().map(|tool| shown_name(SERVER, tool)).collect()));
    let others = request.external.iter().map(|server| {
        let tools = server.tools.iter().map(|tool| shown_name(&server.name, &tool.name));
        (&*server.name, tools.collect())
    });
    iter::once(ours).flatten().chain(others)
}

/// Returns the client's name of a server's tool.
fn shown_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}
