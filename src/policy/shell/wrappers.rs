//! Looks through commands that run other commands: `timeout 5 x`, `env A=1 x`, `xargs x`, `bash -c 'x'`, `eval x`.
//!
//! A wrapper spelled by its plain name that only runs what stands in the list as well needs no grant of its own. One
//! whose options are not all understood hides what it does.

use super::Unreadable;
use super::script::{Command, Role, Script, Target};
use super::word::{Part, Spread, Unknown, Word, shown};
use super::{builtins, find, interpreters, options, runners};

/// How deep wrappers may stand in each other.
const MAX_WRAPPERS: usize = 24;

/// The options of a wrapper, as far as they are let through.
struct Options {
    /// Short options without a value.
    flags: &'static str,
    /// Short options with one.
    values: &'static str,
    /// Long options without a value.
    long: &'static [&'static str],
    /// Long options with one.
    long_values: &'static [&'static str],
}

const NONE: Options = Options { flags: "", values: "", long: &[], long_values: &[] };

/// Adds a command and, where it runs others, those.
pub(super) fn add(script: &mut Script, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    if depth > MAX_WRAPPERS {
        return Err(Unreadable::new("commands wrapped in each other too deep"));
    }
    let Some(program) = words.first().and_then(Word::base_name).filter(|name| !name.is_empty()).map(str::to_owned)
    else {
        let hidden = match words.first() {
            Some(word) if word.literal() == Some("") => "its program is empty",
            _ => "its program is known only when it runs; write the program's name",
        };
        return script.push(Command { words, role, hidden: Some(hidden.into()) });
    };
    match program.as_str() {
        "timeout" => {
            let long = Options {
                flags: "v",
                values: "ks",
                long: &["foreground", "preserve-status", "verbose"],
                long_values: &["kill-after", "signal"],
            };
            wrapper(script, words, role, depth, &long, 1)
        }
        "nice" => {
            let known = Options { flags: "0123456789", values: "n", long: &[], long_values: &["adjustment"] };
            wrapper(script, words, role, depth, &known, 0)
        }
        "nohup" => wrapper(script, words, role, depth, &NONE, 0),
        "stdbuf" => {
            let known = Options { flags: "", values: "ioe", long: &[], long_values: &["input", "output", "error"] };
            wrapper(script, words, role, depth, &known, 0)
        }
        "setsid" => {
            let known = Options { flags: "cfw", values: "", long: &["ctty", "fork", "wait"], long_values: &[] };
            wrapper(script, words, role, depth, &known, 0)
        }
        "time" => wrapper(script, words, role, depth, &Options { flags: "pv", values: "f", ..NONE }, 0),
        "builtin" => wrapper(script, words, role, depth, &NONE, 0),
        "command" => {
            let asks = words
                .get(1)
                .is_some_and(|word| word.known_start().starts_with('-') && word.known_start().contains(['v', 'V']));
            if asks {
                return plain(script, words, role);
            }
            wrapper(script, words, role, depth, &Options { flags: "p", ..NONE }, 0)
        }
        "exec" if words.len() == 1 => script.push(Command { words, role: steers(role), hidden: None }),
        "exec" => wrapper(script, words, role, depth, &Options { flags: "l", values: "a", ..NONE }, 0),
        "sudo" | "doas" => {
            let known = Options {
                flags: "AbBEHknPS",
                values: "ugpCrtTUDR",
                long: &["non-interactive", "preserve-env", "stdin", "set-home", "background"],
                long_values: &["user", "group", "prompt", "chdir", "host"],
            };
            script.push(Command { words: words.clone(), role, hidden: None })?;
            match operands(&words, 1, &known) {
                Ok(at) if at < words.len() => environment(script, words, at, role, depth),
                Ok(_) => Ok(()),
                Err(why) => hide_last(script, why),
            }
        }
        "env" => env(script, words, role, depth),
        "xargs" => xargs(script, words, role, depth),
        "eval" => eval(script, words, 1, role, depth),
        "trap" => trap(script, words, role, depth),
        "busybox" | "toybox" if words.len() > 1 => {
            let inner = words[1..].to_vec();
            script.push(Command { words, role, hidden: None })?;
            add(script, inner, role, depth + 1)
        }
        "find" => find::add(script, words, role, depth),
        _ => {
            if interpreters::is_one(&program) {
                return interpreters::add(script, &program, words, role, depth);
            }
            if let Some(effect) = builtins::effect(script, &program, &words) {
                let role = if effect.steers { steers(role) } else { role };
                return script.push(Command { words, role, hidden: effect.hidden });
            }
            let hidden = options::hidden(&program, &words);
            let written = options::written(&program, &words);
            script.writes.extend(written.iter().map(|word| Target { path: word.path(), shown: word.shown() }));
            runners::add_possible(script, &program, &words, depth)?;
            script.push(Command { words, role, hidden })
        }
    }
}

/// A wrapper given by its plain name needs no grant; one given by path could be any program.
pub(super) fn wraps(words: &[Word], role: Role) -> Role {
    match words.first().and_then(Word::literal) {
        Some(name) if role == Role::Runs && !name.contains('/') => Role::Wraps,
        _ => role,
    }
}

fn steers(role: Role) -> Role {
    if role == Role::Runs { Role::Steers } else { role }
}

fn plain(script: &mut Script, words: Vec<Word>, role: Role) -> Result<(), Unreadable> {
    script.push(Command { words, role, hidden: None })
}

pub(super) fn hidden(script: &mut Script, words: Vec<Word>, role: Role, why: &str) -> Result<(), Unreadable> {
    script.push(Command { words, role, hidden: Some(why.into()) })
}

fn hide_last(script: &mut Script, why: String) -> Result<(), Unreadable> {
    if let Some(last) = script.commands.last_mut() {
        last.hidden = Some(why);
    }
    Ok(())
}

/// A wrapper with `skip` operands in front of the command that it runs.
fn wrapper(
    script: &mut Script,
    words: Vec<Word>,
    role: Role,
    depth: usize,
    known: &Options,
    skip: usize,
) -> Result<(), Unreadable> {
    let at = match operands(&words, 1, known) {
        Ok(at) => at,
        Err(why) => return hidden(script, words, role, &why),
    };
    if words.iter().skip(at).take(skip).any(|word| word.literal().is_none()) {
        return hidden(script, words, role, "an argument in front of the command it runs is known only when it runs");
    }
    let Some(inner) = words.get(at + skip..).filter(|inner| !inner.is_empty()).map(<[Word]>::to_vec) else {
        return plain(script, words, role);
    };
    let outer = wraps(&words, role);
    script.push(Command { words, role: outer, hidden: None })?;
    add(script, inner, role, depth + 1)
}

/// Where the operands begin.
fn operands(words: &[Word], from: usize, known: &Options) -> Result<usize, String> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            if word.may_be_option() {
                return Err(format!("`{}` may be an option", word.shown()));
            }
            return Ok(at);
        };
        if text == "--" {
            return Ok(at + 1);
        }
        let unknown = || Err(format!("its option `{text}` is not looked through"));
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if known.long_values.contains(&name) {
                at += if value.is_some() { 1 } else { 2 };
            } else if known.long.contains(&name) && value.is_none() {
                at += 1;
            } else {
                return unknown();
            }
            continue;
        }
        let Some(short) = text.strip_prefix('-').filter(|short| !short.is_empty()) else { return Ok(at) };
        at += 1;
        for (index, letter) in short.char_indices() {
            if known.values.contains(letter) {
                if index + letter.len_utf8() == short.len() {
                    if words.get(at).is_none_or(|value| value.literal().is_none()) {
                        return Err(format!("the value of `{text}` is known only when it runs"));
                    }
                    at += 1;
                }
                break;
            }
            if !known.flags.contains(letter) {
                return unknown();
            }
        }
    }
    Ok(at.min(words.len()))
}

fn env(script: &mut Script, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    let mut at = 1;
    while let Some(text) = words.get(at).and_then(Word::literal) {
        match text {
            "-i" | "-" | "--ignore-environment" => script.assigned.push("OLLIM_RUN_TOKEN".into()),
            "-v" | "-0" | "--debug" | "--null" => {}
            "--" => {
                at += 1;
                break;
            }
            "-u" | "--unset" | "-C" | "--chdir" => {
                at += 1;
                match words.get(at).and_then(Word::literal) {
                    Some(name) if text.contains('u') => script.assigned.push(name.into()),
                    Some(_) => script.moves = true,
                    None => return hidden(script, words, role, "a value of `env` is known only when it runs"),
                }
            }
            "-S" | "--split-string" => {
                return split_string(script, words.clone(), at + 1, "", role, depth);
            }
            _ if text.starts_with("--unset=") => script.assigned.push(text["--unset=".len()..].into()),
            _ if text.starts_with("--chdir=") => script.moves = true,
            _ if text.starts_with("--split-string=") => {
                let rest = text["--split-string=".len()..].to_owned();
                return split_string(script, words, at + 1, &rest, role, depth);
            }
            _ if text.starts_with("-S") || text.starts_with("-vS") => {
                let rest = text.split_once('S').map_or("", |(_, rest)| rest).to_owned();
                let from = if rest.is_empty() { at + 1 } else { at };
                return split_string(script, words, from + usize::from(!rest.is_empty()), &rest, role, depth);
            }
            _ if text.starts_with('-') => {
                let why = format!("the option `{text}` of `env` is not looked through");
                return hidden(script, words, role, &why);
            }
            _ => break,
        }
        at += 1;
    }
    let outer = wraps(&words, role);
    if words.get(at).is_none() {
        return plain(script, words, role);
    }
    script.push(Command { words: words.clone(), role: outer, hidden: None })?;
    environment(script, words, at, role, depth)
}

/// `NAME=value … command` from `at` on.
fn environment(
    script: &mut Script,
    words: Vec<Word>,
    mut at: usize,
    role: Role,
    depth: usize,
) -> Result<(), Unreadable> {
    while let Some((name, _)) = words.get(at).and_then(|word| word.known_start().split_once('=')) {
        if words[at].may_be_words() {
            return hide_last(script, format!("`{}` may become several words; quote it", words[at].shown()));
        }
        script.exported.push(name.to_owned());
        at += 1;
    }
    if at >= words.len() {
        // `env A=1` prints the environment.
        if let Some(last) = script.commands.last_mut() {
            last.role = role;
        }
        return Ok(());
    }
    add(script, words[at..].to_vec(), role, depth + 1)
}

/// `env -S 'A=1 program argument'`: plain words only, nothing quoted or expanded by `env` itself.
fn split_string(
    script: &mut Script,
    words: Vec<Word>,
    at: usize,
    attached: &str,
    role: Role,
    depth: usize,
) -> Result<(), Unreadable> {
    let (text, rest) = if attached.is_empty() {
        (words.get(at).and_then(Word::literal).map(str::to_owned), at + 1)
    } else {
        (Some(attached.to_owned()), at)
    };
    let plain_text = |text: &String| !text.contains(['\\', '\'', '"', '$', '#']);
    let Some(text) = text.filter(plain_text) else {
        return hidden(script, words, role, "`env -S` with quotes or expansions is not looked through");
    };
    let mut inner = vec![Word::text("env")];
    inner.extend(text.split_whitespace().map(Word::text));
    inner.extend(words.iter().skip(rest).cloned());
    let outer = wraps(&words, role);
    script.push(Command { words, role: outer, hidden: None })?;
    add(script, inner, role, depth + 1)
}

fn xargs(script: &mut Script, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    let known = Options {
        flags: "0rtxo",
        values: "nPLdsEI",
        long: &["null", "no-run-if-empty", "verbose", "exit", "open-tty"],
        long_values: &["max-args", "max-procs", "max-lines", "delimiter", "max-chars", "replace"],
    };
    let at = match operands(&words, 1, &known) {
        Ok(at) => at,
        Err(why) => return hidden(script, words, role, &why),
    };
    let mut replace = None;
    for (index, word) in words.iter().enumerate().take(at).skip(1) {
        let text = word.literal().unwrap_or_default();
        if let Some(attached) = text.strip_prefix("--replace=") {
            replace = Some(attached.to_owned());
        } else if !text.starts_with("--") && text.starts_with('-') && text.contains('I') {
            let attached = text.split_once('I').map_or("", |(_, rest)| rest);
            let next = words.get(index + 1).and_then(Word::literal).unwrap_or_default();
            replace = Some(if attached.is_empty() { next.to_owned() } else { attached.to_owned() });
        } else if text == "--replace" {
            return hidden(script, words, role, "`xargs --replace` needs `=` and a name");
        }
    }
    let mut inner = words[at..].to_vec();
    if inner.is_empty() {
        inner.push(Word::text("echo"));
    }
    match replace {
        Some(name) if !name.is_empty() => {
            for word in &mut inner {
                if shown(std::slice::from_ref(word)).contains(&name) {
                    *word = Word { parts: vec![unknown("a line of the input")], quoted: true };
                }
            }
        }
        _ => inner.push(Word::anything("<input>")),
    }
    let outer = wraps(&words, role);
    script.push(Command { words, role: outer, hidden: None })?;
    add(script, inner, role, depth + 1)
}

pub(super) fn unknown(raw: &str) -> Part {
    Part::Unknown(Unknown { raw: raw.into(), spread: Spread::One })
}

fn eval(script: &mut Script, words: Vec<Word>, from: usize, role: Role, depth: usize) -> Result<(), Unreadable> {
    let mut texts = Vec::new();
    for word in &words[from..] {
        match word.literal() {
            Some(text) => texts.push(text.to_owned()),
            None => return hidden(script, words, role, "what it evaluates is known only when it runs"),
        }
    }
    let outer = wraps(&words, role);
    script.push(Command { words, role: outer, hidden: None })?;
    script.add_as(&texts.join(" "), role, depth + 1)
}

fn trap(script: &mut Script, words: Vec<Word>, role: Role, depth: usize) -> Result<(), Unreadable> {
    let from = if words.get(1).and_then(Word::literal) == Some("--") { 2 } else { 1 };
    let Some(first) = words.get(from) else { return plain(script, words, role) };
    match first.literal() {
        None => hidden(script, words, role, "what it traps is known only when it runs"),
        Some("-p" | "-l") => plain(script, words, role),
        Some("-" | "") => script.push(Command { words, role: steers(role), hidden: None }),
        Some(text) => {
            let text = text.to_owned();
            let outer = wraps(&words, role);
            script.push(Command { words, role: outer, hidden: None })?;
            script.add_as(&text, role, depth + 1)
        }
    }
}
