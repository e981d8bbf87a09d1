//! What the bot has one of: the main session and the ping budget.

pub mod budget;
pub mod main_session;

use budget::SharedBudget;
use main_session::MainSession;

/// The bot's own things, shared by every run.
#[derive(Clone)]
pub struct Bot {
    /// The one long-lived conversation.
    pub main: MainSession,
    /// Messages that background jobs may send.
    pub budget: SharedBudget,
}
