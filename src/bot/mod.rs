//! The parts that the bot has once: the main session, the ping budget, and the listeners to turns.

pub mod budget;
pub mod fork_turns;
pub mod live;
pub mod main_session;
pub mod mid_turn;

use budget::SharedBudget;
use fork_turns::ForkTurns;
use live::LiveTurns;
use main_session::MainSession;
use mid_turn::MidTurnMessages;

/// The bot's state, shared by all runs.
#[derive(Clone)]
pub struct Bot {
    /// The one long-lived conversation.
    pub main: MainSession,
    /// Messages sent while it answers.
    pub mid_turn: MidTurnMessages,
    /// The messages that background jobs may send.
    pub budget: SharedBudget,
    /// Turns of forks in which the person talks.
    pub forks: ForkTurns,
    /// The listeners to running turns.
    pub live: LiveTurns,
}
