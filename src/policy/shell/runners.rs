//! Programs that start what their arguments say, for denials: `watch ollim-bot cal`, `flock f -c 'ollim-bot cal'`.
//!
//! For a grant these are programs like any other (their patterns get a warning on load); a denylist is a guard rail,
//! and this makes it a better one.

use super::Unreadable;
use super::script::{Command, Role, Script};
use super::word::Word;

const RUNNERS: &[&str] = &[
    "bunx",
    "bwrap",
    "capsh",
    "chroot",
    "chrt",
    "dbus-run-session",
    "docker",
    "entr",
    "fakeroot",
    "faketime",
    "firejail",
    "flock",
    "hyperfine",
    "ionice",
    "kubectl",
    "ltrace",
    "nix",
    "nix-shell",
    "npm",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pipenv",
    "pipx",
    "pkexec",
    "pnpm",
    "podman",
    "poetry",
    "proot",
    "proxychains",
    "runcon",
    "screen",
    "setarch",
    "ssh",
    "start-stop-daemon",
    "strace",
    "systemd-run",
    "taskset",
    "tmux",
    "torsocks",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "watch",
    "xvfb-run",
    "yarn",
];

/// How many of its arguments are tried as the start of a command.
const MAX_TRIED: usize = 32;

/// Adds what the program may run, as far as it can be told.
pub(super) fn add_possible(script: &mut Script, program: &str, words: &[Word], depth: usize) -> Result<(), Unreadable> {
    if !RUNNERS.contains(&program) && !program.starts_with("ld-linux") && !program.starts_with("ld.so") {
        return Ok(());
    }
    for at in 1..words.len().min(MAX_TRIED) {
        let Some(text) = words[at].literal() else { continue };
        if text.contains([' ', '\t', '\n']) {
            // Perhaps a script. What cannot be read as one is only an argument.
            let mut inner = Script::default();
            if depth < 4 && inner.add_as(text, Role::May, depth + 1).is_ok() {
                for command in inner.commands {
                    script.push(command)?;
                }
            }
        } else if !text.starts_with('-') {
            script.push(Command { words: words[at..].to_vec(), role: Role::May, hidden: None })?;
        }
    }
    Ok(())
}
