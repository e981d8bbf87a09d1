//! The `ollim-bot` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ollim_bot::cli::main(std::env::args_os().collect())
}
