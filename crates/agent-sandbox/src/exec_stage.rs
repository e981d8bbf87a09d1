//! The exec stage: the process that enters the client's domain and becomes the client.
//!
//! It has one thread, starts nothing, and dies with the runner. It is separate from the runner because a domain cannot be left, and
//! because a process inside may not signal one outside. Prespawned; receives its command over the socket that is its standard
//! input.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior, setsid};

use crate::domain::{Attributes, Network};
use crate::launch::{self, Launch, ReceivedLaunch, Secret};
use crate::wire::BEGIN;
use crate::{descriptors, limits, seccomp, shell, start};

/// The hidden command of the exec stage.
pub(crate) const COMMAND: &str = "__stage2";

/// The exit code if the program could not be started.
pub const CANNOT_START: u8 = 127;

/// The exit code if the domain cannot be entered or holds less than required. The client was not started.
pub const NO_DOMAIN: u8 = 126;

/// Returns the command line of the calling runner's exec stage.
pub(crate) fn arguments() -> [OsString; 2] {
    [COMMAND.into(), std::process::id().to_string().into()]
}

/// Becomes the client, or reports the error on standard error. `args`: those of [`arguments`] without the command's own name.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (code, error) = match (args.next().and_then(|word| word.into_string().ok()), args.next()) {
        (Some(runner), None) => become_client(&runner),
        _ => (CANNOT_START, "this command is for ollim-bot itself".to_string()),
    };
    // Standard error may be closed; there is no other place to report to.
    let _ = writeln!(io::stderr(), "ollim-bot: {error}");
    ExitCode::from(code)
}

fn become_client(runner: &str) -> (u8, String) {
    match start::ends_with_parent(runner, Signal::KILL) {
        Ok(true) => {}
        Ok(false) => return (CANNOT_START, "the runner has ended".into()),
        Err(error) => return (CANNOT_START, format!("cannot be tied to the runner: {error}")),
    }
    // Detach from the terminal: keys and job control are the service's. This fails only for a group leader, which this is not.
    if let Err(error) = setsid() {
        return (CANNOT_START, format!("no session of its own: {error}"));
    }
    let (launch, stdin, runner) = match receive_launch() {
        Ok(launch) => launch,
        Err(error) => return (CANNOT_START, format!("did not receive what to start: {error}")),
    };
    limits::end_first();
    launch.mark();
    if let Some(domain) = &launch.domain
        && let Err(error) = domain.enter()
    {
        return (NO_DOMAIN, error.to_string());
    }
    if launch.is_line() {
        return (CANNOT_START, become_shell(&launch, &stdin, runner).to_string());
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(&launch.env).current_dir(&launch.work_dir).stdin(stdin);
    let error = match launch.secret.map(|secret| hold_ready(secret, &mut command)).transpose() {
        Ok(_held) => command.exec(),
        Err(error) => error,
    };
    (CANNOT_START, format!("cannot start {}: {error}", launch.program.display()))
}

/// Becomes the run's shell. The program is this one, so it need not be started anew. It prepares itself while the service still records
/// what it is about to do.
fn become_shell(launch: &Launch, stdin: &OwnedFd, mut runner: impl Read) -> io::Error {
    let begin = || runner.read_exact(&mut [0; BEGIN.len()]);
    let ready =
        rustix::stdio::dup2_stdin(stdin).map_err(Into::into).and_then(|()| std::env::set_current_dir(&launch.work_dir));
    let args: Vec<OsString> = launch.args.iter().map(OsString::from).collect();
    let env = launch.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    match ready.and_then(|()| shell::start(&args, &env, begin)) {
        Ok(()) => io::Error::other("the line is none"),
        Err(error) => error,
    }
}

/// Receives the launch, the client's standard input, and the rest of what the runner sends. That socket closes when the client starts, which
/// the runner sees.
fn receive_launch() -> io::Result<(Launch, OwnedFd, impl Read)> {
    descriptors::close_inherited()?;
    // The process holds the login for a moment, so no process of the same user may inspect it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Those of most shells are built while it waits. Whoever needs others builds them, and reports what goes wrong.
    let _ = seccomp::built(Network::None, Attributes::None);
    let ReceivedLaunch { line, stdin, rest } = launch::receive(&mut socket)?;
    Ok((launch::read(&line)?, stdin, io::Cursor::new(rest).chain(socket)))
}

/// Creates a pipe that holds the secret. Only the client inherits it.
fn hold_ready(secret: Secret, client: &mut Command) -> io::Result<io::PipeReader> {
    let (read, mut write) = io::pipe()?;
    // A pipe accepts a page without a reader. More would block forever.
    if secret.value.len() > 4096 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the login is longer than 4096 bytes"));
    }
    write.write_all(secret.value.as_bytes())?;
    fcntl_setfd(&read, FdFlags::empty())?;
    client.env(secret.variable, read.as_raw_fd().to_string());
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_starts_nothing() {
        for words in [&[][..], &["1", "--"], &["1", "/bin/true"]] {
            assert_eq!(run(words.iter().map(OsString::from)), ExitCode::from(CANNOT_START), "{words:?}");
        }
    }
}
