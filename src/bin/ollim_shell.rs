//! The stages of a job's sandbox as a program of their own: small, so that each start of one takes little time.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_sandbox::stage(std::env::args_os()).unwrap_or(ExitCode::from(2))
}
