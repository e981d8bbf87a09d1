//! The person's own MCP servers and their tools. The running service starts them.

use std::path::Path;

use super::service::{ask, unexpected_reply};
use super::{App, Outcome, ServiceCommand, ServiceReply};
use crate::agent::ExternalTool;
use crate::agent::ServerState;
use crate::config::{McpServer, McpTransport, secrets};
use crate::refusal::Refusal;
use crate::search_path;

/// The tools of one server.
#[derive(Clone, Debug)]
pub struct ServerTools {
    /// Its name.
    pub server: String,
    /// Its tools, or why they are not known.
    pub tools: Result<Vec<ExternalTool>, String>,
}

/// Returns the state of each server; if the service is not running, as the settings define it.
pub(super) fn list(app: &App) -> Result<Outcome, Refusal> {
    let (mut servers, is_running) = match app.service.ask(ServiceCommand::McpServers)? {
        Some(ServiceReply::McpServers(servers)) => (servers, true),
        Some(_) => return Err(unexpected_reply()),
        None => {
            let config = app.config()?;
            let unstarted =
                |server: &McpServer| ServerState::unstarted(server.name.clone(), server.reached_by(), server.per_run);
            (config.mcp_servers.iter().map(unstarted).collect(), false)
        }
    };
    // A server that nobody has needed yet has not failed yet.
    let lacks = lacks(app);
    for server in servers.iter_mut().filter(|server| server.tools.is_none() && server.wrong.is_none()) {
        server.wrong = lacks.iter().find(|lack| lack.server == server.name).map(|lack| lack.what.clone());
    }
    Ok(Outcome::McpServers { servers, is_running })
}

/// Returns the tools of one server, or of each.
pub(super) fn tools(server: Option<String>, app: &App) -> Result<Vec<ServerTools>, Refusal> {
    let one = |server: String| match ask(ServiceCommand::McpTools { server }, app)? {
        ServiceReply::McpTools { server, tools } => Ok(ServerTools { server, tools: Ok(tools) }),
        _ => Err(unexpected_reply()),
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

/// Something that keeps a server from starting or working, as far as that can be known without starting it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerProblem {
    /// The server's name.
    pub(super) server: String,
    /// The problem, as the rest of a sentence that begins with the server.
    pub(super) what: String,
    /// The suggested step.
    pub(super) hint: String,
}

/// Checks the program and the variables of each server. Further variables of the service's own environment are not known here.
pub(super) fn lacks(app: &App) -> Vec<ServerProblem> {
    let Ok(config) = app.config() else { return Vec::new() };
    // Problems of `.env` are reported elsewhere.
    let known = secrets::read(&app.home, &app.env.texts()).unwrap_or_default();
    // The service looks in the same folders.
    let (folders, user_home) = (app.command_folders(), app.places().user_home);
    // The sandbox gives access to programs outside of the person's home, and to those that they start.
    let home = user_home.canonicalize().unwrap_or_else(|_| user_home.clone());
    let is_in_home = |folder: &Path| folder.canonicalize().is_ok_and(|folder| folder.starts_with(&home));
    let is_shim = |folder: &Path| folder.ends_with("shims") && is_in_home(folder);
    let mut found = Vec::new();
    for server in &config.mcp_servers {
        let mut lack =
            |what: String, hint: String| found.push(ServerProblem { server: server.name.clone(), what, hint });
        for name in server.secrets().iter().filter(|name| !known.contains_key(*name)) {
            lack(
                format!("needs `{name}`, which .env does not have"),
                format!("write `{name}=…` into .env, and start the service anew"),
            );
        }
        let McpTransport::Command { command, .. } = &server.transport else { continue };
        let Some(program) = command.first() else { continue };
        match search_path::find(program, &folders, &user_home) {
            Err(error) => lack(format!("cannot start: {error}"), "install it, or write its absolute path".to_owned()),
            Ok(file) if file.parent().is_some_and(is_shim) => lack(
                format!("may not start: {} starts another program, which its sandbox does not open", file.display()),
                format!("name the real program: `pyenv which {program}` or `asdf which {program}` prints it"),
            ),
            Ok(_) => {}
        }
    }
    found
}
