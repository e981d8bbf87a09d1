//! The choice of the client for a turn.

use std::sync::Arc;

use super::client::AgentClient;

/// The error that no agent is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAgent {
    /// The reason and the remedy, as a sentence without its full stop.
    pub why: String,
    /// Whether only a login is missing.
    pub lacks_login: bool,
}

/// The clients of a service.
pub trait Clients: Send + Sync {
    /// Returns the client for a turn that begins now. `needs_agent` says that only an agent may do it.
    ///
    /// # Errors
    /// [`NoAgent`] if no client is available.
    fn choose(&self, needs_agent: bool) -> Result<Arc<dyn AgentClient>, NoAgent>;
    /// Returns whether the service has no agent by choice, so that none will come.
    fn are_without_agent(&self) -> bool {
        false
    }
}

/// One client for every turn.
#[derive(Clone)]
pub struct FixedClient(pub Arc<dyn AgentClient>);

impl Clients for FixedClient {
    fn choose(&self, _needs_agent: bool) -> Result<Arc<dyn AgentClient>, NoAgent> {
        Ok(Arc::clone(&self.0))
    }

    fn are_without_agent(&self) -> bool {
        !self.0.starts_processes()
    }
}
