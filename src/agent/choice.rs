//! Which client does a turn.

use std::sync::Arc;

use super::client::AgentClient;

/// The clients of a service.
pub trait Clients: Send + Sync {
    /// The client for a turn that begins now. `needs_agent`: only an agent may do it.
    ///
    /// # Errors
    /// A sentence without its full stop: why there is no agent, and what to do.
    fn choose(&self, needs_agent: bool) -> Result<Arc<dyn AgentClient>, String>;
    /// A run is about to be asked for: what takes time and depends on none may be made ready.
    fn get_ready(&self);
}

/// One client for every turn, whatever the turn needs.
#[derive(Clone)]
pub struct Always(pub Arc<dyn AgentClient>);

impl Clients for Always {
    fn choose(&self, _needs_agent: bool) -> Result<Arc<dyn AgentClient>, String> {
        Ok(Arc::clone(&self.0))
    }

    fn get_ready(&self) {
        self.0.get_ready();
    }
}
