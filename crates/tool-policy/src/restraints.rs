//! Options by which a rule holds a program back (`git push --dry-run *`, `npm install --ignore-scripts *`).
//!
//! Programs let a later word take such an option back: `--no-dry-run`, `--dry-run=false`, `-f` behind `-n`. So the star of such a rule
//! stands for operands, and for no option but a few that only change what is printed.

use crate::options::{self, GivenOption};
use crate::programs::{self, Effect, Names, Options, git};
use crate::wildcard::STAR;

/// Long options that hold any program back.
const LONG: Names = "--cached --check --dry-run --force-with-lease --ignore-scripts --interactive --just-print --keep --mixed \
    --no-act --no-clobber --offline --recon --simulate --soft --staged";

/// Letters that do, by program, and by subcommand of git.
const LETTERS: &[(&str, &str)] = &[
    ("cp", "-i -n"),
    ("git add", "-n"),
    ("git clean", "-n"),
    ("git fetch", "-n"),
    ("git mv", "-n"),
    ("git push", "-n"),
    ("git rm", "-n"),
    ("gmake", "-n"),
    ("ln", "-i"),
    ("make", "-n"),
    ("mv", "-i -n"),
    ("node", "-c"),
    ("rm", "-i -I"),
    ("rsync", "-n"),
];

/// Options of which every program's later one only says how much is printed.
const PRINTING: &[&str] = &[
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

/// The first word of a call that may take back what a rule for `program` holds back. `None` if the rule holds nothing back.
pub(super) fn taken_back(program: &str, rule: &[String], call: &[String]) -> Option<GivenOption> {
    if !is_held_back(program, rule) {
        return None;
    }
    // A word of the rule, up to its star.
    let spelled = |word: &str| {
        rule.iter().any(|known| match known.split_once(STAR) {
            Some((start, _)) => start.len() > 1 && start.starts_with('-') && word.starts_with(start),
            None => known == word,
        })
    };
    let is_option = |word: &str| word.len() > 1 && word.starts_with('-');
    // Package managers read it as the value of the option in front of it.
    let is_off = |word: &str| ["false", "null", "undefined", "no", "off", "0"].contains(&word);
    let mut before = "";
    for word in call {
        let value = is_option(before) && is_off(word);
        if (value || is_option(word)) && !spelled(word) && !PRINTING.contains(&word.as_str()) {
            let shown = word.split('=').next().unwrap_or_default().to_owned();
            return Some(GivenOption { id: shown.clone(), shown, effect: Effect::Steers });
        }
        before = word;
    }
    None
}

/// Returns whether a rule spells an option that holds the program back.
fn is_held_back(program: &str, rule: &[String]) -> bool {
    let name = programs::base_name(program);
    let subcommand = || git::subcommand(rule).map(|subcommand| format!("{name} {subcommand}"));
    let name = if programs::named(name).is_git() { subcommand() } else { Some(name.to_owned()) };
    let letters = LETTERS.iter().find(|(known, _)| name.as_deref() == Some(known)).map_or("", |(_, letters)| letters);
    [LONG, letters].iter().any(|names| options::spells(names, &Options::NONE, rule))
}
