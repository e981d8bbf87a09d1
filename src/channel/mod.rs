//! How the bot's words reach the person.
//!
//! A channel delivers what the journal keeps; what it could not deliver stays there. Knows messages, not runs.

pub mod console;
pub mod terminal;
