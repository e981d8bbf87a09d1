//! Bash rules: patterns for the words with which a program is started.

use std::path::Path;

use crate::Application;
use crate::apart::{harmless_apart, moves_options};
use crate::choice;
use crate::containers;
use crate::denial::Denial;
use crate::expression;
use crate::fetch::{self, Fetch};
use crate::further;
use crate::harmless;
use crate::hosts;
use crate::operands;
use crate::options::{self, GivenOption};
use crate::passed_on::PassedOn;
use crate::programs::{
    self, CommandOperands, Effect, Names, Options, OptionsEnd, Program, Reach, ScriptOperands, Syntax, base_name, git,
};
use crate::request::clipped;
use crate::restraints;
use crate::start::{Executes, Rights, StartWords};
use crate::wildcard::{STAR, StarInWord, Wildcard, joined, plain};

/// Maximum length of a word that a rule with two stars in a word may search, in bytes.
const LONGEST_SEARCHED: usize = 4096;

/// A compiled Bash pattern.
#[derive(Clone, Debug)]
pub(super) struct CommandRule {
    /// The rule as written, without our own program's global flags.
    pub granting: Wildcard,
    /// If the position of harmless options means nothing: the rule's words without them, and those options. A call must have them too, in
    /// any position.
    plain: Option<Box<(Wildcard, Vec<String>)>>,
    /// The same as `granting`, read generously: the program by base name, `COMMAND-NAME` as `COMMAND NAME`.
    denying: Vec<Wildcard>,
    /// The same with words and options apart.
    denials: Box<[Denial]>,
    /// The rule as written, as a denial reads it: a star between quotes is a star.
    in_doubt: Box<Wildcard>,
    /// The words of the rule. A star is [`STAR`].
    words: Vec<String>,
    /// The words before the first star.
    fixed: Vec<String>,
    /// What the stars before its end stand for. If the program only reads, that is any text.
    stars: Stars,
    /// Whether words of the rule may be code (`python3 -c`, SQL, a script of `sed`, a variable of `make`). A star within a word then stands
    /// for a plain text only.
    holds_code: bool,
    /// The commands that its words may start (`watch ls *`, `ssh host find . *`), each with the index of its first word.
    started: Vec<(usize, CommandRule)>,
    /// What is special about it, if it is a command that another program starts.
    passed_on: Option<PassedOn>,
    application: &'static Application,
}

/// What the stars of a rule before its end stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stars {
    /// Any text.
    Anything,
    /// Operands, and behind an option its value ([`Wildcard::matches_operands`]).
    Operands,
    /// Folders and whole tests of an expression ([`expression::may_stand_for`]).
    Tests,
    /// One operand each ([`Wildcard::matches_single_operands`]). Further words could be another command (`ssh * uptime`).
    SingleOperands,
    /// Nothing, so that the rule grants nothing: the first one would choose what the program does.
    Nothing,
}

/// The reason why a rule with matching words does not grant a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shortfall {
    /// An option that the rule must spell.
    Option(GivenOption),
    /// An address outside of the rule's.
    Address(String),
}

impl CommandRule {
    pub(super) fn new(specifier: &str, application: &'static Application) -> Self {
        let mut rule =
            Self::compiled(&Wildcard::command(specifier), Wildcard::command_in_doubt(specifier), application);
        // Of a program that starts others, each star in front of their words stands for one word.
        let words = options::line(&rule.words);
        let started = if rule.program().is_some() { options::started(&words) } else { Vec::new() };
        let command = |(nth, at): (usize, &usize)| {
            let command = Wildcard::words_of(&words[*at..]);
            let passed_on = Some(PassedOn::new(&words, &started, nth));
            (*at, Self { passed_on, ..Self::compiled(&command, command.clone(), application) })
        };
        rule.started = started.iter().enumerate().map(command).collect();
        rule
    }

    fn compiled(written: &Wildcard, in_doubt: Wildcard, application: &'static Application) -> Self {
        let fixed = written.fixed_words();
        let rewritten = |by_base_name: bool, written: &Wildcard| {
            let fixed = written.fixed_words();
            if application.has_refused_flag(&fixed) {
                return None;
            }
            let canonical = application.canonical(&fixed, by_base_name)?;
            Some(written.with_prefix(fixed.len(), &canonical))
        };
        let granting = rewritten(false, written).unwrap_or_else(|| written.clone());
        let mut denying = vec![in_doubt.clone()];
        denying.extend(rewritten(true, &in_doubt));
        let mut denials: Vec<Denial> = denying.iter().flat_map(Denial::of).collect();
        denials.dedup();
        if let Some(program) = fixed.first() {
            denying.extend(program.contains('/').then(|| in_doubt.with_prefix(1, &[base_name(program)])));
            denying.extend(git::split(program).map(|split| in_doubt.with_prefix(1, &split)));
        }
        let words = granting.words();
        let plain = words.first().and_then(|program| apart(program, &words[1..]));
        // Words of `find` that look like options are what it looks for.
        let is_expression =
            words.first().is_some_and(|program| programs::by_base_name(program).options.expression.is_some());
        let fetches = words.first().is_some_and(|program| fetch::options(program).is_some());
        let stars = match is_expression {
            true => Stars::Tests,
            false if granting.searches() && !fetches => Stars::Operands,
            false => Stars::Anything,
        };
        let fixed = granting.fixed_words();
        let holds_code = fixed.split_first().is_some_and(|(program, rest)| options::holds_code(program, rest));
        let mut rule = Self {
            words,
            fixed,
            granting,
            plain,
            denials: denials.into(),
            denying,
            in_doubt: Box::new(in_doubt),
            stars,
            holds_code,
            started: Vec::new(),
            passed_on: None,
            application,
        };
        if rule.only_reads() {
            rule.stars = Stars::Anything;
        } else if rule.stars == Stars::Operands && rule.chooses_what_runs() {
            rule.stars = Stars::Nothing;
        } else if rule.stars == Stars::Operands && (rule.runs_words() || rule.connects_by_git()) {
            rule.stars = Stars::SingleOperands;
        }
        rule
    }

    /// Whether its program leaves everything as it is, whatever options it is given.
    fn only_reads(&self) -> bool {
        let rights = self.program().map(|program| self.rights(program));
        rights.is_some_and(|rights| rights.only_reads() && rights.executes != Executes::Anything)
    }

    /// Whether the first star is in the place of a subcommand or a script, with more words behind it.
    fn chooses_what_runs(&self) -> bool {
        let words = self.arguments();
        let entry = self.program().map(programs::by_base_name);
        entry.is_some_and(|entry| match entry.is_git() {
            true => match git::subcommand(words) {
                Some(_) => choice::chooses_what_runs(entry, git::from_subcommand(words)),
                None => self.subcommand_behind_star().is_some(),
            },
            false => choice::chooses_what_runs(entry, words),
        })
    }

    /// Whether its program may run what its operands say, in their order.
    fn runs_words(&self) -> bool {
        let Some(program) = self.program() else { return false };
        let entry = programs::by_base_name(program);
        !entry.takes_operands_anywhere() && self.rights(program).executes == Executes::Anything
    }

    /// Whether its operands are a remote and what is exchanged with it, in their order, and the rule names one behind a star (`git remote
    /// set-url * URL`).
    fn connects_by_git(&self) -> bool {
        let mut behind = self.arguments().iter().skip_while(|word| !word.contains(STAR)).skip(1);
        let names_more = behind.any(|word| !word.starts_with(['-', STAR]));
        self.is_of_git()
            && names_more
            && git::subcommand(self.arguments()).is_some_and(|subcommand| git::needs(Some(subcommand)).network)
    }

    /// Returns whether the rule grants no call at all, since its first star would choose what the program does.
    pub(super) fn grants_nothing(&self) -> bool {
        self.stars == Stars::Nothing
    }

    /// Returns the subcommand of `git` that a rule names behind a star in its place (`git * status`).
    fn subcommand_behind_star(&self) -> Option<&str> {
        let words = self.arguments();
        let behind = words.split(|word| word.contains(STAR)).nth(1)?;
        git::subcommand(words).is_none().then(|| git::subcommand(behind)).flatten()
    }

    /// Returns the program as the rule spells it, or `None` if its name contains a star.
    pub(super) fn program(&self) -> Option<&str> {
        self.fixed.first().map(String::as_str)
    }

    /// Returns the words before the first star.
    pub(super) fn fixed(&self) -> &[String] {
        &self.fixed
    }

    fn is_of_git(&self) -> bool {
        self.program().is_some_and(|program| programs::by_base_name(program).is_git())
    }

    fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the rule's options for which a `*` does not stand.
    pub(super) fn spelled(&self, program: &str) -> Vec<GivenOption> {
        let mut spelled = options::guarded(program, self.arguments());
        spelled.extend(self.starting_unjudged(program, self.arguments()));
        spelled
    }

    /// Returns the options by which a command that another program starts is given a further one, which nobody judges.
    fn starting_unjudged(&self, program: &str, arguments: &[String]) -> Vec<GivenOption> {
        let Some(passed_on) = self.passed_on else { return Vec::new() };
        let mut found = options::starting_unjudged(program, arguments);
        let at = self.fixed.len().saturating_sub(1);
        let code = arguments.get(at).filter(|word| passed_on.leaves_command_open && !word.contains(STAR));
        found.extend(code.map(|word| GivenOption::word(word, Effect::Commands)));
        found
    }

    /// Returns the rights that the rule grants the program.
    pub(super) fn rights(&self, program: &str) -> Rights {
        Rights::of(program, self.arguments(), &self.spelled(program))
    }

    /// Returns whether the rule grants a wrapper a named script (`bash notes/backup.sh`). A rule for a wrapper without a script grants no
    /// more than every wrapper may do: the programs that it starts are judged themselves.
    pub(super) fn names_script(&self) -> bool {
        let shell = self.program().is_some_and(|program| programs::known(program).shell);
        shell && self.arguments().first().is_some_and(|word| !word.starts_with(['-', STAR]) && !word.is_empty())
    }

    /// Returns whether the rule's words match those of a start.
    pub(super) fn matches(&self, start: &StartWords<'_>) -> bool {
        // A path runs that very file, whatever its base name is: the rule must spell it.
        if start.program.contains('/') && self.program() != Some(start.program) {
            return false;
        }
        if !self.has_subcommand_of(start.program, start.words.get(1..).unwrap_or_default()) {
            return false;
        }
        let is_command = |(rule, words): (&Self, Vec<String>)| rule.matches(&self.start_of(&words));
        self.has_words_of(start) && self.passed_on(start.words).into_iter().all(is_command)
    }

    /// Returns the commands in a call's words that its program starts, each with the rule for it.
    fn passed_on(&self, words: &[String]) -> Vec<(&Self, Vec<String>)> {
        if self.started.is_empty() {
            return Vec::new();
        }
        let line = options::line(words);
        let from = |at: usize| line.get(at..).unwrap_or_default().to_vec();
        self.started.iter().map(|(at, rule)| (rule, from(*at))).collect()
    }

    fn start_of<'a>(&self, words: &'a [String]) -> StartWords<'a> {
        StartWords::new(words, Path::new("/"), self.application)
    }

    /// Returns the same for its own words, without those of commands that it starts.
    fn has_words_of(&self, start: &StartWords<'_>) -> bool {
        if start.granting.iter().any(|text| self.fits(&self.granting, text)) {
            return true;
        }
        if self.fits_without_tests(start.words) {
            return true;
        }
        // The words of a command that it starts are found by their position.
        let is_fixed = self.granting.is_closed() || !self.started.is_empty();
        if is_fixed || self.program().is_some_and(|program| program != start.program) {
            return false;
        }
        let Some((text, given)) = &start.apart else { return false };
        match self.plain.as_deref() {
            Some((words, options)) => is_subset(options, given) && self.fits(words, text),
            None => self.fits(&self.granting, text),
        }
    }

    /// Returns whether a call matches without tests in front of the first one that the rule names. They only leave less
    /// (`find . -type f -name x`), if the rule has no "or".
    fn fits_without_tests(&self, call: &[String]) -> bool {
        let Some(expression) = self.program().and_then(|program| programs::by_base_name(program).options.expression)
        else {
            return false;
        };
        if !expression::narrows(&self.words) {
            return false;
        }
        let Some(at) = expression::first_test(expression, &self.words) else { return false };
        if self.granting.is_exact() || call.get(..at) != self.words.get(..at) {
            return false;
        }
        expression::without_tests(expression, &call[at..])
            .any(|rest| self.fits(&self.granting, &joined(&[&call[..at], rest].concat())))
    }

    /// Returns whether the text of a call matches `words`, with what their stars may stand for.
    fn fits(&self, words: &Wildcard, text: &str) -> bool {
        if !self.keeps_plain(words, text) || !self.keeps_within_words(words, text) {
            return false;
        }
        match self.stars {
            Stars::Anything => words.matches(text),
            Stars::Operands => words.matches_operands(text),
            Stars::Tests => {
                let options = self.program().map_or(&Options::NONE, |program| &programs::by_base_name(program).options);
                words.matches_where(text, |before, words| expression::may_stand_for(options, before, words))
            }
            Stars::SingleOperands => words.matches_single_operands(text),
            Stars::Nothing => false,
        }
    }

    /// Returns whether the rule names a package for its manager. Nothing else reads that name: `acme-x[extra]>=1.0`.
    fn installs(&self) -> bool {
        let entry = self.program().map(programs::by_base_name);
        entry.is_some_and(|entry| {
            entry.commands == CommandOperands::Specifiers && further::names_operand(entry, self.arguments())
        })
    }

    /// Returns whether each star within a word that may be code stands for plain text.
    fn keeps_plain(&self, words: &Wildcard, text: &str) -> bool {
        if !self.holds_code {
            return true;
        }
        let installs = self.installs();
        let may_hold = |star: &StarInWord<'_>, letter| {
            plain(letter) || (installs && !star.before.starts_with('-') && "[]<>!^".contains(letter))
        };
        words.matches_within_words(text, |star| star.stands_for.chars().all(|letter| may_hold(star, letter)))
    }

    /// Returns whether each star within a word stands for a part of what the word names there: of a host, or of code that has no marks for
    /// quotes.
    fn keeps_within_words(&self, words: &Wildcard, text: &str) -> bool {
        let Some(program) = self.program() else { return true };
        let entry = programs::by_base_name(program);
        if fetch::options(program).is_some() {
            return words.matches_within_words(text, |star| hosts::stays_within_option(entry, star));
        }
        let own = words.words();
        let script = options::script_operand(entry, &own);
        let packages = operands::packages(entry, &own);
        let places = hosts::operands(entry, &own);
        // Each letter may be a command or a flag (`s/a/b/*`), save where marks quote it.
        let is_plain = |star: &StarInWord<'_>| {
            let (is_quoted, has_flags) = (is_quoted(star), is_of_flags(star));
            let is_number = |letter: char| letter.is_ascii_digit() || letter == ',';
            let is_name = |letter: char| is_quoted && (letter.is_alphanumeric() || "_.-".contains(letter));
            let is_flag = |letter: char| has_flags && "gimpI".contains(letter);
            star.stands_for.chars().all(|letter| is_number(letter) || is_name(letter) || is_flag(letter))
        };
        let holds_statements = self.holds_code && !matches!(entry.options.scripts, ScriptOperands::First);
        words.matches_within_words(text, |star| {
            let is_script = script == Some(star.at);
            let is_value = entry.options.takes_next(star.previous) || star.previous.starts_with("--");
            let is_code = is_script || is_value || star.before.starts_with('-');
            let may_quote = entry.quotes_by_any_mark && is_code;
            (!may_quote || is_plain(star))
                && !(packages.contains(&star.at) && operands::leaves_package(entry, &own, star))
                && (!places.contains(&star.at) || hosts::stays_in_operand(entry, star))
                && (!holds_statements || is_part_of_statement(entry, star))
                && hosts::stays_within(entry, star, || self.only_reads())
        })
    }

    /// Returns whether a call of `git` has the subcommand that the rule names. A star before it could stand for another one.
    fn has_subcommand_of(&self, program: &str, arguments: &[String]) -> bool {
        let is_git = |program: &str| programs::by_base_name(program).is_git();
        if !is_git(program) || !self.program().is_some_and(is_git) {
            return true;
        }
        let named = git::subcommand(self.arguments()).or_else(|| self.subcommand_behind_star());
        named.is_none_or(|named| git::subcommand(arguments) == Some(named))
    }

    /// Returns the reason why the rule does not grant a start that it matches, or `None` if it does.
    pub(super) fn shortfall(&self, start: &StartWords<'_>) -> Option<Shortfall> {
        let mut spelled = self.spelled(start.program);
        let arguments = start.words.get(1..).unwrap_or_default();
        let mut given = start.guarded.clone();
        if let (Some(call), Some(options)) = (&start.fetch, fetch::options(start.program)) {
            let rule = fetch::read_rule(options, &self.words);
            // A rule that grants every address also grants targets of redirections.
            if rule.any_address {
                given.retain(|option| option.id != "location");
                spelled.retain(|option| option.id != "location");
            }
            if let Some(option) = self.unspelled(spelled, given) {
                return Some(Shortfall::Option(option));
            }
            return fetch::elsewhere(&rule, call).map(Shortfall::Address);
        }
        // A script stands behind them.
        let is_script = programs::by_base_name(start.program).interpreter;
        let quiet = start.quiet.as_ref().and_then(|words| words.get(1..)).filter(|_| is_script);
        let arguments = quiet.unwrap_or(arguments);
        let beyond = self.beyond(start.program, arguments, spelled, given).map(Shortfall::Option);
        let passed_on = || {
            let mut commands = self.passed_on(start.words).into_iter();
            commands.find_map(|(rule, words)| rule.shortfall(&self.start_of(&words)))
        };
        beyond.or_else(|| self.naming_more(arguments).map(Shortfall::Address)).or_else(passed_on)
    }

    /// Returns why an operand of a call names more than the word with a star that stands for it: servers follow `..`, and behind a colon
    /// is a branch of the other side.
    fn naming_more(&self, arguments: &[String]) -> Option<String> {
        self.climbing(arguments)
            .or_else(|| self.naming_others(arguments))
            .or_else(|| self.leaving_host(arguments))
            .or_else(|| self.listing_more(arguments))
            .or_else(|| self.pushing_elsewhere(arguments))
            .or_else(|| self.picking_more(arguments))
    }

    /// Returns why a call names another branch, package or service besides those that the rule names (`git push origin bot/*`), if its
    /// subcommand does the same with each.
    fn naming_others(&self, arguments: &[String]) -> Option<String> {
        let entry = self.program().map(programs::by_base_name)?;
        // The words of a command that it starts are judged with that command's rule.
        let is_own = entry.commanded != "*" || self.started.is_empty();
        let is_open = match self.passed_on.map_or(Reach::Sandbox, |passed_on| passed_on.reach) {
            Reach::Sandbox => false,
            Reach::Machine => !self.only_reads(),
            Reach::Elsewhere => true,
        };
        let file = || further::other_file(entry, self.arguments(), arguments).filter(|_| is_open);
        let word = further::other(entry, self.arguments(), arguments, || self.only_reads())
            .or_else(file)
            .or_else(|| further::from_elsewhere(entry, self.arguments(), arguments))
            .or_else(|| operands::context_on_input(entry, self.arguments(), arguments))
            .or_else(|| hosts::further(entry, self.arguments(), arguments))
            .filter(|_| is_own)?;
        let last = self.arguments().last().map_or("", String::as_str);
        Some(format!("`{}` does not stand for `{}`", clipped(&last.replace(STAR, "*")), clipped(word)))
    }

    /// Returns why a branch of a call is pushed to another one than the rule names (`git push origin bot/*`).
    fn pushing_elsewhere(&self, arguments: &[String]) -> Option<String> {
        if !self.is_of_git() || !matches!(git::subcommand(self.arguments()), Some("push" | "send-pack")) {
            return None;
        }
        let is_branch = |start: &str, end: &str| {
            // `git@*:x`
            let is_place = start.contains('@') && end.contains(':');
            // `feature-*:bot/x`
            let has_other_side = end.starts_with(':');
            !start.is_empty() && !start.starts_with('-') && !is_place && !has_other_side
        };
        let (start, word) = self.extended(arguments, is_branch, |_, rest| rest.contains(':'))?;
        Some(format!("`{}` names another branch than `{}`", clipped(word), clipped(&start)))
    }

    /// Returns why a call picks the commits between two branches, and the rule names one of them (`git cherry-pick bot/*`).
    fn picking_more(&self, arguments: &[String]) -> Option<String> {
        if !self.is_of_git() || !matches!(git::subcommand(self.arguments()), Some("cherry-pick" | "revert")) {
            return None;
        }
        let is_branch = |start: &str, _: &str| !start.is_empty() && !start.starts_with('-') && !start.contains("..");
        let (start, word) = self.extended(arguments, is_branch, |before, rest| {
            rest.contains("..") || (before.ends_with('.') && rest.starts_with('.'))
        })?;
        Some(format!("`{}` names another branch than `{}`", clipped(word), clipped(&start)))
    }

    /// Returns the first word of a call that goes on behind the text in front of a star of a word of the rule, with that text. `of` says which
    /// stars count, by the rule's text in front of it and behind it, and `by` which words of the call, by their own text there and the rest.
    fn extended<'a>(
        &self,
        arguments: &'a [String],
        of: impl Fn(&str, &str) -> bool,
        by: impl Fn(&str, &str) -> bool,
    ) -> Option<(String, &'a str)> {
        let stars = self
            .arguments()
            .iter()
            .flat_map(|word| word.match_indices(STAR).map(|(at, star)| (&word[..at], &word[at + star.len()..])));
        stars.filter(|(start, end)| of(start, end)).find_map(|(start, _)| {
            let begin = Wildcard::words_of(&[start.to_owned()]);
            let is_one = |(before, rest): (&str, &str)| begin.matches(before) && by(before, rest);
            let goes_on = |word: &&String| {
                // With one star there is one place. With more each may be it, which in a long word would take too long.
                if begin.is_exact() {
                    return word.strip_prefix(start).is_some_and(|rest| by(start, rest));
                }
                word.len() > LONGEST_SEARCHED
                    || word.char_indices().any(|(at, _)| is_one(word.split_at(at)))
                    || is_one((word, ""))
            };
            Some((start.replace(STAR, "*"), arguments.iter().find(goes_on)?.as_str()))
        })
    }

    /// Returns why a list of addresses goes on behind the one that the rule names before a star (`kubectl apply -f https://h/*`).
    fn listing_more(&self, arguments: &[String]) -> Option<String> {
        let entry = self.program().map(programs::by_base_name)?;
        if entry.commands != CommandOperands::Fetched {
            return None;
        }
        let lists_more = |_: &str, rest: &str| rest.split(',').skip(1).any(operands::is_fetched);
        let (start, word) = self.extended(arguments, |start, _| start.contains(':'), lists_more)?;
        Some(format!("`{}` has another address behind `{}`", clipped(word), clipped(&start)))
    }

    /// Returns why an address of a call has another host than the one behind whose last letter a rule has a star (`git clone https://h*`).
    fn leaving_host(&self, arguments: &[String]) -> Option<String> {
        // A host that goes on behind the star is judged word by word.
        let ends_in_host = |start: &str, end: &str| {
            let host = start.split_once("://").map(|(_, host)| host);
            end.is_empty() && host.is_some_and(|host| !host.is_empty() && !host.contains('/'))
        };
        let is_port = |rest: &str| {
            let behind = rest.strip_prefix(':').map(|port| port.trim_start_matches(|c: char| c.is_ascii_digit()));
            behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
        };
        let leaves = |_: &str, rest: &str| !rest.is_empty() && !rest.starts_with('/') && !is_port(rest);
        let (start, word) = self.extended(arguments, ends_in_host, leaves)?;
        Some(format!("`{}` names another host than `{}`", clipped(word), clipped(&start)))
    }

    /// Returns why an address of a call leads out of the one that the rule names before a star: servers follow `..` (`git clone
    /// https://h/acme/*`).
    fn climbing(&self, arguments: &[String]) -> Option<String> {
        let entry = self.program().map(programs::by_base_name)?;
        let of_container = entry.container.is_some() || entry.starts_elsewhere;
        let is_place = |start: &str, _: &str| {
            // `kubectl get --raw /api/v1/*`
            let is_path = entry.commands == CommandOperands::Fetched && start.starts_with('/');
            // `deno run --allow-read=data/*`
            let is_right = start.starts_with("--allow-");
            start.contains(':') || (start.contains('/') && (of_container || is_path || is_right))
        };
        // The first dot may be the rule's: `https://h/acme/.*`.
        let climbs = |start: &str, rest: &str| {
            let own = start.rsplit('/').next().unwrap_or_default();
            fetch::climbs(&format!("{own}{rest}"))
        };
        let (start, word) = self.extended(arguments, is_place, climbs)?;
        Some(format!("`{}` leads out of `{}` by `..`", clipped(word), clipped(&start)))
    }

    /// Returns the first option among a program's arguments that goes beyond the rule. `given` are those that a rule must spell.
    fn beyond(
        &self,
        program: &str,
        arguments: &[String],
        spelled: Vec<GivenOption>,
        mut given: Vec<GivenOption>,
    ) -> Option<GivenOption> {
        // Options behind a script are the script's.
        let fixed = self.fixed.get(1..).unwrap_or_default();
        let flags = |words| options::leading_flags(programs::by_base_name(program), words);
        let script = options::up_to_script(program, fixed).map(|end| end - flags(fixed) + flags(arguments));
        if let Some(own) = script.and_then(|end| arguments.get(..end)) {
            given = options::guarded(program, own);
            // A script may read its operands as Perl reads them.
            let entry = programs::by_base_name(program);
            if entry.commands == CommandOperands::Opened {
                given.extend(operands::commands_among(entry, &arguments[own.len()..]));
            }
        }
        // Options behind `--` are those of the command that it starts.
        let begins = |end: &usize| {
            let may_be_value = end.checked_sub(1).is_some_and(|before| fixed[before].starts_with('-'));
            // The index of a command counts the program.
            !may_be_value && self.started.first().is_some_and(|(at, _)| *at == end + 2)
        };
        let end = fixed.iter().position(|word| word == "--").filter(begins);
        if let Some(own) = end.and_then(|end| arguments.get(..end)) {
            given = options::guarded(program, own);
        }
        given.extend(options::joined_to_line(program, self.arguments(), arguments));
        given.extend(self.starting_unjudged(program, arguments));
        given.extend(self.lacking_beside(program));
        // What only reads may be asked in any way, except by code.
        let may_take_back = || !self.only_reads() || programs::known(program).runs_anything();
        let taken_back =
            || restraints::revoking_option(program, self.arguments(), arguments).filter(|_| may_take_back());
        let again = || {
            let (rule, call) = (self.arguments(), arguments);
            let script = options::up_to_script(program, fixed).unwrap_or(usize::MAX);
            // A command that it starts is judged with that command's rule.
            let end = self.before_command(program).unwrap_or(usize::MAX).min(script);
            let (rule, call) = (&rule[..end.min(rule.len())], &call[..end.min(call.len())]);
            let is_own = may_take_back();
            restraints::repeated_option(program, rule, call).filter(|_| is_own)
        };
        self.unspelled(spelled, given).or_else(taken_back).or_else(again)
    }

    /// Returns the number of a program's own arguments in front of the command that the rule has it start, if that is sure to be one: a word
    /// behind an option may be its value. `kubectl` takes options everywhere in front of `--`.
    fn before_command(&self, program: &str) -> Option<usize> {
        let entry = programs::by_base_name(program);
        let needs_dashes = entry.harmless.is_some_and(|known| known.end == OptionsEnd::Dashes);
        let is_sure = |at: &usize| match self.words.get(at - 1).map(String::as_str) {
            Some("--") => true,
            Some(before) => !needs_dashes && !before.starts_with('-'),
            None => false,
        };
        let commands = self.started.iter().map(|(at, _)| *at);
        commands.filter(|at| *at > 0 && entry.joins_from.is_none()).find(is_sure).map(|at| at - 1)
    }

    /// Returns the option that a rule lacks, if it spells one that holds its program back only beside that.
    fn lacking_beside(&self, program: &str) -> Option<GivenOption> {
        let spells = |option: &str| {
            self.words.iter().any(|word| word.starts_with('-') && word.trim_start_matches('-') == option)
        };
        let (option, other) = programs::by_base_name(program).held_by_both?;
        let lacks = spells(option) && !spells(other) && !self.granting.is_exact();
        lacks.then(|| GivenOption::word(format!("-{other}"), Effect::Executes))
    }

    /// Returns whether the rule is specific to one folder: it is exact, or names code by words with another meaning in another folder.
    pub(super) fn is_bound_to_work(&self) -> bool {
        let Some(program) = self.program() else { return false };
        if self.application.is_plain_command(program) {
            return false;
        }
        let relative = program.contains('/') && !program.starts_with('/');
        let arguments = self.arguments();
        self.granting.is_exact()
            || relative
            || options::names_code(program, arguments)
            || options::is_instructed(program, arguments)
    }

    /// Returns the first option of a start that the rule does not spell. An option that leads to other code counts if the rule names the
    /// code, and one that gives a script counts if the rule spells a script.
    fn unspelled(&self, spelled: Vec<GivenOption>, mut given: Vec<GivenOption>) -> Option<GivenOption> {
        let names_more = || self.arguments().iter().any(|word| !word.starts_with(STAR));
        let is_closed = self.program().is_some_and(|program| programs::by_base_name(program).closed) && names_more();
        let is_bound = self.is_bound_to_work();
        if !is_bound && !is_closed {
            given.retain(|option| option.effect != Effect::Leads);
        }
        if !is_bound || self.program().is_some_and(|program| options::needs_no_order(program, self.arguments())) {
            given.retain(|option| option.effect != Effect::Reorders);
        }
        let entry = self.program().map(programs::by_base_name);
        let names =
            |entry| further::names_operand(entry, self.arguments()) || further::names_part(entry, self.arguments());
        if !entry.is_some_and(names) {
            given.retain(|option| option.effect != Effect::Adds);
        }
        let is_simulated = self.program().is_some_and(|program| restraints::is_simulated(program, self.arguments()));
        if !self.names_more_than_subcommand() || self.only_reads() || is_simulated {
            given.retain(|option| option.effect != Effect::Destroys);
        }
        if !self.program().is_some_and(|program| options::names_script(program, self.arguments())) {
            given.retain(|option| !matches!(option.effect, Effect::Scripts | Effect::Alters));
        }
        if !spelled.iter().any(|option| option.id == harmless::TARGET) {
            given.retain(|option| option.id != harmless::TARGET);
        }
        if self.program().is_some_and(|program| operands::leaves_place_open(program, self.arguments())) {
            given.retain(|option| option.id != operands::ADDRESS);
        }
        options::unspelled(spelled, given)
    }

    /// Returns whether the rule names a part of a call, besides the program and its subcommand.
    fn names_more_than_subcommand(&self) -> bool {
        let entry = self.program().map(programs::by_base_name);
        let own = match entry {
            Some(entry) if entry.is_git() => git::from_subcommand(self.arguments()).get(1..),
            Some(entry) => containers::behind(entry, self.arguments()).or(Some(self.arguments())),
            None => Some(self.arguments()),
        };
        own.is_some_and(|words| words.iter().any(|word| !word.starts_with(STAR) && !word.is_empty()))
    }

    /// Returns whether the rule denies a start.
    pub(super) fn denies(&self, start: &StartWords<'_>) -> bool {
        let is_denied = |text: &String| self.denying.iter().any(|wildcard| wildcard.matches_loosely(text));
        // A call of another program is not read.
        let concerns = |denial: &Denial| start.readings().any(|words| denial.concerns(words));
        let holds = |denial: &Denial| concerns(denial) && denial.holds(start.denied());
        start.denying.iter().any(is_denied) || self.denials.iter().any(holds)
    }

    /// Returns whether matching the rule searches the whole command.
    pub(super) fn searches(&self) -> bool {
        self.granting.searches()
    }

    /// Returns whether the rule grants everything that another one grants. `false` if that cannot be told.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if !self.granting.covers(&other.granting) || (self.is_bound_to_work() && !other.is_bound_to_work()) {
            return false;
        }
        let Some(program) = other.program() else { return self.program().is_none() && self.granting_is_same(other) };
        // Words and rights follow from the text, so the child must not spell options that the parent does not.
        let narrower = self.beyond(program, other.arguments(), self.spelled(program), other.spelled(program)).is_none()
            && self.rights(program).covers(&other.rights(program))
            && self.naming_more(other.arguments()).is_none()
            && self.has_subcommand_of(program, other.arguments())
            // A star in the place of a target leaves open what it is.
            && (!options::names_script(program, self.arguments()) || options::names_script(program, other.arguments()))
            && self.covers_middle(other)
            && self.covers_started(other)
            // The star of the other rule stands for all options of its subcommand.
            && (!self.names_more_than_subcommand() || other.names_more_than_subcommand());
        let read = |rule: &Self, options| fetch::read_rule(options, &rule.words);
        let within = |options| fetch::covers(&read(self, options), &read(other, options));
        narrower && self.covers_code(other) && self.covers_plainly(other) && fetch::options(program).is_none_or(within)
    }

    /// Returns whether stars within words of code stand for no more in `other`, whose own stars there stand for plain text.
    fn covers_code(&self, other: &Self) -> bool {
        let any = match other.holds_code {
            true if other.installs() => "<",
            true => "x",
            false => "*",
        };
        let words = || joined(&other.words).replace(STAR, any);
        let keeps = || self.keeps_within_words(&self.granting, &words()) && self.keeps_plain(&self.granting, &words());
        self.granting_is_same(other) || keeps()
    }

    /// Returns whether stars before the end stand for no more in `other`.
    fn covers_middle(&self, other: &Self) -> bool {
        let alike = !other.granting.searches() || self.stars == other.stars;
        self.stars == Stars::Anything
            || self.granting_is_same(other)
            || (alike && self.fits(&self.granting, &joined(&other.words)))
    }

    /// Returns whether the commands that it starts are granted as `other` grants them.
    fn covers_started(&self, other: &Self) -> bool {
        let is_covered = |at: &usize, rule: &Self| {
            other.started.iter().any(|(other_at, other)| at == other_at && rule.covers(other))
        };
        self.started.iter().all(|(at, rule)| is_covered(at, rule))
    }

    /// Returns the same for calls whose harmless options have another position than in the rule.
    fn covers_plainly(&self, other: &Self) -> bool {
        let Some((inner, needed)) = other.plain.as_deref().filter(|_| !other.granting.is_closed()) else { return true };
        match self.plain.as_deref() {
            Some((outer, options)) => is_subset(options, needed) && outer.covers(inner),
            None => self.granting.covers(inner),
        }
    }

    /// Returns whether the rule spells the program of a rule that it covers. A program with a path and the script of a shell are granted
    /// only if a rule spells them.
    pub(super) fn spells_program_of(&self, covered: &Self) -> bool {
        self.program().is_some() && (self.names_script() || !covered.names_script())
    }

    fn granting_is_same(&self, other: &Self) -> bool {
        self.words == other.words
    }

    /// Returns whether a start that the rule grants could be one that `denial` denies, or could cause one. `true` if that
    /// cannot be told.
    pub(super) fn reaches(&self, denial: &Self) -> bool {
        let denied_words = denial.in_doubt.fixed_words();
        let (Some(program), Some(denied)) = (self.program(), denied_words.first()) else {
            return self.reaches_unnamed(denial);
        };
        let ours = self.named(&self.fixed);
        let theirs = self.named(&denied_words);
        if ours[0] != theirs[0] {
            // A program that runs others can run the denied one.
            return self.runs_others(program) || base_name(denied).is_empty();
        }
        // A path elsewhere can be any program.
        if programs::known_as(program).is_none() && !self.application.is_plain_command(&ours[0]) {
            return true;
        }
        if programs::named(&ours[0]).is_git() && ours.get(1).is_some_and(|name| !git::is_own(name)) {
            return true;
        }
        if self.granting.is_exact() && denial.in_doubt.is_exact() && !self.strips(&ours[0]) {
            return ours == theirs || denial.denies(&self.start_of(&self.fixed));
        }
        for (ours, theirs) in ours.iter().zip(&theirs).skip(1) {
            if ours.starts_with('-') || theirs.starts_with('-') {
                return true;
            }
            if ours != theirs {
                return false;
            }
        }
        // If one rule is exact and shorter than the fixed words of the other, no command matches both. An option denies nothing less.
        let ends = |rule: &Wildcard, words: &[String], other: &[String]| {
            let has_option = || other[words.len()..].iter().any(|word| word.starts_with('-'));
            rule.is_exact() && words.len() < other.len() && !has_option() && !self.strips(&words[0])
        };
        !(ends(&self.granting, &ours, &theirs) || ends(&denial.in_doubt, &theirs, &ours))
    }

    /// Returns the same if a star is in the program's name of one of the two.
    fn reaches_unnamed(&self, denial: &Self) -> bool {
        let Some(program) = self.program() else { return true };
        if !self.granting.is_exact() || self.strips(base_name(program)) || self.runs_others(program) {
            return true;
        }
        denial.denies(&StartWords::new(&self.fixed, Path::new("/"), self.application))
    }

    /// Returns whether a granted program can start other programs.
    fn runs_others(&self, program: &str) -> bool {
        let rights = self.rights(program);
        // The service judges each call of our own command itself.
        !self.application.is_command(program) && rights.executes == Executes::Anything
    }

    /// Returns whether words of a call are removed before matching, so that an exact text matches further calls.
    fn strips(&self, program: &str) -> bool {
        self.application.is_plain_command(program)
            || !matches!(programs::named(program).syntax, Syntax::Options)
            || moves_options(program)
    }

    /// Returns the fixed words of a rule as a denial reads them: by the program's base name, `git-push` as `git push`, blanks
    /// as breaks between words.
    fn named(&self, fixed: &[String]) -> Vec<String> {
        let mut words: Vec<String> =
            fixed.iter().flat_map(|word| word.split_whitespace()).map(ToOwned::to_owned).collect();
        if words.is_empty() {
            return vec![String::new()];
        }
        if let Some(canonical) = self.application.canonical(&words, true) {
            return canonical;
        }
        if let Some(split) = git::split(&words[0]) {
            words.splice(..1, split);
            return words;
        }
        words[0] = base_name(&words[0]).to_owned();
        words
    }
}

/// Returns the words of a rule without its harmless options, and those options, if their position means nothing.
fn apart(program: &str, arguments: &[String]) -> Option<Box<(Wildcard, Vec<String>)>> {
    let (words, harmless) = match fetch::options(program) {
        Some(options) => {
            let Fetch { mut plain, harmless, .. } = fetch::read(options, arguments);
            plain.insert(0, program.to_owned());
            (plain, harmless)
        }
        None => harmless_apart(program, arguments)?,
    };
    Some(Box::new((Wildcard::words_of(&words), harmless)))
}

/// Returns whether a star in a script stands in a string, in a pattern or in what takes its place: `'*'`, `/^*/d`, `s/a/*/`.
fn is_quoted(star: &StarInWord<'_>) -> bool {
    let Some(mark) = star.behind.chars().next() else { return false };
    let mut parts = star.before.split(mark);
    let (first, count) = (parts.next().unwrap_or_default().trim_start_matches('-'), parts.count());
    match mark {
        '\'' | '"' => count % 2 == 1,
        '/' | '|' | '#' | '@' if count == 1 => {
            ["m", "s", "tr", "y"].contains(&first)
                || first.chars().all(|letter| letter.is_ascii_digit() || letter == ',')
        }
        '/' | '|' | '#' | '@' => count == 2 && ["s", "tr", "y"].contains(&first),
        _ => false,
    }
}

/// Returns whether a star stands for flags of `s/a/b/`. Others than the known ones run what they find, or write a file.
fn is_of_flags(star: &StarInWord<'_>) -> bool {
    let Some(mark) = star.before.chars().last() else { return false };
    let mut parts = star.before.split(mark);
    let first = parts.next().unwrap_or_default();
    star.behind.is_empty() && first == "s" && ['/', '|', '#', '@'].contains(&mark) && parts.count() == 3
}

/// Returns whether a star in a statement stands for a part of a name or of a string there, or for a number. In the place of a value the name
/// of a column would take every row (`where id = *`).
fn is_part_of_statement(program: &Program, star: &StarInWord<'_>) -> bool {
    /// Words behind which a star stands for the name of a table.
    const BEFORE_NAMES: Names =
        "analyze by column database from into join select table truncate update use vacuum view";
    // The rest of a statement would be a comment.
    if star.stands_for.contains("--") {
        return false;
    }
    let before = star.before;
    let is_database = program.options.guarded.iter().any(|option| option.effect == Effect::Scripts);
    let quote = before.chars().fold(None, |quote, letter| match quote {
        None => Some(letter).filter(|letter| ['\'', '"'].contains(letter)),
        quote => quote.filter(|mark| *mark != letter),
    });
    let in_string = quote.is_some();
    if !is_database || in_string || !before.contains(char::is_whitespace) {
        return true;
    }
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let last = |text: &str| text.rsplit(|letter| !is_of_name(letter)).next().unwrap_or_default().to_ascii_lowercase();
    let begun = last(before);
    let is_name = match begun.is_empty() {
        true => {
            let names = programs::contains(BEFORE_NAMES, &last(before.trim_end()));
            (before.ends_with(char::is_whitespace) && names) || before.ends_with('.')
        }
        false => !begun.starts_with(|first: char| first.is_ascii_digit()),
    };
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    star.stands_for.chars().all(|letter| is_number(letter) || (is_name && is_of_name(letter)))
}

fn is_subset(options: &[String], of: &[String]) -> bool {
    options.iter().all(|option| of.contains(option))
}
