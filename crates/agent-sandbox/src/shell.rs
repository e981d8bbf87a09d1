//! The client's shell: the client starts it in the place of bash, and it becomes the real bash inside a domain without power.
//!
//! In that domain only bash, filters, wrappers and the [trampoline](crate::trampoline) may be executed, and files are open only
//! where the job's rules say. The client also calls its shell to read the person's environment and to take a snapshot of their
//! startup files. This module answers both itself, so that no snapshot can redefine the programs that a line names.
//!
//! The forms of the calls were observed with 2.1.197 and 2.1.330.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use crate::descriptors;
use crate::trampoline::{self, Environment};
use crate::wire::{self, BROKER, ShellSpec};

/// The folder with the link to this program that a client uses as its shell (`…/client-shell/bash`).
pub const FOLDER: &str = "client-shell";

/// The name of the link.
pub const NAME: &str = "bash";

/// Returns the path of the link in a run's folder.
#[must_use]
pub fn link_in(run_dir: &Path) -> PathBuf {
    run_dir.join(FOLDER).join(NAME)
}

/// Exit code if the shell could not be started.
const NOT_STARTED: u8 = 126;

/// The beginning of the client's script that takes a snapshot.
pub(crate) const SNAPSHOT: &[u8] = b"SNAPSHOT_FILE=";

/// Becomes bash, or reports the error on standard error. `args`: without the program's name.
pub(crate) fn run(args: Vec<OsString>) -> ExitCode {
    // The client's own descriptors: its files and sockets.
    match descriptors::close_inherited().and_then(|()| start(&args, &std::env::vars_os().collect(), || Ok(()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other place to report to.
            let _ = writeln!(io::stderr(), "ollim-bot: the job's shell did not start: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// Becomes bash, unless a snapshot or the environment is asked for. `env`: the environment of the shell. `begin` is called when all else is
/// done.
///
/// # Errors
/// If the words are others than a client's, the broker does not know the run, the domain cannot be entered, or `begin` fails.
pub(crate) fn start(args: &[OsString], env: &Environment, begin: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let script = script_of(args)?;
    let socket = trampoline::present(b"shell", script.as_bytes(), env)?;
    let mut bytes = vec![0; 1024 * 1024];
    let (length, _) = wire::receive_with(&socket, &mut bytes)?;
    if length == 0 {
        return Err(io::Error::other("the sandbox does not know this run"));
    }
    let spec: Result<ShellSpec, String> = serde_json::from_slice(&bytes[..length])?;
    let mut spec = spec.map_err(io::Error::other)?;
    if spec.plain {
        let of_client = |name: &OsStr| spec.of_client.iter().any(|own| own.as_str() == name);
        let kept = env.iter().filter(|(name, _)| !of_client(name));
        let own = spec.env.iter().filter(|(name, _)| of_client(OsStr::new(name)));
        begin()?;
        return Err(Command::new(&spec.bash).arg0("bash").args(args).env_clear().envs(kept).envs(own).exec());
    }
    if let Some(rest) = script.as_bytes().strip_prefix(SNAPSHOT) {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return std::fs::write(unquoted(line), "# A job's shell takes nothing from startup files.\n");
    }
    if script.as_bytes() == b"env" {
        let mut out = io::stdout().lock();
        return spec.env.iter().try_for_each(|(name, value)| writeln!(out, "{name}={value}"));
    }
    if let Some(file) = folder_file(&script, env) {
        // The client reads the line's final folder from this file. It is the client's only file that a shell writes.
        let made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(&file);
        if made.is_ok() {
            spec.domain.write.push(file);
        }
    }
    let _held = at_its_number(socket)?;
    spec.limits.apply()?;
    spec.domain.enter_last().map_err(io::Error::other)?;
    begin()?;
    let mut line = spelled(&spec).into_bytes();
    line.extend_from_slice(script.as_bytes());
    Err(Command::new(&spec.bash)
        .arg0("bash")
        .arg("-c")
        .arg(OsString::from_vec(line))
        .env_clear()
        .envs(&spec.env)
        .exec())
}

/// Returns the script of `-c SCRIPT` or `-c -l SCRIPT`.
fn script_of(args: &[OsString]) -> io::Result<OsString> {
    let (script, options) = args.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    if options.first().is_some_and(|option| option == "-c") && options[1..].iter().all(|option| option == "-l") {
        return Ok(script.clone());
    }
    let shown: Vec<_> = options.iter().map(|option| option.to_string_lossy()).collect();
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it takes `-c SCRIPT` only, not `{}`", shown.join(" "))))
}

/// Returns the file in the script's end: `… && pwd -P >| FILE`.
fn folder_file(script: &OsStr, env: &Environment) -> Option<PathBuf> {
    let mark = b"pwd -P >| ";
    let at = script.as_bytes().windows(mark.len()).rposition(|window| window == mark)?;
    let word = script.as_bytes()[at + mark.len()..].trim_ascii();
    let path = PathBuf::from(unquoted(word));
    let own = env.get(OsStr::new("CLAUDE_CODE_TMPDIR"))?;
    (path.is_absolute() && path.starts_with(own) && !path.components().any(|part| part.as_os_str() == ".."))
        .then_some(path)
}

/// Returns a word without the single quotes that the client may have put around it.
fn unquoted(word: &[u8]) -> OsString {
    let inner = word.strip_prefix(b"'").and_then(|word| word.strip_suffix(b"'"));
    OsString::from_vec(inner.unwrap_or(word).to_vec())
}

/// Moves the socket to the number [`BROKER`], for all descendants of the shell to inherit.
fn at_its_number(socket: OwnedFd) -> io::Result<OwnedFd> {
    let held = fcntl_dupfd_cloexec(&socket, BROKER)?;
    if held.as_raw_fd() != BROKER {
        return Err(io::Error::other(format!("descriptor {BROKER} is taken")));
    }
    fcntl_setfd(&held, FdFlags::empty())?;
    Ok(held)
}

/// Returns functions for programs that rules spell by a path. The file itself cannot be executed in this domain, but the trampoline can,
/// under that name. Paths with unusual characters get none.
fn spelled(spec: &ShellSpec) -> String {
    let plain = |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte));
    let trampoline = spec.trampoline.display().to_string().replace('\'', r"'\''");
    let function = |name: &String| format!("function {name} {{ (exec -a {name} '{trampoline}' \"$@\"); }}\n");
    spec.spelled.iter().filter(plain).map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_forms_that_a_client_uses_are_taken() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(script_of(&words(&["-c", "ls"])).unwrap(), "ls");
        assert_eq!(script_of(&words(&["-c", "-l", "ls"])).unwrap(), "ls");
        for line in [&[][..], &["ls"], &["-i"], &["-c", "-x", "ls"], &["--rcfile", "x", "-c", "ls"]] {
            assert!(script_of(&words(line)).is_err(), "{line:?}");
        }
    }

    #[test]
    fn programs_spelled_by_a_path_are_functions() {
        let spec = ShellSpec {
            trampoline: "/o'x/t".into(),
            spelled: vec!["./run.sh".into(), "/a b".into(), "/x;y".into()],
            ..ShellSpec::default()
        };
        assert_eq!(spelled(&spec), "function ./run.sh { (exec -a ./run.sh '/o'\\''x/t' \"$@\"); }\n");
    }
}
