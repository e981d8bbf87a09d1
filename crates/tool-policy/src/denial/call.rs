//! The words of a call, taken apart: what may be an operand, and what may be an option with a value.

use std::borrow::Cow;

use super::options::{Given, Reader};
use crate::programs::{self, Class, CommandOperands, OptionsEnd, Program, Syntax, base_name, git, synonyms};
use crate::wildcard::{STAR, Wildcard};

/// The words of a program, or of a rule for one.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The program by its base name, and its arguments: `git-push` is `git push`.
    pub words: Vec<String>,
    /// What each argument may be.
    pub tokens: Vec<Token>,
}

/// What a word of a call may be. In doubt it is both an operand and a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Token {
    /// The options in it.
    pub options: Vec<Given>,
    pub operand: bool,
    /// The value of the option before it.
    pub value: bool,
}

impl Call {
    /// Reads the words of a call, of which there must be at least one.
    pub fn read(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let front = match base_name(program) {
            "docker-compose" => vec!["docker".to_owned(), "compose".to_owned()],
            name => git::split(program).map_or_else(|| vec![name.to_owned()], |split| split.to_vec()),
        };
        let words = [front.as_slice(), arguments].concat();
        let tokens = tokens(programs::named(&words[0]), &words[1..]);
        Some(Self { words, tokens })
    }

    /// Returns the words with the usual name of the subcommand in place of another one (`docker container rm`).
    pub fn usual(&self) -> Option<Vec<String>> {
        let at = self.tokens.iter().position(|token| token.operand && !token.value)?;
        let second = self.tokens.get(at + 1).filter(|next| next.operand).map(|_| self.text(at + 1));
        let (name, count) = synonyms::subcommand(self.program(), self.text(at), second)?;
        let name = name.split('~').filter(|name| !name.is_empty()).map(ToOwned::to_owned);
        let front = self.words[..=at].iter().cloned();
        Some(front.chain(name).chain(self.from(at + count).iter().cloned()).collect())
    }

    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Returns the word of a token.
    pub fn text(&self, at: usize) -> &str {
        &self.words[at + 1]
    }

    /// Returns the words from a token on.
    pub fn from(&self, at: usize) -> &[String] {
        &self.words[at + 1..]
    }
}

/// Returns what each argument of a program may be. An option ends only at what is sure to end them.
fn tokens(entry: &'static Program, arguments: &[String]) -> Vec<Token> {
    let mut reader = Reader::new(entry);
    // The operands that are sure, and whether the word before may have this one for its value.
    let (mut sure, mut takes_next): (Vec<&str>, Option<bool>) = (Vec::new(), Some(false));
    let mut has_ended = false;
    let mut found = Vec::with_capacity(arguments.len());
    for (at, word) in arguments.iter().enumerate() {
        let is_value = takes_next == Some(true) && !is_option(word);
        let may_be_value = takes_next != Some(false);
        takes_next = Some(false);
        let is_bundle = at == 0 && entry.options.bundled && !is_option(word) && !word.contains(STAR);
        if is_bundle {
            let (options, next) = reader.bundle(word, &arguments[1..]);
            takes_next = next;
            found.push(Token { options, ..Token::default() });
        } else if is_value {
            found.push(Token { value: true, ..Token::default() });
        } else if !has_ended && is_option(word) {
            has_ended = word == "--" && !may_be_value;
            let (mut options, next) = reader.options(word);
            if !may_be_value {
                reader.behind(word);
            }
            let following = arguments.get(at + 1);
            takes_next = match next {
                // Values of `make` are optional numbers.
                Some(true) if is_optional(entry, &options) && !following.is_some_and(|next| is_number(next)) => None,
                // If it is a value itself, the next word is none of its own.
                Some(true) if may_be_value => None,
                next => next,
            };
            let value = following.filter(|_| next != Some(false));
            options.last_mut().into_iter().for_each(|last| last.next = value.cloned());
            found.push(Token { options, operand: false, value: may_be_value });
        } else if let Some(options) = assignment(entry, &sure, word).filter(|_| !has_ended) {
            found.push(Token { options, operand: false, value: may_be_value });
        } else {
            reader.operand(word);
            if !may_be_value {
                let is_command = begins_command(entry, &sure);
                sure.push(word);
                has_ended |= ends_options(entry, &sure, is_command);
            }
            found.push(Token { options: Vec::new(), operand: true, value: may_be_value });
        }
    }
    found
}

/// Returns whether the value of the last one of these options may be missing.
fn is_optional(entry: &Program, options: &[Given]) -> bool {
    let values = entry.harmless.filter(|_| entry.variables).map_or("", |known| known.values);
    options.last().is_some_and(|last| values.contains(&last.name))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns whether a word is an option, and not `-` alone.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Returns a variable that is set in front of a command, or for a build tool, as an option.
fn assignment(entry: &Program, operands: &[&str], word: &str) -> Option<Vec<Given>> {
    let in_front = (starts_at_once(entry) || entry.class == Class::Wrapper) && operands.is_empty();
    let (name, value) = word.split_once('=').filter(|_| entry.variables || in_front)?;
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_:+?".contains(letter));
    is_name.then(|| vec![Given { name: format!("{name}="), attached: Some(value.to_owned()), ..Given::default() }])
}

/// Returns whether the first operand of a program is the command that it starts (`sudo apt`).
fn starts_at_once(entry: &Program) -> bool {
    entry.starts == Some("") && !entry.own_operand && entry.joins_from.is_none()
}

/// Returns whether the operand behind these is the first word of a command, or of a line, that a program starts.
pub(super) fn begins_command<T: AsRef<str>>(entry: &Program, operands: &[T]) -> bool {
    let own = usize::from(entry.own_operand);
    let is_group = |word: &T| {
        let groups = entry.container.map_or("", |known| known.groups);
        [entry.groups, groups].iter().any(|names| programs::contains(names, word.as_ref()))
    };
    let begins_at = match (entry.joins_from, entry.starts) {
        (Some(from), _) => Some(from),
        (None, Some("")) => Some(own),
        (None, Some(verbs)) => {
            let at = operands.iter().position(|word| !is_group(word));
            at.filter(|at| programs::contains(verbs, operands[*at].as_ref())).map(|at| at + 1 + own)
        }
        (None, None) => None,
    };
    begins_at == Some(operands.len())
}

/// Returns whether a program takes its options everywhere in front of `--`: `kubectl` and `npm` also behind the first words of a command.
pub(super) fn takes_options_behind(entry: &Program) -> bool {
    entry.container.is_none() && entry.harmless.is_some_and(|known| known.end == OptionsEnd::Dashes)
}

/// Returns whether the options of a program end at the last one of these operands. `is_command`: whether that begins a command.
fn ends_options(entry: &Program, operands: &[&str], is_command: bool) -> bool {
    let end = entry.harmless.map(|known| known.end);
    match end {
        Some(OptionsEnd::Operand(count)) => operands.len() >= count,
        Some(OptionsEnd::Passed(verbs)) => operands.len() == 2 && programs::contains(verbs, operands[0]),
        // Those of `docker exec` end at the container.
        _ if entry.container.is_some() => begins_command(entry, operands),
        _ if takes_options_behind(entry) => false,
        _ => is_command || (entry.interpreter && !entry.subcommands),
    }
}

/// Returns the forms of an operand that mean the same: `bob@web` as `web`, `pod/web` as `web`, and `pods` as `pod`.
pub(super) fn forms<'a>(entry: &Program, at: usize, word: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    // `+HEAD:refs/heads/main` is pushed to `main`.
    let branch = Some(word).filter(|_| at > 1 && entry.is_git()).map(|word| {
        let name = word.rsplit(':').next().unwrap_or_default().trim_start_matches('+');
        let name = name.strip_prefix("refs/").unwrap_or(name);
        name.strip_prefix("heads/").unwrap_or(name)
    });
    let version =
        word.split('@').next().filter(|_| entry.commands == CommandOperands::Specifiers && !word.starts_with('@'));
    let group = Some(word).filter(|_| at > 0 && entry.commands == CommandOperands::Fetched).map(synonyms::kind);
    let host = word.rsplit_once('@').filter(|_| at == 0 && entry.host_of == Some(""));
    let name = word.split_once('/').filter(|_| entry.commands == CommandOperands::Fetched);
    let kinds = Some(word).filter(|_| at > 0 && entry.commands == CommandOperands::Fetched).map(synonyms::kinds);
    let own = [
        Some(without_unit(entry, word)),
        host.map(|(_, host)| host),
        name.map(|(_, name)| name),
        branch,
        version,
        group,
    ];
    let addresses = matches!(entry.syntax, Syntax::Fetch(_)).then(|| addresses(word));
    own.into_iter()
        .flatten()
        .chain(kinds.into_iter().flatten().map(|kind| -> &'a str { kind }))
        .map(Cow::Borrowed)
        .chain(addresses.into_iter().flatten().map(Cow::Owned))
}

/// Returns an address with its scheme and its host in lower case, and with each scheme if it has none.
fn addresses(word: &str) -> Vec<String> {
    let (scheme, rest) = word.split_once("://").map_or((None, word), |(scheme, rest)| (Some(scheme), rest));
    let end = rest.find('/').unwrap_or(rest.len());
    let rest = format!("{}{}", rest[..end].to_ascii_lowercase(), &rest[end..]);
    match scheme {
        Some(scheme) => vec![format!("{}://{rest}", scheme.to_ascii_lowercase())],
        None => vec![format!("http://{rest}"), format!("https://{rest}")],
    }
}

/// Returns `nginx` for `nginx.service`, of `systemctl`.
pub(super) fn without_unit<'a>(entry: &Program, word: &'a str) -> &'a str {
    let name = word.strip_suffix(".service").filter(|_| entry.commands == CommandOperands::Paths);
    name.unwrap_or(word)
}

/// Words of a shell behind which a command begins.
const IN_FRONT: [&str; 13] =
    ["!", "builtin", "coproc", "do", "elif", "else", "eval", "exec", "if", "then", "until", "while", "{"];

/// Returns the commands of a line for a shell, without quotes, and variables set in front of them. A mark between quotes ends a command, too.
/// If words of the shell stand in front of one, it is there with them and without.
pub(super) fn commands_of(line: &str) -> Vec<Vec<String>> {
    let ends = |letter: char| ";|&()`\n".contains(letter);
    // The mark in `>|` ends no command.
    let line = line.replace(">|", ">");
    let is_assignment = |word: &String| word.contains('=') && !word.starts_with(['-', STAR]);
    let plain = |text: &str| text.replace(['\'', '"', '\\'], "");
    let words = |part: &str| -> Vec<String> {
        let words: Vec<String> = part.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect();
        words.into_iter().skip_while(is_assignment).collect()
    };
    let behind = |words: &[String]| -> Vec<String> {
        let mut is_file = false;
        let is_in_front = |word: &&String| {
            // `{fd}>f`
            let descriptor = word.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let mark = descriptor.map_or(word.as_str(), |(_, mark)| mark);
            let mark = mark.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let is_redirection = !is_file && mark.starts_with(['<', '>']);
            let is_skipped = is_file || is_redirection || is_assignment(word) || IN_FRONT.contains(&word.as_str());
            is_file = is_redirection && mark.ends_with(['<', '>']);
            is_skipped
        };
        words.iter().skip_while(is_in_front).cloned().collect()
    };
    let commands = line.split(ends).map(words).flat_map(|words| {
        let behind = Some(behind(&words)).filter(|behind| behind.len() < words.len());
        // `rm>f x`
        let named = words.first().and_then(|first| first.split(['<', '>']).next()).filter(|name| !name.is_empty());
        let named = named.filter(|name| Some(name.len()) < words.first().map(String::len));
        let named = named.map(|name| [&[name.to_owned()], &words[1..]].concat());
        std::iter::once(words).chain(behind).chain(named)
    });
    commands.filter(|words| !words.is_empty()).collect()
}

/// Returns the words of a rule with each line for a shell split into words.
pub(super) fn split_line(words: &[String]) -> Vec<String> {
    words.iter().flat_map(|word| word.split_whitespace()).map(ToOwned::to_owned).collect()
}

/// Returns the base name of a word that may be a program.
pub(super) fn program_of(word: &str) -> Cow<'_, str> {
    match git::split(word) {
        Some([git, _]) => git.into(),
        None => base_name(word).into(),
    }
}

/// Returns whether a denial names a program, or its usual name. Behind an `@` is a version.
pub(super) fn names_program(program: &Wildcard, word: &str) -> bool {
    let name = program_of(word);
    let package = name.split('@').next().unwrap_or_default();
    program.matches(&name) || program.matches(synonyms::program(package))
}
