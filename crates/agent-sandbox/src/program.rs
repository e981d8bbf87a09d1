//! The launcher: a process that waits for a program and becomes it, in that program's own domain.
//!
//! Prespawned; it has one thread, starts nothing, and dies with the runner. While it waits, it sets up the part of the domain that
//! programs have in common ([`PreparedDomain`]), since that takes longer than the rest.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Signal, fchdir, setsid, umask};

use crate::domain::{Domain, PreparedDomain};
use crate::wire::{self, BROKER, ProgramSpec, Request};
use crate::{descriptors, exec_stage, limits, start};

/// The hidden command of the launcher.
pub(crate) const COMMAND: &str = "__program";

/// A number above those of all descriptors that a program can be handed.
const ASIDE: i32 = 300;

/// Returns the command line of the calling runner's launcher.
pub(crate) fn arguments() -> [OsString; 2] {
    [COMMAND.into(), std::process::id().to_string().into()]
}

/// Becomes the program, or reports the error over its socket. `args`: those of [`arguments`] without the command's own name.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let runner = args.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
    if descriptors::close_inherited().is_err() {
        return ExitCode::from(exec_stage::CANNOT_START);
    }
    let Ok(stream) = fcntl_dupfd_cloexec(io::stdin(), ASIDE + 400) else {
        return ExitCode::from(exec_stage::CANNOT_START);
    };
    let mut stream = UnixStream::from(stream);
    let error = match wait(&runner, &mut stream) {
        // The runner has ended without a program to start.
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(error)) | Err(error) => error,
    };
    // The runner reads the error. If it has ended, there is nobody to notify.
    let _ = write!(stream, "{error}");
    ExitCode::from(exec_stage::CANNOT_START)
}

/// Waits for a program and becomes it. Returns the error if it could not start, or `None` if none was requested.
fn wait(runner: &str, stream: &mut UnixStream) -> io::Result<Option<io::Error>> {
    if !start::ends_with_parent(runner, Signal::KILL)? {
        return Ok(None);
    }
    setsid()?;
    limits::end_first();
    let domain: Domain = serde_json::from_slice(&wire::read_block(&mut *stream)?)?;
    let low = low_numbers()?;
    let prepared = PreparedDomain::new(&domain).map_err(io::Error::other)?;
    drop(low);
    let mut first = [0; 1];
    let (length, mut received) = wire::receive_with(&*stream, &mut first)?;
    if length == 0 {
        return Ok(None);
    }
    let spec: ProgramSpec = serde_json::from_slice(&wire::read_block(&mut *stream)?)?;
    let request = Request::from_bytes(&wire::read_block(&mut *stream)?).ok_or(io::ErrorKind::InvalidData)?;
    if received.len() != spec.descriptors.len() + 2 {
        return Err(io::Error::other("descriptors are missing"));
    }
    let handed = received.split_off(2);
    let [folder, broker] = <[OwnedFd; 2]>::try_from(received).map_err(|_| io::ErrorKind::InvalidData)?;
    fchdir(&folder)?;
    drop(folder);
    if let Some(mask) = spec.umask {
        umask(Mode::from_raw_mode(mask));
    }
    let _kept = in_their_places(&spec.descriptors, handed, broker)?;
    spec.limits.apply()?;
    prepared.enter_last(&spec.domain).map_err(io::Error::other)?;
    Ok(Some(become_program(spec.program, &request.argv, &spec.env)))
}

fn become_program<'a>(
    program: PathBuf,
    argv: &[OsString],
    env: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> io::Error {
    let mut command = Command::new(&program);
    if let Some((name, arguments)) = argv.split_first() {
        command.arg0(name).args(arguments);
    }
    let env = env.into_iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let error = command.env_clear().envs(env).exec();
    io::Error::new(error.kind(), format!("{}: {error}", program.display()))
}

/// Occupies all free numbers that a program can be handed, so that descriptors opened meanwhile get higher ones.
fn low_numbers() -> io::Result<Vec<OwnedFd>> {
    let mut held = Vec::new();
    loop {
        let next = fcntl_dupfd_cloexec(io::stdin(), 3)?;
        if next.as_raw_fd() >= ASIDE {
            return Ok(held);
        }
        held.push(next);
    }
}

/// Moves each descriptor to the number that it had in the shell, and the broker's socket to its own. The returned descriptors must stay
/// open until the program starts.
fn in_their_places(numbers: &[i32], handed: Vec<OwnedFd>, broker: OwnedFd) -> io::Result<Vec<OwnedFd>> {
    // First move all out of the way, then each to its number.
    let aside = |descriptor: &OwnedFd| fcntl_dupfd_cloexec(descriptor, ASIDE);
    let copies: Vec<OwnedFd> = handed.iter().map(aside).collect::<rustix::io::Result<_>>()?;
    let broker_copy = aside(&broker)?;
    drop((handed, broker));
    let null = aside(&rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)?;
    let of = |wanted: i32| numbers.iter().position(|number| *number == wanted).map_or(&null, |at| &copies[at]);
    rustix::stdio::dup2_stdin(of(0))?;
    rustix::stdio::dup2_stdout(of(1))?;
    rustix::stdio::dup2_stderr(of(2))?;
    let mut kept = Vec::new();
    let others = numbers.iter().copied().zip(&copies).filter(|(number, _)| *number > 2);
    for (number, copy) in others.chain([(BROKER, &broker_copy)]) {
        let placed = fcntl_dupfd_cloexec(copy.as_fd(), number)?;
        if placed.as_raw_fd() != number {
            return Err(io::Error::other(format!("descriptor {number} is taken")));
        }
        fcntl_setfd(&placed, FdFlags::empty())?;
        kept.push(placed);
    }
    Ok(kept)
}
