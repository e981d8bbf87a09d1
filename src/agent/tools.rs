//! How a client reaches the server of our tools: JSON-RPC messages through a pipe, no port.
//!
//! The server is handed in, so that clients know nothing of what it serves.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::CurrentHost;

/// JSON-RPC with one run's server of tools. Dropping it ends the server; calls that the host is serving go on.
pub struct ToolPipe {
    /// Requests and notifications of the client.
    pub to_server: mpsc::Sender<Value>,
    /// The server's answers.
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
        drop((self.to_server, self.from_server));
        self.calls.close();
        if tokio::time::timeout(at_most, self.calls.wait()).await.is_err() {
            tracing::warn!("a tool of ours is still at work though its run is over");
        }
    }
}

/// Starts a server that offers exactly the named tools (bare names) and hands their calls to the host.
pub type ServeTools = fn(tools: &[String], host: Arc<CurrentHost>) -> ToolPipe;
