//! The trampoline: the program that a shell finds under every program's name.
//!
//! It has the program's real arguments, environment, folder and descriptors, and sends them to the broker. Then it ends as the
//! program ended, or becomes it if that may run in the shell's own domain. It has no rights of its own: a process that speaks to
//! the broker in its place gains nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open, umask};

use crate::wire::{self, BROKER, Instruction, Request};
use crate::{SOCKET_VARIABLE, TOKEN_VARIABLE};

/// The environment of a process of the shell.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// Exit code for a program that was found but not started.
const NOT_STARTED: u8 = 126;

/// Time within which processes of a run that is over have been ended.
const ENDED_BY_THEN: Duration = Duration::from_secs(2);

/// Limit of the descriptors that are handed over. Bash uses those from 10 up itself, and those from 63 down for substitutions.
const HANDED_ON: i32 = 100;

/// Asks for the program that `argv` names, and ends as it ends.
pub(crate) fn run(argv: Vec<OsString>) -> ExitCode {
    let name = argv.first().cloned().unwrap_or_default();
    match ask(argv) {
        Ok(Instruction::End(code, message)) => {
            if !message.is_empty() {
                report_error(OsStr::new("ollim-bot"), &message);
            }
            ExitCode::from(code)
        }
        Ok(Instruction::Become(_)) => ExitCode::from(NOT_STARTED),
        Err(error) => {
            // After the run's end, this process is ended during the sleep, before it can complain.
            std::thread::sleep(ENDED_BY_THEN);
            report_error(&name, &format!("not started: {error}"));
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn report_error(who: &OsStr, what: &str) {
    // Standard error may be closed; there is no other place to report to.
    let _ = writeln!(io::stderr(), "{}: {what}", who.to_string_lossy());
}

fn ask(argv: Vec<OsString>) -> io::Result<Instruction> {
    let me = pidfd_open(getpid(), PidfdFlags::empty())?;
    let descriptor = |number| pidfd_getfd(&me, number, PidfdGetfdFlags::empty());
    // Copy them before opening anything else, so that none of this process's own is among them.
    let mut handed: Vec<(i32, OwnedFd)> = Vec::new();
    for number in 0..HANDED_ON {
        let ours = number == me.as_raw_fd() || handed.iter().any(|(_, copy)| copy.as_raw_fd() == number);
        if !ours && let Ok(copy) = descriptor(number) {
            handed.push((number, copy));
        }
    }
    let broker = match descriptor(BROKER) {
        Ok(socket) => socket,
        Err(_) => present(b"start", b"", &std::env::vars_os().collect())?,
    };
    let folder = rustix::fs::open(".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let (mut ours, theirs) = UnixStream::pair()?;
    let mask = umask(Mode::empty());
    umask(mask);
    let request = Request {
        env: std::env::vars_os().collect(),
        descriptors: handed.iter().map(|(number, _)| *number).collect(),
        umask: mask.as_raw_mode(),
        argv,
    };
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![theirs.as_fd(), folder.as_fd()];
    descriptors.extend(handed.iter().map(|(_, copy)| copy.as_fd()));
    wire::send_with(&broker, b"x", &descriptors).map_err(gone)?;
    drop(descriptors);
    // An open end of a pipe would make its reader wait for this process too.
    drop((theirs, folder, broker, handed));
    wire::write_block(&mut ours, &request.to_bytes()).map_err(gone)?;
    let instruction = serde_json::from_slice(&wire::read_block(&mut ours).map_err(gone)?)?;
    if let Instruction::Become(program) = &instruction {
        let [name, arguments @ ..] = request.argv.as_slice() else { return Err(io::ErrorKind::InvalidInput.into()) };
        return Err(Command::new(program).arg0(name).args(arguments).exec());
    }
    Ok(instruction)
}

fn gone(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the sandbox that decides about it has ended ({error})"))
}

/// Connects to the broker that the environment names, and presents the run's token and a shell's script.
///
/// # Errors
/// If the environment names no broker, or it does not answer.
pub(crate) fn present(role: &[u8], script: &[u8], env: &Environment) -> io::Result<OwnedFd> {
    let text = |name: &str| {
        let value = env.get(OsStr::new(name)).and_then(|value| value.to_str());
        value.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name} is not set")))
    };
    let (path, token) = (text(SOCKET_VARIABLE)?, text(TOKEN_VARIABLE)?);
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let (path, folder) = wire::reachable(Path::new(&path))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    drop(folder);
    wire::send_with(&socket, &[role, b" ", token.as_bytes(), b"\n", script].concat(), &[])?;
    Ok(socket)
}
