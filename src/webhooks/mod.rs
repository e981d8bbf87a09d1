//! Serves `POST /hook/NAME` for other services, on a separate listener that knows no session and serves nothing else.
//!
//! A delivery is accepted only if its sender signed it with the webhook's own secret. No body beyond 64 KiB is accepted, and none is read
//! for longer than ten seconds. An answer of 202 means that the occurrence is on disk. A sender without a signature learns nothing, not
//! even whether a webhook of that name exists.

mod answer;
mod delivery;
mod listener;
mod rate;
mod refusals;
pub mod signature;

pub use listener::{ListenState, Webhooks};
