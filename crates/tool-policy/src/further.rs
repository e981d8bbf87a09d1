//! Further operands of a call. Behind a subcommand that does the same with each one, they must be like the rule's.

use crate::choice;
use crate::containers;
use crate::hosts;
use crate::operands;
use crate::programs::{self, Class, CommandOperands, Names, Program, git};
use crate::wildcard::{STAR, StarInWord, Wildcard};

/// The operands of a rule that ends in a star, if that star does not stand for any further ones.
struct Named<'a> {
    /// All of them, in their order.
    own: Vec<&'a String>,
    /// The subcommand that does the same with each operand behind it.
    verb: Option<&'a str>,
    /// What a further operand may be.
    further: Further<'a>,
}

/// What an operand of a call may be that the rule does not name.
#[derive(Clone, Copy)]
enum Further<'a> {
    /// There may be none.
    None,
    /// One like this.
    Like(&'a String),
    /// A name like the first of these, or an assignment like the second one. `None`: any.
    LikeEither(Option<&'a String>, Option<&'a String>),
}

impl<'a> Further<'a> {
    /// Returns the names and assignments that are like the last ones of these operands.
    fn like_last(operands: &[&'a String]) -> Self {
        let last = |assigns: bool| operands.iter().rev().find(|word| is_assignment(word) == assigns).copied();
        Self::LikeEither(last(false), last(true))
    }

    fn allows(self, word: &str, is_like: impl Fn(&String) -> bool) -> bool {
        match self {
            Self::None => false,
            Self::Like(own) => is_like(own),
            Self::LikeEither(name, assignment) => {
                let own = if is_assignment(word) { assignment } else { name };
                own.is_none_or(is_like)
            }
        }
    }
}

/// Returns whether a word sets a name or takes it away: `tier=web`, `tier-`.
fn is_assignment(word: &str) -> bool {
    word.contains('=') || word.ends_with('-')
}

/// Returns the first operand of a call for which no word of the rule stands, although its text matches.
pub(super) fn other<'a>(
    program: &'a Program,
    rule: &[String],
    call: &'a [String],
    only_reads: impl Fn() -> bool + Copy,
) -> Option<&'a String> {
    let (rule, call) = from_subcommand(program, rule, call);
    let Named { own, verb, further } = named(program, rule).filter(|_| !only_reads())?;
    let operands: Vec<&String> = match verb {
        // Behind those files the words are the program's.
        Some("run") if program.commands == CommandOperands::Sources && own.len() > 1 => {
            operands::sources(call).collect()
        }
        _ => {
            let at = choice::operands_at(program, call).filter(|at| !is_value_of_rule(program, rule, &call[..*at]));
            at.map(|at| &call[at]).collect()
        }
    };
    first_unlike(program, rule, (own, further), operands, only_reads)
}

/// Returns the first operand for which no word of a rule stands. Those words stand for operands in their order.
fn first_unlike<'a>(
    program: &Program,
    rule: &[String],
    (own, further): (Vec<&String>, Further<'_>),
    operands: Vec<&'a String>,
    only_reads: impl Fn() -> bool + Copy,
) -> Option<&'a String> {
    let hosts: Vec<&String> = hosts::among(program, rule).into_iter().map(|at| &rule[at]).collect();
    let stands_for = |own: &String, word: &str| {
        let is_host = hosts.contains(&own);
        let own = Wildcard::words_of(std::slice::from_ref(own));
        // A word of another rule may have a star, too.
        let plain = word.replace(STAR, "x");
        let stays = |star: &StarInWord<'_>| {
            (!is_host || hosts::stays_in_operand(program, star)) && hosts::stays_within(program, star, only_reads)
        };
        own.matches(word) && own.matches_within_words(&plain, stays)
    };
    let mut next = 0;
    operands.into_iter().find(|word| match own[next..].iter().position(|own| stands_for(own, word)) {
        Some(at) => {
            next += at + 1;
            false
        }
        None => !further.allows(word, |own| stands_for(own, word)),
    })
}

/// Returns the first file or option of a call that no word of the rule names, if the rule ends in a star within an operand and its program
/// works on files that no sandbox keeps it from (`sudo rm /srv/cache/*`). Further operands must be like the last one.
pub(super) fn other_file<'a>(program: &'a Program, rule: &[String], call: &'a [String]) -> Option<&'a String> {
    // Behind the folders are tests, which only leave less.
    let is_test = |word: &String| program.options.expression.is_some() && word.starts_with(['-', '(', '!']);
    let folders = |words: &[String]| words.iter().position(is_test).unwrap_or(words.len());
    let (rule, call) = (&rule[..folders(rule)], &call[..folders(call)]);
    let last = rule.last().filter(|last| last.contains(STAR) && !last.starts_with(['-', STAR]))?;
    let is_known = |word: &str| {
        let mut own = rule.iter().filter(|own| own.starts_with('-'));
        word == "--" || own.any(|own| Wildcard::words_of(std::slice::from_ref(own)).matches(word))
    };
    let takes_files = program.writes_operands || matches!(program.class, Class::Changes | Class::Filter | Class::Reads);
    if !takes_files || program.is_git() {
        return None;
    }
    let option = call.iter().find(|word| word.len() > 1 && word.starts_with('-') && !is_known(word));
    let own = choice::operands(program, rule).collect();
    let operands = choice::operands(program, call).collect();
    option.or_else(|| first_unlike(program, rule, (own, Further::Like(last)), operands, || false))
}

/// Returns whether the star at the end of a rule stands for the value of an option behind the same words as in a call.
fn is_value_of_rule(program: &Program, rule: &[String], before: &[String]) -> bool {
    let is_same = |(own, word): (&String, &String)| Wildcard::words_of(std::slice::from_ref(own)).matches(word);
    let is_star = rule.last().is_some_and(|last| last.trim_matches(STAR).is_empty());
    is_star
        && before.len() + 1 == rule.len()
        && choice::may_take_next(program, &rule[..before.len()])
        && rule.iter().zip(before).all(is_same)
}

/// Returns whether a rule names an operand for a subcommand that a table has as one that does the same with each.
pub(super) fn names_operand(program: &Program, rule: &[String]) -> bool {
    let (rule, _) = from_subcommand(program, rule, &[]);
    let own: Vec<&String> = choice::operands(program, rule).collect();
    let at = listed_verb(program, &own).filter(|at| !is_commanded(program, &own, *at));
    at.is_some_and(|at| is_named(&own[at + 1..]))
}

/// Returns whether a rule has a star within an operand (`npm run build-*`).
pub(super) fn names_part(program: &Program, rule: &[String]) -> bool {
    choice::operands(program, rule).any(|word| word.contains(STAR) && !word.trim_matches(STAR).is_empty())
}

/// Returns whether operands name something.
fn is_named(operands: &[&String]) -> bool {
    operands.iter().any(|word| !word.starts_with(STAR))
}

/// Returns the first package of a call that comes from elsewhere, if the rule names packages, and none like it (`npm install acme-*` and
/// `acme-x/evil`).
pub(super) fn from_elsewhere<'a>(program: &'a Program, rule: &[String], call: &'a [String]) -> Option<&'a String> {
    if program.commands != CommandOperands::Specifiers {
        return None;
    }
    let own: Vec<&String> = choice::operands(program, rule).collect();
    let at = verb(program, rule, &own).filter(|at| is_named(&own[at + 1..]))?;
    let kind = operands::behind_at(program, rule);
    let is_like_one = |word: &str| {
        let own = rule.iter().filter(|own| operands::is_from_elsewhere(kind, own));
        own.into_iter().any(|own| Wildcard::words_of(std::slice::from_ref(own)).matches(word))
    };
    let behind = choice::operands(program, call).skip_while(|word| *word != own[at]).skip(1);
    behind.into_iter().find(|word| operands::is_from_elsewhere(kind, word) && !is_like_one(word))
}

fn from_subcommand<'a, 'b>(program: &Program, rule: &'a [String], call: &'b [String]) -> (&'a [String], &'b [String]) {
    match program.is_git() {
        true => (git::from_subcommand(rule), git::from_subcommand(call)),
        false => (rule, call),
    }
}

fn named<'a>(program: &'a Program, rule: &'a [String]) -> Option<Named<'a>> {
    let (last, before) = rule.split_last().filter(|(last, _)| last.contains(STAR))?;
    // A star behind an option may stand for its value.
    let is_value = choice::may_take_next(program, before);
    let is_word = last.trim_matches(STAR).is_empty();
    if is_word && !is_value {
        return None;
    }
    let own: Vec<&String> = choice::operands(program, if is_word { before } else { rule }).collect();
    let verb = verb(program, rule, &own);
    let verb_name = verb.map(|at| own[at].as_str());
    let is_image = !is_word && containers::ends_at_image(program, rule);
    if program.commanded == "*" || is_image || verb.is_some_and(|at| is_commanded(program, &own, at)) {
        return Some(Named { own, verb: verb_name, further: Further::None });
    }
    let behind = verb.map_or(&own[..0], |at| &own[at + 1..]);
    if verb.is_some_and(|at| !behind.is_empty() && is_listed(program.assigning, &own, at)) {
        let further = Further::like_last(behind);
        return Some(Named { own, verb: verb_name, further });
    }
    // The letter before the last word may have a value elsewhere only (`docker rm -l bot-*`).
    let last_value = Some(last).filter(|_| !is_word && !last.starts_with('-'));
    if let Some(like) = verb.and_then(|_| behind.last().copied().or(last_value)) {
        return Some(Named { own, verb: verb_name, further: Further::Like(like) });
    }
    // The star is the value of an option, and the rule names nothing else (`npm install --prefix *`). Right behind a switch it is none
    // (`--ignore-scripts*`).
    let is_switch = || {
        let option = Some(last.trim_end_matches(STAR).to_owned())
            .filter(|option| option.starts_with("--") && !option.contains('='));
        option.is_some_and(|option| !choice::may_take_next(program, &[before, &[option]].concat()))
    };
    if verb.is_some() && (is_word || !is_switch()) {
        return Some(Named { own, verb: verb_name, further: Further::None });
    }
    // `truncate log --size=*`
    let names_text = before.iter().any(|word| programs::contains(program.texts, word));
    let names_more = own.len() > usize::from(program.subcommands) || names_text;
    (program.class == Class::Changes && last.starts_with('-') && names_more).then_some(Named {
        own,
        verb: None,
        further: Further::None,
    })
}

/// Returns the index, among a rule's operands, of the subcommand that does the same with each one behind it.
fn verb(program: &Program, rule: &[String], own: &[&String]) -> Option<usize> {
    let overwrites = |word: &String| match word.strip_prefix("--") {
        Some(long) => {
            let mut names = ["copy", "delete", "force", "move"].into_iter();
            !long.is_empty() && names.any(|name| name.starts_with(long))
        }
        None => word.starts_with('-') && word.contains(['c', 'C', 'd', 'D', 'f', 'm', 'M']),
    };
    let is_of_refs =
        program.is_git() && own.first().is_some_and(|word| ["branch", "replace", "tag"].contains(&word.as_str()));
    if is_of_refs {
        return rule.iter().any(overwrites).then_some(0);
    }
    // Behind the name of a new branch is where it begins.
    let is_new = |word: &String| ["-b", "-B", "--orphan"].contains(&word.as_str());
    if program.is_git() && own.first().is_some_and(|word| *word == "checkout") && rule.iter().any(is_new) {
        return None;
    }
    listed_verb(program, own).or_else(|| unknown_verb(program, rule, own))
}

/// Returns the index of the subcommand that a table has.
fn listed_verb(program: &Program, own: &[&String]) -> Option<usize> {
    let lists = [program.alike, program.assigning, program.commanded];
    (0..own.len()).find(|at| lists.iter().any(|list| is_listed(list, own, *at)))
}

/// Returns the index of a subcommand that no table has.
fn unknown_verb(program: &Program, rule: &[String], own: &[&String]) -> Option<usize> {
    if program.unlike.is_empty() && !program.is_git() {
        return None;
    }
    let is_group = |at: &usize| match own[..=*at] {
        [group] => programs::contains(program.groups, group),
        [first, second] => programs::contains(program.groups, &format!("{first}-{second}")),
        _ => false,
    };
    let at = (0..own.len()).take_while(is_group).count();
    own.get(at).filter(|verb| !verb.contains(STAR))?;
    let is_known = |at: usize| {
        let is_started = program.starts.is_some_and(|verbs| programs::contains(verbs, own[at]));
        // `bun main.ts`
        let is_script = program.class == Class::Runs && at == 0 && own[at].contains(['.', '/', ':']);
        let is_of_git = program.is_git() && git::is_own(own[0]);
        is_started || is_script || is_of_git || is_listed(program.unlike, own, at)
    };
    // Behind an option that may have a value.
    let is_behind = rule.first().is_some_and(|word| word.starts_with('-')) && (at..own.len()).any(is_known);
    (!is_known(at) && !is_behind).then_some(at)
}

/// Returns whether a further operand of a subcommand is a command.
fn is_commanded(program: &Program, own: &[&String], at: usize) -> bool {
    let is_unknown = || listed_verb(program, own) != Some(at);
    let is_short = || program.commanded.split_whitespace().any(|name| name.starts_with(own[at].as_str()));
    let may_be = !program.commanded.is_empty() && is_unknown() && (program.alike.is_empty() || is_short());
    is_listed(program.commanded, own, at) || may_be
}

/// Returns whether a list of subcommands has the operand at an index, or that with the one before it (`remote-prune`).
fn is_listed(list: Names, operands: &[&String], at: usize) -> bool {
    // `get secret/web`
    let kind = operands[at].split('/').next().unwrap_or_default();
    let full = |before: usize| format!("{}-{kind}", operands[before]);
    programs::contains(list, operands[at])
        || at.checked_sub(1).is_some_and(|before| programs::contains(list, &full(before)))
}
