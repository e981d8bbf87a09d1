//! Options by which a rule holds a program back (`git push --dry-run *`, `npm install --ignore-scripts *`).
//!
//! Programs let a later word take such an option back: `--no-dry-run`, `--dry-run=false`, `-f` behind `-n`. So the star of such a rule
//! stands for operands, and for no option but a few that only change what is printed.

use crate::options::GivenOption;
use crate::programs::{self, Effect, Names, contains, git};
use crate::wildcard::STAR;

/// Long options that hold any program back.
const LONG: Names = "cached check dry-run force-with-lease ignore-scripts interactive just-print keep mixed no-act no-clobber offline \
    recon simulate soft staged";

/// Letters that do, by program, and by subcommand of git.
const LETTERS: &[(&str, &str)] = &[
    ("cp", "in"),
    ("git add", "n"),
    ("git clean", "n"),
    ("git fetch", "n"),
    ("git mv", "n"),
    ("git push", "n"),
    ("git rm", "n"),
    ("gmake", "n"),
    ("ln", "i"),
    ("make", "n"),
    ("mv", "in"),
    ("node", "c"),
    ("rm", "iI"),
    ("rsync", "n"),
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
    if !rule.iter().any(|word| holds_back(program, rule, word)) {
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

/// Whether a word of a rule is an option that holds the program back.
fn holds_back(program: &str, rule: &[String], word: &str) -> bool {
    let Some(option) = word.split(STAR).next().unwrap_or_default().strip_prefix('-') else { return false };
    if let Some(long) = option.strip_prefix('-') {
        return contains(LONG, long.split('=').next().unwrap_or(long));
    }
    let name = programs::base_name(program);
    let subcommand = || git::subcommand(rule).map(|subcommand| format!("{name} {subcommand}"));
    let name = if programs::named(name).is_git() { subcommand() } else { Some(name.to_owned()) };
    let letters = LETTERS.iter().find(|(known, _)| name.as_deref() == Some(known)).map_or("", |(_, letters)| letters);
    option.contains(|letter| letters.contains(letter))
}
