//! The person's own MCP servers, and what they offer. The running service starts them.

use super::service::{another_answer, ask};
use super::{App, Outcome, ServiceCommand, ServiceReply};
use crate::agent::ExternalTool;
use crate::agent::ServerState;
use crate::config::McpServer;
use crate::refusal::Refusal;

/// The tools of one server.
#[derive(Clone, Debug)]
pub struct ServerTools {
    /// Its name.
    pub server: String,
    /// What it offers, or why that is not known.
    pub tools: Result<Vec<ExternalTool>, String>,
}

/// Each server as it is; where the service does not run, as the settings have it.
pub(super) fn list(app: &App) -> Result<Outcome, Refusal> {
    match app.service.ask(ServiceCommand::McpServers)? {
        Some(ServiceReply::McpServers(servers)) => Ok(Outcome::McpServers { servers, is_running: true }),
        Some(_) => Err(another_answer()),
        None => {
            let config = app.config()?;
            let unstarted =
                |server: &McpServer| ServerState::unstarted(server.name.clone(), server.reached_by(), server.per_run);
            let servers = config.mcp_servers.iter().map(unstarted).collect();
            Ok(Outcome::McpServers { servers, is_running: false })
        }
    }
}

/// The tools of one server, or of each.
pub(super) fn tools(server: Option<String>, app: &App) -> Result<Vec<ServerTools>, Refusal> {
    let one = |server: String| match ask(ServiceCommand::McpTools { server }, app)? {
        ServiceReply::McpTools { server, tools } => Ok(ServerTools { server, tools: Ok(tools) }),
        _ => Err(another_answer()),
    };
    if let Some(server) = server {
        return one(server).map(|tools| vec![tools]);
    }
    let servers = app.config()?.mcp_servers.iter().map(|server| server.name.clone()).collect::<Vec<_>>();
    let of_each = servers.into_iter().map(|name| {
        one(name.clone()).unwrap_or_else(|refusal| ServerTools { server: name, tools: Err(refusal.to_string()) })
    });
    Ok(of_each.collect())
}
