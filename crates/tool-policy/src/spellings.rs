//! Other spellings of a call that do the very same: `git commit --message=x` is `git commit -m x`. A rule that grants one grants the call.

use crate::apart;
use crate::choice;
use crate::containers;
use crate::options;
use crate::programs::{self, Names, Program, git};
use crate::wildcard::plain;

/// Returns the words of a call in its other spellings.
pub(super) fn others(words: &[String]) -> Vec<Vec<String>> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let entry = programs::by_base_name(program);
    let line = with_line(entry, arguments).map(|arguments| with_program(program, &arguments));
    let behind_host = on_host(line.as_deref().unwrap_or(words)).unwrap_or_default();
    without_line(words).into_iter().chain(line).chain(behind_host).filter(|spelled| spelled != words).collect()
}

/// Returns the same without those of a line that a program joins.
fn without_line(words: &[String]) -> Vec<Vec<String>> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let entry = programs::by_base_name(program);
    let own = |arguments: &[String]| -> Vec<Vec<String>> {
        let spelled = with_message(entry, arguments).unwrap_or_default().into_iter();
        spelled.chain(with_terminal(entry, arguments)).chain(behind_starter(entry, arguments)).collect()
    };
    let mut spelled = own(arguments);
    if let Some(asking) = asking(entry, arguments) {
        spelled.push(asking.to_vec());
        spelled.extend(own(asking));
    }
    spelled.into_iter().map(|arguments| with_program(program, &arguments)).collect()
}

/// Returns the arguments of `sudo -n` without that. `None` if it has none.
fn asking<'a>(entry: &Program, arguments: &'a [String]) -> Option<&'a [String]> {
    let at = arguments.iter().position(|word| !programs::contains(entry.unasked, word))?;
    (at > 0).then(|| &arguments[at..])
}

/// Returns the words of a program that joins those behind a host to a line, with the other spellings of the command in that line. `None` if a
/// shell may read one of those words as more.
fn on_host(words: &[String]) -> Option<Vec<Vec<String>>> {
    let (program, arguments) = words.split_first()?;
    let entry = programs::by_base_name(program);
    let from = 1 + options::before_line(entry, arguments).len();
    let line = words.get(from..).filter(|_| entry.joins_from == Some(1))?;
    let is_plain = line.iter().all(|word| !word.is_empty() && word.chars().all(plain));
    let (started, own) = line.split_first()?;
    let spelled = command(started, own).into_iter().map(|own| with_program(started, &own)).chain(without_line(line));
    is_plain.then(|| spelled.map(|line| [&words[..from], &line].concat()).collect())
}

fn with_program(program: &String, arguments: &[String]) -> Vec<String> {
    [std::slice::from_ref(program), arguments].concat()
}

/// Returns the arguments of `git commit` with each spelling of its message, if that is the first option besides those without a value.
fn with_message(entry: &Program, arguments: &[String]) -> Option<Vec<Vec<String>>> {
    let own = if entry.is_git() { git::from_subcommand(arguments) } else { &[] };
    let (_, rest) = own.split_first().filter(|(subcommand, _)| *subcommand == "commit")?;
    let known = &git::options(Some("commit")).anywhere;
    let at = rest.iter().position(|word| !apart::is_switch(known, word))?;
    let (front, behind) = (&arguments[..arguments.len() - rest.len() + at], &rest[at + 1..]);
    // `-am x`
    let (switches, given) = apart::split(known, &rest[at]);
    let (value, behind) = match given.strip_prefix("--message").or_else(|| given.strip_prefix("-m")) {
        Some("") => (behind.first()?.as_str(), &behind[1..]),
        Some(value) if given.starts_with("--") => (value.strip_prefix('=')?, behind),
        value => (value?, behind),
    };
    let spelled = [
        vec!["-m".to_owned(), value.to_owned()],
        vec!["--message".to_owned(), value.to_owned()],
        vec![format!("--message={value}")],
        vec![format!("-m{value}")],
    ];
    // `-m` and nothing has the next word for its value.
    let spelled = spelled.into_iter().filter(|words| words[0] != "-m" || words.len() > 1);
    Some(spelled.map(|message| [front, &switches, &message, behind].concat()).collect())
}

/// The arguments that start a command in a container, with the options by which it has an input and a terminal.
struct Terminal<'a> {
    front: &'a [String],
    /// The letters of those options, each once.
    given: String,
    /// The long options with an input, and with a terminal.
    long: (&'static str, &'static str),
    rest: &'a [String],
}

impl<'a> Terminal<'a> {
    /// Reads the arguments of a program. `None` if they have no such option right behind the subcommand.
    fn of(entry: &Program, arguments: &'a [String]) -> Option<Self> {
        let (_, letters, (input, terminal)) = Self::known(entry)?;
        Self::read(entry, arguments, |word| match word.strip_prefix("--") {
            Some(name) if name == input => Some("i".to_owned()),
            Some(name) => (name == terminal).then(|| "t".to_owned()),
            None => {
                let own = word.strip_prefix('-').filter(|own| !own.is_empty())?;
                own.chars().all(|own| letters.contains(own)).then(|| own.to_owned())
            }
        })
    }

    /// Returns the subcommands of a program that start a command, and the letters and the names of its options.
    fn known(entry: &Program) -> Option<(Names, &'static str, (&'static str, &'static str))> {
        let (verbs, letters, names) = entry.terminal?;
        Some((verbs, letters, names.split_once(' ')?))
    }

    /// Reads the words right behind the subcommand. `letters_of`: the letters for which a word stands.
    fn read(entry: &Program, arguments: &'a [String], letters_of: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let (verbs, letters, long) = Self::known(entry)?;
        let own = match entry.container {
            Some(_) => containers::from_subcommand(entry, arguments),
            None => &arguments[apart::in_front(&entry.options.anywhere, arguments)..],
        };
        let (_, behind) = own.split_first().filter(|(verb, _)| programs::contains(verbs, verb))?;
        let words: Vec<String> = behind.iter().map_while(|word| letters_of(word)).collect();
        let given = letters.chars().filter(|letter| words.iter().any(|word| word.contains(*letter))).collect();
        let front = &arguments[..arguments.len() - behind.len()];
        (!words.is_empty()).then(|| Self { front, given, long, rest: &behind[words.len()..] })
    }

    /// Returns the arguments with other words for those options.
    fn with(&self, words: &[String]) -> Vec<String> {
        [self.front, words, self.rest].concat()
    }

    /// Returns the arguments in each spelling of the same options. A terminal alone may be missing. With an input the command reads what the
    /// caller gives it, and with both it takes keys.
    fn spellings(&self) -> Vec<Vec<String>> {
        let (input, terminal) = (format!("--{}", self.long.0), format!("--{}", self.long.1));
        let (inputs, terminals) = (["-i", &input], ["-t", &terminal]);
        let words: Vec<Vec<&str>> = match self.given.as_str() {
            "i" => inputs.map(|word| vec![word]).to_vec(),
            "t" => terminals.map(|word| vec![word]).into_iter().chain([Vec::new()]).collect(),
            "it" => {
                let pairs =
                    inputs.iter().flat_map(|i| terminals.iter().flat_map(move |t| [vec![*i, *t], vec![*t, *i]]));
                pairs.chain([vec!["-it"], vec!["-ti"]]).collect()
            }
            _ => Vec::new(),
        };
        words
            .into_iter()
            .map(|words| self.with(&words.into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()))
            .collect()
    }
}

fn with_terminal(entry: &Program, arguments: &[String]) -> Vec<Vec<String>> {
    Terminal::of(entry, arguments).map(|terminal| terminal.spellings()).unwrap_or_default()
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

/// Returns the arguments of a program that starts another one: those up to that one, its name, and its own.
fn started<'a>(entry: &Program, arguments: &'a [String]) -> Option<(&'a [String], &'a str, &'a [String])> {
    let starts = entry.starts == Some("") && !entry.own_operand && entry.joins_from.is_none();
    match choice::first_operands(entry, arguments, 0)[..] {
        [at] if starts => Some((&arguments[..=at], &arguments[at], &arguments[at + 1..])),
        _ => None,
    }
}

/// Returns the arguments of a program that starts another one, with the switches of that one behind its subcommand, and at the end,
/// or with other words for its terminal.
fn behind_starter(entry: &Program, arguments: &[String]) -> Vec<Vec<String>> {
    let Some((front, program, own)) = started(entry, arguments) else { return Vec::new() };
    command(program, own).into_iter().map(|own| [front, own.as_slice()].concat()).collect()
}

/// Returns the same for the arguments of a program that another one starts.
fn command(program: &str, own: &[String]) -> Vec<Vec<String>> {
    if let Some(terminal) = Terminal::of(programs::by_base_name(program), own) {
        return terminal.spellings();
    }
    let Some((words, switches)) = apart::switches_apart(program, own) else { return Vec::new() };
    let Some((subcommand, rest)) = words.split_first() else { return Vec::new() };
    let subcommand = std::slice::from_ref(subcommand);
    vec![[subcommand, &switches, rest].concat(), [subcommand, rest, &switches].concat()]
}
