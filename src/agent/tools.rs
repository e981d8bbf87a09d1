//! How a client reaches the server of our tools: JSON-RPC messages through a pipe, no port.
//!
//! The server is handed in, so that clients know nothing of what it serves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::CurrentHost;

/// The name of our own server.
pub const SERVER: &str = "discord";

/// A server beside our own, with the tools of it that a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalServer {
    /// Its name.
    pub name: String,
    /// What the run has of it.
    pub tools: Vec<ExternalTool>,
}

/// A tool of such a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalTool {
    /// Its bare name: letters, digits, `_` and `-`.
    pub name: String,
    /// What it says of itself, for the agent.
    pub description: String,
    /// Its arguments, as JSON Schema.
    pub schema: Arc<Map<String, Value>>,
}

/// What such a tool answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalAnswer {
    /// Content blocks of the Model Context Protocol.
    pub content: Vec<Value>,
    /// Whether the call was refused or failed.
    pub is_error: bool,
}

impl ExternalAnswer {
    /// It was not done, or failed: a sentence for the agent.
    #[must_use]
    pub fn refused(text: String) -> Self {
        Self { content: vec![json!({"type": "text", "text": text})], is_error: true }
    }

    /// Its texts, a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A server as `mcp list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// The program, or the address.
    pub reached_by: String,
    /// How many tools it offers; `None`: it does not run.
    pub tools: Option<usize>,
    /// What it calls itself, with its version.
    pub says: Option<String>,
    /// Why it does not run, where it should.
    pub wrong: Option<String>,
    /// How often it was started.
    pub starts: u64,
    /// Whether each run has one of its own.
    pub per_run: bool,
}

impl ServerState {
    /// One that does not run, and was not tried.
    #[must_use]
    pub fn unstarted(name: String, reached_by: String, per_run: bool) -> Self {
        Self { name, reached_by, tools: None, says: None, wrong: None, starts: 0, per_run }
    }
}

/// JSON-RPC with one run's servers of tools. Dropping it ends the servers; calls that the host is serving go on.
pub struct ToolPipe {
    /// Requests and notifications of the client, by the server's name.
    pub to_servers: BTreeMap<String, mpsc::Sender<Value>>,
    /// The servers' answers.
    pub from_server: mpsc::Receiver<Value>,
    /// The calls that the host is serving.
    pub calls: TaskTracker,
}

impl ToolPipe {
    /// Waits, at most so long, for the calls that the host is serving. Whether there are none left.
    pub(super) async fn drain(&self, at_most: Duration) -> bool {
        self.calls.close();
        let drained = tokio::time::timeout(at_most, self.calls.wait()).await.is_ok();
        self.calls.reopen();
        drained
    }

    /// Takes no more calls, and waits, at most so long, for those that the host is serving.
    pub(super) async fn end(self, at_most: Duration) {
        drop((self.to_servers, self.from_server));
        self.calls.close();
        if tokio::time::timeout(at_most, self.calls.wait()).await.is_err() {
            tracing::warn!("a tool of ours is still at work though its run is over");
        }
    }
}

/// Starts servers that offer exactly these tools, of our own (bare names) and of others, and hand their calls to the host.
pub type ServeTools = fn(tools: &[String], external: &[ExternalServer], host: Arc<CurrentHost>) -> ToolPipe;
