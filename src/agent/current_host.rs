//! The host of whatever turn a client does now: a client that stays from one turn to the next has one host after the other.

use std::sync::{Arc, PoisonError, RwLock};

use agent_sandbox::{Answer, Start};
use serde_json::Value;

use super::{ExternalAnswer, JsonObject, RunHost, ToolAnswer};

/// Hands on what is asked beside the client's own stream: calls of our tools, and programs of its shell. Between turns nothing is
/// allowed.
#[derive(Default)]
pub struct CurrentHost(RwLock<Option<Arc<dyn RunHost>>>);

const NO_TURN: &str = "denied: no turn is going";

impl CurrentHost {
    /// With a turn of this host's.
    #[must_use]
    pub fn new(host: Arc<dyn RunHost>) -> Self {
        Self(RwLock::new(Some(host)))
    }

    /// From now on a turn of this host's goes; `None`: none does.
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
