//! The named agents.

use super::App;
use crate::agents::{AgentError, Agents, NamedAgent};
use crate::refusal::Refusal;

/// All of them, also those whose file is broken.
pub(super) fn load(app: &App) -> Agents {
    Agents::load(&app.home, app.env.path("HOME"))
}

/// One that can be used.
pub(super) fn named(name: &str, app: &App) -> Result<NamedAgent, Refusal> {
    Ok(load(app).get(name)?.clone())
}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        Self::user(error.to_string()).hint(error.hint())
    }
}
