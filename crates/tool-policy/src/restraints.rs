//! Options by which a rule holds a program back (`git push --dry-run *`, `npm install --ignore-scripts *`).
//!
//! Programs let a later word take such an option back: `--no-dry-run`, `--dry-run=false`, `-f` behind `-n`. So the star of such a rule
//! stands for operands, and for no option but a few that only change what is printed.

use crate::operands;
use crate::options::{self, GivenOption};
use crate::programs::{self, Effect, Names, Options, git, synonyms};
use crate::wildcard::STAR;

/// Long options that hold any program back.
const OF_ALL: Names = "--cached --check --dry-run --ff-only --force-with-lease --ignore-scripts --interactive --just-print \
    --keep --mixed --no-act --no-clobber --no-commit --no-force --numstat --offline --preserve-root --recon --simulate --soft \
    --squash --staged --stat --summary";

/// Options that hold one program back, or one subcommand of git.
const OF_ONE: &[(&str, &str)] = &[
    ("apt", "-s"),
    ("apt-get", "-s"),
    ("cp", "--backup -b -i -n"),
    ("git add", "--patch -i -n -p"),
    ("git branch", "--all --delete --list --merged --no-merged --remotes --sort -a -d -l -r"),
    ("git checkout", "--patch -b -p"),
    ("git cherry-pick", "-n"),
    ("git clean", "-i -n"),
    ("git fetch", "-n"),
    ("git format-patch", "--stdout"),
    ("git merge-file", "--stdout -p"),
    ("git mv", "-n"),
    ("git notes", "-n"),
    ("git prune", "-n"),
    ("git push", "-n"),
    ("git read-tree", "-n"),
    ("git remote", "-n"),
    ("git restore", "--patch -S -p"),
    ("git revert", "-n"),
    ("git rm", "-n"),
    ("git stash", "--patch -S -p"),
    ("git switch", "--create -c"),
    ("git worktree", "-n"),
    ("gmake", "-n"),
    ("install", "--backup -b"),
    ("ln", "--backup -b -i"),
    ("make", "-n"),
    ("mv", "--backup -b -i -n"),
    ("node", "-c -e -p --eval --print"),
    ("perl", "-E -e"),
    ("php", "-r"),
    ("rm", "-i -I"),
    ("rsync", "-n"),
    ("ruby", "-e"),
    ("sqlite3", "--readonly --safe -readonly -safe"),
    ("unzip", "-n"),
];

/// Options of which every program's later one only says how much is printed, and the end of the options.
const PRINTING: &[&str] = &[
    "--",
    "-q",
    "-v",
    "--quiet",
    "--silent",
    "--verbose",
    "--no-color",
    "--no-audit",
    "--no-fund",
    "--progress",
    "--no-progress",
];

/// Options of one program, or of one subcommand, that leave what holds it back as it is: letters, and long ones.
const BESIDE: &[(&str, &str, Names)] = &[
    ("apt", "qVy", "--yes"),
    ("apt-get", "qVy", "--yes"),
    ("cp", "aprRv", "--archive --recursive"),
    ("git add", "Auv", "--all --update"),
    ("git checkout", "qt", "--no-track --track"),
    ("git fetch", "ap", "--all --prune"),
    ("git push", "uv", "--all --follow-tags --porcelain --set-upstream --tags"),
    ("git format-patch", "kNnsv0123456789", "--signoff --subject-prefix"),
    ("git merge-file", "Lq", "--diff3 --marker-size --ours --theirs --union --zdiff3"),
    ("git restore", "s", "--source"),
    ("git rm", "r", "--ignore-unmatch"),
    ("git switch", "qt", "--no-track --track"),
    ("gmake", "jknsw0123456789", "--jobs --keep-going"),
    ("make", "jknsw0123456789", "--jobs --keep-going"),
    ("kubectl", "Rflno", "--filename --namespace --output --recursive --selector --server-side --validate"),
    ("oc", "Rflno", "--filename --namespace --output --recursive --selector --server-side --validate"),
    ("npm", "", "--omit"),
    ("patch", "dip", "--directory --input --strip"),
    ("rsync", "ahinrtuvz", "--archive --compress --human-readable --itemize-changes --recursive --stats"),
    ("unzip", "djv", ""),
];

/// Options of one program, or of one subcommand, that add to what was given before. They may be given again.
const ADDING: &[(&str, Names)] = &[
    ("cargo", "features"),
    ("c++", "I D W L l"),
    ("cc", "I D W L l"),
    ("clang", "I D W L l"),
    ("clang++", "I D W L l"),
    ("g++", "I D W L l"),
    ("gcc", "I D W L l"),
    ("git add", "chmod"),
    ("git commit", "m message trailer"),
    ("git notes", "m message"),
    ("git tag", "m message"),
    ("rsync", "exclude include"),
    ("tar", "exclude"),
    ("zip", "x"),
];

/// Choices of one program that a file with further options can make again, and the option that names such a file.
const READS_OPTIONS: &[(&str, &str, &str)] = &[("tar", "directory", "files-from")];

/// Programs that take an address as an operand, and the options that it makes again. For PostgreSQL it may be a connection string.
const ADDRESSED: &[(Names, &[&str])] = &[
    (
        "psql pg_dump pg_dumpall pg_restore createdb dropdb vacuumdb reindexdb clusterdb pg_basebackup pg_isready pgbench",
        &["dbname", "host", "port", "username"],
    ),
    ("gh glab", &["repo"]),
];

/// Words of an expression that hold for the whole of it (`find`).
const WHOLE_EXPRESSION: Names = "maxdepth mindepth";

/// Operands of one program behind which it does something else (`node --check inspect FILE` runs the file).
const OPERANDS: &[(&str, Names)] = &[("node", "debug inspect")];

/// Returns whether package managers read a word as a value that turns the option in front of it off.
fn is_off(word: &str) -> bool {
    ["false", "null", "undefined", "no", "off", "0"].contains(&word)
}

/// Returns whether a word is an option that leaves what holds the program back as it is.
fn is_beside(name: &str, word: &str) -> bool {
    let Some((_, letters, long)) = BESIDE.iter().find(|(known, ..)| *known == name) else { return false };
    match word.split_once('=') {
        _ if !word.starts_with("--") => {
            word.strip_prefix('-').is_some_and(|own| own.chars().all(|letter| letters.contains(letter)))
        }
        Some((option, value)) => programs::contains(long, option) && !value.starts_with('-') && !is_off(value),
        None => programs::contains(long, word),
    }
}

/// The first word of a call that may take back what a rule for `program` holds back. `None` if the rule holds nothing back.
pub(super) fn revoking_option(program: &str, rule: &[String], call: &[String]) -> Option<GivenOption> {
    if !is_restrained(program, rule) {
        return None;
    }
    // The star of a word stands for a value (`--depth=*`). It stands for no more letters behind `-i`, and not for the value
    // that takes back.
    let spelled = |word: &str| {
        rule.iter().any(|known| match known.split_once(STAR) {
            Some((start, _)) if start.len() > 1 && start.ends_with('=') => {
                word.starts_with(start) && !is_restrained(program, std::slice::from_ref(known))
            }
            Some((start, _)) => start.starts_with('-') && word == start,
            None => known == word,
        })
    };
    let full = full_name(program, rule);
    let name = programs::table_name(program);
    let (is_git, is_make) = (programs::named(name).is_git(), ["make", "gmake"].contains(&name));
    // `git push` forces what begins with a plus, and a variable of `make` can be any of its options.
    let is_option = |word: &str| {
        (word.len() > 1 && word.starts_with('-'))
            || (is_git && word.starts_with('+'))
            || (is_make && word.contains('=') && !options::is_verbose(word))
            || OPERANDS.iter().any(|(known, words)| *known == name && programs::contains(words, word))
    };
    let mut before = "";
    // Options of git itself take nothing back, and a rule must spell those that are not harmless.
    for word in if is_git { git::from_subcommand(call) } else { call } {
        let value = is_option(before) && is_off(word);
        let is_known =
            || PRINTING.contains(&word.as_str()) || full.as_deref().is_some_and(|name| is_beside(name, word));
        if (value || is_option(word)) && !spelled(word) && !is_known() {
            let shown = word.split('=').next().unwrap_or_default();
            return Some(GivenOption::word(shown, Effect::Steers));
        }
        before = word;
    }
    None
}

/// The first option of a call that the rule spells, and that the call gives once more, or takes back. Of two the last one counts, or both.
pub(super) fn repeated_option(program: &str, rule: &[String], call: &[String]) -> Option<GivenOption> {
    let entry = programs::by_base_name(program);
    let name = full_name(program, rule);
    let of_name = |known: &str| name.as_deref() == Some(known);
    let adding = ADDING.iter().find(|(known, _)| of_name(known)).map_or("", |(_, names)| names);
    let call = options::before_line(entry, call);
    let (rule, call, options) = match entry.is_git() {
        true => (git::from_subcommand(rule), git::from_subcommand(call), git::options(git::subcommand(rule))),
        false => (rule, call, &entry.options),
    };
    let full_name = name.as_deref().unwrap_or_default();
    let addressed = ADDRESSED.iter().find(|(programs, _)| programs::contains(programs, full_name));
    let by_address = addressed.map_or(&[][..], |(_, choices)| choices);
    let flags = entry.container.map_or("", |container| container.flags);
    let mut choices = Choices { options, synonyms: synonyms::of(full_name), by_address, flags, valued: Vec::new() };
    choices.valued = choices.valued_in(rule);
    let mut spelled: Vec<String> = rule.iter().flat_map(|word| choices.of(word)).collect();
    let holds = |choice: &str| spelled.iter().any(|known| known == choice);
    let reads = READS_OPTIONS.iter().filter(|(known, kept, reads)| of_name(known) && holds(kept) && !holds(reads));
    let reads: Vec<&str> = reads.map(|(.., reads)| *reads).collect();
    let mut given: Vec<String> = Vec::new();
    for word in call {
        let begins =
            |choice: &String| word.starts_with("--") && reads.iter().any(|reads| reads.starts_with(choice.as_str()));
        let is_it = |choice: &String| reads.contains(&choice.as_str()) || (begins(choice) && !choices.has(choice));
        if choices.of(word).iter().any(is_it) {
            return Some(GivenOption::word(word.split('=').next().unwrap_or_default(), Effect::Steers));
        }
        for choice in choices.of(word).into_iter().filter(|choice| !programs::contains(adding, choice)) {
            // A long name may be abbreviated.
            let is_it = |known: &String| *known == choice || (word.starts_with("--") && known.starts_with(&choice));
            if let Some(at) = spelled.iter().position(is_it) {
                given.push(spelled.swap_remove(at));
            } else if given.iter().any(is_it) {
                return Some(GivenOption::word(word.split('=').next().unwrap_or_default(), Effect::Steers));
            }
        }
    }
    None
}

/// Reads options as what they choose, whatever that is: `--no-tags` and `--tags` are the same choice.
struct Choices {
    options: &'static Options,
    /// Other names of choices, each with the choice.
    synonyms: Vec<(&'static str, &'static str)>,
    /// The choices that an address makes.
    by_address: &'static [&'static str],
    /// Letters without a value, besides those that mean the same in every position.
    flags: &'static str,
    /// Letters to which the rule may give a value. The rest of a word behind one of them is the value of a further one.
    valued: Vec<char>,
}

impl Choices {
    /// Returns the choices that a word makes.
    fn of(&self, word: &str) -> Vec<String> {
        let by_address = self.by_address.iter().filter(|_| is_address(word)).map(|&choice| choice.to_owned());
        self.of_option(word).into_iter().chain(by_address).collect()
    }

    fn of_option(&self, word: &str) -> Vec<String> {
        let text = word.split([STAR, '=']).next().unwrap_or_default();
        let is_printing = PRINTING.contains(&text) && self.synonym(text.trim_start_matches('-')).is_none();
        let Some(given) = text.strip_prefix('-').filter(|_| !is_printing) else {
            return variable(word).map(ToOwned::to_owned).into_iter().collect();
        };
        let one = |name: &str| self.long(name.strip_prefix("no-").unwrap_or(name));
        match given.strip_prefix('-') {
            Some(long) => vec![one(&self.options.long_name(long))],
            // The tests of an expression may be repeated.
            None if self.options.expression.is_some() && !programs::contains(WHOLE_EXPRESSION, given) => Vec::new(),
            // Of a program whose options are not known, a long word is one name.
            None if self.options.one_dash() || (given.len() > 3 && !self.is_cluster(given)) => {
                let again = self.attached_in(given).map(|letter| self.long(&letter.to_string()));
                let mut found: Vec<String> = std::iter::once(one(given)).chain(again).collect();
                found.sort_unstable();
                found.dedup();
                found
            }
            None => {
                let valued = given.char_indices().find(|(_, letter)| self.options.has_value(*letter));
                let letters = valued.map_or(given, |(at, letter)| &given[..at + letter.len_utf8()]);
                letters.chars().filter(char::is_ascii_alphabetic).map(|letter| self.long(&letter.to_string())).collect()
            }
        }
    }

    /// Returns the letters in a long word behind its dash that may have the rest of the word for their value. If long options have one
    /// dash, too, that is the first letter only.
    fn attached_in(&self, given: &str) -> impl Iterator<Item = char> {
        let one_dash = self.options.one_dash();
        let has_name = move |letter: char| {
            !one_dash && !self.is_flag(letter) && self.synonym(letter.encode_utf8(&mut [0; 4])).is_some()
        };
        let may_have_value =
            move |letter: &char| self.valued.contains(letter) || self.options.has_value(*letter) || has_name(*letter);
        given.chars().take(if one_dash { 1 } else { usize::MAX }).filter(may_have_value)
    }

    fn is_flag(&self, letter: char) -> bool {
        self.flags.contains(letter) || self.options.anywhere.flags.contains(letter)
    }

    /// Returns the letters to which a rule may give a value: in the next word (`-t bot`), or in the same one (`-tbot`). A word of two or
    /// three letters is taken for switches.
    fn valued_in(&self, rule: &[String]) -> Vec<char> {
        let given_by = |(at, word): (usize, &String)| {
            let is_value = |next: &String| !next.starts_with(['-', STAR]);
            let text = word.split(STAR).next().unwrap_or_default();
            let letters = text.strip_prefix('-').filter(|letters| !letters.contains('='))?;
            let is_short = letters.len() <= if self.options.one_dash() { 1 } else { 3 };
            let has_none_attached = self.options.one_dash() || (is_short && letters.chars().all(char::is_alphabetic));
            let letter = match has_none_attached {
                false => letters.chars().next(),
                true => letters.chars().last().filter(|_| is_short && rule.get(at + 1).is_some_and(is_value)),
            };
            letter.filter(|letter| letter.is_ascii_alphabetic() && !self.is_flag(*letter))
        };
        rule.iter().enumerate().filter_map(given_by).collect()
    }

    /// Returns whether a word behind its dash is letters: one has a value, or the first has a long name.
    fn is_cluster(&self, given: &str) -> bool {
        !self.options.values.is_empty() || given.get(..1).is_some_and(|letter| self.synonym(letter).is_some())
    }

    fn synonym(&self, name: &str) -> Option<&'static str> {
        self.synonyms.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }

    /// Returns whether a choice is known by this very name.
    fn has(&self, choice: &str) -> bool {
        self.synonyms.iter().any(|(_, known)| *known == choice)
    }

    /// Returns the long name of a letter, if it is known, or the name of the same choice.
    fn long(&self, name: &str) -> String {
        let guarded = self
            .options
            .guarded
            .iter()
            .find(|option| name.len() == 1 && option.short.contains(name))
            .map(|option| option.name);
        // A long name may be abbreviated.
        let longer = || self.synonyms.iter().find(|(known, _)| name.len() > 1 && known.starts_with(name));
        let abbreviated = || longer().filter(|_| !self.has(name)).map(|(_, choice)| *choice);
        self.synonym(name).or(guarded).or_else(abbreviated).unwrap_or(name).to_owned()
    }
}

/// Returns whether a word is an address, or is or holds as its option's value a connection string of PostgreSQL that says where it leads.
fn is_address(word: &str) -> bool {
    let is_dbname = |name: &str| name.len() > 2 && "--dbname".starts_with(name);
    let value = word.split_once('=').filter(|(name, _)| is_dbname(name)).map(|(_, value)| value);
    let text = value.or_else(|| word.strip_prefix("-d")).unwrap_or(word);
    let is_web = |text: &str| ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
    is_web(&text.to_ascii_lowercase()) || operands::is_connection(text)
}

/// Returns the name of an operand `NAME=VALUE` with its `=` (`dd of=FILE`).
fn variable(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (!name.is_empty() && is_name(name)).then(|| &word[..=name.len()])
}

/// Returns whether a rule spells an option that holds the program back.
pub(super) fn is_restrained(program: &str, rule: &[String]) -> bool {
    let name = full_name(program, rule);
    let of_one = OF_ONE.iter().find(|(known, _)| name.as_deref() == Some(known)).map_or("", |(_, names)| names);
    [OF_ALL, of_one].iter().any(|names| options::spells(names, &Options::NONE, rule))
}

/// Returns whether a rule only simulates what its program does.
pub(super) fn is_simulated(program: &str, rule: &[String]) -> bool {
    options::spells("--dry-run", &Options::NONE, rule)
        || (full_name(program, rule).as_deref() == Some("git push") && options::spells("-n", &Options::NONE, rule))
}

/// Returns the name of a program, of `git` with the subcommand of a rule. `None` if the rule leaves that open.
fn full_name(program: &str, rule: &[String]) -> Option<String> {
    let name = programs::table_name(program);
    match programs::named(name).is_git() {
        true => git::subcommand(rule).map(|subcommand| format!("{name} {subcommand}")),
        false => Some(name.to_owned()),
    }
}
