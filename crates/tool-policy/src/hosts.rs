//! Stars within words that may name a place: a host, a repository, an image. They stand for a part of its name, and for nothing that
//! leads elsewhere.

use crate::programs::{self, CommandOperands, Program};
use crate::wildcard::{StarInWord, plain};

/// What a star within a word may stand for.
#[derive(Clone, Copy)]
enum Text {
    Any,
    /// Letters, digits and `_-.`, and these marks.
    Name(&'static str),
    /// [`plain`] text without these marks, and without a list.
    PlainWithout(&'static str),
}

impl Text {
    fn allows(self, text: &str) -> bool {
        let is_letter = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        match self {
            Self::Any => true,
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
    !star.stands_for.contains("://")
        && text_within(program, star, only_reads).allows(star.stands_for)
        && !(program.commands == CommandOperands::Specifiers && is_renamed(star))
}

/// Returns whether a package comes from elsewhere, under the name that the rule says: `acme-x@npm:evil`.
fn is_renamed(star: &StarInWord<'_>) -> bool {
    let word = format!("{}{}{}", star.before, star.stands_for, star.behind);
    let source = word.get(1..).and_then(|rest| rest.split_once('@')).map(|(_, source)| source.to_owned());
    source.is_some_and(|source| source.contains([':', '/']))
}

/// Returns what a star may stand for.
fn text_within(program: &Program, star: &StarInWord<'_>, only_reads: bool) -> Text {
    let StarInWord { previous, before, stands_for: _, behind } = *star;
    let of_option = |option: &str| match option.starts_with("--") {
        true => before.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')),
        false => before.starts_with(option),
    };
    let mut options = program.host_options.split_whitespace();
    if options.any(|option| previous == option || of_option(option)) {
        return Text::Name("");
    }
    // `https://*.acme.com/x`, `https://*@acme.com/x`
    if let Some((_, host)) = before.split_once("://").filter(|(_, host)| !host.contains('/') && !behind.is_empty()) {
        return Text::Name(if behind.starts_with('@') && !host.contains(':') { ":" } else { "" });
    }
    if is_text(program, previous) || (before.starts_with('-') && program.commands != CommandOperands::Connections) {
        return Text::Any;
    }
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
        CommandOperands::Fetched if before.contains("://") => Text::Any,
        CommandOperands::Contexts if is_head => Text::Name(if behind.is_empty() { ":" } else { "" }),
        // The path is another machine's, and its shell may read it.
        CommandOperands::Remote | CommandOperands::Fetched | CommandOperands::Contexts => Text::PlainWithout(""),
        // What follows would be a part of the query.
        CommandOperands::Repositories if is_head => Text::Name(""),
        CommandOperands::Repositories if !behind.is_empty() => Text::PlainWithout(""),
        CommandOperands::Connections if before.contains("://") || before.contains('/') => Text::PlainWithout(""),
        CommandOperands::Connections => Text::Name(""),
        _ if program.is_git() && !only_reads && is_head => match behind.split('/').next() {
            Some(first) if first.contains(':') => Text::Name(""),
            _ => Text::PlainWithout(":"),
        },
        // `ssh web-* uptime`
        _ if program.joins_from == Some(1) => Text::PlainWithout("@"),
        _ => Text::Any,
    }
}

/// Returns whether the word behind an option is a text, which leads nowhere.
fn is_text(program: &Program, option: &str) -> bool {
    let last = || option.strip_prefix('-').and_then(|letters| letters.chars().last()).map(|last| format!("-{last}"));
    let cluster = !option.starts_with("--") && last().is_some_and(|last| programs::contains(program.texts, &last));
    cluster || programs::contains(program.texts, option)
}
