//! What the bot has one of: the main session and the ping budget.

pub mod budget;
