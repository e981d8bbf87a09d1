//! Which client does a turn.

use std::sync::Arc;

use super::client::AgentClient;

/// There is no agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAgent {
    /// A sentence without its full stop: why, and what to do.
    pub why: String,
    /// Whether all that it lacks is a login.
    pub lacks_login: bool,
}

/// The clients of a service.
pub trait Clients: Send + Sync {
    /// The client for a turn that begins now. `needs_agent`: only an agent may do it.
    ///
    /// # Errors
    /// [`NoAgent`].
    fn choose(&self, needs_agent: bool) -> Result<Arc<dyn AgentClient>, NoAgent>;
    /// Whether there is no agent by choice, and none will come.
    fn are_without_agent(&self) -> bool {
        false
    }
    /// A run is about to be asked for: what takes time and depends on none may be made ready.
    fn get_ready(&self);
}

/// One client for every turn, whatever the turn needs.
#[derive(Clone)]
pub struct Always(pub Arc<dyn AgentClient>);

impl Clients for Always {
    fn choose(&self, _needs_agent: bool) -> Result<Arc<dyn AgentClient>, NoAgent> {
        Ok(Arc::clone(&self.0))
    }

    fn are_without_agent(&self) -> bool {
        !self.0.starts_processes()
    }

    fn get_ready(&self) {
        self.0.get_ready();
    }
}
