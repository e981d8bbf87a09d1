//! Options for which a star stands: of a powerful program only those that the table knows as harmless. A rule must spell every other one.

use crate::containers;
use crate::options::{GivenOption, before_line};
use crate::programs::{self, Effect, GuardedOption, HarmlessOptions, Names, OptionsEnd, Program};
use crate::wildcard::STAR;

/// Returns the options among a program's arguments that are not known to be harmless, if the table knows its harmless ones.
pub(super) fn others(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let Some(known) = program.harmless else { return Vec::new() };
    let own = match containers::behind(program, arguments) {
        // Options with which a container is made are judged apart. Behind the image the words are another program's.
        Some(behind) => &arguments[..arguments.len() - behind.len()],
        None => before_line(program, arguments),
    };
    let one_dash = program.options.one_dash();
    let mut found =
        Reader { known, within: within(program, known, own), one_dash, doubts: program.closed, guarded: &[] }
            .options(own);
    found.extend(behind_dashes(known, own));
    found
}

/// Returns the options of a subcommand of git that are neither `guarded` nor known to be harmless. They may overwrite or delete.
pub(super) fn others_of(
    known: &'static HarmlessOptions,
    guarded: &'static [GuardedOption],
    arguments: &[String],
) -> Vec<GivenOption> {
    let found = Reader { known, within: ("", ""), one_dash: false, doubts: true, guarded }.options(arguments);
    found.into_iter().map(|option| GivenOption { effect: Effect::Destroys, ..option }).collect()
}

/// Returns the harmless options of a call's subcommand: letters without a value, and long ones.
fn within(program: &Program, known: &HarmlessOptions, arguments: &[String]) -> (&'static str, Names) {
    let words = match program.container {
        Some(_) => containers::from_subcommand(program, arguments),
        None => arguments,
    };
    let [name, others @ ..] = words else { return ("", "") };
    let full = others.first().map(|next| format!("{name}-{next}")).unwrap_or_default();
    let is_it = |names: Names| programs::contains(names, name) || programs::contains(names, &full);
    let found = known.within.iter().find(|(names, ..)| is_it(names));
    found.map_or(("", ""), |(_, flags, long)| (*flags, *long))
}

/// Returns the options of a compiler behind `--`, for the subcommands that pass them on.
fn behind_dashes(known: &HarmlessOptions, arguments: &[String]) -> Vec<GivenOption> {
    let Some((subcommands, names)) = known.behind else { return Vec::new() };
    let first = arguments.iter().find(|word| !word.starts_with(['-', '+']));
    if !first.is_some_and(|word| programs::contains(subcommands, word)) {
        return Vec::new();
    }
    let behind = arguments.iter().skip_while(|word| *word != "--");
    let is_one = |word: &&String| names.split_whitespace().any(|name| word.starts_with(name));
    behind.filter(is_one).map(|word| leads(word.split('=').next().unwrap_or(word))).collect()
}

fn leads(shown: impl Into<String>) -> GivenOption {
    GivenOption::word(shown, Effect::Leads)
}

/// What the word behind an option may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A word of its own.
    Own,
    /// The option's value.
    Value,
    /// Either.
    Either,
}

/// Reads words with the harmless options of a program.
struct Reader {
    known: &'static HarmlessOptions,
    /// Those of the call's subcommand: letters without a value, and long ones.
    within: (&'static str, Names),
    /// Whether long options have one dash.
    one_dash: bool,
    /// Whether a long option may have its value in the next word, so that `--` may be one.
    doubts: bool,
    /// Options that are found elsewhere.
    guarded: &'static [GuardedOption],
}

impl Reader {
    /// Returns the options that are not harmless.
    fn options(&self, arguments: &[String]) -> Vec<GivenOption> {
        let mut found = Vec::new();
        let mut next = Next::Own;
        let mut operands: Vec<&str> = Vec::new();
        let ends_at_dashes = matches!(self.known.end, OptionsEnd::Dashes | OptionsEnd::Operand(_));
        for word in arguments {
            let before = std::mem::replace(&mut next, Next::Own);
            if word == "--" && ends_at_dashes && (before == Next::Own || !self.doubts) {
                break;
            }
            let text = word.split(STAR).next().unwrap_or_default();
            match text.strip_prefix('-') {
                Some("-") => {}
                Some(option) => next = self.option(option, &mut found),
                // A star may stand for options.
                None if before == Next::Own && !word.starts_with(STAR) => {
                    operands.push(word);
                    let is_further = self.known.operands.is_some_and(|most| operands.len() > most);
                    found.extend(is_further.then(|| GivenOption { id: "operand".into(), ..leads(word) }));
                    if self.ends_behind(&operands) {
                        break;
                    }
                }
                None => {}
            }
        }
        found
    }

    /// Returns whether the options end behind these operands.
    fn ends_behind(&self, operands: &[&str]) -> bool {
        match self.known.end {
            OptionsEnd::Nowhere | OptionsEnd::Dashes => false,
            OptionsEnd::Operand(count) => operands.len() == count,
            OptionsEnd::Passed(subcommands) => operands.len() == 2 && programs::contains(subcommands, operands[0]),
        }
    }

    /// Adds the options in a word behind its first dash that are not harmless. Returns what the next word may be.
    fn option(&self, option: &str, found: &mut Vec<GivenOption>) -> Next {
        if let Some(long) = option.strip_prefix('-') {
            return self.long(long, found);
        }
        let is_known = || self.is_long(option.split('=').next().unwrap_or(option)) || self.begins(option);
        if (self.one_dash || !self.known.clusters) && is_known() {
            return Next::Either;
        }
        let is_name = self.one_dash || (!self.known.clusters && option.chars().count() > 1);
        if is_name && !option.is_empty() {
            found.push(leads(format!("-{}", option.split('=').next().unwrap_or(option))));
            return Next::Either;
        }
        let mut next = Next::Own;
        for (at, letter) in option.char_indices() {
            found.extend(self.reorders(format!("-{letter}")));
            if self.known.values.contains(letter) {
                return if at + letter.len_utf8() == option.len() { Next::Value } else { Next::Own };
            }
            if self.guarded.iter().any(|option| option.short.contains(letter)) {
                return Next::Either;
            }
            if !self.known.flags.contains(letter) && !self.within.0.contains(letter) {
                if !self.known.perhaps_valued.contains(letter) {
                    found.push(leads(format!("-{letter}")));
                    return Next::Either;
                }
                next = Next::Either;
            }
            // `-f=FILE`
            if option[at + letter.len_utf8()..].starts_with('=') {
                return Next::Own;
            }
        }
        next
    }

    /// Returns the same for a long option behind its dashes.
    fn long(&self, long: &str, found: &mut Vec<GivenOption>) -> Next {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let is_guarded = self.guarded.iter().any(|option| option.name.starts_with(name));
        let is_harmless = self.is_long(name) || is_guarded;
        found.extend((!is_harmless).then(|| leads(format!("--{name}"))));
        found.extend(self.reorders(format!("--{name}")));
        // Package managers read the value of a flag that takes none as a word of its own.
        let option = value.filter(|value| value.starts_with('-'));
        found.extend(option.map(|option| leads(option.split('=').next().unwrap_or(option))));
        let is_alone =
            value.is_some() || programs::contains(self.known.switches, name) || (is_harmless && !self.doubts);
        if is_alone { Next::Own } else { Next::Either }
    }

    /// Returns whether an option is known by its beginning.
    fn begins(&self, option: &str) -> bool {
        let begins = |names: Names| names.split_whitespace().any(|name| option.starts_with(name));
        begins(self.known.begin)
            || (begins(self.known.begin_plain) && !begins(self.known.never) && !option.contains(['=', ',']))
    }

    fn is_long(&self, name: &str) -> bool {
        programs::contains(self.known.long, name) || programs::contains(self.within.1, name)
    }

    fn reorders(&self, shown: String) -> Option<GivenOption> {
        let is_one = programs::contains(self.known.reordering, &shown);
        is_one.then(|| GivenOption { id: "reordering".into(), ..GivenOption::word(shown, Effect::Reorders) })
    }
}
