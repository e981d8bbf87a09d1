//! Interpreters: `bash -c '…'` is read as a script of its own; code for other interpreters, and scripts that come on
//! standard input, cannot be seen.

use super::Unreadable;
use super::script::{Command, Role, Script};
use super::word::Word;
use super::wrappers::{hidden, wraps};

const SHELLS: &[&str] = &["bash", "sh", "dash", "ash", "rbash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh"];

/// Interpreters with the short options that take code or load some, and those that take another value.
const WITH_OPTIONS: &[(&str, &str, &str)] = &[
    ("python", "ci", "WXQ"),
    ("pypy", "ci", "WXQ"),
    ("perl", "eEMmdx", "IC0"),
    ("ruby", "erxs", "IC"),
    ("php", "rRBEFa", "cdfz"),
];

/// Interpreters of which any option is taken to be code.
const PLAIN: &[&str] = &[
    "node",
    "nodejs",
    "deno",
    "bun",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "Rscript",
    "R",
    "julia",
    "guile",
    "groovy",
    "scala",
    "elixir",
    "erl",
    "racket",
    "sbcl",
    "clojure",
    "swipl",
    "ocaml",
    "octave",
    "gnuplot",
    "osascript",
    "irb",
    "iex",
    "ghci",
    "jshell",
    "tsx",
    "ts-node",
];

/// Programs whose language can start others, and that read it from anywhere.
const ALWAYS: &[&str] = &["ed", "ex", "dc", "m4", "gdb", "lldb", "at", "batch", "crontab", "script", "su", "runuser"];

/// `python3.11` is `python`.
fn family(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether it is one of these.
pub(super) fn is_one(program: &str) -> bool {
    let family = family(program);
    SHELLS.contains(&family)
        || PLAIN.contains(&family)
        || ALWAYS.contains(&program)
        || WITH_OPTIONS.iter().any(|(name, _, _)| *name == family)
}

/// Adds the interpreter and, for a shell with a literal script, what that runs.
pub(super) fn add(
    script: &mut Script,
    program: &str,
    words: Vec<Word>,
    role: Role,
    depth: usize,
) -> Result<(), Unreadable> {
    let only_asks = words.len() == 2 && matches!(words[1].literal(), Some("--version" | "-V" | "--help" | "-v" | "-h"));
    if only_asks {
        return script.push(Command { words, role, hidden: None });
    }
    let family = family(program);
    if SHELLS.contains(&family) {
        return shell(script, family, words, role, depth);
    }
    if ALWAYS.contains(&program) {
        return hidden(script, words, role, "it runs what it is told by its input or options");
    }
    let (code, values) = WITH_OPTIONS
        .iter()
        .find(|(name, _, _)| *name == family)
        .map_or((None, ""), |(_, code, values)| (Some(*code), *values));
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            return hidden(script, words, role, "its script is known only when it runs");
        };
        if text == "--" {
            at += 1;
            break;
        }
        let Some(option) = text.strip_prefix('-') else { break };
        let Some(code) = code else {
            return hidden(script, words, role, "an option of it can be code; run a script file");
        };
        if option.is_empty() {
            return hidden(script, words, role, "its script comes on standard input");
        }
        if option.starts_with('-') || option.contains(|c| code.contains(c)) {
            return hidden(script, words, role, "code on its command line cannot be judged; run a script file");
        }
        if family.starts_with("py") && option.contains('m') {
            return script.push(Command { words, role, hidden: None });
        }
        at += if option.len() == 1 && values.contains(option) { 2 } else { 1 };
    }
    file(script, words, at, role)
}

/// A script file: the pattern decides. For a denial it counts as a program of that name too.
fn file(script: &mut Script, words: Vec<Word>, at: usize, role: Role) -> Result<(), Unreadable> {
    let Some(path) = words.get(at).and_then(Word::literal).map(str::to_owned) else {
        return hidden(script, words, role, "its script comes on standard input, or is known only when it runs");
    };
    if path.starts_with("/dev/") || path.starts_with("/proc/") || path == "eval" || path == "repl" {
        return hidden(script, words, role, "its script comes on standard input");
    }
    script.push(Command { words: words[at..].to_vec(), role: Role::May, hidden: None })?;
    script.push(Command { words, role, hidden: None })
}

fn shell(script: &mut Script, family: &str, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    let mut takes_code = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            return hidden(script, words, role, "its script is known only when it runs");
        };
        match text {
            "--" | "-" => {
                at += 1;
                break;
            }
            "--norc" | "--noprofile" | "--login" | "--restricted" => at += 1,
            _ if text.starts_with("--") || text.starts_with('+') => {
                return hidden(script, words, role, "an option of it is not looked through");
            }
            _ if text.starts_with('-') => {
                let flags = &text[1..];
                if !flags.chars().all(|flag| "abefhlmnuvxcoBCEPT".contains(flag)) {
                    return hidden(script, words, role, "an option of it is not looked through");
                }
                takes_code |= flags.contains('c');
                at += 1;
                for _ in flags.matches('o') {
                    let harmless = ["errexit", "nounset", "pipefail", "xtrace", "noglob"];
                    if !words.get(at).and_then(Word::literal).is_some_and(|name| harmless.contains(&name)) {
                        return hidden(script, words, role, "an option of it is not looked through");
                    }
                    at += 1;
                }
            }
            _ => break,
        }
    }
    if !takes_code {
        return file(script, words, at, role);
    }
    let Some(code) = words.get(at).and_then(Word::literal).map(str::to_owned) else {
        return hidden(script, words, role, "the script it is given is known only when it runs");
    };
    let readable = match family {
        "bash" => true,
        "sh" | "dash" | "ash" => !has_bashism(&code),
        _ => false,
    };
    if !readable {
        return hidden(script, words, role, "its script is in another shell's language; use `bash -c`");
    }
    let outer = wraps(&words, role);
    script.push(Command { words, role: outer, hidden: None })?;
    script.add_as(&code, role, depth + 1)
}

/// What a plain `sh` reads in another way than bash, under which the script is read here.
fn has_bashism(code: &str) -> bool {
    ["$'", "$\"", "((", "[[", "<(", ">(", "<<<", "&>", "|&", ";&", "=(", "coproc", "function", "select"]
        .iter()
        .any(|bashism| code.contains(bashism))
}
