//! Support for the tests: bots, agent clients, stubs of servers, and the real PostgreSQL.

pub mod accounts;
pub mod bot;
pub mod client;
pub mod discord;
pub mod disk;
pub mod flags;
pub mod http;
pub mod installed;
pub mod job_shell;
pub mod machine;
pub mod messages_api;
pub mod network;
pub mod ntfy;
pub mod phone;
#[allow(dead_code, reason = "the kill test uses all of it")]
pub mod postgres;
pub mod processes;
pub mod random;
pub mod simcord;
pub mod smtp;
pub mod telegram;
pub mod telegram_chat;
pub mod terminal;
pub mod turn;
pub mod wait;
