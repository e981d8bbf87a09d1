//! Stars in the place of a word that chooses what a program does: a subcommand, a script, or a command that it starts.

use crate::containers;
use crate::options::scan;
use crate::programs::{self, Class, Names, OptionsEnd, Program};
use crate::wildcard::STAR;

/// Returns whether a star of a rule, with other words behind it, may be in the place of a word that chooses what the program does. Of
/// `git`, the words begin with its subcommand.
pub(crate) fn chooses_what_runs(program: &Program, rule: &[String]) -> bool {
    let mut before = Operands::default();
    let places = places(rule, |at| takes_next(program, &rule[at]));
    for (at, (word, place)) in rule.iter().zip(places).enumerate() {
        let option = at.checked_sub(1).map(|at| rule[at].as_str()).filter(|word| is_option(word));
        let names_code = option.is_some_and(|option| names_code(program, option));
        let is_open = word.starts_with(STAR) && rule[at + 1..].iter().any(|word| !word.starts_with(STAR));
        if names_code || (is_option(word) && gives_code(program, word)) {
            // The words behind are operands of that code.
            return names_code && is_open;
        }
        // `cargo +nightly`
        if !place.own || is_option(word) || word.starts_with('+') {
            continue;
        }
        if is_open && before.next_chooses(program, rule.get(at + 1)) {
            return true;
        }
        before.all.push(word);
        before.sure += usize::from(!place.value);
    }
    false
}

/// Returns the operands among a program's arguments, and words of which nobody knows whether they are some.
pub(crate) fn operands<'a>(program: &'a Program, arguments: &'a [String]) -> impl Iterator<Item = &'a String> {
    operands_at(program, arguments).map(|at| &arguments[at])
}

/// Returns the indices of these words.
pub(crate) fn operands_at(program: &Program, arguments: &[String]) -> impl Iterator<Item = usize> {
    // The same letters mean something else behind the subcommand.
    let behind = containers::from_subcommand(program, arguments).len();
    let front = if behind == 0 { 0 } else { arguments.len() - behind };
    let takes_next = |at: usize| {
        let (before, option) = (&arguments[..at], &arguments[at]);
        let known = known_behind(program, before, option);
        let in_front = || (at < front && takes_next_in_front(program, option)).then_some(true);
        known.or_else(in_front).or_else(|| takes_next_anywhere(program, option))
    };
    // A `-` alone is the standard input, or another name.
    let is_operand = |(word, place): (&String, Place)| match word.len() > 1 && word.starts_with('-') {
        true => place.behind_dashes,
        false => place.own || place.behind_dashes,
    };
    let found: Vec<bool> = arguments.iter().zip(places(arguments, takes_next)).map(is_operand).collect();
    found.into_iter().enumerate().filter(|(_, is_operand)| *is_operand).map(|(at, _)| at)
}

/// Returns whether the word behind an option is its value, as far as a table has that of the subcommand in `before`.
fn known_behind(program: &Program, before: &[String], option: &str) -> Option<bool> {
    // An abbreviation may be that of another option.
    if is_bare(program, before, option) {
        return Some(false);
    }
    is_of(program, program.valued_by, before, |name| name == option).then_some(true)
}

/// Returns whether the word behind an option is its value. `before`: the subcommand, or nothing in front of it.
pub(crate) fn takes_next_behind(program: &Program, before: &[String], option: &str) -> Option<bool> {
    let in_front = || (before.is_empty() && takes_next_in_front(program, option)).then_some(true);
    known_behind(program, before, option).or_else(in_front).or_else(|| takes_next_anywhere(program, option))
}

/// Returns the indices of the words that may be the first operand behind `from` words.
pub(crate) fn first_operands(program: &Program, arguments: &[String], from: usize) -> Vec<usize> {
    let places = places(arguments, |at| takes_next(program, &arguments[at]));
    let may_be = |at: usize| places[at].own && !is_option(&arguments[at]);
    let is_sure = |at: &usize| !places[*at].value;
    let operands: Vec<usize> = (from..arguments.len()).filter(|at| may_be(*at)).collect();
    let end = operands.iter().position(is_sure).map_or(operands.len(), |at| at + 1);
    operands[..end].to_vec()
}

/// What a word of a call may be. In doubt it is each of these.
#[derive(Clone, Copy, Default)]
struct Place {
    /// An option or an operand.
    own: bool,
    /// The value of the option before it.
    value: bool,
    /// An operand, since the options may have ended at a `--`.
    behind_dashes: bool,
}

/// Returns what each word may be, read in their order. `takes_next`: whether the word behind an option, given by its index, is its value.
fn places(words: &[String], takes_next: impl Fn(usize) -> Option<bool>) -> Vec<Place> {
    let mut next = Place { own: true, ..Place::default() };
    let place_of = |(at, word): (usize, &String)| {
        let place = next;
        let takes = if place.own && is_option(word) { takes_next(at) } else { Some(false) };
        // Some programs take an option for the value of another one, and others do not.
        let is_sure = takes == Some(true) && !words.get(at + 1).is_some_and(|next| is_option(next));
        next = Place {
            own: place.value || (place.own && !is_sure),
            value: takes != Some(false),
            behind_dashes: place.behind_dashes || (place.own && word == "--"),
        };
        place
    };
    words.iter().enumerate().map(place_of).collect()
}

/// Returns whether the last one of a rule's words may be an option with its value behind it: any one that is not known to have none.
pub(crate) fn may_take_next(program: &Program, rule: &[String]) -> bool {
    let Some((option, before)) = rule.split_last().filter(|(option, _)| is_option(option)) else { return false };
    if is_bare(program, before, option) {
        return false;
    }
    let may_be =
        |name: &str| name == option || (option.len() > 2 && option.starts_with("--") && name.starts_with(option));
    let is_known = is_of(program, program.valued_by, before, may_be) || programs::contains(program.texts, option);
    // Alone it is a switch. Behind a subcommand it may be the version of what that is about.
    let is_version = option == "--version" && !before.is_empty();
    is_known || is_version || takes_next(program, option) != Some(false)
}

/// Operands of a rule, in their order.
#[derive(Default)]
struct Operands<'a> {
    /// All of them, and words that may be values of options.
    all: Vec<&'a str>,
    /// The number of those that are no values.
    sure: usize,
}

impl Operands<'_> {
    /// Returns whether the operand behind these may choose what the program does. `next`: the word behind it.
    fn next_chooses(&self, program: &Program, next: Option<&String>) -> bool {
        let is_at = |place: usize| (self.sure..=self.all.len()).contains(&place);
        let has = |names: Names| self.all.iter().any(|word| programs::contains(names, word));
        let own = usize::from(program.own_operand);
        let starts_at = |verbs: Names| match verbs.is_empty() {
            true => (program.class == Class::Runs).then_some(own),
            false => self.all.iter().position(|word| programs::contains(verbs, word)).map(|at| at + 1 + own),
        };
        let runs_at_once = program.class == Class::Runs && !program.takes_operands_anywhere();
        let is_before_option = next.is_some_and(|next| is_option(next));
        // `gh repo deploy-key delete`
        let is_third =
            matches!(self.all[..], [first, second] if programs::contains(program.groups, &format!("{first}-{second}")));
        is_third
            || (is_at(0) && (chooses_by_operand(program) || (runs_at_once && is_before_option)))
            || (is_at(1) && (has(program.groups) || (has(running(program)) && !is_before_option)))
            || program.starts.and_then(starts_at).is_some_and(is_at)
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.contains(STAR)
}

/// Returns whether a program's first operand chooses what it does: a subcommand or a script.
fn chooses_by_operand(program: &Program) -> bool {
    let takes_script = program.harmless.is_some_and(|tool| matches!(tool.end, OptionsEnd::Operand(_)));
    program.subcommands || program.interpreter || takes_script || !program.options.naming_code.is_empty()
}

/// Returns the subcommands of a program that run what the operand behind them names.
fn running(program: &Program) -> Names {
    match program.harmless.map(|known| known.end) {
        Some(OptionsEnd::Passed(subcommands)) => subcommands,
        _ => "",
    }
}

/// Returns whether the value of an option, the next word, names the code that is run.
fn names_code(program: &Program, option: &str) -> bool {
    let options = &program.options;
    let last = option.chars().last();
    let names_script = last.is_some_and(|letter| options.takes_next(option) && options.script_files.contains(letter));
    names_script || programs::contains(options.naming_code, option)
}

/// Returns whether an option gives an interpreter code in place of a script.
fn gives_code(program: &Program, option: &str) -> bool {
    let options = &program.options;
    let found = scan(options, &[option.to_owned()]);
    !options.code_first
        && !programs::contains(options.naming_code, option)
        && found.iter().any(|given| programs::contains(options.code, &given.id))
}

/// Returns whether the word behind an option is its value, wherever the option stands. `None` if that is not known.
fn takes_next(program: &Program, option: &str) -> Option<bool> {
    if takes_next_in_front(program, option) { Some(true) } else { takes_next_anywhere(program, option) }
}

/// Returns whether the word behind an option in front of a subcommand that makes a container is its value.
fn takes_next_in_front(program: &Program, option: &str) -> bool {
    program.container.is_some_and(|known| programs::contains(known.valued, option))
}

/// Returns whether an option, or each letter of it, is known to have no value behind the words in `before`.
fn is_bare(program: &Program, before: &[String], option: &str) -> bool {
    let is_listed = |name: &str| {
        programs::contains(program.bare, name) || is_of(program, program.bare_by, before, |known| known == name)
    };
    let has_none = |letter: char| {
        let name = format!("-{letter}");
        is_listed(&name) || takes_next(program, &name) == Some(false)
    };
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-') && !program.options.one_dash());
    let mut letters = letters.unwrap_or_default().chars();
    let last_has_none = letters.next_back().is_some_and(|last| is_listed(&format!("-{last}")));
    is_listed(option) || (last_has_none && letters.all(has_none))
}

/// Returns whether an option is one of those that a table has for the subcommand in `before`. The same word behind it is an operand.
fn is_of(program: &Program, table: &[(Names, Names)], before: &[String], is_it: impl Fn(&str) -> bool) -> bool {
    let words = match program.container {
        Some(_) => containers::from_subcommand(program, before),
        None => before,
    };
    let Some(subcommand) = words.first() else { return false };
    let options = table.iter().filter(|(names, _)| programs::contains(names, subcommand));
    options.flat_map(|(_, options)| options.split_whitespace()).any(is_it)
}

fn takes_next_anywhere(program: &Program, option: &str) -> Option<bool> {
    let options = &program.options;
    let name = option.trim_start_matches('-');
    let known = program.harmless;
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let (flags, switches, bare) = known.map_or(("", "", ""), |known| (known.flags, known.switches, known.bare));
    let flags = |letter: char| flags.contains(letter) || options.anywhere.flags.contains(letter);
    let is_harmless_value = letters.and_then(|letters| letters.split_at_checked(letters.len().checked_sub(1)?));
    let is_harmless_value = is_harmless_value.is_some_and(|(before, last)| {
        !options.one_dash() && before.chars().all(flags) && known.is_some_and(|known| known.values.contains(last))
    });
    let with_value = programs::contains(options.valued, name)
        || programs::contains(options.anywhere.pairs, name)
        || programs::contains(program.host_options, option)
        // A text of one subcommand of git is no option, or has no value, for others.
        || (!program.is_git() && programs::contains(program.texts, option))
        || is_harmless_value;
    if with_value {
        return Some(true);
    }
    if options.takes_next(option) {
        // The rest of the word may be the value of a letter that is not known (`tmux new -cout`).
        let is_open = program.subcommands || !program.commanded.is_empty();
        let is_sure = !is_open || letters.is_none_or(|letters| letters.chars().rev().skip(1).all(flags));
        return is_sure.then_some(true);
    }
    let is_switch = [switches, bare, options.anywhere.switches].iter().any(|list| programs::contains(list, name))
        || program.container.is_some_and(|known| programs::contains(known.switches, option));
    let is_flags = letters.is_some_and(|letters| letters.chars().all(flags));
    // All options with a value are known of an interpreter whose harmless ones are not listed.
    let knows_all = program.interpreter && known.is_none();
    let is_negated = program.is_git() && name.starts_with("no-");
    let has_none = name.is_empty() || name.contains('=') || is_negated || is_switch || is_flags || knows_all;
    has_none.then_some(false)
}
