//! What the tests stand on.

pub mod bot;
pub mod client;
pub mod processes;
pub mod wait;
