//! What the tests stand on.

pub mod client;
pub mod messages_api;
pub mod processes;
pub mod turn;
pub mod wait;
