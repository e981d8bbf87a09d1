//! Takes what other services send to `POST /hook/NAME`: on a listener of its own, which knows no session and serves nothing else.
//!
//! What always holds: nothing is taken that its sender has not signed with the webhook's own secret; nothing is read beyond 64 KiB or for
//! longer than a few seconds; nothing is answered with 202 that is not on the disk. Who signs nothing learns nothing, not even whether
//! a webhook of that name exists.

mod answer;
mod delivery;
mod listener;
mod rate;
mod refusals;
pub mod signature;

pub use listener::{Listening, Webhooks};
