//! The dispatcher on a simulated clock, with jobs and files that a test controls.

mod clock_set;
mod delayed;
mod delays;
mod deliveries;
mod events;
mod failing;
mod following;
mod jitter;
mod on_time;
mod overlap;
mod requests;
mod requiring;
mod restart;
mod sharing;
mod simulated;
pub(super) mod support;
mod waking;
