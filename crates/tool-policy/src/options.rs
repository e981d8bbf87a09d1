//! Options that write, execute or steer a program elsewhere. A `*` in a rule does not stand for them: the rule must
//! spell them.
//!
//! Words are read as generously as `getopt_long` could: clusters (`-uo`), attached values (`-ofile`), abbreviated long
//! names (`--outp`). If two readings are possible, an option counts as given. That includes words behind `--`, since that may be the
//! value of the option before it.

use crate::choice;
use crate::code_on_input;
use crate::containers;
use crate::fetch;
use crate::harmless;
use crate::operands;
use crate::programs::{
    self, Class, CommandOperands, Effect, GuardedOption, Names, Options, Program, ScriptOperands, Syntax, git,
};
use crate::start::{is_known, is_word};
use crate::wildcard::{STAR, plain};

/// An option that a rule must spell, found among words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GivenOption {
    /// A name shared by all spellings of the option.
    pub id: String,
    /// The spelling for a rule.
    pub shown: String,
    /// The effect of the option on the program.
    pub effect: Effect,
}

impl GivenOption {
    /// Returns a word that a rule must spell as it is.
    pub(super) fn word(word: impl Into<String>, effect: Effect) -> Self {
        let shown = word.into();
        Self { id: shown.clone(), shown, effect }
    }
}

/// Returns whether the words of a rule name the code that a program runs (`make test *`, `python3 report.py *`). In another folder they
/// name other code. A script with an absolute path is the same everywhere.
pub(super) fn names_code(program: &str, arguments: &[String]) -> bool {
    if programs::known(program).named_class() != Class::Runs {
        return false;
    }
    let program = programs::by_base_name(program);
    // A build tool finds its code in its folder, whatever its options are.
    if !program.interpreter && !program.local_sockets && program.class == Class::Runs {
        return arguments.iter().any(|word| !word.starts_with(STAR) && !word.is_empty());
    }
    let options = &program.options;
    let is_flag = |word: &&String| {
        let cluster = word.strip_prefix('-').unwrap_or_default();
        !cluster.is_empty() && cluster.chars().all(|c| c.is_ascii_alphabetic() && !options.has_value(c))
    };
    let script = arguments.iter().find(|word| !is_flag(word));
    if program.interpreter && !program.loads_from_folder && script.is_some_and(|word| word.starts_with('/')) {
        return false;
    }
    let has_value = |word: &String| {
        let ends = |option: &GivenOption| word.ends_with(option.shown.trim_start_matches('-'));
        let word_alone = std::slice::from_ref(word);
        let led = harmless::others(program, word_alone);
        word.contains('=') || !scan(options, word_alone).iter().chain(&led).all(ends)
    };
    arguments.iter().any(|word| match word.starts_with('-') {
        true => has_value(word),
        false => !word.starts_with(STAR) && !word.is_empty(),
    })
}

/// Returns whether a rule names a file that tells a program what to do (`sed -i -f p.sed *`, `curl -K api.conf *`, `git apply x.patch *`). In
/// another folder that is another file.
pub(super) fn is_instructed(program: &str, arguments: &[String]) -> bool {
    let program = programs::by_base_name(program);
    match program.syntax {
        Syntax::Git => git::is_instructed(arguments),
        Syntax::Fetch(_) => {
            // The content of a file: `@body.json`, `-d@body.json`, `name=@body.json`, `name=<body.json`.
            let gives_file = |word: &String| {
                let value =
                    word.strip_prefix('-').map_or(word.as_str(), |rest| rest.trim_start_matches(char::is_alphanumeric));
                value.starts_with('@') || word.contains("=@") || word.contains("=<")
            };
            // `name@body.json`
            let encoded = |pair: &[String]| pair[0] == "--data-urlencode" && pair[1].contains('@');
            spells(program.instructed_by, &Options::NONE, arguments)
                || arguments.iter().any(gives_file)
                || arguments.windows(2).any(encoded)
        }
        Syntax::Options => spells(program.instructed_by, &Options::NONE, arguments) || brings_named(program, arguments),
    }
}

/// Returns whether a rule names a file whose contents its program puts elsewhere (`tar -xf backup.tar *`, `cp template.md *`).
fn brings_named(program: &Program, arguments: &[String]) -> bool {
    let options = &program.options;
    let is_bundle = |at: usize| options.bundled && at == 0;
    // The 100 of `split -l 100 *`. With `tar` it is an archive.
    let is_count = |text: &str| !options.bundled && text.bytes().all(|byte| byte.is_ascii_digit());
    let takes_value = |word: &String| word.starts_with('-') && word.ends_with(|letter| options.values.contains(letter));
    let is_counted = |at: usize, word: &str| {
        is_count(word) && at.checked_sub(1).and_then(|before| arguments.get(before)).is_some_and(takes_value)
    };
    let names_file = |(at, word): (usize, &String)| match word.strip_prefix('-') {
        // A value that is attached: `-fbackup.tar`, `--file=backup.tar`.
        Some(letters) => {
            letters.contains('=')
                || letters.find(|letter| options.values.contains(letter)).is_some_and(|end| {
                    let value = &letters[end + 1..];
                    !letters.starts_with('-') && !value.is_empty() && !value.starts_with(STAR) && !is_count(value)
                })
        }
        None => !is_bundle(at) && !word.is_empty() && !word.starts_with([STAR, '/']) && !is_counted(at, word),
    };
    let brings = |with: Names| with.is_empty() || spells(with, options, arguments);
    program.brings.is_some_and(brings) && arguments.iter().enumerate().any(names_file)
}

/// Returns a call as its program passes it on: `-mpip` as `-m pip`, `pnpm@9` as `pnpm`, `git push` behind `git-push`, and each word split at
/// blanks, if the program joins its words to a line.
pub(super) fn line(words: &[String]) -> Vec<String> {
    let Some(program) = words.first() else { return Vec::new() };
    let entry = programs::by_base_name(program);
    let parts: Vec<String> = match entry.joins_from {
        Some(_) => words.iter().flat_map(|word| word.split_whitespace()).map(ToOwned::to_owned).collect(),
        None => words.to_vec(),
    };
    let (mut runs_modules, mut runs_packages): (Option<&Program>, bool) = (None, false);
    let mut out = Vec::new();
    for (at, word) in parts.into_iter().enumerate() {
        if let Some((option, name)) = runs_modules.and_then(|program| attached_module(program, &word)) {
            out.extend([option.to_owned(), name.to_owned()]);
            continue;
        }
        let name = word.split('@').next().filter(|name| runs_packages && programs::is_known(name));
        let word = name.map(ToOwned::to_owned).unwrap_or(word);
        let entry = programs::by_base_name(&word);
        runs_modules = Some(entry).filter(|entry| programs::contains(entry.options.naming_code, "-m")).or(runs_modules);
        runs_packages |= entry.commands == CommandOperands::Specifiers && entry.starts.is_some();
        let split = git::split(&word).filter(|[_, name]| git::is_own(name) && (at == 0 || word.contains('/')));
        out.push(word);
        out.extend(split.into_iter().flatten());
    }
    out
}

/// Returns the indices of the words of a [`line`] that a program may start as a command: every known program among a rule's words, behind
/// the subcommand that starts one (`docker exec web find .`), or behind `-m` (`python3 -m pytest`).
pub(super) fn started(rule: &[String]) -> Vec<usize> {
    if rule.first().and_then(|program| git::split(program)).is_some_and(|[_, name]| git::is_own(&name)) {
        return vec![1];
    }
    let entry = rule.first().map(|program| programs::by_base_name(program));
    let verbs = entry.and_then(|entry| entry.starts);
    let begins = |verbs: Names| match verbs.is_empty() {
        true => Some(1),
        false => rule.iter().position(|word| programs::contains(verbs, word)).map(|at| at + 1),
    };
    let from = verbs.and_then(begins).unwrap_or(rule.len());
    let from = entry.and_then(|entry| module(entry, rule)).unwrap_or(from);
    // A container may have the name of a program.
    let is_own =
        entry.is_some_and(|entry| entry.own_operand) && rule.get(from).is_some_and(|word| !word.starts_with('-'));
    let from = from + usize::from(is_own);
    (from..rule.len()).filter(|at| programs::is_known(&rule[*at])).collect()
}

/// Returns the index of the module that an interpreter runs, behind `-m` and options in front of it.
fn module(program: &Program, rule: &[String]) -> Option<usize> {
    if !programs::contains(program.options.naming_code, "-m") {
        return None;
    }
    let mut at = 1;
    while let Some(option) = rule.get(at).filter(|word| word.starts_with('-')) {
        let takes_next = program.options.takes_next(option);
        if takes_next && option.ends_with('m') {
            return Some(at + 1);
        }
        at += 1 + usize::from(takes_next);
    }
    None
}

/// Returns the options of a module in the same word as `-m`, and of the words behind it.
fn of_attached_module(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    if !programs::contains(program.options.naming_code, "-m") {
        return Vec::new();
    }
    // A word in front of it may be the value of an option, so none ends the search.
    let module = arguments.iter().enumerate().find_map(|(at, word)| Some((at, attached_module(program, word)?.1)));
    module.map(|(at, name)| guarded(name, &arguments[at + 1..])).unwrap_or_default()
}

/// Returns the option, and the name of a known module behind it in the same word: `-Im` and `pip` of `-Impip`.
fn attached_module<'a>(program: &Program, word: &'a str) -> Option<(&'a str, &'a str)> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let end = letters.find(|letter| program.options.values.contains(letter))?;
    let name = letters[end..].strip_prefix('m').filter(|name| programs::is_known(name))?;
    Some((&word[..word.len() - name.len()], name))
}

/// Returns whether no step of the targets that a rule names must wait for another one, or the rule names none.
pub(super) fn needs_no_order(program: &str, rule: &[String]) -> bool {
    let entry = programs::by_base_name(program);
    let unordered = entry.harmless.map_or("", |tool| tool.unordered);
    let is_one = |target: &&str| programs::contains(unordered, target.split(['-', STAR]).next().unwrap_or_default());
    targets(entry, rule).iter().filter(|word| !word.starts_with(STAR)).all(is_one)
}

/// Returns whether words of a rule may be code for its program. Behind the script that a rule names, they are the script's own.
pub(super) fn holds_code(program: &str, fixed: &[String]) -> bool {
    let entry = programs::known(program);
    let is_known = entry.class == Class::Runs || (entry.class == Class::Unknown && entry.local_sockets);
    let has_script = entry.options.guarded.iter().any(|option| option.effect == Effect::Scripts);
    // The words of `gh` name things on a server.
    (is_known || has_script)
        && entry.commands != CommandOperands::Repositories
        && up_to_script(program, fixed).is_none()
}

/// Returns the words of a line for a shell that are more than words, if a rule names a part of that line (`ssh host uptime *`, `watch ls *`).
/// A rule must spell them.
pub(super) fn joined_to_line(program: &str, rule: &[String], arguments: &[String]) -> Vec<GivenOption> {
    let entry = programs::by_base_name(program);
    let named = rule.strip_suffix(&[STAR.to_string()]).unwrap_or(rule);
    if entry.joins_from.is_none() || before_line(entry, named).len() == named.len() {
        return Vec::new();
    }
    let mut spelled: Vec<&String> = rule.iter().collect();
    let mut is_more = |word: &&String| match spelled.iter().position(|known| known == word) {
        Some(at) => {
            spelled.swap_remove(at);
            false
        }
        None => !word.chars().all(plain),
    };
    let more: Vec<&String> = arguments.iter().filter(|word| is_more(word)).collect();
    more.into_iter().map(|word| GivenOption::word(word, Effect::Commands)).collect()
}

/// Returns whether a rule contains the script of a filter, be it with stars in it: an operand, or an option with its value. Or whether it
/// names targets, and no star before its end stands for others.
pub(super) fn names_script(program: &str, rule: &[String]) -> bool {
    let program = programs::by_base_name(program);
    if program.variables {
        let closed = rule.strip_suffix(&[STAR.to_string()]).unwrap_or(rule);
        let named = targets(program, closed);
        return !named.is_empty() && !named.iter().any(|word| word.starts_with(STAR));
    }
    let options = &program.options;
    let gives = |option: &GivenOption| option.effect == Effect::Scripts;
    if !statements(options, rule).is_empty() {
        return true;
    }
    let is_open = |word: &str| word.starts_with(STAR) && word.trim_start_matches(STAR).is_empty();
    let mut rest = rule.iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            match options.scripts {
                ScriptOperands::First => return !is_open(word),
                ScriptOperands::None | ScriptOperands::BehindFirst(_) => continue,
            }
        };
        let valued = option.find(|letter| options.values.contains(letter)).map(|at| at + 1);
        let value_is_next = match option.strip_prefix('-') {
            Some(long) => !long.contains('=') && scan(options, std::slice::from_ref(word)).iter().any(gives),
            None => valued == Some(option.len()),
        };
        let attached = || match option.strip_prefix('-') {
            Some(long) => long.split_once('=').map(|(_, value)| value),
            None => valued.map(|at| &option[at..]),
        };
        let value = match value_is_next {
            true => rest.next().is_some_and(|next| !is_open(next)),
            false => !attached().is_some_and(is_open),
        };
        if value && scan(options, std::slice::from_ref(word)).iter().any(gives) {
            return true;
        }
    }
    false
}

/// Returns the index of the word of a rule that is the script of a filter: its first operand, if no option gives the script.
pub(super) fn script_operand(program: &Program, rule: &[String]) -> Option<usize> {
    let options = &program.options;
    let arguments = rule.get(1..).unwrap_or_default();
    let is_given = scan(options, arguments).iter().any(|option| option.effect == Effect::Scripts);
    let is_valued = |word: &String| {
        let long = word.strip_prefix("--").filter(|long| !long.is_empty());
        options.takes_next(word)
            || long.is_some_and(|long| options.valued.split_whitespace().any(|name| name.starts_with(long)))
    };
    let is_value = |at: usize| at.checked_sub(1).is_some_and(|before| is_valued(&arguments[before]));
    let operand = (0..arguments.len()).find(|at| !arguments[*at].starts_with('-') && !is_value(*at));
    operand.filter(|_| !program.interpreter && !is_given).map(|at| at + 1)
}

/// Returns the operands that are statements of a database's shell. A rule that spells one must spell each.
fn statements(options: &Options, arguments: &[String]) -> Vec<GivenOption> {
    let ScriptOperands::BehindFirst(valued) = options.scripts else { return Vec::new() };
    let mut rest = arguments.iter();
    let mut operands = Vec::new();
    while let Some(word) = rest.next() {
        match word.strip_prefix('-') {
            Some(option) if programs::contains(valued, option.trim_start_matches('-')) => drop(rest.next()),
            Some(_) => {}
            None => operands.push(word),
        }
    }
    let given = operands.into_iter().skip(1).filter(|word| !word.starts_with(STAR));
    given.map(|word| GivenOption { id: "statement".into(), ..GivenOption::word(word, Effect::Scripts) }).collect()
}

/// Returns whether a word sets the variable of `make` that makes the output verbose, by convention.
pub(super) fn is_verbose(word: &str) -> bool {
    let value = word.strip_prefix("V=").or_else(|| word.strip_prefix("V:="));
    value.is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the operands of a program that takes targets and variables, without its variables.
fn targets<'a>(program: &Program, arguments: &'a [String]) -> Vec<&'a str> {
    // Letters with an optional value take the next word only if it is a number.
    let optional = program.harmless.map_or("", |tool| tool.values);
    // A star behind such a letter stands for that number.
    let is_number =
        |word: &str| word == STAR.to_string() || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut found = Vec::new();
    let mut rest = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        let Some(letters) = word.strip_prefix('-') else {
            found.extend((!word.contains('=')).then_some(word));
            continue;
        };
        let Some(last) = letters.chars().last().filter(|_| program.options.takes_next(word)) else { continue };
        match optional.contains(last) {
            true => drop(rest.next_if(|next| is_number(next))),
            false => drop(rest.next()),
        }
    }
    found
}

/// Returns the targets of a call that a rule must spell, if it names one.
fn given_targets(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let found = if program.variables { targets(program, arguments) } else { Vec::new() };
    let given = |word: &str| GivenOption { id: "target".into(), shown: word.into(), effect: Effect::Scripts };
    found.into_iter().filter(|word| !word.starts_with(STAR)).map(given).collect()
}

/// Returns variables among the operands of a program that passes them to everything it starts. One with more than a word is code, and
/// any name that is not known as harmless may be read by some program. A rule must spell each by its name.
fn variables(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let more = |word: &String| {
        let (name, value) = word.split_once('=').filter(|_| !word.starts_with('-'))?;
        let name = name.trim_end_matches([':', '+', '?']);
        let value = value.split(STAR).next().unwrap_or_default();
        let shown = format!("{name}=*");
        let harmless = is_verbose(word) || (is_word(value) && is_known(name, value));
        (!harmless || word.contains(STAR)).then(|| GivenOption::word(shown, Effect::Leads))
    };
    if program.variables { arguments.iter().filter_map(more).collect() } else { Vec::new() }
}

/// Returns whether a rule spells one of `names`: `-n`, also within a cluster, or `--dry-run`. `options` says how its words are read.
pub(super) fn spells(names: Names, options: &Options, rule: &[String]) -> bool {
    rule.iter().enumerate().any(|(at, word)| {
        let text = word.split(STAR).next().unwrap_or_default();
        if programs::contains(names, text) {
            return true;
        }
        if text.starts_with("--") {
            return programs::contains(names, text.split('=').next().unwrap_or(text));
        }
        let is_bundle = options.bundled && at == 0 && !text.starts_with('-');
        let Some(cluster) = text.strip_prefix('-').or_else(|| is_bundle.then_some(text)) else { return false };
        let mut letters = cluster.chars().take_while(|letter| is_bundle || !options.has_value(*letter));
        letters.any(|letter| programs::contains(names, &format!("-{letter}")))
    })
}

/// Returns the end of the words with which a rule names the script of an interpreter: `report.py`, or `-m pytest`. What stands behind them
/// belongs to the script. `None` if options stand before it, which could take the word for their value.
pub(super) fn up_to_script(program: &str, fixed: &[String]) -> Option<usize> {
    let program = programs::by_base_name(program);
    let quiet = leading_flags(program, fixed);
    let end = match &fixed[quiet..] {
        [option, _, ..] if programs::contains(program.options.naming_code, option) => Some(2),
        _ if !program.interpreter || program.class == Class::Wrapper => None,
        [script, ..] if !script.starts_with('-') && !script.is_empty() => Some(1),
        _ => None,
    };
    end.map(|end| end + quiet)
}

/// Returns the number of words at the beginning that are flags which mean the same in every position (`python3 -u`).
pub(super) fn leading_flags(program: &Program, words: &[String]) -> usize {
    let is_flag = |word: &&String| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        letters.is_some_and(|letters| letters.chars().all(|letter| program.options.anywhere.flags.contains(letter)))
    };
    words.iter().take_while(is_flag).count()
}

/// Returns options that start a program by a path, or by search results. A name leads to the broker. A path is executed in the
/// program's own domain, and can be a shell, or the loader with the job's code.
fn started_by_path(options: &Options, arguments: &[String]) -> Vec<GivenOption> {
    let starts = |word: &str| word.strip_prefix('-').is_some_and(|name| programs::contains(options.starting, name));
    let pairs =
        arguments.windows(2).filter(|pair| starts(&pair[0]) && (pair[1].contains('/') || pair[1].contains("{}")));
    pairs.map(|pair| pair.join(" ")).map(|shown| GivenOption::word(shown, Effect::Steers)).collect()
}

/// Returns options by which a program starts another one that nobody judges, if something else has started it: `find -exec NAME`, and a
/// command of a pager (`less '+!id'`).
pub(super) fn starting_unjudged(program: &str, arguments: &[String]) -> Vec<GivenOption> {
    let program = programs::by_base_name(program);
    let starts =
        |word: &str| word.strip_prefix('-').is_some_and(|name| programs::contains(program.options.starting, name));
    let is_pager = program.helpers.contains(&"sh");
    let is_one = |word: &&String| starts(word) || (is_pager && word.starts_with('+'));
    arguments.iter().filter(is_one).map(|word| GivenOption::word(word, Effect::Executes)).collect()
}

/// Returns whether the star of a rule may be the command that a wrapper starts, or a script that can start programs (`xargs *`, `awk *`).
pub(super) fn leaves_command_open(program: &str, rule: &[String]) -> bool {
    let entry = programs::by_base_name(program);
    // `timeout 5s *`
    let is_number = |word: &str| word.trim_end_matches(['s', 'm', 'h', 'd']).bytes().all(|byte| byte.is_ascii_digit());
    let is_setting = |word: &String| word.contains('=') || word.starts_with(STAR) || is_number(word);
    match entry.class {
        Class::Wrapper => !entry.shell && choice::operands(entry, rule).all(is_setting),
        _ => entry.script_acts && !names_script(program, rule),
    }
}

/// Returns the options among a program's arguments that a rule must spell. In a rule's words stars are [`STAR`].
pub(super) fn guarded(program: &str, arguments: &[String]) -> Vec<GivenOption> {
    // Compare the base name: another program with this name loses little.
    let program = programs::by_base_name(program);
    match program.syntax {
        Syntax::Git => git::guarded(arguments),
        Syntax::Fetch(options) => fetch::read(options, arguments).guarded,
        Syntax::Options => {
            let mut found = scan(&program.options, before_line(program, arguments));
            found.extend(code_on_input::guarded(program, arguments));
            found.extend(variables(program, arguments));
            found.extend(given_targets(program, arguments));
            found.extend(statements(&program.options, arguments));
            found.extend(started_by_path(&program.options, arguments));
            found.extend(operands::commands_among(program, arguments));
            found.extend(operands::templates_in_files(program, arguments));
            found.extend(harmless::others(program, arguments));
            found.extend(doing_more(program, arguments));
            found.extend(of_attached_module(program, arguments));
            found.extend(containers::guarded(program, arguments));
            found
        }
    }
}

/// Returns words by which a subcommand does more.
fn doing_more(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let Some((from, names)) = program.doing_more.iter().find_map(|(subcommand, names)| {
        let at = subcommands(program, arguments).find(|at| arguments[*at] == *subcommand)?;
        Some((at + 1, *names))
    }) else {
        return Vec::new();
    };
    let word_at = |at: usize| std::slice::from_ref(&arguments[at]);
    // An option that a rule must spell has its value behind it.
    let is_spelled = |at: usize| {
        !scan(&program.options, word_at(at)).is_empty() || !harmless::others(program, word_at(at)).is_empty()
    };
    let is_place = |at: usize| {
        let word = &arguments[at];
        word.contains(':') && !word.starts_with('-') && !is_spelled(at - 1)
    };
    let is_one =
        |at: &usize| spells(names, &program.options, word_at(*at)) || (programs::contains(names, ":") && is_place(*at));
    let found = (from..arguments.len()).filter(is_one);
    found.map(|at| GivenOption::word(&arguments[at], Effect::Leads)).collect()
}

/// Returns the indices of the words that may be the subcommand: the first operand, and the next one if that may be the value of the option
/// before it.
fn subcommands(program: &Program, arguments: &[String]) -> impl Iterator<Item = usize> {
    let anywhere = &program.options.anywhere;
    let has_no_value = |word: &str| match word.strip_prefix("--") {
        Some(long) => long.is_empty() || long.contains('=') || programs::contains(anywhere.switches, long),
        None => word[1..].chars().all(|letter| anywhere.flags.contains(letter)),
    };
    let is_option = |at: usize| arguments[at].starts_with('-');
    let may_be_value = move |at: usize| at > 0 && is_option(at - 1) && !has_no_value(&arguments[at - 1]);
    let mut is_found = false;
    (0..arguments.len()).filter(move |at| !is_option(*at)).take_while(move |at| {
        let before = is_found;
        is_found |= !may_be_value(*at);
        !before
    })
}

/// Returns the words in front of the line that a program starts elsewhere (`ssh -p 22 HOST LINE`). Options in that line are the line's own.
pub(super) fn before_line<'a>(program: &Program, arguments: &'a [String]) -> &'a [String] {
    let Some(from) = program.joins_from else { return arguments };
    let mut operands = 0;
    let mut is_value = false;
    for (at, word) in arguments.iter().enumerate() {
        match word.starts_with('-') {
            _ if is_value => is_value = false,
            true => is_value = program.options.takes_next(word),
            false if operands == from => return &arguments[..at],
            false => operands += 1,
        }
    }
    arguments
}

/// Returns the guarded options among a program's arguments.
pub(super) fn scan(options: &Options, arguments: &[String]) -> Vec<GivenOption> {
    let mut out = Vec::new();
    if options.guarded.is_empty() {
        return out;
    }
    let found = |guarded: &GuardedOption| GivenOption {
        id: guarded.name.into(),
        shown: guarded.shown(options.one_dash()),
        effect: guarded.effect,
    };
    for (at, word) in arguments.iter().enumerate() {
        let text = word.split(STAR).next().unwrap_or_default();
        if options.one_dash() {
            let Some(given) = text.strip_prefix('-') else { continue };
            let long = given.strip_prefix('-').unwrap_or(given);
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            if options.harmless.contains(&name) {
                continue;
            }
            let is_given = |guarded: &&GuardedOption| match options.expression {
                Some(_) => given == guarded.name,
                None => long.starts_with(guarded.name),
            };
            out.extend(options.guarded.iter().filter(is_given).map(found));
            continue;
        }
        if let Some(long) = text.strip_prefix("--") {
            let given = options.long_name(long.split_once('=').map_or(long, |(given, _)| given));
            if !given.is_empty() && !options.harmless.contains(&given.as_ref()) {
                out.extend(options.guarded.iter().filter(|guarded| guarded.name.starts_with(&*given)).map(found));
            }
            continue;
        }
        let cluster = match text.strip_prefix('-') {
            Some(cluster) => cluster,
            None if options.bundled && at == 0 => text,
            None => continue,
        };
        for letter in cluster.chars() {
            out.extend(
                options
                    .guarded
                    .iter()
                    .filter(|guarded| guarded.short.contains(letter))
                    .map(|guarded| GivenOption { shown: format!("-{letter}"), ..found(guarded) }),
            );
            // In a bundle values are separate words.
            let bundle = options.bundled && at == 0 && !text.starts_with('-');
            if options.has_value(letter) && !bundle {
                break;
            }
        }
    }
    out
}

/// Returns the first option of a call that the rule spells less often.
pub(super) fn unspelled(mut spelled: Vec<GivenOption>, given: Vec<GivenOption>) -> Option<GivenOption> {
    given.into_iter().find(|option| match spelled.iter().position(|other| other.id == option.id) {
        Some(at) => {
            spelled.swap_remove(at);
            false
        }
        None => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(call: &str, expected: &[&str]) {
        let words: Vec<String> = call.split(' ').map(ToOwned::to_owned).collect();
        let found = guarded(&words[0], &words[1..]);
        let ids: Vec<&str> = found.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, expected, "{call}");
    }

    #[test]
    fn options_are_found_in_every_spelling() {
        for call in [
            "sort -o x f",
            "sort -ox f",
            "sort -uo x f",
            "sort --output x",
            "sort --output=x",
            "sort --o x f",
            "sort f -ro x",
        ] {
            check(call, &["output"]);
        }
        check("sort -u -k 2 --reverse -- f", &[]);
        check("sort -to f", &[]);
        check("sort --compress-p=x", &["compress-program"]);
        check("sed -i s/a/b/ f", &["in-place"]);
        check("sed -ni p f", &["quiet", "in-place"]);
        check("sed -i.bak p f", &["in-place"]);
        check("sed --in-pl p f", &["in-place"]);
        check("sed -n -e i f", &["quiet", "expression"]);
        check("sed -ei f", &["expression"]);
        check("sed -n 1,5p f --fi=x --e y", &["quiet", "file", "expression"]);
        check("awk -v e=f -f x -E y --sou=z", &["file", "exec", "source"]);
        check("awk -Wload=x 1 f", &["W"]);
        check("find . -name -delete", &["delete"]);
        check("find . -execdir x ;", &[]);
        check("find . -exec x /bin/sh {} ;", &[]);
        check("find . -exec /bin/sh -c x ;", &["-exec /bin/sh"]);
        check("find . -exec x ; -okdir ./x +", &["-okdir ./x"]);
        check("find /bin/sh -ok {} -c x ;", &["-ok {}"]);
        check("python3 -c x", &["c"]);
        check("python3.11 -u -", &["-"]);
        check("python3", &["-"]);
        check("python3 --version", &[]);
        check("python3 report.py -c x", &["c"]);
        check("python3 - x", &["-"]);
        check("python3 -uW ignore -B - x --version", &["-"]);
        check("python3 -v", &["v"]);
        check("python3 -Wignore report.py -", &[]);
        check("perl -w - x", &["-"]);
        for input in [
            "/dev/stdin",
            "//dev/./stdin",
            "/dev/stdout",
            "/dev/fd/0",
            "/dev/fd/63",
            "/dev/../dev/fd/3",
            "dev/stdin",
            "../../dev/stdin",
            "scripts/../../../../../../../dev/stdin",
            "/home/../dev/x/../fd/0",
            "/proc/self/fd/0",
            "/proc/thread-self/fd/0",
            "/proc/17/fd/63",
            "/proc/self/task/17/fd/0",
            "/proc/self/root/dev/stdin",
            "/dev/fd/../task/17/fd/0",
            "/dev/fd/../../self/fd/0",
        ] {
            check(&format!("perl {input}"), &["-"]);
            check(&format!("perl -w {input} x"), &["-"]);
            check(&format!("php -f {input}"), &["-"]);
            check(&format!("php -f{input}"), &["-"]);
            check(&format!("tclsh {input}"), &["-"]);
            check(&format!("lua -e x {input}"), &["e", "-"]);
            check(&format!("perl report.pl {input}"), &[]);
        }
        for script in ["dev/stdin.pl", "fd/0", "/dev/shm/x.pl", "notes/dev/report.pl", "proc/fd.pl", "/dev/stdin/.."] {
            check(&format!("perl {script}"), &[]);
        }
        check("perl -pe x -", &["e"]);
        check("perl -MJSON - x", &["M", "-"]);
        check("perl -MJSON x -", &["M"]);
        check("perl -ex", &["e"]);
        check("python3 -i -- - x", &["i", "-"]);
        check("python3 --check-hash-based-pycs always - x", &["-"]);
        check("python3 --check-hash-based-pycs always", &["-"]);
        check("python3 --check-hash-based-pycs=always report.py -", &[]);
        check("php -d x=y - x", &["define", "-"]);
        check("php -f -", &["-"]);
        check("ruby -rjson - x", &["require", "-"]);
        check("ruby -v - x", &["-"]);
        check("ruby --encoding utf-8 - x", &["-"]);
        check("node --input-type module - x", &["-"]);
        check("node --title x", &["-"]);
        check("node --no-warnings app.js -", &[]);
        check("Rscript -e x", &["-e"]);
        check("R -f x", &["-f"]);
        check("R --no-save", &["-"]);
        check("julia -q report.jl -e x", &[]);
        check("julia -qe x", &["-e"]);
        check("julia --threads 4 -e x y -e z", &["--threads", "-e"]);
        check("fish --command=x", &["-", "--command"]);
        check("zsh -ec x", &["-c"]);
        check("zsh +x -c x", &["+x"]);
        check("tclsh", &["-"]);
        check("java -cp x Main", &["-cp"]);
        check("java @x Main", &["@x"]);
        check("lua -e x", &["e"]);
        check("lua -e x - y", &["e", "-"]);
        check("lua -l json - x", &["l", "-"]);
        check("node - x", &["-"]);
        check("perl -ne print f", &["e"]);
        check("node --eval=x y", &["eval"]);
        check("find . -fprint x -fls y", &["fprint", "fls"]);
        check("find . -name *.md -type f", &[]);
        check("tar xIf x a", &["use-compress-program"]);
        check("tar -xIx a", &["use-compress-program"]);
        check("tar -fI a", &[]);
        check("tar cf a --checkpoint-a=exec=x b", &["checkpoint-action"]);
        check("tar xzf a.tgz --exclude=x", &[]);
        check("tar -czf a.tgz --remove b --index=x -g y", &["remove-files", "index-file", "listed-incremental"]);
        check("tar czgfM x a.tgz b", &["listed-incremental", "multi-volume"]);
        check("tar -xf a --recursive-u --volno=x", &["recursive-unlink", "volno-file"]);
        check("tar -fg a --no-recursion --gzip", &[]);
        check("zip -qrlf x a b", &["logfile-path"]);
        check("zip -r a b --log=x -O y --out z -la", &["logfile-path", "output-file", "output-file", "logfile-path"]);
        check("zip -FS a b -d", &["filesync", "delete"]);
        check("zstd -19 --rm a", &["rm"]);
        check("man -C x -l y", &["config-file"]);
        check("man -lCx --conf=x -r y -pt", &["config-file", "config-file", "prompt", "preprocessor"]);
        check("man -k -s 1 -M /usr/share/man ls", &[]);
        check("rg --pre x y", &["pre"]);
        check("rg --pre-glob x y", &[]);
        check("rg -nz x", &["search-zip"]);
        check("awk -i inplace 1 f", &["include"]);
        check("awk -F: {print} f", &[]);
        check("cat -o f", &[]);
        check("/opt/x/sort -o f", &["output"]);
        check("install -s --strip-program=x a b", &["strip-program"]);
        check("make CC=sh", &["CC=*"]);
        check("make cc=/x/y", &["cc=*"]);
        check("make V=1 CI=true NODE_ENV=test TZ=UTC", &[]);
        check("make env=staging tool=rm", &["env=*", "tool=*"]);
    }

    /// `--` may be the value of the option before it, and a letter may continue behind its value.
    #[test]
    fn nothing_hides_an_option_behind_it() {
        for (call, id) in [
            ("git fetch -o -- --upload-pack=x .", "upload-pack"),
            ("git clone -b -- -u x . y", "upload-pack"),
            ("git rebase -X -- -x x HEAD~2", "exec"),
            ("git log --decorate-refs -- --output=x", "output"),
            ("tar -V -- -I x -cf a b", "use-compress-program"),
            ("tar cfV a -- -I x b", "use-compress-program"),
            ("tar --exclude -- --use-compress-program x -cf a b", "use-compress-program"),
            ("split --additional-suffix -- --filter=x f", "filter"),
            ("sort --random-source -- --compress-program=sh f", "compress-program"),
            ("sort -- -o f", "output"),
            ("python3 -W -- -c x", "c"),
            ("python3 --", "-"),
            ("zip -qnwm a f", "move"),
            ("shuf -eo f a", "output"),
            ("less -x4of g", "log-file"),
            ("less -j1kf g", "lesskey-file"),
            ("less -Pa$of g", "log-file"),
            ("tree -Lo 2 f", "output"),
            ("yq -Pi . f", "inplace"),
            ("perl -lne x f", "e"),
            ("perl -l0e x f", "e"),
            ("ruby -Kue x", "e"),
            ("ruby -W0e x", "e"),
            ("php -B x -F f", "process-begin"),
        ] {
            check(call, &[id]);
        }
        check("git push -o -- --receive-pack=x . HEAD", &["receive-pack", "-o"]);
        check("git fetch origin --depth -- --upload-pack=x", &["upload-pack", "--depth"]);
        check("zip -qnwT -nwTT x a f", &["test", "test", "test"]);
        check("zip -P -- -qT -TT x a f", &["test", "test", "test"]);
        check("zip -qr a f", &[]);
        check("tree -L 2 -I x", &[]);
        check("git log --oneline -3 -- notes", &[]);
        check("git commit -m -- --allow-empty", &[]);
    }

    #[test]
    fn a_rule_holds_a_script_or_leaves_it_open() {
        for (rule, expected) in [
            ("sed", false),
            ("sed -n", false),
            ("sed -i -e", false),
            ("sed -l 5", false),
            ("sed --file", false),
            ("awk -F , -v a=b", false),
            ("sed -n 1,5p", true),
            ("sed -i s/a/b/", true),
            ("sed -ne p", true),
            ("sed -nep", true),
            ("sed -l 5 p", true),
            ("sed --expr p", true),
            ("sed --file=x", true),
            ("awk -F , -f x", true),
            ("awk {print}", true),
        ] {
            let words: Vec<String> = rule.split(' ').map(ToOwned::to_owned).collect();
            assert_eq!(names_script(&words[0], &words[1..]), expected, "{rule}");
        }
    }

    /// make passes them to everything that it starts, which reads more names than anybody knows.
    #[test]
    fn a_variable_of_make_that_some_program_may_read_must_be_spelled() {
        for name in [
            "BASH_ENV",
            "CC",
            "GIT_DIR",
            "HOME",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "MAKEFLAGS",
            "NODE_OPTIONS",
            "NODE_PATH",
            "OLLIM_RUN_TOKEN",
            "PATH",
            "PERL5LIB",
            "PYTHON",
            "PYTHONPATH",
            "SHELL",
            "TESTS",
            "VPATH",
            "npm_config_prefix",
            "https_proxy",
            "x!",
        ] {
            for sign in ["=", ":=", "+=", "?=", "::="] {
                check(&format!("make {name}{sign}notes"), &[&format!("{name}=*")]);
            }
        }
        check("make V=rm", &["V=*"]);
    }

    #[test]
    fn what_is_not_known_to_be_harmless_may_lead_to_other_code() {
        for call in [
            "npm test -s --if-present -- --prefix x",
            "cargo test -p x --release -qv -j4 -- --config x",
            "cargo clippy --all-targets --features=a -pC",
        ] {
            check(call, &[]);
        }
        // They lead to another project, which counts if a star stands for a part of a name.
        check("npm run build --workspace=x -w y --silent", &["--workspace", "-w"]);
        // A rule that names a target must spell each.
        check("make test -s -n --silent", &["target"]);
        check("make test -j4 -kn --jobs=4", &["target", "reordering", "reordering", "reordering"]);
        check("make -s test -- -C", &["target"]);
        check("make -l test -l 2.5 V=1 --output-sync deploy", &["target", "target"]);
        check("npx eslint --format unix src", &[]);
        check("npx --yes --package=x eslint", &["--package"]);
        check("npx --loglevel silent -p x eslint -c", &["--loglevel", "-p"]);
        check("make -sC x", &["-C"]);
        check("make --directory=x", &["--directory"]);
        check("make --dir=x", &["--dir"]);
        check("make --eval=x", &["--eval"]);
        for option in ["-prefix", "--prefix", "-sq", "--script_shell", "--node_options", "--package"] {
            check(&format!("npm test {option} x"), &[option]);
        }
        check("npm test ---prefix x", &["---prefix"]);
        // The value of a flag is a separate word for these programs.
        check("npx --no-audit=--prefix=x", &["--no-audit", "--prefix"]);
        let programs = ["npm test", "pnpm test", "yarn test", "npx"];
        for (program, other) in programs.map(|name| (name, if name == "npx" { "--quiet" } else { "--no-audit" })) {
            for flag in ["--silent", other, "--yes", "--offline"] {
                check(&format!("{program} {flag}=--prefix=x"), &["--prefix"]);
                check(&format!("{program} {flag}=-C x"), &["-C"]);
                check(&format!("{program} {flag}=--{}=--prefix x", &flag[2..]), &[flag]);
                check(&format!("{program} {flag}=-- x"), &["--"]);
            }
        }
        check("npm test --loglevel=silent --color=always --json=true", &[]);
        check("cargo test -qC x", &["-C"]);
        check("cargo test --target-dir x", &["--target-dir"]);
        check("cargo test --config=x", &["--config"]);
    }

    #[test]
    fn a_rule_spells_an_option_once_for_each_time() {
        let read = |call: &str| guarded("sort", &call.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>());
        assert_eq!(unspelled(read("-o \u{1}"), read("-o x f")), None);
        assert_eq!(unspelled(read("-o \u{1}"), read("--out x f")), None);
        assert_eq!(unspelled(read("-u \u{1}"), read("-uo x f")).map(|option| option.shown).as_deref(), Some("-o"));
        assert!(unspelled(read("-o \u{1}"), read("-o x -o y")).is_some());
        assert_eq!(unspelled(read("--output=\u{1}"), read("-ox")), None);
    }
}
