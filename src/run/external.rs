//! The MCP servers of the person's that a run has, with the tools of each that its rules grant.

use super::host::Host;
use super::runner::Runner;
use crate::agent::{ExternalServer, ExternalTool};
use crate::journal::EventKind;
use crate::mcp::servers::RunServers;
use crate::policy::Policy;

impl Runner {
    /// Reaches the servers that the run's rules name, and says what it has of each.
    ///
    /// # Errors
    /// A server that a background job needs is not there, as a sentence without its full stop. The main session goes on without it,
    /// and its record says so.
    pub(super) async fn external(&self, host: &Host) -> Result<Vec<ExternalServer>, String> {
        let (mut served, mut servers) = (Vec::new(), RunServers::default());
        for name in self.mcp_servers.names() {
            if !host.policy().may_have_of_server(&name) {
                continue;
            }
            let read = async {
                let connection = self.mcp_servers.connect(&name).await?;
                let tools = connection.tools().await?;
                Ok::<_, String>((connection, tools))
            };
            match read.await {
                Ok((connection, tools)) => {
                    let tools = granted(host.policy(), &name, tools);
                    if !tools.is_empty() {
                        servers.add(&name, &self.mcp_servers, connection, &tools);
                        served.push(ExternalServer { name, tools });
                    }
                }
                Err(why) if host.definition.background().is_some() => return Err(why),
                Err(why) => host.events.add(EventKind::Note { text: format!("without its tools: {why}") }),
            }
        }
        // A second turn of one run, in a new session, has what the first had.
        let _kept = host.servers.set(servers);
        Ok(served)
    }
}

/// Those of a server's tools that a policy grants.
fn granted(policy: &Policy, server: &str, tools: Vec<ExternalTool>) -> Vec<ExternalTool> {
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let granted = policy.visible_of_server(server, &names);
    tools.into_iter().filter(|tool| granted.contains(&tool.name)).collect()
}
