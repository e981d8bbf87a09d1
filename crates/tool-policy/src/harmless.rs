//! Options for which a star stands: of a powerful program only those that the table knows as harmless. A rule must spell every other one.

use crate::choice;
use crate::containers;
use crate::operands::ADDRESS;
use crate::options::{GivenOption, before_line};
use crate::programs::{self, CommandOperands, Effect, GuardedOption, HarmlessOptions, Names, OptionsEnd, Program};
use crate::wildcard::STAR;

/// Identifies the operands of a program with [`HarmlessOptions::targets`].
pub(super) const TARGET: &str = "further operand";

/// Returns the options and operands of a program for which no star stands, if the table knows its harmless options.
pub(super) fn others(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let Some(known) = program.harmless else { return Vec::new() };
    let own = match containers::behind(program, arguments) {
        // Options with which a container is made are judged apart. Behind the image the words are another program's.
        Some(behind) => &arguments[..arguments.len() - behind.len()],
        None => before_line(program, arguments),
    };
    let words = match program.container {
        Some(_) => containers::from_subcommand(program, own),
        None => own,
    };
    let reader = Reader {
        known,
        one_dash: program.options.one_dash(),
        // Behind a script the options are the script's, so the script must be sure.
        doubts: program.closed || matches!(known.end, OptionsEnd::Passed(_)),
        values: program.options.values,
        valued: program.options.valued,
        attached: program.options.attached,
        has_subcommand: program.subcommands,
        groups: program.groups,
        is_connection: program.commands == CommandOperands::Connections,
        ..Reader::new(known)
    };
    // In front of a subcommand the same letters may mean something else.
    let (front, rest) = own.split_at(own.len() - words.len());
    let mut found = Reader { end: OptionsEnd::Nowhere, operands: None, ..reader }.options(front);
    found.extend(Reader { within: within(known, rest), operands: operands(known, rest), ..reader }.options(rest));
    found.extend(behind_dashes(known, own));
    let is_added_to = match known.adding_but_to {
        Some(showing) => {
            let verbs: Vec<&str> = choice::operands(program, own).map(String::as_str).take(3).collect();
            let shows = |verb: &&str| {
                programs::contains(showing, verb) || programs::contains(showing, &verbs[..verbs.len().min(2)].join("-"))
            };
            // A secret of that name in another namespace is another one.
            let is_secret = |kinds: &str| kinds.split([',', '/']).any(|kind| ["secret", "secrets"].contains(&kind));
            let names_secret = verbs.get(1).is_some_and(|kinds| {
                program.commands == CommandOperands::Fetched
                    && is_secret(kinds)
                    && (verbs.len() > 2 || kinds.contains('/'))
            });
            names_secret || verbs.first().is_some_and(|verb| !shows(verb))
        }
        None => own.iter().any(|word| programs::contains(program.alike, word)),
    };
    if !is_added_to {
        found.retain(|option| option.effect != Effect::Adds);
    }
    if program.interpreter {
        // Each may give code.
        let others = found.iter_mut().filter(|option| option.effect != Effect::Adds);
        others.for_each(|option| option.effect = Effect::Executes);
    }
    found
}

/// Returns the options of a subcommand of git that are neither `guarded` nor known to be harmless. They may overwrite or delete.
pub(super) fn others_of(
    known: &'static HarmlessOptions,
    guarded: &'static [GuardedOption],
    arguments: &[String],
) -> Vec<GivenOption> {
    let found = Reader { doubts: true, guarded, ..Reader::new(known) }.options(arguments);
    found.into_iter().map(|option| GivenOption { effect: Effect::Destroys, ..option }).collect()
}

/// Returns the harmless options of a call's subcommand: letters without a value, and long ones.
fn within(known: &HarmlessOptions, words: &[String]) -> (&'static str, Names) {
    let [name, others @ ..] = words else { return ("", "") };
    let full = others.first().map(|next| format!("{name}-{next}")).unwrap_or_default();
    let is_it = |names: Names| programs::contains(names, name) || programs::contains(names, &full);
    let found = known.within.iter().find(|(names, ..)| is_it(names));
    found.map_or(("", ""), |(_, flags, long)| (*flags, *long))
}

/// Returns the number of operands for which a star may stand in a call. `None`: any number.
fn operands(known: &HarmlessOptions, words: &[String]) -> Option<usize> {
    let is_it = |names: Names| names.is_empty() || words.first().is_some_and(|name| programs::contains(names, name));
    known.operands.iter().find(|(names, _)| is_it(names)).map(|(_, most)| *most)
}

/// Returns the options of a compiler behind `--`, for the subcommands that pass them on.
fn behind_dashes(known: &HarmlessOptions, arguments: &[String]) -> Vec<GivenOption> {
    let Some((subcommands, names)) = known.behind else { return Vec::new() };
    // The first operand may be the value of an option.
    let mut before = arguments.iter().take_while(|word| *word != "--");
    if !before.any(|word| programs::contains(subcommands, word)) {
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

impl Next {
    /// Returns the same if the option itself may be a value.
    fn behind(self, before: Self) -> Self {
        if before == Self::Own || self == Self::Own { self } else { Self::Either }
    }
}

/// Reads words with the harmless options of a program.
#[derive(Clone, Copy)]
struct Reader {
    known: &'static HarmlessOptions,
    /// Those of the call's subcommand: letters without a value, and long ones.
    within: (&'static str, Names),
    /// As [`HarmlessOptions::end`].
    end: OptionsEnd,
    /// The number of operands for which a star may stand.
    operands: Option<usize>,
    /// Whether long options have one dash.
    one_dash: bool,
    /// Whether a long option may have its value in the next word, so that `--` may be one.
    doubts: bool,
    /// Whether the first operand is a subcommand.
    has_subcommand: bool,
    /// Subcommands with a further one behind them.
    groups: Names,
    /// Whether an operand with a `=` says where to connect.
    is_connection: bool,
    /// As [`Options::values`](programs::Options::values).
    values: &'static str,
    /// As [`Options::valued`](programs::Options::valued).
    valued: Names,
    /// Letters of which the rest of the word is the value, and never the next word.
    attached: &'static str,
    /// Options that are found elsewhere.
    guarded: &'static [GuardedOption],
}

impl Reader {
    fn new(known: &'static HarmlessOptions) -> Self {
        Self {
            known,
            within: ("", ""),
            end: known.end,
            operands: None,
            one_dash: false,
            doubts: false,
            has_subcommand: false,
            groups: "",
            is_connection: false,
            values: "",
            valued: "",
            attached: "",
            guarded: &[],
        }
    }

    /// Returns the options that are not harmless, and further operands.
    fn options(self, arguments: &[String]) -> Vec<GivenOption> {
        let mut found = Vec::new();
        let mut next = Next::Own;
        let (mut operands, mut sure): (Vec<&str>, usize) = (Vec::new(), 0);
        let ends_at_dashes = matches!(self.end, OptionsEnd::Dashes | OptionsEnd::Operand(_));
        let mut is_behind_dashes = false;
        for word in arguments {
            let before = std::mem::replace(&mut next, Next::Own);
            if word == "--" && ends_at_dashes && (before == Next::Own || !self.doubts) {
                break;
            }
            let text = word.split(STAR).next().unwrap_or_default();
            match text.strip_prefix('-') {
                Some("-") => is_behind_dashes = true,
                Some(option) => next = self.option(option, &mut found).behind(before),
                // A star may stand for options.
                None if word.starts_with(STAR) || (before == Next::Value && !is_behind_dashes) => {}
                None => {
                    if self.is_connection && word.contains('=') {
                        found.push(GivenOption { id: ADDRESS.into(), ..leads(word) });
                    }
                    // In doubt it is an operand, but does not end the options.
                    operands.push(word);
                    // A subcommand says what is done with the others.
                    let own = match self.has_subcommand {
                        true => 1 + usize::from(programs::contains(self.groups, operands[0])),
                        false => 0,
                    };
                    let is_target = self.known.targets && operands.len() > own;
                    if is_target {
                        found.push(GivenOption { id: TARGET.into(), ..leads(word) });
                    } else if self
                        .operands
                        .is_some_and(|most| operands.len() + usize::from(self.gives_operand(&found)) > most)
                    {
                        found.push(GivenOption { id: "operand".into(), ..leads(word) });
                    }
                    sure += usize::from(before == Next::Own);
                    if before == Next::Own && self.ends_behind(&operands, sure) {
                        break;
                    }
                }
            }
        }
        found
    }

    /// Returns whether one of these options gives the first operand.
    fn gives_operand(&self, found: &[GivenOption]) -> bool {
        let is_one = |shown: &str| {
            let mut names = self.known.gives_operand.split_whitespace();
            names.any(|name| name == shown || (shown.len() > 2 && name.starts_with(shown)))
        };
        found.iter().any(|option| is_one(&option.shown))
    }

    /// Returns whether the options end behind these operands, of which so many are sure.
    fn ends_behind(&self, operands: &[&str], sure: usize) -> bool {
        match self.end {
            OptionsEnd::Nowhere | OptionsEnd::Dashes => false,
            OptionsEnd::Operand(count) => sure == count,
            OptionsEnd::Passed(subcommands) => {
                sure == 2 && operands.len() == 2 && programs::contains(subcommands, operands[0])
            }
        }
    }

    /// Adds the options in a word behind its first dash that are not harmless. Returns what the next word may be.
    fn option(&self, option: &str, found: &mut Vec<GivenOption>) -> Next {
        if let Some(long) = option.strip_prefix('-') {
            return self.long(long, found);
        }
        let is_known = || self.is_long(option.split('=').next().unwrap_or(option)) || self.begins(option);
        if (self.one_dash || !self.known.clusters) && is_known() {
            found.extend(self.beside_named(format!("-{}", option.split('=').next().unwrap_or(option))));
            return self.behind_long(option);
        }
        let is_name = self.one_dash || (!self.known.clusters && option.chars().count() > 1);
        if is_name && !option.is_empty() {
            let name = option.split('=').next().unwrap_or(option);
            found.push(leads(format!("-{name}")));
            return match option.contains('=') {
                true => Next::Own,
                false if programs::contains(self.valued, name) => Next::Value,
                false => Next::Either,
            };
        }
        let mut next = Next::Own;
        for (at, letter) in option.char_indices() {
            found.extend(self.beside_named(format!("-{letter}")));
            if self.attached.contains(letter) {
                return Next::Own;
            }
            if self.known.values.contains(letter) {
                return if at + letter.len_utf8() == option.len() { Next::Value } else { Next::Own };
            }
            if self.guarded.iter().any(|option| option.short.contains(letter)) {
                return Next::Either;
            }
            if !self.known.flags.contains(letter) && !self.within.0.contains(letter) {
                if !self.known.perhaps_valued.contains(letter) {
                    found.push(leads(format!("-{letter}")));
                    return match at + letter.len_utf8() < option.len() {
                        true if self.values.contains(letter) => Next::Own,
                        false if self.values.contains(letter) => Next::Value,
                        _ if programs::contains(self.known.bare, option) => Next::Own,
                        _ => Next::Either,
                    };
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
        found.extend(self.beside_named(format!("--{name}")));
        // Package managers read the value of a flag that takes none as a word of its own.
        let option = value.filter(|value| value.starts_with('-'));
        found.extend(option.map(|option| leads(option.split('=').next().unwrap_or(option))));
        match is_harmless {
            true => self.behind_long(long),
            false if value.is_some() => Next::Own,
            false if programs::contains(self.valued, name) => Next::Value,
            false if programs::contains(self.known.bare, name) => Next::Own,
            false => Next::Either,
        }
    }

    /// Returns what the word behind a harmless long option may be.
    fn behind_long(&self, option: &str) -> Next {
        let knows_switches = !self.known.switches.is_empty();
        match programs::contains(self.known.switches, option) {
            _ if option.contains('=') || !self.doubts => Next::Own,
            true => Next::Own,
            false if programs::contains(self.known.bare, option) => Next::Own,
            false if knows_switches => Next::Value,
            false => Next::Either,
        }
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

    /// Returns a harmless option that is not harmless beside what some rules name.
    fn beside_named(&self, shown: String) -> Option<GivenOption> {
        if programs::contains(self.known.reordering, &shown) {
            return Some(GivenOption { id: "reordering".into(), ..GivenOption::word(shown, Effect::Reorders) });
        }
        programs::contains(self.known.adding, &shown).then(|| GivenOption::word(shown, Effect::Adds))
    }
}
