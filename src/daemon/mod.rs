//! The service: one process a data folder, wired together here, and its control socket.
//!
//! Knows every part; no part knows it. Who may ask what of it is decided by a token that is presented, never
//! guessed from processes: [`wire`] says how. Knows nothing of how answers are shown.

pub mod call;
mod channels;
pub mod client;
pub mod control;
pub mod ending;
pub mod event_stream;
mod files;
pub mod handlers;
pub mod hearing;
mod heartbeat;
mod hosts;
mod idle_client;
pub mod lock;
mod maintenance;
mod page;
mod problems;
mod received;
mod runtime_files;
pub mod service;
pub mod settings;
mod shared_files;
mod sign_in;
mod supervisor;
pub mod wire;
