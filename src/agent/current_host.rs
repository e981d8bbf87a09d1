//! The host of a client's present turn. The main session's client may serve several turns, each with its own host.

use std::sync::{Arc, PoisonError, RwLock};

use agent_sandbox::{Answer, Start};
use serde_json::Value;

use super::{ExternalAnswer, JsonObject, RunHost, ToolAnswer};

/// A forwarder to the present turn's host, for tool calls and for programs of the client's shell. Between turns it denies all.
#[derive(Default)]
pub struct CurrentHost(RwLock<Option<Arc<dyn RunHost>>>);

const NO_TURN: &str = "denied: no turn is going";

impl CurrentHost {
    /// Creates a forwarder to this host.
    #[must_use]
    pub fn new(host: Arc<dyn RunHost>) -> Self {
        Self(RwLock::new(Some(host)))
    }

    /// Sets the host of the present turn; `None` means that no turn is running.
    pub(super) fn set(&self, host: Option<Arc<dyn RunHost>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = host;
    }

    fn get(&self) -> Option<Arc<dyn RunHost>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// See [`RunHost::judge`].
    pub(super) async fn judge(&self, start: Start) -> Answer {
        match self.get() {
            Some(host) => host.judge(start).await,
            None => Answer::Deny { code: 126, message: NO_TURN.into() },
        }
    }

    /// See [`RunHost::caller`].
    pub(super) async fn caller(&self, script: String) -> Result<Option<String>, String> {
        match self.get() {
            Some(host) => host.caller(script).await,
            None => Err(NO_TURN.into()),
        }
    }

    /// See [`RunHost::call_tool`].
    pub async fn call_tool(&self, name: &str, arguments: Value) -> ToolAnswer {
        match self.get() {
            Some(host) => host.call_tool(name, arguments).await,
            None => ToolAnswer { text: NO_TURN.into(), is_error: true },
        }
    }

    /// See [`RunHost::call_external`].
    pub async fn call_external(&self, server: &str, tool: &str, arguments: JsonObject) -> ExternalAnswer {
        match self.get() {
            Some(host) => host.call_external(server, tool, arguments).await,
            None => ExternalAnswer::refused(NO_TURN.into()),
        }
    }
}
