//! The command line: what is typed, done and shown.

pub mod args;
pub mod error;
pub mod output;
pub mod times;
pub mod when;
