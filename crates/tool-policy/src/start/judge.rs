//! Matches one owner's lists against a program's start.

use std::fmt;
use std::path::PathBuf;

use super::environment;
use super::folder::FolderScope;
use super::proposals::{rule_with, suggested_rule};
use super::{Executes, Location, ProgramStart, Rights, StartWords, folder};
use crate::Application;
use crate::command_rule::Shortfall;
use crate::path::ResolvedRoots;
use crate::programs::{self, Class, Effect, base_name, git};
use crate::request::clipped;
use crate::rule::{Matcher, Rule};
use crate::rule_set::RuleSet;
use crate::spellings;

/// The context of the judgement.
pub(super) struct Context<'a> {
    pub asked: &'a ProgramStart<'a>,
    pub roots: &'a ResolvedRoots,
    pub application: &'static Application,
}

/// The grant of one list.
pub(super) struct Grant<'a> {
    pub rule: Option<&'a Rule>,
    pub location: Location,
    /// The rule under which the person is asked first.
    pub asking: Option<&'a Rule>,
}

/// The reason why a list does not grant a start, displayed as the end of a sentence with advice for the agent.
pub(super) enum Refusal {
    NotGranted {
        program: String,
        wanted: Option<String>,
    },
    ByPath {
        program: String,
        name: String,
    },
    Shortfall {
        program: String,
        rule: String,
        shortfall: Shortfall,
        /// A rule that would grant the start.
        wanted: Option<Box<str>>,
    },
    Folder {
        folder: PathBuf,
        holds: FolderScope,
    },
    Variable(String),
    /// The owner of the read-only list.
    OnlyReads(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted { program, wanted: None } => {
                write!(f, "`{}` is not granted, and no rule for this call alone can be proposed", clipped(program))
            }
            Self::NotGranted { program, wanted: Some(wanted) } => {
                write!(f, "`{}` is not granted; the rule `{}` would be needed", clipped(program), clipped(wanted))
            }
            Self::ByPath { program, name } => {
                write!(f, "`{}` is not granted by its path; call it `{}`", clipped(program), clipped(name))
            }
            Self::Shortfall { program, shortfall: Shortfall::Option(option), .. }
                if option.effect == Effect::Commands =>
            {
                let (program, word) = (clipped(program), clipped(&option.shown));
                write!(f, "`{word}` is a command for `{program}`, and a `*` stands for none; leave it out")
            }
            Self::Shortfall { program, rule, shortfall: Shortfall::Option(option), wanted } => {
                let kind = match option.shown.starts_with('-') {
                    true => "option",
                    false if option.effect == Effect::Scripts => "target",
                    false => "word",
                };
                let (program, option) = (clipped(program), clipped(&option.shown));
                let example = wanted.as_ref().map(|rule| format!(", as in `{}`,", clipped(rule))).unwrap_or_default();
                write!(
                    f,
                    "the {kind} `{option}` of `{program}` has to be spelled in a rule{example} and \"{rule}\" does not; leave it out"
                )
            }
            Self::Shortfall { rule, shortfall: Shortfall::Address(why), .. } => {
                write!(f, "{why}; fetch only what \"{rule}\" names")
            }
            Self::Folder { folder, holds } => {
                let folder = clipped(&folder.to_string_lossy());
                match holds {
                    FolderScope::InWork => {
                        write!(
                            f,
                            "it is granted in `work/` itself only, and its folder is `{folder}`; run it in `work/`"
                        )
                    }
                    _ => write!(f, "its folder is `{folder}`, outside of what is granted; run it in `work/`"),
                }
            }
            Self::Variable(name) => {
                write!(f, "`{}` cannot be set for a program like this; leave it out", clipped(name))
            }
            Self::OnlyReads(owner) => write!(f, "not a command that only reads, and {owner} is read-only"),
        }
    }
}

/// Matches one owner's lists against a start.
pub(super) fn granted<'a>(
    lists: &'a RuleSet,
    start: &StartWords<'_>,
    context: &Context<'_>,
) -> Result<Grant<'a>, Refusal> {
    let grant = by_lists(lists, start, context)?;
    if !lists.read_only || grant.location == Location::Here {
        return Ok(grant);
    }
    if is_free(start) {
        return Ok(Grant { location: Location::Here, ..grant });
    }
    let location = reading(start)
        .map(|rights| grant.location.and(Location::Outside(rights)))
        .ok_or_else(|| Refusal::OnlyReads(lists.owner.clone()))?;
    Ok(Grant { location, ..grant })
}

/// Returns the grant, with the rule under which the person is asked. Grants by name in the owner's file are not asked about. Grants of
/// `main_tools` are, and an asking rule is then read as generously as a denial.
fn by_lists<'a>(lists: &'a RuleSet, start: &StartWords<'_>, context: &Context<'_>) -> Result<Grant<'a>, Refusal> {
    let granted = by_rules(lists, false, start, context);
    if lists.ask.is_empty() || granted.as_ref().is_ok_and(|grant| grant.rule.is_some_and(Rule::is_named)) {
        return granted;
    }
    if let Ok(grant @ Grant { location: Location::Outside(_), .. }) = granted {
        let asking = lists.asks_for("Bash").find(|rule| blocks_start(rule, start));
        return Ok(Grant { asking, ..grant });
    }
    match by_rules(lists, true, start, context) {
        // A filter is asked about only if a rule names it.
        Ok(Grant { rule: Some(rule), location, .. }) if granted.is_err() || !rule.is_all() => {
            Ok(Grant { rule: None, location, asking: Some(rule) })
        }
        _ => granted,
    }
}

/// Returns whether a rule denies a start, or asks about it.
pub(super) fn blocks_start(rule: &Rule, start: &StartWords<'_>) -> bool {
    match &rule.matcher {
        Matcher::Command(pattern) => pattern.denies(start),
        _ => true,
    }
}

/// Returns the grant by an owner's rules. `asking`: by the rules that apply once the person was asked.
fn by_rules<'a>(
    lists: &'a RuleSet,
    asking: bool,
    start: &StartWords<'_>,
    context: &Context<'_>,
) -> Result<Grant<'a>, Refusal> {
    let rules: Vec<&Rule> = match asking {
        false => lists.grants_for("Bash").collect(),
        true => lists.asks_for("Bash").collect(),
    };
    let own = start.own.as_deref().map(|words| Rights::own(words, context.application));
    let everything = rules.iter().find(|rule| rule.is_all()).copied();
    if (lists.allow.is_none() && !asking) || everything.is_some() {
        let rights = own.unwrap_or_else(Rights::wide);
        // A program with more rights than its shell must not become another one by anything that the shell sets.
        if !Rights::wide().covers(&rights)
            && let Some(why) = unfit_surroundings(lists, &rights, FolderScope::Anywhere, start, context)
        {
            return Err(why);
        }
        return Ok(Grant { rule: everything, location: Location::Outside(rights), asking: None });
    }
    let (best, refusal) = widest(lists, &rules, own.as_ref(), start, context);
    if let Some((rule, rights)) = best {
        return Ok(Grant { rule: Some(rule), location: Location::Outside(rights), asking: None });
    }
    if is_free(start) {
        return Ok(Grant { rule: None, location: Location::Here, asking: None });
    }
    let mut refusal = refusal.unwrap_or_else(|| not_granted(lists, start));
    if let Refusal::Shortfall { rule, shortfall: Shortfall::Option(option), wanted, .. } = &mut refusal {
        *wanted = rule_with(rule, option, start, context.application).map(Into::into);
    }
    Err(refusal)
}

/// Returns the widest of the rules that grant a start, or another spelling of it, with its rights. If there is none: why the first one with
/// matching words does not.
fn widest<'a>(
    lists: &RuleSet,
    rules: &[&'a Rule],
    own: Option<&Rights>,
    start: &StartWords<'_>,
    context: &Context<'_>,
) -> (Option<(&'a Rule, Rights)>, Option<Refusal>) {
    let spelled = spellings::others(start.words);
    let spelled: Vec<StartWords<'_>> =
        spelled.iter().map(|words| StartWords::as_spelled(words, context.asked.cwd, context.application)).collect();
    let (mut best, mut refusal): (Option<(&Rule, Rights)>, _) = (None, None);
    let starts = |rule| std::iter::once(start).chain(&spelled).map(move |one| (rule, one));
    for (rule, one) in rules.iter().copied().flat_map(starts) {
        let Matcher::Command(pattern) = &rule.matcher else { continue };
        if !pattern.matches(one) {
            continue;
        }
        if programs::known(start.program).class == Class::Wrapper && !pattern.names_script() {
            continue;
        }
        if let Some(why) = unfit(lists, rule, one, context) {
            refusal = refusal.or(Some(why));
            continue;
        }
        let rights = own.cloned().unwrap_or_else(|| pattern.rights(start.program));
        // Of several matching rules the widest applies.
        if best.as_ref().is_none_or(|(_, before)| rights.covers(before)) {
            best = Some((rule, rights));
        }
    }
    (best, refusal)
}

/// Returns why a rule with matching words does not apply.
fn unfit(lists: &RuleSet, rule: &Rule, start: &StartWords<'_>, context: &Context<'_>) -> Option<Refusal> {
    let Matcher::Command(pattern) = &rule.matcher else { return None };
    if let Some(shortfall) = pattern.shortfall(start) {
        let program = start.program.to_owned();
        return Some(Refusal::Shortfall { program, rule: rule.pattern.to_string(), shortfall, wanted: None });
    }
    let holds = match (pattern.is_bound_to_work(), start.program) {
        (true, _) => FolderScope::InWork,
        // With the network git runs code from a repository's settings, and a job can make a repository elsewhere.
        (false, program) if programs::named(program).is_git() && pattern.rights(program).network => {
            FolderScope::BelowWork
        }
        (false, _) => FolderScope::InOpenFolders,
    };
    unfit_surroundings(lists, &pattern.rights(start.program), holds, start, context)
}

/// Returns why a start is refused for its folder or a variable. `rights`: the program's rights; `holds`: the rule's scope. A command of
/// the person's own must start in `work/` under any grant, since some programs read settings and code from their folder.
fn unfit_surroundings(
    lists: &RuleSet,
    rights: &Rights,
    holds: FolderScope,
    start: &StartWords<'_>,
    context: &Context<'_>,
) -> Option<Refusal> {
    let extends = start.own.as_deref().is_some_and(|words| context.application.extension(words).is_some());
    let holds = if extends { FolderScope::InWork } else { holds };
    let is_bound = matches!(holds, FolderScope::InWork | FolderScope::BelowWork);
    let is_elsewhere = start.folder != context.asked.cwd && is_bound;
    if !folder::fits(&start.folder, holds, lists, context.roots)
        || (is_elsewhere && !folder::is_led_within_work(&start.folder, context.roots))
    {
        return Some(Refusal::Folder { folder: start.folder.clone(), holds });
    }
    let runs_code = start.own.is_some() || rights.executes == Executes::Anything;
    let mut variables = context.asked.env.iter();
    variables
        .find(|(name, value)| !environment::is_harmless(name, value, runs_code, context.application))
        .map(|(name, _)| Refusal::Variable(name.clone()))
}

fn not_granted(lists: &RuleSet, start: &StartWords<'_>) -> Refusal {
    let name = base_name(start.program);
    if start.program.contains('/') && !name.is_empty() {
        let named = lists.grants_for("Bash").any(|rule| match &rule.matcher {
            Matcher::Command(pattern) => pattern.program() == Some(name),
            _ => false,
        });
        if named || programs::named(name).is_free() {
            return Refusal::ByPath { program: start.program.into(), name: name.into() };
        }
    }
    // An option with a value keeps the words from matching, so it is the cause, and not the address.
    let fetching = lists.grants_for("Bash").filter(|_| start.fetch.is_some()).find_map(|rule| {
        let Matcher::Command(pattern) = &rule.matcher else { return None };
        let shortfall = pattern.shortfall(start).filter(|_| pattern.program() == Some(start.program))?;
        let program = start.program.to_owned();
        matches!(shortfall, Shortfall::Option(_)).then(|| Refusal::Shortfall {
            program,
            rule: rule.pattern.to_string(),
            shortfall,
            wanted: None,
        })
    });
    fetching.unwrap_or_else(|| Refusal::NotGranted { program: start.program.into(), wanted: suggested_rule(start) })
}

/// Returns whether a program may run in the shell's own domain without a rule.
fn is_free(start: &StartWords<'_>) -> bool {
    !start.program.contains('/') && programs::named(start.program).is_free()
}

/// Returns the rights of a program that only reads, with options that only read. `None` for other programs.
pub(super) fn reading(start: &StartWords<'_>) -> Option<Rights> {
    let mut guarded = start.guarded.iter();
    if start.program.contains('/') || guarded.any(|option| !matches!(option.effect, Effect::Scripts | Effect::Alters)) {
        return None;
    }
    let arguments = start.words.get(1..).unwrap_or_default();
    let program = programs::named(start.program);
    let class = if program.is_git() { git::needs(git::subcommand(arguments)).class } else { program.class };
    let reads = matches!(class, Class::Filter | Class::Reads);
    reads.then(|| Rights::reading(start.program))
}
