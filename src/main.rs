//! The `ollim-bot` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = agent_sandbox::stage(std::env::args_os()) {
        return code;
    }
    ollim_bot::cli::main(std::env::args_os().collect())
}
