//! The person's MCP servers in a run, with the tools of each that the run's rules grant.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::host::Host;
use super::runner::Runner;
use crate::agent::{ExternalServer, ExternalTool};
use crate::definition::Definition;
use crate::journal::EventKind;
use crate::mcp::servers::{Connection, McpServers, RunServers};
use crate::policy::Policy;

/// Time that the main session waits for servers. A slower one is available at a later turn.
const A_PERSON_WAITS: Duration = Duration::from_secs(5);

impl Runner {
    /// Connects to the servers of which the run's rules grant a tool, all at once, and returns the granted tools of each.
    ///
    /// # Errors
    /// A sentence without its full stop if a server or a tool that the job's own rules name is not available. If only a wildcard or
    /// the main session uses the server, the run continues without it, and its record says so.
    pub(super) async fn external(&self, host: &Host) -> Result<Vec<ExternalServer>, String> {
        let granted_of = |name: &String| host.policy().may_have_of_server(name);
        let names: Vec<String> = self.mcp_servers.names().into_iter().filter(granted_of).collect();
        let is_background = host.definition.background().is_some();
        let reached = names.iter().map(|name| reached(self.mcp_servers.clone(), name.clone(), is_background));
        let (mut served, mut servers) = (Vec::new(), RunServers::default());
        for (name, read) in names.iter().zip(join_all(reached).await) {
            match read {
                Ok((connection, tools)) => {
                    if let Some(tool) = missing(&host.definition, name, &tools) {
                        return Err(not_offered(name, tool, &tools));
                    }
                    let named = named(&host.definition, name).into_iter().map(ToOwned::to_owned).collect();
                    let tools = granted(host.policy(), name, tools);
                    if !tools.is_empty() {
                        servers.add(name, &self.mcp_servers, connection, &tools);
                        served.push(ExternalServer { name: name.clone(), tools, named });
                    }
                }
                Err(why) if names_server(&host.definition, name) => return Err(why),
                Err(why) => host.events.add(EventKind::Note { text: format!("without its tools: {why}") }),
            }
        }
        // A second turn of the same run, in a new session, keeps the servers of the first.
        let _kept = host.servers.set(servers);
        Ok(served)
    }
}

/// Connects to a server and reads its tools. The server's start continues even if nobody waits for it any more.
async fn reached(
    servers: McpServers,
    name: String,
    is_background: bool,
) -> Result<(Arc<Connection>, Vec<ExternalTool>), String> {
    let server = name.clone();
    let reading = tokio::spawn(async move {
        let connection = servers.connect(&name).await?;
        let tools = connection.tools().await?;
        Ok((connection, tools))
    });
    let read = match is_background {
        true => reading.await,
        false => match tokio::time::timeout(A_PERSON_WAITS, reading).await {
            Ok(read) => read,
            Err(_) => return Err(format!("the MCP server `{server}` is still starting")),
        },
    };
    read.map_err(|error| format!("the MCP server `{server}` is not there, by a fault of ollim-bot: {error}"))?
}

/// Returns the tools of a server that a job's own rules name: each name without its prefix, or nothing for the whole server.
fn named<'a>(definition: &'a Definition, server: &str) -> Vec<&'a str> {
    let Some(background) = definition.background() else { return Vec::new() };
    let restrictions = &background.restrictions;
    let rules = restrictions.allowed_tools().unwrap_or_default().iter().chain(restrictions.asked_tools());
    let whole = format!("mcp__{server}");
    let of_server = |rest: &'a str| if rest.is_empty() { Some(rest) } else { rest.strip_prefix("__") };
    rules.filter_map(|rule| rule.tool().strip_prefix(&whole)).filter_map(of_server).collect()
}

/// Returns whether a job's own rules name a server, rather than match it by a wildcard.
fn names_server(definition: &Definition, server: &str) -> bool {
    !named(definition, server).is_empty()
}

/// Returns a tool that a job's own rules name and the server does not offer.
fn missing<'a>(definition: &'a Definition, server: &str, offered: &[ExternalTool]) -> Option<&'a str> {
    let is_name = |name: &&str| !name.is_empty() && !name.contains('*');
    let named = named(definition, server);
    named.into_iter().filter(is_name).find(|name| offered.iter().all(|tool| tool.name != *name))
}

/// Says that a server does not offer a tool.
fn not_offered(server: &str, tool: &str, offered: &[ExternalTool]) -> String {
    let names = offered.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let offers = if names.is_empty() { "nothing".to_owned() } else { names };
    format!("the MCP server `{server}` has no tool `{tool}`, which the job's rules name; it offers {offers}")
}

/// Returns the tools of a server that a policy grants.
fn granted(policy: &Policy, server: &str, tools: Vec<ExternalTool>) -> Vec<ExternalTool> {
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let granted = policy.visible_of_server(server, &names);
    tools.into_iter().filter(|tool| granted.contains(&tool.name)).collect()
}
