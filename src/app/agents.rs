//! Loads and finds named agents.

use super::App;
use crate::agents::{AgentError, Agents, NamedAgent};
use crate::refusal::Refusal;

/// Loads all agents, including those whose file is broken.
pub(super) fn load(app: &App) -> Agents {
    Agents::load(&app.home, app.env.path("HOME"))
}

/// Returns the usable agent with this name, or whose name alone begins with it.
pub(super) fn named(name: &str, app: &App) -> Result<NamedAgent, Refusal> {
    let agents = load(app);
    let begins: Vec<&NamedAgent> =
        agents.usable().filter(|agent| !name.is_empty() && agent.name.starts_with(name)).collect();
    match (agents.get(name), &begins[..]) {
        (Err(AgentError::Unknown { .. }), [one]) => Ok((*one).clone()),
        (found, _) => Ok(found?.clone()),
    }
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        Self::user(error.to_string()).hint(error.hint())
    }
}
