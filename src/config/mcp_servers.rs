//! The setting `mcp_servers`: the person's own servers, whose tools jobs may be granted.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::channels::is_address;
use super::section::Section;
use super::values::{fault, variable};
use crate::definition::frontmatter::Node;
use crate::definition::quoted;
use crate::definition::values::{Fault, Value, span_text};

/// An MCP server of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Its name: its tools are `mcp__NAME__TOOL`.
    pub name: String,
    /// The connection to it.
    pub transport: McpTransport,
    /// Whether each run starts its own server.
    pub per_run: bool,
    /// Maximum time for a call, and for the server's start.
    pub timeout: Duration,
}

impl McpServer {
    /// Returns the names of the secrets that it needs.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        match &self.transport {
            McpTransport::Command { env, .. } => env,
            McpTransport::Url { token_env, .. } => token_env.as_slice(),
        }
    }

    /// Returns the program with its arguments, or the address.
    #[must_use]
    pub fn reached_by(&self) -> String {
        match &self.transport {
            McpTransport::Command { command, .. } => command.join(" "),
            McpTransport::Url { url, .. } => url.clone(),
        }
    }
}

/// The connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that speaks the protocol over its standard input and output.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Names of the variables in `.env` that the program receives.
        env: Vec<String>,
        /// Folders that the program may read.
        reads: Vec<PathBuf>,
        /// Folders that the program may read and change.
        writes: Vec<PathBuf>,
        /// Whether the program has network access.
        network: bool,
    },
    /// A running server, over streamable HTTP.
    Url {
        /// Its address.
        url: String,
        /// Name of the variable in `.env` that holds a bearer token; `None` if the server needs none.
        token_env: Option<String>,
    },
}

const HINT: &str = "write `mcp_servers: { calendar: { command: [uvx, my-calendar-server], env: [CALENDAR_TOKEN] } }`";

/// The default of `timeout`.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads `mcp_servers: { calendar: { command: [uvx, my-calendar-server] } }`.
pub(super) fn mcp_servers(value: &Value) -> Result<Vec<McpServer>, Fault> {
    let Node::Map(entries) = value.node else {
        return Err(fault("`mcp_servers` must name servers".into(), HINT));
    };
    let mut servers: Vec<McpServer> = Vec::new();
    for (item, entry) in entries.iter().enumerate() {
        let read = name(&entry.key).and_then(|name| {
            if servers.iter().any(|server| server.name == name) {
                return Err(fault(format!("`mcp_servers.{name}` is set twice"), "keep one of the two"));
            }
            server(name, &entry.value, value)
        });
        servers.push(read.map_err(|fault| Fault { item: Some(item), ..fault })?);
    }
    Ok(servers)
}

/// Checks a server's name: part of a tool's name, without the separator `__`. `discord` and `bot` are our own server.
fn name(text: &str) -> Result<String, Fault> {
    let fits = (1..=32).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        && !text.contains("__")
        && !text.starts_with('_')
        && !text.ends_with('_');
    if !fits {
        let message = format!("{} cannot be the name of an MCP server", quoted(text));
        return Err(fault(message, "use at most 32 letters, digits, `-` and single `_`"));
    }
    if text.starts_with("discord") || text == "bot" {
        let message = format!("an MCP server cannot be called `{text}`: rules would take it for the bot's own tools");
        return Err(fault(message, "choose another name"));
    }
    Ok(text.to_owned())
}

fn server(name: String, node: &Node, value: &Value) -> Result<McpServer, Fault> {
    let Node::Map(entries) = node else {
        return Err(fault(format!("`mcp_servers.{name}` must have a `command` or a `url`"), HINT));
    };
    let fields = Section { name: format!("mcp_servers.{name}"), entries, hint: HINT };
    let timeout = match fields.get("timeout") {
        Some(node) => Value { name: "timeout", node, ..*value }.span(Duration::from_secs(1))?,
        None => TIMEOUT,
    };
    let transport = match (fields.get("command"), fields.text("url")?) {
        (Some(_), None) => {
            fields.only(&["command", "env", "reads", "writes", "network", "per_run", "timeout"])?;
            let env = fields.texts("env")?;
            env.iter().try_for_each(|name| variable(name))?;
            McpTransport::Command {
                command: fields.command()?,
                env,
                reads: fields.folders("reads")?,
                writes: fields.folders("writes")?,
                network: fields.get("network").is_none() || fields.flag("network")?,
            }
        }
        (None, Some(url)) => {
            fields.only(&["url", "token_env", "timeout"])?;
            if !is_address(url) {
                return Err(fields.wrong("url", "an address such as `https://mcp.example.com/mcp`"));
            }
            let token_env = fields.text("token_env")?.map(str::to_owned);
            token_env.iter().try_for_each(|name| variable(name))?;
            McpTransport::Url { url: url.to_owned(), token_env }
        }
        _ => return Err(fault(format!("`mcp_servers.{name}` must have either a `command` or a `url`"), HINT)),
    };
    Ok(McpServer { name, transport, per_run: fields.flag("per_run")?, timeout })
}

/// Returns the value as it would be written.
pub(super) fn mcp_servers_shown(servers: &[McpServer]) -> Json {
    let shown = |server: &McpServer| {
        let mut fields = Map::new();
        let mut set = |key: &str, value: Json, is_set: bool| {
            if is_set {
                fields.insert(key.to_owned(), value);
            }
        };
        match &server.transport {
            McpTransport::Command { command, env, reads, writes, network } => {
                set("command", json!(command), true);
                set("env", json!(env), !env.is_empty());
                set("reads", json!(reads), !reads.is_empty());
                set("writes", json!(writes), !writes.is_empty());
                set("network", json!(false), !network);
            }
            McpTransport::Url { url, token_env } => {
                set("url", json!(url), true);
                set("token_env", json!(token_env), token_env.is_some());
            }
        }
        set("per_run", json!(true), server.per_run);
        set("timeout", json!(span_text(server.timeout)), server.timeout != TIMEOUT);
        (server.name.clone(), Json::Object(fields))
    };
    Json::Object(servers.iter().map(shown).collect())
}
