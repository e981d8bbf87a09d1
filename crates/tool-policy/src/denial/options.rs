//! Options of a call, as its program may read them.

use std::collections::{HashMap, HashSet};

use crate::choice;
use crate::programs::{
    self, ContainerOptions, FetchOptions, GuardedOption, Options, Program, Syntax, base_name, git, synonyms,
};
use crate::wildcard::{STAR, Wildcard};

/// Values by which `docker` and `kubectl` turn a switch off.
const OFF: [&str; 6] = ["0", "F", "FALSE", "False", "f", "false"];

/// Options of theirs that have a value, though it may be missing. One of these values is one of several choices.
const CHOOSING: &str = "cascade";

/// Number of letters in a word of which each may have the rest of the word for its value.
const LONGEST_CLUSTER: usize = 32;

/// An option that is given.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// A letter, or a long name without its dashes.
    pub name: String,
    /// Whether it is a letter. A long name may be abbreviated to one, too.
    pub is_letter: bool,
    /// Its value in the same word.
    pub attached: Option<String>,
    /// The next word, if that may be its value.
    pub next: Option<String>,
    /// Whether it stands in front of the subcommand of `git`, or of the code that an interpreter runs, where it means something else.
    pub in_front: bool,
    /// Whether it is a switch that is turned off.
    pub is_off: bool,
}

/// An option that a denial names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Needed {
    pub name: String,
    pub is_letter: bool,
    pub value: Option<Wildcard>,
    /// See [`Given::in_front`]. `None` if it may be an option of any program.
    pub in_front: Option<bool>,
}

/// A program by the name that the tables have for it, and the subcommand of its call.
pub(super) struct Scope<'a> {
    entry: &'static Program,
    program: &'a str,
    subcommand: &'a str,
    /// Pairs of names of the same option, and of the same choice.
    same: Vec<(&'static str, &'static str)>,
    chosen: Vec<(&'static str, &'static str)>,
}

impl<'a> Scope<'a> {
    pub fn new(program: &'a str, subcommand: &'a str) -> Self {
        let (entry, program) = (programs::named(program), programs::table_name(program));
        let chosen = match entry.is_git() {
            true => synonyms::of(&format!("{program} {subcommand}")),
            false => synonyms::of(program),
        };
        Self { entry, program, subcommand, same: synonyms::same(program, subcommand), chosen }
    }

    /// Returns whether the program takes the beginning of a long option for it.
    fn abbreviates(&self) -> bool {
        self.entry.is_git() || synonyms::abbreviates(self.program)
    }

    /// Returns whether the tables know a long option by this very name.
    fn is_whole(&self, name: &str) -> bool {
        if self.entry.is_git() {
            return git::has_switch(self.subcommand, &format!("--{name}"));
        }
        let Options { guarded, valued, anywhere, harmless, .. } = &self.entry.options;
        let known = self.entry.harmless.map_or(["", ""], |known| [known.long, known.bare]);
        let fetch = match self.entry.syntax {
            Syntax::Fetch(known) => [known.long, known.long_values],
            _ => ["", ""],
        };
        let lists = [*valued, anywhere.switches, anywhere.valued, anywhere.pairs];
        guarded.iter().any(|option| option.name == name)
            || harmless.contains(&name)
            || lists.into_iter().chain(known).chain(fetch).any(|names| programs::contains(names, name))
            || (name.len() > 1 && synonyms::has(self.program, name))
    }
}

impl Needed {
    /// Returns whether one of these options of a call is it.
    pub fn is_among<'a>(&self, scope: &Scope<'_>, mut given: impl Iterator<Item = &'a Given>) -> bool {
        let own = Names::of(scope, &self.name);
        // A call may have the same one many times.
        let mut names: HashMap<(&str, bool), bool> = HashMap::new();
        given.any(|given| {
            let is_named = || self.is_named(scope, &own, given);
            self.in_front.is_none_or(|in_front| in_front == given.in_front)
                && *names.entry((&given.name, given.is_letter)).or_insert_with(is_named)
                && (self.has_value_of(given) || self.starts_by_path(scope, given))
        })
    }

    /// Returns whether an option starts the program that this one names, by a path: `find -exec /bin/rm`.
    fn starts_by_path(&self, scope: &Scope<'_>, given: &Given) -> bool {
        let starts = programs::contains(scope.entry.options.starting, &given.name);
        let name = given.next.as_deref().map(base_name).filter(|_| starts);
        name.is_some_and(|name| self.value.as_ref().is_some_and(|value| value.matches(name)))
    }

    fn has_value_of(&self, given: &Given) -> bool {
        match &self.value {
            Some(value) if value.matches_everything() => true,
            Some(value) => [&given.attached, &given.next].into_iter().flatten().any(|text| value.matches(text)),
            None => !given.is_off,
        }
    }

    /// Returns whether an option has the name of this one, another one for it, or an abbreviation. `own`: the names of this one.
    fn is_named(&self, scope: &Scope<'_>, own: &Names<'_>, given: &Given) -> bool {
        let name = given.name.as_str();
        if self.name.contains(STAR) {
            return Wildcard::name(&self.name).matches(name);
        }
        if self.name == name {
            return true;
        }
        let is_abbreviated = || {
            let is_it = |long: &&str| long.len() > 1 && long.starts_with(name);
            scope.abbreviates() && own.all().any(is_it) && !scope.is_whole(name)
        };
        let names = Names::of(scope, name);
        let has_letter = self.is_letter || given.is_letter;
        own.same.iter().any(|same| names.same.contains(same))
            || (has_letter && own.all().any(|chosen| names.all().any(|other| other == chosen)))
            || (!given.is_letter && is_abbreviated())
    }
}

/// The names that the tables have for an option. The same letter may be another option of another subcommand.
struct Names<'a> {
    /// Those of the option itself.
    same: Vec<&'a str>,
    /// Those of what it chooses. Two long options with the same choice are still two.
    chosen: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(scope: &Scope<'_>, name: &'a str) -> Self {
        let Scope { entry, subcommand, .. } = *scope;
        let others = |pairs: &[(&str, &'static str)]| -> Vec<&'static str> {
            pairs.iter().filter(|(known, _)| *known == name).map(|(_, other)| *other).collect()
        };
        let mut same = vec![name];
        same.extend(others(&scope.same));
        let mut chosen = Vec::new();
        if let Some((_, _, names)) = entry.terminal {
            let names = ["i", "t"].into_iter().zip(names.split_whitespace());
            chosen.extend(names.filter(|(letter, _)| *letter == name).map(|(_, long)| long));
        }
        if let Syntax::Fetch(known) = entry.syntax {
            chosen.extend(known.names.iter().filter(|(letter, _)| *letter == name).map(|(_, long)| *long));
            return Self { same, chosen };
        }
        let options = if entry.is_git() { git::options(Some(subcommand)) } else { &entry.options };
        let is_guarded = |option: &&GuardedOption| name.len() == 1 && option.short.contains(name);
        chosen.extend(options.guarded.iter().find(is_guarded).map(|option| option.name));
        chosen.extend(others(&scope.chosen));
        Self { same, chosen }
    }

    fn all(&self) -> impl Iterator<Item = &&'a str> {
        self.same.iter().chain(&self.chosen)
    }
}

/// Reads the options of a program, one word after the other.
pub(super) struct Reader {
    entry: &'static Program,
    /// The subcommand, once it was read.
    subcommand: Vec<String>,
    /// Whether an option has named the code that is run, which has its own ones (`python3 -m pytest -c x`).
    has_code: bool,
    /// The options of a container, behind a subcommand that has them.
    container: Option<&'static ContainerOptions>,
    /// What is known of the options that were read behind the same subcommand.
    known: HashMap<String, Option<bool>>,
}

impl Reader {
    pub fn new(entry: &'static Program) -> Self {
        Self { entry, subcommand: Vec::new(), has_code: false, container: None, known: HashMap::new() }
    }

    /// Reads what may be an operand.
    pub fn operand(&mut self, word: &str) {
        let makes = |known: &&ContainerOptions| programs::contains(known.subcommands, word);
        let container = self.container.or_else(|| self.entry.container.filter(makes));
        if self.subcommand.is_empty() || container.is_some() != self.container.is_some() {
            self.known.clear();
        }
        if self.subcommand.is_empty() {
            self.subcommand.push(word.to_owned());
        }
        self.container = container;
    }

    /// Returns the options in the first word of a program that reads letters there without a dash (`tar xf`), and whether the next word is a
    /// value. The values stand in `behind`, in the order of their letters.
    pub fn bundle(&mut self, word: &str, behind: &[String]) -> (Vec<Given>, Option<bool>) {
        let mut values = behind.iter();
        let option = |letter: char| {
            let has_value = self.takes_next(&format!("-{letter}")) == Some(true);
            let next = if has_value { values.next() } else { None };
            Given { name: letter.to_string(), is_letter: true, next: next.cloned(), ..Given::default() }
        };
        let options: Vec<Given> = word.chars().take(LONGEST_CLUSTER).map(option).collect();
        // Of several ones, only the place is not known.
        let is_one = options.iter().filter(|option| option.next.is_some()).count() == 1;
        (options, is_one.then_some(true))
    }

    /// Notes an option that is no value of another one.
    pub fn behind(&mut self, word: &str) {
        let naming = self.entry.options.naming_code;
        self.has_code |= naming.split_whitespace().any(|option| match self.entry.options.one_dash() {
            true => word == option,
            false => word.starts_with(option),
        });
    }

    /// Returns the options in a word, and whether the next word is the value of the last one. `None`: that is not known.
    pub fn options(&mut self, word: &str) -> (Vec<Given>, Option<bool>) {
        let in_front = match self.entry.options.naming_code {
            "" => self.entry.is_git() && self.subcommand.is_empty(),
            _ => !self.has_code,
        };
        let given = |name: &str, value: Option<&str>| Given {
            name: name.to_owned(),
            is_letter: name.chars().count() == 1 && !word.starts_with("--"),
            attached: value.map(ToOwned::to_owned),
            in_front,
            ..Given::default()
        };
        let one_dash = self.entry.options.one_dash();
        let long = word.strip_prefix("--").or_else(|| word.strip_prefix('-').filter(|_| one_dash));
        let Some(long) = long.filter(|long| !long.is_empty()) else {
            return match word {
                "--" => (vec![given("--", None)], Some(false)),
                _ => self.letters(word.strip_prefix('-').unwrap_or_default(), given),
            };
        };
        match long.split_once('=') {
            Some((name, value)) => {
                let is_off = self.is_off(&word[..word.len() - value.len() - 1], value);
                let option = given(&self.entry.options.long_name(name), Some(value));
                (vec![Given { is_off, ..option }], Some(false))
            }
            None => (vec![given(&self.entry.options.long_name(long), None)], self.takes_next(word)),
        }
    }

    /// Reads a cluster. Behind a letter that is not known, the rest may be its value, or further letters. Far behind, each ASCII letter
    /// counts once, and no other one does: it is a part of a value.
    fn letters(&mut self, letters: &str, given: impl Fn(&str, Option<&str>) -> Given) -> (Vec<Given>, Option<bool>) {
        let (mut found, mut known): (Vec<Given>, HashSet<char>) = (Vec::new(), HashSet::new());
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            let counts = at <= LONGEST_CLUSTER || (letter.is_ascii() && !known.contains(&letter));
            if !counts && !rest.is_empty() {
                continue;
            }
            known.insert(letter);
            let takes = self.takes_next(&format!("-{letter}"));
            let is_attached = self.entry.options.attached.contains(letter);
            let value = rest.strip_prefix('=').unwrap_or(rest);
            let has_value = !value.is_empty() && (takes != Some(false) || is_attached || rest.starts_with('='));
            let value = Some(value).filter(|_| has_value && at <= LONGEST_CLUSTER);
            let is_off = rest.starts_with('=') && value.is_some_and(|value| self.is_off(&format!("-{letter}"), value));
            found.push(Given { is_off, ..given(letter.encode_utf8(&mut [0; 4]), value) });
            if rest.is_empty() {
                return (found, takes);
            }
            // What a star of a rule stands for is open.
            if takes == Some(true) || is_attached || rest.starts_with(['=', STAR]) {
                break;
            }
        }
        (found, Some(false))
    }

    /// Returns whether a value behind a `=` turns an option off. In doubt it is one that has values.
    fn is_off(&mut self, option: &str, value: &str) -> bool {
        self.entry.terminal.is_some()
            && OFF.contains(&value)
            && !programs::contains(CHOOSING, option.trim_start_matches('-'))
            && self.takes_next(option) == Some(false)
    }

    /// Returns whether the word behind an option is its value. `None` if that is not known.
    fn takes_next(&mut self, option: &str) -> Option<bool> {
        if let Some(known) = self.known.get(option) {
            return *known;
        }
        let takes = self.find_takes_next(option);
        self.known.insert(option.to_owned(), takes);
        takes
    }

    fn find_takes_next(&self, option: &str) -> Option<bool> {
        if option[1..].bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(false);
        }
        if let Syntax::Fetch(known) = self.entry.syntax {
            return of_fetch(known, option);
        }
        if self.entry.is_git() {
            let Some(subcommand) = self.subcommand.first() else { return Some(git::takes_next_in_front(option)) };
            let known = git::takes_next(subcommand, option);
            return known.or_else(|| choice::takes_next_behind(self.entry, &self.subcommand, option));
        }
        let behind = || choice::takes_next_behind(self.entry, &self.subcommand, option);
        let perhaps = self.entry.harmless.map_or("", |known| known.perhaps_valued);
        match self.container {
            Some(known) => of_container(known, option),
            // Behind another subcommand it has none.
            None if option.len() == 2 && perhaps.contains(&option[1..]) => behind().filter(|takes| !takes),
            None => behind(),
        }
    }
}

fn of_fetch(known: &FetchOptions, option: &str) -> Option<bool> {
    let (flags, values) = match option.strip_prefix("--") {
        Some(long) => (programs::contains(known.long, long), programs::contains(known.long_values, long)),
        None => (known.flags.contains(&option[1..]), known.values.contains(&option[1..])),
    };
    if values { Some(true) } else { flags.then_some(false) }
}

fn of_container(known: &ContainerOptions, option: &str) -> Option<bool> {
    let (flags, values) = match option.strip_prefix("--") {
        Some(long) => (programs::contains(known.own_switches, long), programs::contains(known.own_valued, long)),
        None => (known.flags.contains(&option[1..]), known.values.contains(&option[1..])),
    };
    if values { Some(true) } else { flags.then_some(false) }
}
