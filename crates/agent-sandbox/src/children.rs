//! Reaps and ends the children of the calling process, which is a child subreaper.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::tree;

/// Maximum pause before the next pass, which looks for processes forked meanwhile.
const BETWEEN_PASSES: Duration = Duration::from_millis(20);

/// Maximum number of children reaped at a time. They can end as fast as they are reaped, which would starve everything else.
const AT_A_TIME: usize = 1024;

/// Maximum number of reaps before the next look for processes: enough for all possible pids.
const BEFORE_A_LOOK: usize = (1 << 22) / AT_A_TIME;

/// What [`reap`] has found.
pub(crate) struct Reaped {
    /// The status of the child that was asked for, if it has ended.
    pub(crate) status: Option<WaitStatus>,
    pub(crate) none_left: bool,
    /// Whether further children may have ended.
    pub(crate) may_go_on: bool,
}

/// Reaps children that have ended. Calls `ended` for each of them except `child`.
pub(crate) fn reap(child: u32, mut ended: impl FnMut(u32, WaitStatus)) -> io::Result<Reaped> {
    let mut reaped = Reaped { status: None, none_left: false, may_go_on: false };
    for _ in 0..AT_A_TIME {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if is(pid, child) => reaped.status = Some(status),
            Ok(Some((pid, status))) => ended(number(pid), status),
            Ok(None) => return Ok(reaped),
            Err(rustix::io::Errno::CHILD) => {
                reaped.none_left = true;
                return Ok(reaped);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    reaped.may_go_on = true;
    Ok(reaped)
}

/// Kills everything below the calling process until nothing is left. Returns the status of `child` if it was still running.
///
/// # Errors
/// If the kernel does not tell of children.
pub(crate) fn end_all(child: u32) -> io::Result<Option<WaitStatus>> {
    let mut of_child = None;
    let mut pause = Duration::from_millis(1);
    loop {
        // Reap all ended children first, since a pass over the processes visits each of them.
        for _ in 0..BEFORE_A_LOOK {
            let reaped = reap(child, |_, _| {})?;
            of_child = of_child.or(reaped.status);
            if reaped.none_left {
                return Ok(of_child);
            }
            if !reaped.may_go_on {
                break;
            }
        }
        if let Err(error) = tree::kill_below(std::process::id()) {
            // Standard error is the client's. Retry, since nothing may be left.
            let _ = writeln!(io::stderr(), "ollim-bot: the processes of the agent client cannot be found: {error}");
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(BETWEEN_PASSES);
    }
}

/// Returns the exit code as shells do: the process's own, or 128 plus the number of its signal.
pub(crate) fn exit_code(ended: Option<WaitStatus>) -> ExitCode {
    let Some(status) = ended else { return ExitCode::from(128 + 9) };
    let status = ExitStatus::from_raw(status.as_raw());
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Returns whether this is the process with that number.
pub(crate) fn is(pid: Pid, number_of: u32) -> bool {
    number(pid) == number_of
}

fn number(pid: Pid) -> u32 {
    u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default()
}
