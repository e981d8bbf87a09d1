//! JSON-RPC messages between a client's pipe and the MCP library.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The server's end of a pipe.
pub(super) struct Channel {
    pub from_client: mpsc::Receiver<Value>,
    pub to_client: mpsc::Sender<Value>,
}

/// An error of the channel to the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelError {
    /// The client has ended.
    #[error("the agent client has gone")]
    Gone,
    /// A message that is not valid JSON: a bug of the library.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Transport<RoleServer> for Channel {
    type Error = ChannelError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let to_client = self.to_client.clone();
        async move { to_client.send(serde_json::to_value(message)?).await.map_err(|_| ChannelError::Gone) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.from_client.recv().await?;
            let id = message.get("id").filter(|id| !id.is_null()).cloned();
            match serde_json::from_value(message) {
                Ok(message) => return Some(message),
                // The client waits for an answer to every message with an id.
                Err(error) => {
                    let Some(id) = id else { continue };
                    let error = json!({"code": -32600, "message": format!("not a request of MCP: {error}")});
                    self.to_client.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.from_client.close();
        Ok(())
    }
}
