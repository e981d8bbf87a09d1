//! The reaper: the parent of a run's runner. It ends what is left of the run if the runner is killed.
//!
//! The reaper is a child subreaper, as the runner is. While the runner lives, the runner holds all processes of the run. If the kernel
//! or a person kills the runner, all of them become children of the reaper. The reaper kills them until it has no child left, which
//! wait(2) says exactly, however quickly they fork. No process of a run speaks to the reaper, and it takes next to no memory.
//!
//! If the reaper itself is killed, the runner ends the run.

use std::io::{self, Write};
use std::process::{Command, ExitCode};

use rustix::process::{
    DumpableBehavior, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, wait,
};

use crate::exec_stage::CANNOT_START;
use crate::{children, descriptors, runner, start};

/// The hidden command of the reaper.
pub(crate) const COMMAND: &str = "__reaper";

/// Runs the reaper until its end. Ends as the runner has ended: with its exit code, or by its signal.
pub(crate) fn run() -> ExitCode {
    match hold() {
        Ok(status) => as_runner(status),
        Err(error) => {
            // Standard error is shared with the client, and the service shows its last lines with the failure.
            let _ = writeln!(io::stderr(), "ollim-bot: the reaper of the agent client failed: {error}");
            ExitCode::from(CANNOT_START)
        }
    }
}

fn hold() -> io::Result<WaitStatus> {
    descriptors::close_inherited()?;
    set_child_subreaper(Some(getpid()))?;
    // Its standard input is the socket over which the login comes.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut command = Command::new("/proc/self/exe");
    command.args(runner::arguments()).env_clear();
    let runner = start::blocking(&mut command)?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if children::is(pid, runner) => {
                children::end_all(runner)?;
                return Ok(status);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn as_runner(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        // If it is not killed by this, its exit code says the same.
        let _ = kill_process(getpid(), signal);
    }
    children::exit_code(Some(status))
}
