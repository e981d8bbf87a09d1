//! The service: one process per data folder, wired together here, and its control socket.
//!
//! This module knows every part; no part knows it. Permissions come from a token that the caller presents, never from a
//! guess about processes: see [`wire`]. It does not know how answers are shown.

pub mod call;
mod channels;
pub mod client;
pub mod control;
mod cut_off_input;
pub mod event_stream;
mod files;
pub mod handlers;
mod heartbeat;
mod hosts;
mod idle_client;
pub mod incoming;
pub mod lock;
mod maintenance;
mod page;
mod problems;
mod pushed;
mod received;
mod runtime_files;
pub mod service;
pub mod settings;
mod shared_files;
pub mod shutdown;
mod sign_in;
mod supervisor;
mod waiting;
pub mod wire;
