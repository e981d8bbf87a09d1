//! Programs that start what their arguments say, for denials: `watch ollim-bot cal`, `flock f -c 'ollim-bot cal'`.
//!
//! For a grant these are programs like any other (their patterns get a warning on load); a denylist is a guard rail,
//! and this makes it a better one.

use super::Unreadable;
use super::script::{Command, Role, Script};
use super::word::{Part, Word};

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

/// Programs that run nothing that their arguments say. Those whose options can are looked at elsewhere.
const INERT: &[&str] = &[
    "awk",
    "basename",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cmp",
    "comm",
    "cp",
    "curl",
    "cut",
    "date",
    "declare",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "export",
    "fgrep",
    "file",
    "find",
    "gawk",
    "git",
    "grep",
    "head",
    "jq",
    "kill",
    "ln",
    "local",
    "ls",
    "mawk",
    "mkdir",
    "mv",
    "nl",
    "ollim-bot",
    "paste",
    "printf",
    "ps",
    "pwd",
    "read",
    "readlink",
    "realpath",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sleep",
    "sort",
    "stat",
    "tail",
    "tar",
    "tee",
    "touch",
    "tr",
    "type",
    "uniq",
    "unset",
    "wc",
    "wget",
    "which",
    "yq",
];

/// The words that a program which may run them is given, once as they are and once with what stands between quotes cut
/// up: `choom -n 0 -- ollim-bot cal`, `python3 -m timeit 'os.system(\"ollim-bot cal\")'`. For denials.
pub(in crate::policy) fn handed_on(command: &Command) -> Option<[Vec<Word>; 2]> {
    let inert = command.words.first().and_then(Word::literal).is_some_and(|name| INERT.contains(&name));
    if inert || command.role != Role::Runs {
        return None;
    }
    let whole = command.words.get(1..)?.to_vec();
    let mut cut = Vec::new();
    for part in whole.iter().flat_map(|word| &word.parts) {
        match part {
            Part::Text(text) => {
                let words = text.split(|c: char| !c.is_alphanumeric() && !"_-./+".contains(c));
                cut.extend(words.filter(|word| !word.is_empty()).map(Word::text));
            }
            Part::Home => {}
            Part::Unknown(unknown) => cut.push(Word::anything(&unknown.raw)),
        }
    }
    Some([whole, cut])
}

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
