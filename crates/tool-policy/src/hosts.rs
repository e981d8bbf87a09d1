//! Stars within words that may name a place: a host, a repository, an image. They stand for a part of its name, and for nothing that
//! leads elsewhere.

use crate::programs::{self, Class, CommandOperands, Program};
use crate::wildcard::{BREAK, StarInWord, plain};

/// What a star within a word may stand for.
#[derive(Clone, Copy)]
enum Text {
    Any,
    /// Any text without these marks. It may be several words if each is one that the rule's word stands for: `rm a.tmp b.tmp`.
    WordsWithout(&'static str),
    /// Letters, digits and `_-.`, and these marks.
    Name(&'static str),
    /// [`plain`] text without these marks, and without a list.
    PlainWithout(&'static str),
}

/// Marks of an address behind its host. A `,` would be the end of it.
const OF_ADDRESS: &str = "/:=%+~@";

impl Text {
    fn allows(self, star: &StarInWord<'_>) -> bool {
        let text = star.stands_for;
        let is_letter = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        match self {
            Self::Any => true,
            Self::WordsWithout(marks) => {
                let all = format!("{}{text}{}", star.before, star.behind);
                let is_like = |word: &str| word.starts_with(star.before) && word.ends_with(star.behind);
                !text.contains(|letter| marks.contains(letter))
                    && (!text.contains(BREAK) || all.split(BREAK).all(is_like))
            }
            Self::Name(marks) => text.chars().all(|letter| is_letter(letter) || marks.contains(letter)),
            Self::PlainWithout(marks) => {
                text.chars().all(|letter| plain(letter) && letter != ',' && !marks.contains(letter))
            }
        }
    }
}

/// Returns whether a star within a word of a rule stands for a part of what the word names, if that may be a place. `only_reads`: whether
/// the rule's program does no more, on this machine.
pub(super) fn stays_within(program: &Program, star: &StarInWord<'_>, only_reads: bool) -> bool {
    let text = || match only_reads {
        true => Text::Any,
        false => of_option(program, star).unwrap_or_else(|| of_operand(program, star)),
    };
    !star.stands_for.contains("://")
        && in_host(program, star).unwrap_or_else(text).allows(star)
        && !(program.commands == CommandOperands::Specifiers && is_renamed(star))
}

/// Returns the same for a program whose addresses are judged apart ([`crate::fetch`]): for its options and their values.
pub(super) fn stays_within_option(program: &Program, star: &StarInWord<'_>) -> bool {
    let is_option = star.previous.starts_with('-') || star.before.starts_with('-');
    // `note=@FILE`
    let gives_file = star.before.ends_with('=') && star.stands_for.starts_with(['@', '<']);
    !is_option || (!gives_file && in_host(program, star).is_none_or(|text| text.allows(star)))
}

/// Returns whether a package comes from elsewhere, under the name that the rule says: `acme-x@npm:evil`.
fn is_renamed(star: &StarInWord<'_>) -> bool {
    let word = format!("{}{}{}", star.before, star.stands_for, star.behind);
    let source = word.get(1..).and_then(|rest| rest.split_once('@')).map(|(_, source)| source.to_owned());
    source.is_some_and(|source| source.contains([':', '/']))
}

/// Returns what a star in the name of a host may stand for. `None`: it is in none that can be told by its word.
fn in_host(program: &Program, star: &StarInWord<'_>) -> Option<Text> {
    let StarInWord { previous, before, stands_for: _, behind } = *star;
    let is_value = |option: &str| match option.starts_with("--") {
        true => before.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
        false => before.starts_with(option),
    };
    let mut options = program.host_options.split_whitespace();
    if options.any(|option| previous == option || is_value(option)) {
        return Some(Text::Name(""));
    }
    // `https://*.acme.com/x`, `https://*@acme.com/x`
    let (_, host) = before.split_once("://").filter(|(_, host)| !host.contains('/') && !behind.is_empty())?;
    Some(Text::Name(if behind.starts_with('@') && !host.contains(':') { ":" } else { "" }))
}

/// Returns what a star in an option or in its value may stand for. `None`: it is in an operand.
fn of_option(program: &Program, star: &StarInWord<'_>) -> Option<Text> {
    if is_text(program, star.previous) {
        return Some(Text::WordsWithout(""));
    }
    let (name, value) = star.before.split_once('=').unwrap_or((star.before, ""));
    if !name.starts_with('-') {
        return None;
    }
    let is_whole = value.is_empty() && star.behind.is_empty();
    let is_weak = !program.is_git() && matches!(program.class, Class::Changes | Class::Filter | Class::Reads);
    Some(match is_whole || is_weak || is_text(program, name) {
        true => Text::WordsWithout(""),
        // A list has further places: `--mount=type=bind,src=/srv/*`.
        false => Text::PlainWithout(if star.behind.starts_with(':') { ":" } else { "" }),
    })
}

/// Returns what a star in an operand may stand for.
fn of_operand(program: &Program, star: &StarInWord<'_>) -> Text {
    let StarInWord { before, behind, .. } = *star;
    // `git@*.acme.com:x`, `deploy@web*`. The last `@` counts.
    let host = before.rsplit_once('@').filter(|(user, _)| !user.is_empty()).map(|(_, host)| host);
    if host.is_some_and(|host| !host.contains(['/', ':'])) {
        return if behind.is_empty() { Text::PlainWithout("@") } else { Text::Name("") };
    }
    let is_head = !before.contains(['/', ':', '=']);
    match program.commands {
        // A file of this machine may be in a folder.
        CommandOperands::Remote if is_head => Text::Name(if behind.contains(':') { "" } else { "/" }),
        CommandOperands::Fetched if is_head => Text::Name(""),
        CommandOperands::Fetched if before.contains("://") => Text::Name(OF_ADDRESS),
        CommandOperands::Contexts if is_head => Text::Name(if behind.is_empty() { ":" } else { "" }),
        // The path is another machine's, and its shell may read it.
        CommandOperands::Remote | CommandOperands::Fetched | CommandOperands::Contexts => {
            Text::PlainWithout(if behind.starts_with(':') { ":" } else { "" })
        }
        CommandOperands::Repositories if is_head => Text::Name(""),
        // `body=@FILE`
        CommandOperands::Repositories if before.ends_with('=') => Text::WordsWithout("@"),
        // What follows would be a part of the query.
        CommandOperands::Repositories if !behind.is_empty() => Text::PlainWithout(""),
        CommandOperands::Specifiers => Text::WordsWithout(","),
        CommandOperands::Connections if before.contains('/') => Text::PlainWithout(""),
        CommandOperands::Connections => Text::Name(""),
        _ if program.is_git() && is_head => match behind.split('/').next() {
            Some(first) if first.contains(':') => Text::Name(""),
            _ => Text::WordsWithout(":"),
        },
        // `ssh web-* uptime`
        _ if program.joins_from == Some(1) => Text::PlainWithout("@"),
        _ => Text::WordsWithout(""),
    }
}

/// Returns whether the word behind an option is a text, which leads nowhere.
fn is_text(program: &Program, option: &str) -> bool {
    let last = || option.strip_prefix('-').and_then(|letters| letters.chars().last()).map(|last| format!("-{last}"));
    let cluster = !option.starts_with("--") && last().is_some_and(|last| programs::contains(program.texts, &last));
    cluster || programs::contains(program.texts, option)
}
