//! Whether a client shows the tools that it must, and no others.

use std::iter;

use crate::agent::Request;
use crate::agent::tools::SERVER;

/// The tools that are shown and must not be. `Agent` is called `Task` in the client's list.
pub(super) fn surplus(shown: &[String], request: &Request) -> Vec<String> {
    let of_servers: Vec<String> = servers(request).flatten().collect();
    let known = |name: &String| {
        let name = if name == "Task" { "Agent" } else { name };
        let same = |visible: &String| visible == name || (visible == "Task" && name == "Agent");
        request.visible_tools.iter().any(same) || of_servers.iter().any(|tool| tool == name)
    };
    shown.iter().filter(|name| !known(name)).cloned().collect()
}

/// Whether there is a server of which no tool is shown: the job could reach nobody, or not do its work.
pub(super) fn lacks_a_server(shown: &[String], request: &Request) -> bool {
    servers(request).any(|mut tools| !tools.any(|tool| shown.contains(&tool)))
}

/// The tools of each server that has any, by the client's names.
fn servers(request: &Request) -> impl Iterator<Item = Box<dyn Iterator<Item = String> + '_>> {
    let named = |server: &str, tool: &str| format!("mcp__{server}__{tool}");
    let ours = request.mcp_tools.iter().map(move |tool| named(SERVER, tool));
    let ours: Box<dyn Iterator<Item = String>> = Box::new(ours);
    let others = request.external.iter().map(move |server| {
        let tools = server.tools.iter().map(move |tool| named(&server.name, &tool.name));
        Box::new(tools) as Box<dyn Iterator<Item = String>>
    });
    iter::once(ours).filter(|_| !request.mcp_tools.is_empty()).chain(others)
}
