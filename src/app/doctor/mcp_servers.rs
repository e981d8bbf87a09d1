//! Checks whether the person's MCP servers can start.

use super::Finding;
use crate::app::{App, mcp_servers};

/// Returns one finding for each thing that a server lacks, or one for all servers.
pub(super) fn servers(app: &App) -> Vec<Finding> {
    let Ok(config) = app.config() else { return Vec::new() };
    let lacks = mcp_servers::lacks(app).into_iter();
    let found: Vec<Finding> = lacks
        .map(|lack| Finding::wrong("MCP server", format!("`{}` {}", lack.server, lack.what)).step(lack.hint))
        .collect();
    if !found.is_empty() || config.mcp_servers.is_empty() {
        return found;
    }
    let names: Vec<&str> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    vec![Finding::ok("MCP server", names.join(", "))]
}
