//! The connection of a client to the servers of its tools: JSON-RPC messages through a pipe, without a port.
//!
//! The server is passed in as a function, so that clients do not know its tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::CurrentHost;

pub use crate::policy::SERVER;

/// A further MCP server, with those of its tools that a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalServer {
    /// The server's name.
    pub name: String,
    /// The tools that the run has.
    pub tools: Vec<ExternalTool>,
    /// The bare names of those that the job's own rules name. Without one of them the job does not begin.
    pub named: Vec<String>,
}

/// A tool of a further server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalTool {
    /// The bare name: letters, digits, `_` and `-`.
    pub name: String,
    /// The server's description of the tool, for the agent.
    pub description: String,
    /// The arguments, as JSON Schema.
    pub schema: Arc<Map<String, Value>>,
}

/// The answer of a further server's tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalAnswer {
    /// Content blocks of the Model Context Protocol.
    pub content: Vec<Value>,
    /// Whether the call was refused or failed.
    pub is_error: bool,
}

impl ExternalAnswer {
    /// Creates the answer to a call that was refused or failed, with a sentence for the agent.
    #[must_use]
    pub fn refused(text: String) -> Self {
        Self { content: vec![json!({"type": "text", "text": text})], is_error: true }
    }

    /// Returns the text blocks, joined with line feeds.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A server as `mcp list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState {
    /// The server's name.
    pub name: String,
    /// The program, or the address.
    pub reached_by: String,
    /// Number of tools that it offers; `None` if it is not running.
    pub tools: Option<usize>,
    /// The name and version that it reports.
    pub says: Option<String>,
    /// The reason why it is not running although it should.
    pub wrong: Option<String>,
    /// Number of starts.
    pub starts: u64,
    /// Whether each run has its own instance.
    pub per_run: bool,
}

impl ServerState {
    /// Creates the state of a server that was not started.
    #[must_use]
    pub fn unstarted(name: String, reached_by: String, per_run: bool) -> Self {
        Self { name, reached_by, tools: None, says: None, wrong: None, starts: 0, per_run }
    }
}

/// The JSON-RPC channels to one run's tool servers. Dropping it ends the servers; the host finishes its calls.
pub struct ToolPipe {
    /// Requests and notifications of the client, by the server's name.
    pub to_servers: BTreeMap<String, mpsc::Sender<Value>>,
    /// The servers' answers.
    pub from_server: mpsc::Receiver<Value>,
    /// The calls that the host is serving.
    pub calls: TaskTracker,
}

impl ToolPipe {
    /// Waits until the host has finished its calls, for at most `at_most`. Returns whether it has.
    pub(super) async fn drain(&self, at_most: Duration) -> bool {
        self.calls.close();
        let drained = tokio::time::timeout(at_most, self.calls.wait()).await.is_ok();
        self.calls.reopen();
        drained
    }

    /// Accepts no more calls, and waits for the host to finish its calls, for at most `at_most`.
    pub(super) async fn end(self, at_most: Duration) {
        drop((self.to_servers, self.from_server));
        self.calls.close();
        if tokio::time::timeout(at_most, self.calls.wait()).await.is_err() {
            tracing::warn!("a tool of ours is still at work though its run is over");
        }
    }
}

/// A function that starts the servers of exactly these tools, our own (bare names) and further ones. They pass calls to `host`.
pub type ServeTools = fn(tools: &[String], external: &[ExternalServer], host: Arc<CurrentHost>) -> ToolPipe;
