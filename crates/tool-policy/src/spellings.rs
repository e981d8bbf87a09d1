//! Other spellings of a call that do the very same: `git commit --message=x` is `git commit -m x`. A rule that grants one grants the call.

use crate::apart;
use crate::choice;
use crate::containers;
use crate::options;
use crate::programs::{self, Program, git};
use crate::wildcard::plain;

/// Returns the words of a call in its other spellings.
pub(super) fn others(words: &[String]) -> Vec<Vec<String>> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let entry = programs::by_base_name(program);
    let spelled = with_message(entry, arguments)
        .or_else(|| without_terminal(entry, arguments))
        .or_else(|| with_line(entry, arguments))
        .into_iter()
        .chain(behind_starter(entry, arguments));
    spelled.map(|arguments| [std::slice::from_ref(program), arguments.as_slice()].concat()).collect()
}

/// Returns the arguments of `git commit` with its message behind `-m`, if it is the first option besides those without a value.
fn with_message(entry: &Program, arguments: &[String]) -> Option<Vec<String>> {
    let own = if entry.is_git() { git::from_subcommand(arguments) } else { &[] };
    let (_, rest) = own.split_first().filter(|(subcommand, _)| *subcommand == "commit")?;
    let known = &git::options(Some("commit")).anywhere;
    let at = rest.iter().position(|word| !apart::is_switch(known, word))?;
    let (front, behind) = (&arguments[..arguments.len() - rest.len() + at], &rest[at + 1..]);
    let (value, behind) = match rest[at].strip_prefix("--message") {
        Some("") => (behind.first()?.as_str(), &behind[1..]),
        Some(value) => (value.strip_prefix('=')?, behind),
        None => (rest[at].strip_prefix("-m").filter(|value| !value.is_empty())?, behind),
    };
    Some([front, &["-m".to_owned(), value.to_owned()], behind].concat())
}

/// Returns the arguments that start a command in a container without the options by which it has an input and a terminal.
fn without_terminal(entry: &Program, arguments: &[String]) -> Option<Vec<String>> {
    let (verbs, letters, long) = entry.terminal?;
    let own = if entry.container.is_some() { containers::from_subcommand(entry, arguments) } else { arguments };
    let (_, behind) = own.split_first().filter(|(verb, _)| programs::contains(verbs, verb))?;
    let is_one = |word: &&String| match word.strip_prefix("--") {
        Some(name) => programs::contains(long, name),
        None => word.strip_prefix('-').is_some_and(|own| !own.is_empty() && own.chars().all(|c| letters.contains(c))),
    };
    let count = behind.iter().take_while(is_one).count();
    let front = &arguments[..arguments.len() - behind.len()];
    (count > 0).then(|| [front, &behind[count..]].concat())
}

/// Returns the arguments of a program that joins those behind a host to a line, with each word of that line on its own.
fn with_line(entry: &Program, arguments: &[String]) -> Option<Vec<String>> {
    let from = options::before_line(entry, arguments).len();
    let line = arguments.get(from..).filter(|line| entry.joins_from == Some(1) && !line.is_empty())?;
    // In front of a dash it may be an option, and other blanks than this one end a command.
    let is_split = |word: &String| {
        word.contains(' ')
            && !word.starts_with(['-', ' '])
            && word.split(' ').all(|part| !part.is_empty() && part.chars().all(plain))
    };
    let is_whole = |word: &String| !word.is_empty() && word.chars().all(plain);
    let is_known = line.iter().all(|word| is_whole(word) || is_split(word)) && line.iter().any(is_split);
    let parts = line.iter().flat_map(|word| word.split(' ')).map(ToOwned::to_owned);
    is_known.then(|| arguments[..from].iter().cloned().chain(parts).collect())
}

/// Returns the arguments of a program that starts another one, with the switches of that one behind its subcommand, and at the end,
/// or without those for a terminal.
fn behind_starter(entry: &Program, arguments: &[String]) -> Vec<Vec<String>> {
    let starts = entry.starts == Some("") && !entry.own_operand && entry.joins_from.is_none();
    let at = match choice::first_operands(entry, arguments, 0)[..] {
        [at] if starts => at,
        _ => return Vec::new(),
    };
    let (front, own) = (&arguments[..=at], &arguments[at + 1..]);
    if let Some(own) = without_terminal(programs::by_base_name(&arguments[at]), own) {
        return vec![[front, own.as_slice()].concat()];
    }
    let Some((words, switches)) = apart::switches_apart(&arguments[at], own) else { return Vec::new() };
    let Some((subcommand, rest)) = words.split_first() else { return Vec::new() };
    let subcommand = std::slice::from_ref(subcommand);
    vec![[front, subcommand, &switches, rest].concat(), [front, subcommand, rest, &switches].concat()]
}
