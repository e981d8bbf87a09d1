//! Denials, with the words and the options of calls apart: one holds if a call has its words, in their order, and all its options, whatever
//! further options the call has, and wherever they stand.

mod call;
mod options;

use std::cell::Cell;

use crate::programs::{self, Class, CommandOperands, Program, Syntax, synonyms};
use crate::wildcard::{STAR, Wildcard, loose};
use call::{
    Call, Token, begins_command, commands_of, forms, names_program, split_line, takes_options_behind, without_unit,
};
use options::{Needed, Scope};

/// Maximum number of places in a call at which a command may begin. A call with more of them is denied.
const MAX_COMMANDS: usize = 16;

/// Maximum number of commands in a rule of which one starts the next (`ssh web sudo docker exec db rm`).
const MAX_NESTED: usize = 8;

/// A denial of a program, or of a command that one starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Denial {
    program: Wildcard,
    /// Whether that is a star, which may stand for further words.
    is_any: bool,
    operands: Vec<Operand>,
    options: Vec<Needed>,
    /// Whether a call may have further operands.
    is_open: bool,
    /// The denial of the command that the program starts behind these operands.
    command: Option<Box<Denial>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Operand {
    words: Wildcard,
    /// Whether it is a star, which may stand for several words.
    is_star: bool,
    /// Whether it ends in a star, which may stand for words behind its own.
    is_open: bool,
}

/// The words of a call in the forms that denials read.
#[derive(Debug, Default)]
pub(super) struct DeniedCall {
    calls: Vec<Call>,
    /// Whether the first one is that of the application with its global options, and the second one that without them.
    has_global: bool,
    /// The call of `git` among the words of another program.
    of_git: Option<Call>,
}

impl DeniedCall {
    pub(super) fn read<'a>(forms: impl Iterator<Item = &'a [String]>) -> Self {
        let mut calls: Vec<Call> = forms.filter_map(Call::read).collect();
        let is_git = |word: &String| programs::by_base_name(word).is_git();
        let of_git = calls.iter().find_map(|call| {
            let at = call.words.iter().skip(1).position(is_git)?;
            Call::read(&call.words[at + 1..])
        });
        let embedded = |call: &Call| {
            let is_other = |word: &String| programs::is_known(word);
            let at = call.words.iter().skip(1).position(is_other).filter(|_| programs::named(call.program()).embeds)?;
            Call::read(&call.words[at + 1..])
        };
        let embedded: Vec<Call> = calls.iter().filter_map(embedded).collect();
        let has_global = calls.len() > 1 && !programs::named(calls[0].program()).is_git();
        let usual: Vec<Call> = calls.iter().filter_map(|call| Call::read(&call.usual()?)).collect();
        // `cargo +nightly b`
        let twice: Vec<Call> = usual.iter().filter_map(|call| Call::read(&call.usual()?)).collect();
        calls.extend(usual.into_iter().chain(twice).chain(embedded));
        Self { calls, has_global, of_git }
    }
}

impl Denial {
    /// Returns what a rule denies. There are two forms if an option of it may have the next word for its value, or none.
    pub(super) fn of(rule: &Wildcard) -> Vec<Self> {
        let words = rule.words();
        let is_open = words.last().is_some_and(|last| last.ends_with(STAR));
        let words = if words.last().is_some_and(|last| last.trim_matches(STAR).is_empty()) && words.len() > 1 {
            &words[..words.len() - 1]
        } else {
            &words[..]
        };
        // A toolchain that a rule names is a part of it.
        let has_toolchain = words.iter().any(|word| word.starts_with('+'));
        let usual = Call::read(words).filter(|_| !has_toolchain).and_then(|call| call.usual());
        let read = |words, takes_next: bool| Self::form(words, is_open, takes_next, MAX_NESTED);
        let readings = std::iter::once(words).chain(usual.as_deref());
        let mut forms: Vec<Self> =
            readings.flat_map(|words| [read(words, true), read(words, false)]).flatten().collect();
        forms.dedup();
        forms
    }

    /// `takes_next`: whether an option of which nothing is known has the next word for its value. `nested`: the number of commands that may follow.
    fn form(words: &[String], is_open: bool, takes_next: bool, nested: usize) -> Option<Self> {
        let call = Call::read(words)?;
        let entry = programs::named(call.program());
        let program = Wildcard::words_of(&[synonyms::program(call.program()).to_owned()]);
        let is_any = program.matches_everything();
        let mut denial = Self { program, is_any, operands: Vec::new(), options: Vec::new(), is_open, command: None };
        let (mut operands, mut has_ended): (Vec<&str>, bool) = (Vec::new(), false);
        for (at, token) in call.tokens.iter().enumerate() {
            let text = call.text(at);
            let begins = begins_command(entry, &operands);
            let may_be_more = |next: &Token| next.operand || !next.options.is_empty();
            let has_next = call.tokens.get(at + 1).is_some_and(|next| next.value && (takes_next || !may_be_more(next)));
            let is_end = text == "--" && begins;
            has_ended |= is_end;
            for (index, option) in token.options.iter().enumerate().filter(|_| !is_end) {
                // Behind a letter in front of others, those are no value in a rule.
                let is_last = index + 1 == token.options.len();
                let next = option.next.as_ref().filter(|_| has_next);
                let value = option.attached.as_ref().filter(|_| is_last).or(next);
                let value = value.map(|text| Wildcard::words_of(std::slice::from_ref(text)));
                let (name, is_letter, in_front) =
                    (option.name.clone(), option.is_letter, (!is_any).then_some(option.in_front));
                denial.options.push(Needed { name, is_letter, value, in_front });
            }
            if !token.operand || (token.value && takes_next) {
                continue;
            }
            let may_begin = begins && nested > 0 && !text.starts_with(STAR);
            if may_begin && (has_ended || !takes_options_behind(entry)) {
                let rest = if entry.joins_from.is_some() { split_line(call.from(at)) } else { call.from(at).to_vec() };
                denial.command = Some(Box::new(Self::form(&rest, is_open, takes_next, nested - 1)?));
                break;
            }
            operands.push(text);
            let is_star = text.trim_matches(STAR).is_empty() && !text.is_empty();
            let words = Wildcard::words_of(&[without_unit(entry, text).to_owned()]);
            denial.operands.push(Operand { words, is_star, is_open: text.ends_with(STAR) });
        }
        // In front of options, too, a star may stand for further words.
        denial.is_open |= operands.last().is_some_and(|last| last.ends_with(STAR));
        Some(denial)
    }

    /// Returns whether it may hold for a call with these words, by their program alone.
    pub(super) fn concerns(&self, words: &[String]) -> bool {
        let names = |program: &String| names_program(&self.program, program);
        words.first().is_some_and(|program| {
            names(program) || (programs::by_base_name(program).embeds && words.iter().any(names))
        })
    }

    /// Returns whether it holds for a call in one of its forms.
    pub(super) fn holds(&self, call: &DeniedCall) -> bool {
        let commands = Cell::new(0);
        let of_git = call.of_git.iter().filter(|_| self.is_any);
        // A denial without options says nothing of global ones, whose values are no operands.
        let skipped = usize::from(call.has_global && self.options.is_empty() && !self.is_any);
        call.calls.iter().skip(skipped).chain(of_git).any(|call| self.is_in(call, &commands))
    }

    fn is_in(&self, call: &Call, commands: &Cell<usize>) -> bool {
        if !names_program(&self.program, call.program()) {
            return false;
        }
        let entry = programs::named(call.program());
        if self.operands.is_empty() && self.options.is_empty() && self.command.is_none() && !self.is_open {
            return call.tokens.is_empty();
        }
        let end = self.operands.len();
        // The numbers of operands that the words so far may stand for.
        let (mut reached, mut next) = (vec![false; end + 1], vec![false; end + 1]);
        reached[0] = true;
        self.pass_stars(&mut reached);
        let (mut before, mut from) = ("", if matches!(entry.syntax, Syntax::Fetch(_)) { 0 } else { usize::MAX });
        for (at, token) in call.tokens.iter().enumerate() {
            if reached[end] && self.is_open && self.command.is_none() {
                break;
            }
            if !token.operand {
                continue;
            }
            if reached[end] && self.starts_denied(entry, call, at, commands) {
                return true;
            }
            match token.value {
                true => next.copy_from_slice(&reached),
                false => next.fill(false),
            }
            self.add_behind(entry, &reached, call.text(at), &mut next);
            // The name that is denied may be any one of several.
            let is_pair = entry.commands == CommandOperands::Fetched && call.text(at).contains('/');
            let skipped = from.min(if is_pair { 1 } else { usize::MAX }).min(end + 1);
            (skipped..=end).filter(|at| self.is_open && reached[*at]).for_each(|at| next[at] = true);
            let names_alike = programs::contains(entry.alike, call.text(at))
                || programs::contains(entry.alike, &format!("{before}-{}", call.text(at)));
            if names_alike && !token.value && entry.commands != CommandOperands::Fetched {
                from = from.min(if entry.is_git() { 2 } else { 1 });
            }
            before = call.text(at);
            self.pass_stars(&mut next);
            std::mem::swap(&mut reached, &mut next);
            if !reached.contains(&true) {
                return false;
            }
        }
        reached[end] && self.command.is_none() && self.has_options(call, call.tokens.len())
    }

    /// A star may stand for options only, which are apart.
    fn pass_stars(&self, reached: &mut [bool]) {
        for at in (0..self.operands.len()).filter(|at| self.operands[*at].is_star) {
            reached[at + 1] |= reached[at];
        }
    }

    /// Adds the numbers of operands behind one more word.
    fn add_behind(&self, entry: &Program, reached: &[bool], word: &str, found: &mut [bool]) {
        let matches = |at: usize, word: &str| {
            let own = self.operands.get(at).map(|own| &own.words);
            own.is_some_and(|own| match word.contains(char::is_whitespace) {
                true => own.matches_loosely(&loose(word)),
                false => own.matches_loosely(word),
            })
        };
        // `pod/web` is `pod web`.
        let pair = word.split_once('/').filter(|_| entry.commands == CommandOperands::Fetched);
        found[0] |= self.is_any;
        // What stands in front of a command is no part of it.
        let is_open = |at: usize| self.operands[at].is_open && self.command.is_none();
        (0..self.operands.len()).filter(|at| reached[at + 1] && is_open(*at)).for_each(|at| found[at + 1] = true);
        for at in (0..self.operands.len()).filter(|at| reached[*at]) {
            found[at] |= self.operands[at].is_star;
            found[at + 1] |= forms(entry, at, word).any(|word| matches(at, &word));
            let is_kind = |kind: &str| forms(entry, at, kind).any(|kind| matches(at, &kind));
            match pair.filter(|(kind, _)| is_kind(kind)) {
                Some((_, name)) if matches(at + 1, name) => found[at + 2] = true,
                // What a star at the end stands for.
                Some(_) if at + 1 == self.operands.len() => found[at + 1] |= self.is_open && self.command.is_none(),
                _ => {}
            }
        }
    }

    /// Returns whether a call gives all options among its first words.
    fn has_options(&self, call: &Call, before: usize) -> bool {
        let subcommand = call.tokens.iter().position(|token| token.operand).map_or("", |at| call.text(at));
        let given = || call.tokens[..before].iter().flat_map(|token| &token.options);
        let scope = Scope::new(call.program(), subcommand);
        self.options.iter().all(|option| option.is_among(&scope, given()))
    }

    /// Returns whether the command of a wrapper is denied that may begin at one of the words from an index on.
    fn starts_denied_behind(&self, entry: &Program, call: &Call, from: usize, commands: &Cell<usize>) -> bool {
        let Some(command) = self.command.as_deref() else { return false };
        let is_place = |at: &usize| {
            names_program(&command.program, call.text(*at)) && !is_tested(call.text(from - 1), call.text(at - 1))
        };
        let mut places = (from..call.tokens.len()).filter(is_place);
        places.any(|at| self.starts_denied(entry, call, at, commands))
    }

    /// Returns whether the command that may begin at a word is denied.
    fn starts_denied(&self, entry: &Program, call: &Call, at: usize, commands: &Cell<usize>) -> bool {
        let Some(command) = self.command.as_deref() else { return false };
        let is_line = entry.joins_from.is_some();
        if !is_line && !names_program(&command.program, call.text(at)) {
            // `sudo env A=b apt install x`
            let starts_denied = || self.starts_denied_behind(entry, call, at + 1, commands);
            // `sudo sh -c 'apt install x'`
            let more = starts_more(call.text(at));
            let words = call.from(at);
            let is_line = |at: &usize| {
                (more && words[*at].contains(char::is_whitespace)) || (*at > 0 && gives_line(&words[0], &words[at - 1]))
            };
            let lines = || (0..words.len()).filter(is_line).map(|at| &words[at]);
            let is_started = |words: &Vec<String>| command.is_started(words, commands);
            let has_line =
                || self.has_options(call, at) && lines().any(|line| commands_of(line).iter().any(is_started));
            return (more && starts_denied()) || has_line();
        }
        commands.set(commands.get() + 1);
        if commands.get() > MAX_COMMANDS {
            return true;
        }
        if !self.has_options(call, at) {
            return false;
        }
        let started = match is_line {
            true => commands_of(&call.from(at).join(" ")),
            false => vec![call.from(at).to_vec()],
        };
        started.iter().any(|words| command.is_started(words, commands))
    }

    /// Returns whether it holds for a command, or for one that this starts.
    fn is_started(&self, words: &[String], commands: &Cell<usize>) -> bool {
        let is_in = |words: &[String]| Call::read(words).is_some_and(|call| self.is_in(&call, commands));
        let is_in_behind = |at: usize| {
            commands.set(commands.get() + 1);
            commands.get() > MAX_COMMANDS || is_in(&words[at..])
        };
        let is_place = |at: &usize| names_program(&self.program, &words[*at]) && !is_tested(&words[0], &words[at - 1]);
        let mut places = (1..words.len()).filter(is_place);
        let starts = |first: &String| starts_more(first) || words.iter().any(|word| gives_line(first, word));
        let more = words.first().is_some_and(starts);
        is_in(words) || (more && places.any(is_in_behind))
    }
}

/// Returns whether a program starts another one on the same machine, wherever that begins among its words.
fn starts_more(program: &str) -> bool {
    let entry = programs::by_base_name(program);
    let starts_here = entry.starts == Some("") && entry.joins_from != Some(1);
    entry.class == Class::Wrapper || starts_here || !entry.options.starting.is_empty()
}

/// Returns whether the word behind an option of a program may be a line for a shell (`ash -c LINE`, `su --command LINE`).
fn gives_line(program: &str, option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let is_one = option == "--command" || letters.is_some_and(|letters| letters.ends_with('c') && letters.len() < 5);
    is_one && (programs::by_base_name(program).class == Class::Runs || !programs::is_known(program))
}

/// Returns whether the word behind an option is what a search looks for (`find -name rm`).
fn is_tested(program: &str, option: &str) -> bool {
    let expression = programs::by_base_name(program).options.expression;
    let name = option.strip_prefix('-').unwrap_or_default();
    expression.is_some_and(|known| programs::contains(known.valued, name))
}
