//! Rules that a refusal proposes: each would grant the start, and little more.

use super::{StartWords, shown};
use crate::options::GivenOption;
use crate::programs::{self, Class, Effect, base_name, git};
use crate::request;
use crate::rule::{Matcher, Origin, Rule};
use crate::{Application, ToolPattern};

/// Maximum length of a call that is suggested as a rule.
const MAX_SUGGESTED: usize = 100;

/// Maximum number of words of a call for which a rule is proposed.
const MAX_WORDS: usize = 32;

/// Returns the rule that would grant a start and little more, for sentences. `None` if only a grant of every program would do.
pub(super) fn suggested_rule(start: &StartWords<'_>) -> Option<String> {
    rule_for(start).filter(|rule| is_proposable(rule))
}

/// Returns whether a person may copy a rule into a file: nothing in it looks like a command that a shell or a program would run.
fn is_proposable(rule: &str) -> bool {
    !["`", "$(", "${", "#(", "#{", "<(", ">("].iter().any(|begin| rule.contains(begin))
}

fn rule_for(start: &StartWords<'_>) -> Option<String> {
    let words = start.own.as_deref().unwrap_or(start.words);
    let (name, arguments) = (base_name(start.program), words.get(1..).unwrap_or_default());
    let program = request::clipped(start.program);
    let plain = |word: &&str| !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    if start.fetch.is_some() {
        let host = |word: &String| {
            let (scheme, rest) = word.split_once("://")?;
            let host = rest.split(['/', '?', '#']).next()?;
            host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c)).then(|| format!("{scheme}://{host}/"))
        };
        if let Some(host) = arguments.iter().find_map(host) {
            let header = start.guarded.iter().map(|option| option.shown.as_str()).find(|shown| shown.ends_with(":*"));
            let words: Vec<&str> = [program.as_str()].into_iter().chain(header).collect();
            return Some(format!("Bash({} {host}*)", words.join(" ")));
        }
    }
    let is_git = programs::named(name).is_git();
    if let Some(option) = git::guarded_global(arguments).filter(|_| is_git) {
        return Some(format!("Bash({program} {option} *)"));
    }
    let next = match is_git {
        true => git::subcommand(arguments),
        false => arguments.first().map(String::as_str),
    };
    // A star would grant every program, so this call alone.
    let runs_code = start.own.is_none() && programs::known(start.program).named_class() == Class::Runs;
    if runs_code {
        return exact_rule(words);
    }
    Some(match next.filter(plain) {
        Some(next) if start.has_subcommands => format!("Bash({program} {next} *)"),
        _ => format!("Bash({program} *)"),
    })
}

/// Returns the rule for exactly this call, if it is short.
fn exact_rule(words: &[String]) -> Option<String> {
    let readable = |word: &String| word.chars().all(|c| !c.is_control() && !"'\\()".contains(c));
    let line = words.iter().all(readable).then(|| shown(words)).filter(|line| line.chars().count() <= MAX_SUGGESTED)?;
    Some(format!("Bash({line})"))
}

/// Returns a rule that grants a start: `rule` with an option added, or else the call itself. With a star behind an option that leads to
/// other code, a rule would grant everything.
pub(super) fn rule_with(
    rule: &str,
    given: &GivenOption,
    start: &StartWords<'_>,
    application: &'static Application,
) -> Option<String> {
    let option = given.shown.as_str();
    let whole = rule.strip_suffix(')').filter(|_| start.words.len() <= MAX_WORDS)?;
    let head = whole.strip_suffix(" *").unwrap_or(whole);
    let tail = if head == whole { "" } else { " *" };
    let (front, address) = head.rsplit_once(' ').unwrap_or((head, ""));
    let candidates = [
        format!("{head} {option}{tail})"),
        format!("{head} {option}=*{tail})"),
        format!("{head} {option} *{tail})"),
        format!("{whole} {option})"),
        format!("{front} {option} {address}{tail})"),
        format!("{front} {option}=* {address}{tail})"),
        format!("{front} {option} * {address}{tail})"),
    ];
    let grants = |text: &String| {
        let Matcher::Command(command) =
            Rule::new(&ToolPattern::parse(text).ok()?, Origin::MainTools, application).matcher
        else {
            return None;
        };
        (command.matches(start) && command.shortfall(start).is_none()).then_some(())
    };
    let mut extended = candidates.into_iter().filter(|_| given.effect != Effect::Leads);
    let found = extended.find(|text| grants(text).is_some()).or_else(|| exact_rule(start.words));
    found.filter(|rule| is_proposable(rule))
}
