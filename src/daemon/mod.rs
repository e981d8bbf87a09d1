//! The service: one process a data folder, wired together here, and its control socket.
//!
//! Knows every part; no part knows it. Who may ask what of it is decided by a token that is presented, never
//! guessed from processes: [`wire`] says how. Knows nothing of how answers are shown.

pub mod call;
pub mod control;
pub mod delivery;
pub mod lock;
pub mod wire;
