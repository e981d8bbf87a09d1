//! Options with which a container is made (`docker run`), as they stand in front of its image.

use crate::options::GivenOption;
use crate::programs::{self, ContainerOptions, Effect, Program};
use crate::wildcard::STAR;

/// The words behind the subcommand of a program that makes a container.
struct Container<'a> {
    known: &'static ContainerOptions,
    behind: &'a [String],
    /// Whether the subcommand may be a value, so that a later word is the subcommand.
    in_doubt: bool,
}

/// Returns the words from the first one on that is the subcommand, or an option that may take it for its value.
fn from_first_unknown<'a>(known: &ContainerOptions, arguments: &'a [String]) -> &'a [String] {
    let mut rest = arguments;
    while let [word, others @ ..] = rest {
        rest = match word.as_str() {
            word if programs::contains(known.valued, word) => others.get(1..).unwrap_or_default(),
            word if programs::contains(known.groups, word) || programs::contains(known.switches, word) => others,
            word if word.starts_with("--") && word.contains('=') => others,
            _ => return rest,
        };
    }
    &[]
}

/// Returns the words from the subcommand on of a program that makes containers. None, if that may be the value of an option.
pub(crate) fn from_subcommand<'a>(program: &Program, arguments: &'a [String]) -> &'a [String] {
    let words = program.container.map(|known| from_first_unknown(known, arguments)).unwrap_or_default();
    if words.first().is_some_and(|word| word.starts_with(['-', STAR])) { &[] } else { words }
}

/// Returns the words behind the subcommand of a program that makes a container, or `None` for other programs and subcommands.
fn container<'a>(program: &Program, arguments: &'a [String]) -> Option<Container<'a>> {
    let known = program.container?;
    let makes = |word: &str| programs::contains(known.subcommands, word);
    let (word, others) = from_first_unknown(known, arguments).split_first()?;
    if word.starts_with('-') {
        // The next word may be its value.
        let at = others.iter().position(|word| makes(word))?;
        return Some(Container { known, behind: &others[at + 1..], in_doubt: true });
    }
    makes(word).then_some(Container { known, behind: others, in_doubt: false })
}

/// Returns the words behind the subcommand of a program that makes a container. `None` for other programs and subcommands.
pub(crate) fn behind<'a>(program: &Program, arguments: &'a [String]) -> Option<&'a [String]> {
    container(program, arguments).map(|container| container.behind)
}

/// What the next word of a call may be. In doubt it is both. If it is neither, the image has ended the options.
#[derive(Clone, Copy)]
struct Next {
    /// An option, or the image.
    option: bool,
    /// The value of the option before it.
    value: bool,
}

impl Next {
    const OPTION: Self = Self { option: true, value: false };
    const VALUE: Self = Self { option: false, value: true };
    const EITHER: Self = Self { option: true, value: true };
    const END: Self = Self { option: false, value: false };
}

/// Returns the options with which a container is made that may open something to it. They stand in front of the image.
pub(crate) fn guarded(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let Some(Container { known, behind, in_doubt }) = container(program, arguments) else { return Vec::new() };
    let mut found = Vec::new();
    let mut next = Next::OPTION;
    for word in behind {
        let mut after = Next::END;
        if next.option {
            let (options, then) = container_word(known, word);
            let unsafe_ones = options.into_iter().filter(|option| !programs::contains(known.harmless, option));
            found.extend(unsafe_ones.map(|option| GivenOption::word(option, Effect::Destroys)));
            after = then;
        }
        // Behind a value is an option, or the image. So it is behind the subcommand.
        after.option |= next.value || (in_doubt && programs::contains(known.subcommands, word));
        next = after;
    }
    found
}

/// Returns whether the last word of a rule may be the image of a container that is run (`docker run --rm acme/*`).
pub(crate) fn ends_at_image(program: &Program, rule: &[String]) -> bool {
    let Some(Container { known, behind, .. }) = container(program, rule) else { return false };
    let verb = rule.len().checked_sub(behind.len() + 1).map(|at| rule[at].as_str());
    let Some((last, before)) = behind.split_last().filter(|_| verb == Some("run")) else { return false };
    let behind = |next: Next, word: &String| {
        let mut after = if next.option { container_word(known, word).1 } else { Next::END };
        after.option |= next.value;
        after
    };
    before.iter().fold(Next::OPTION, behind).option && !last.starts_with('-')
}

/// Returns the options in a word that is no value, and what may be behind it.
fn container_word(known: &ContainerOptions, word: &str) -> (Vec<String>, Next) {
    let text = word.split(STAR).next().unwrap_or_default();
    let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty() && *letters != "-") else {
        // A star may stand for options.
        return (Vec::new(), if word.starts_with(STAR) { Next::OPTION } else { Next::END });
    };
    if let Some(long) = letters.strip_prefix('-') {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let next = match () {
            () if value.is_some() || programs::contains(known.own_switches, name) => Next::OPTION,
            () if programs::contains(known.own_valued, name) => Next::VALUE,
            () => Next::EITHER,
        };
        return (vec![format!("--{name}")], next);
    }
    let mut options = Vec::new();
    let mut next = Next::OPTION;
    for (at, letter) in letters.char_indices() {
        options.push(format!("-{letter}"));
        let is_last = at + letter.len_utf8() == letters.len();
        if known.values.contains(letter) {
            next = if is_last { Next::VALUE } else { Next::OPTION };
            break;
        }
        if !known.flags.contains(letter) && is_last {
            next = Next::EITHER;
        }
    }
    (options, next)
}
