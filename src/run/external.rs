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
    /// A sentence without its full stop if a server that the job's own rules name is not available. If only a wildcard or the main
    /// session uses the server, the run continues without it, and its record says so.
    pub(super) async fn external(&self, host: &Host) -> Result<Vec<ExternalServer>, String> {
        let granted_of = |name: &String| host.policy().may_have_of_server(name);
        let names: Vec<String> = self.mcp_servers.names().into_iter().filter(granted_of).collect();
        let is_background = host.definition.background().is_some();
        let reached = names.iter().map(|name| reached(self.mcp_servers.clone(), name.clone(), is_background));
        let (mut served, mut servers) = (Vec::new(), RunServers::default());
        for (name, read) in names.iter().zip(join_all(reached).await) {
            match read {
                Ok((connection, tools)) => {
                    let tools = granted(host.policy(), name, tools);
                    if !tools.is_empty() {
                        servers.add(name, &self.mcp_servers, connection, &tools);
                        served.push(ExternalServer { name: name.clone(), tools });
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

/// Returns whether a job's own rules name a server, rather than match it by a wildcard.
fn names_server(definition: &Definition, server: &str) -> bool {
    let Some(background) = definition.background() else { return false };
    let restrictions = &background.restrictions;
    let rules = restrictions.allowed_tools().unwrap_or_default().iter().chain(restrictions.asked_tools());
    let whole = format!("mcp__{server}");
    rules.into_iter().any(|rule| rule.tool() == whole || rule.tool().starts_with(&format!("{whole}__")))
}

/// Returns the tools of a server that a policy grants.
fn granted(policy: &Policy, server: &str, tools: Vec<ExternalTool>) -> Vec<ExternalTool> {
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let granted = policy.visible_of_server(server, &names);
    tools.into_iter().filter(|tool| granted.contains(&tool.name)).collect()
}
