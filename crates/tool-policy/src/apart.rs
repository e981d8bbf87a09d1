//! Options whose position means nothing: `make -j4 check` is `make check -j4`, and `git commit -am x` is `git commit -m x -a`.

use crate::programs::{self, Anywhere, Program, git};
use crate::wildcard::STAR;

/// Returns the words of a call without its harmless options, and those options, if a program takes them in any position (`make -j4
/// check`).
pub(super) fn harmless_apart(program: &str, arguments: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let entry = programs::by_base_name(program);
    apart(program, arguments, &harmless(entry).or_else(|| anywhere(entry, arguments))?)
}

/// Returns the words of a call without the options that only change what it prints. `None` if it has none.
pub(super) fn without_printing(program: &str, arguments: &[String]) -> Option<Vec<String>> {
    let known = anywhere(programs::by_base_name(program), arguments)?.printing_only();
    let (words, printing) = apart(program, arguments, &known)?;
    (!printing.is_empty()).then_some(words)
}

/// Returns whether a program has options that are taken apart.
pub(super) fn moves_options(program: &str) -> bool {
    let entry = programs::by_base_name(program);
    let has_own = !entry.options.anywhere.is_empty() || !entry.anywhere_by.is_empty();
    entry.is_git() || has_own || harmless(entry).is_some()
}

/// Returns a program's harmless options, if it takes them in any position.
fn harmless(entry: &Program) -> Option<Anywhere> {
    entry.harmless.filter(|tool| !tool.switches.is_empty()).map(|tool| tool.anywhere())
}

/// Returns the options that a program, or a subcommand of git, takes in any position.
fn anywhere(entry: &Program, arguments: &[String]) -> Option<Anywhere> {
    let first = arguments.first().map(String::as_str);
    let known = match entry.is_git() {
        true => git::options(first).anywhere,
        false => by_subcommand(entry, arguments).unwrap_or(entry.options.anywhere),
    };
    (!known.is_empty()).then_some(known)
}

/// Returns the options that a subcommand takes in any position, if the words begin with one that has its own. Of some programs its
/// switches may stand in front of it.
fn by_subcommand(entry: &Program, arguments: &[String]) -> Option<Anywhere> {
    let is_option = |word: &&String| entry.leading && word.starts_with('-');
    let (front, own) = arguments.split_at(arguments.iter().take_while(is_option).count());
    let (first, others) = own.split_first()?;
    let full = others.first().map(|second| format!("{first}-{second}")).unwrap_or_default();
    let is_it = |names| programs::contains(names, first) || programs::contains(names, &full);
    let known = entry.anywhere_by.iter().find(|(names, _)| is_it(names)).map(|(_, known)| *known)?;
    front.iter().all(|word| is_switch(&known, word)).then_some(known)
}

/// Returns whether a word is options that have no value.
pub(super) fn is_switch(known: &Anywhere, word: &str) -> bool {
    let is_valued = word.contains('=') || word.chars().any(|letter| known.values.contains(letter));
    !is_valued && harmless_in(known, word).is_some_and(|(_, is_open)| !is_open)
}

/// Returns the words behind a program without the switches that its subcommand takes in any position, and those switches. `None` if there
/// are none. Behind an option with a value all words stay where they are.
pub(super) fn switches_apart(program: &str, arguments: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let entry = programs::by_base_name(program);
    let known = Anywhere { values: "", valued: "", pairs: "", ..by_subcommand(entry, arguments)? };
    let (words, switches) = apart(program, arguments, &known)?;
    // Behind `--` a switch is an operand.
    let is_sure = !switches.is_empty() && !arguments.iter().any(|word| word == "--");
    is_sure.then(|| (words[1..].to_vec(), switches))
}

fn apart(program: &str, arguments: &[String], known: &Anywhere) -> Option<(Vec<String>, Vec<String>)> {
    let entry = programs::by_base_name(program);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let (mut plain, mut harmless) = (vec![program.to_owned()], Vec::new());
    let mut rest = arguments.iter().peekable();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') {
            plain.push(word.clone());
            // What stands behind a script is the script's.
            if entry.interpreter {
                plain.extend(rest.by_ref().cloned());
            }
        } else if let Some((mut options, open)) = harmless_in(known, word) {
            // Values of `make` are optional numbers.
            let next = rest.next_if(|next| open && (!entry.variables || is_number(next)));
            options.last_mut().into_iter().for_each(|last| last.extend(next.map(String::as_str)));
            harmless.extend(options);
        } else {
            // What stands behind another option may be its value.
            let (options, other) = split(known, word);
            harmless.extend(options);
            plain.push(other);
            plain.extend(rest.by_ref().cloned());
        }
    }
    Some((plain, harmless))
}

/// Returns the options in a word, each with its value, and whether the next word may be the value of the last one. `None` if one of them is
/// not harmless, or may have a value in another word.
fn harmless_in(known: &Anywhere, word: &str) -> Option<(Vec<String>, bool)> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty() && !word.contains(STAR))?;
    if let Some(long) = letters.strip_prefix('-') {
        let name = long.split('=').next().unwrap_or_default();
        let is_pair = programs::contains(known.pairs, name);
        let is_open = !long.contains('=');
        let names = if is_open { known.switches } else { known.valued };
        return (is_pair || programs::contains(names, name)).then(|| (vec![word.to_owned()], is_pair && is_open));
    }
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        if known.values.contains(letter) {
            let value = &letters[at..];
            found.push(format!("-{value}"));
            return Some((found, value.len() == letter.len_utf8()));
        }
        found.push(known.flags.contains(letter).then(|| format!("-{letter}"))?);
    }
    Some((found, false))
}

/// Returns the number of words in front of the first one that is neither such an option nor the value of one.
pub(super) fn in_front(known: &Anywhere, words: &[String]) -> usize {
    let mut at = 0;
    while let Some((_, is_open)) = words.get(at).and_then(|word| harmless_in(known, word)) {
        at += 1 + usize::from(is_open);
    }
    at.min(words.len())
}

/// Splits the letters at the beginning of a cluster from its other options: `-am` is `-a -m`.
pub(super) fn split(known: &Anywhere, word: &str) -> (Vec<String>, String) {
    let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-')).unwrap_or_default();
    let others = cluster.trim_start_matches(|letter| known.flags.contains(letter));
    let flags = &cluster[..cluster.len() - others.len()];
    if flags.is_empty() || others.is_empty() {
        return (Vec::new(), word.to_owned());
    }
    (flags.chars().map(|letter| format!("-{letter}")).collect(), format!("-{others}"))
}
