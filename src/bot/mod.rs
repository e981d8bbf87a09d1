//! What the bot has one of: the main session, the ping budget, and who looks on.

pub mod budget;
pub mod fork_turns;
pub mod live;
pub mod main_session;
pub mod meanwhile;

use budget::SharedBudget;
use fork_turns::ForkTurns;
use live::LiveTurns;
use main_session::MainSession;
use meanwhile::Meanwhile;

/// The bot's own things, shared by every run.
#[derive(Clone)]
pub struct Bot {
    /// The one long-lived conversation.
    pub main: MainSession,
    /// What is said while it answers.
    pub meanwhile: Meanwhile,
    /// Messages that background jobs may send.
    pub budget: SharedBudget,
    /// The turns of forks that the person talks in.
    pub forks: ForkTurns,
    /// Who looks on while turns go.
    pub live: LiveTurns,
}
