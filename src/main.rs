//! The `ollim-bot` command.

fn main() {}
