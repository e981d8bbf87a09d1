//! The MCP servers of the person's that a run has, with the tools of each that its rules grant.

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

/// So long the main session waits for servers: one that takes longer is there at a later turn.
const A_PERSON_WAITS: Duration = Duration::from_secs(5);

impl Runner {
    /// Reaches the servers that the run's rules grant something of, all at once, and says what it has of each.
    ///
    /// # Errors
    /// A server that the job's own rules name is not there, as a sentence without its full stop. Where only a wildcard or the main
    /// session reaches it, the run goes on without it, and its record says so.
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
        // A second turn of one run, in a new session, has what the first had.
        let _kept = host.servers.set(servers);
        Ok(served)
    }
}

/// A server that runs, and its tools. Its start goes on when nobody waits for it any more.
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

/// Whether a job's own rules name a server, and not only a wildcard that it falls under.
fn names_server(definition: &Definition, server: &str) -> bool {
    let Some(background) = definition.background() else { return false };
    let restrictions = &background.restrictions;
    let rules = restrictions.allowed_tools().unwrap_or_default().iter().chain(restrictions.asked_tools());
    let whole = format!("mcp__{server}");
    rules.into_iter().any(|rule| rule.tool() == whole || rule.tool().starts_with(&format!("{whole}__")))
}

/// Those of a server's tools that a policy grants.
fn granted(policy: &Policy, server: &str, tools: Vec<ExternalTool>) -> Vec<ExternalTool> {
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let granted = policy.visible_of_server(server, &names);
    tools.into_iter().filter(|tool| granted.contains(&tool.name)).collect()
}
