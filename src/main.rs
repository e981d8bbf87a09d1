//! The `ollim-bot` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = ollim_bot::agent::stage(std::env::args_os()) {
        return code;
    }
    ExitCode::SUCCESS
}
