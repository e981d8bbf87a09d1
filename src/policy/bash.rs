//! Judges what a Bash line would do: every command, redirection and assignment of it.

use std::path::Path;

use super::call::{Access, clipped};
use super::lists::{Lists, denies_path, grants_path};
use super::names;
use super::path::{Known, Protected, Resolved, resolve};
use super::rule::{Matcher, Rule};
use super::shell::{self, Command, Role, Script, Target, Word};

/// Where a line is judged.
pub(super) struct Scene<'a> {
    pub cwd: &'a Path,
    pub user_home: &'a Path,
    pub known: &'a Known,
}

/// A no, with the rule where one said it.
pub(super) struct No {
    pub rule: Option<String>,
    /// The command or file it is about.
    pub about: String,
    /// The end of the sentence.
    pub why: String,
}

/// What no fork may do, whatever its rules.
pub(super) fn blocked(script: &Script, scene: &Scene<'_>) -> Option<No> {
    let no = |about: String, why: String| Some(No { rule: None, about, why });
    for name in script.assigned.iter().chain(&script.exported) {
        if names::is_reserved(name) {
            return no(name.clone(), format!("`{name}` cannot be set or unset in a job"));
        }
    }
    for command in &script.commands {
        if shell::uses_home_flag(&command.words) {
            return no(command.shown(), "`--home` is refused inside a job".into());
        }
        if command.words.first().and_then(Word::base_name).is_some_and(|name| name.starts_with("ollim-bot")) {
            continue;
        }
        for word in command.words.iter().skip(1) {
            if let Some(protected) = protected_argument(command, word, scene) {
                return no(format!("{} ({})", command.shown(), word.shown()), protected.why().into());
            }
        }
    }
    for target in script.writes.iter().chain(&script.reads) {
        let path = target.path.as_deref().and_then(|path| resolve(path, scene.cwd, scene.user_home));
        if target.path.as_deref().is_some_and(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")) {
            return no(target.shown.clone(), "bash opens a network connection under that name".into());
        }
        if let Some(protected) = path.and_then(|path| protected(&path, scene.known)) {
            return no(target.shown.clone(), protected.why().into());
        }
    }
    None
}

/// Whether any place that a path leads through is protected.
pub(super) fn protected(path: &Resolved, known: &Known) -> Option<Protected> {
    path.everywhere().find_map(|path| known.protected(path))
}

/// A second wall in front of the data folder for commands that take paths as arguments.
fn protected_argument(command: &Command, word: &Word, scene: &Scene<'_>) -> Option<Protected> {
    const WRITERS: &[&str] = &[
        "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync", "tee", "touch",
        "truncate",
    ];
    let path = word.path()?;
    let path = match path.split_once('=') {
        Some((option, value)) if option.starts_with('-') || shell::is_name(option) => value,
        _ => path.as_str(),
    };
    if path.len() > 4096 || !(path.contains('/') || path == ".." || path == "~") {
        return None;
    }
    let found = protected(&resolve(path, scene.cwd, scene.user_home)?, scene.known)?;
    let writes = command.words.first().and_then(Word::base_name).is_some_and(|name| WRITERS.contains(&name));
    let always = matches!(found, Protected::DataFolder | Protected::Client);
    (always || (found == Protected::Tooling && writes)).then_some(found)
}

/// Whether an owner's denials touch the line.
pub(super) fn denied(lists: &Lists, script: &Script, scene: &Scene<'_>) -> Option<No> {
    let rules: Vec<&Rule> = lists.denials_for("Bash").collect();
    if let Some((name, rule)) =
        script.assigned.iter().chain(&script.exported).find(|name| names::is_evaluated(name)).zip(rules.first())
    {
        return Some(by(rule, name.clone(), ", since the shell runs what is in this variable".into()));
    }
    for command in &script.commands {
        let handed_on = shell::handed_on(command);
        let hit = rules.iter().find(|rule| match &rule.matcher {
            Matcher::Command(pattern) => {
                pattern.denies(&command.words) || handed_on.iter().flatten().any(|words| pattern.denies_inside(words))
            }
            _ => true,
        });
        if let Some(rule) = hit {
            return Some(by(rule, command.shown(), String::new()));
        }
        if let Some((hidden, rule)) = command.hidden.as_ref().zip(rules.first())
            && command.role != Role::May
        {
            return Some(by(rule, command.shown(), format!(", since it cannot be told what it runs: {hidden}")));
        }
    }
    let writes = script.writes.iter().map(|target| (target, Access::Write, "Edit"));
    let reads = script.reads.iter().map(|target| (target, Access::Read, "Read"));
    for (target, access, tool) in writes.chain(reads) {
        let path = path_of(target, scene);
        let hit = lists.denials_for(tool).find(|rule| match &path {
            Some(path) => denies_path(rule, path, access, scene.known),
            None => true,
        });
        if let Some(rule) = hit {
            return Some(by(rule, target.shown.clone(), String::new()));
        }
    }
    None
}

fn by(rule: &Rule, about: String, more: String) -> No {
    No { rule: Some(rule.pattern.to_string()), about, why: format!("denied by {}{more}", rule.cited()) }
}

/// Whether an owner's list grants all of the line: the rule that grants its first command, or why not.
pub(super) fn granted<'a>(lists: &'a Lists, script: &Script, scene: &Scene<'_>) -> Result<Option<&'a Rule>, No> {
    if lists.read_only && !shell::is_read_only(script) {
        let about = script.commands.first().map(Command::shown).unwrap_or_default();
        return Err(No { rule: None, about, why: "not a command that only reads; this agent is read-only".into() });
    }
    let Some(_) = &lists.allow else { return Ok(None) };
    let whole = lists.grants_for("Bash").find(|rule| rule.is_all());
    let not = |about: String, why: String| Err(No { rule: None, about, why });
    if whole.is_none() {
        if let Some(name) = script.assigned.iter().find(|name| !names::is_harmless_variable(name)) {
            return not(name.clone(), format!("setting `{name}` could change what a granted command does"));
        }
        if let Some(name) = script.exported.iter().find(|name| !names::is_harmless_export(name)) {
            return not(name.clone(), format!("`{name}` in a command's environment could change what it does"));
        }
    }
    let mut first = None;
    for command in &script.commands {
        if command.role == Role::May {
            continue;
        }
        if whole.is_none()
            && let Some(hidden) = &command.hidden
        {
            return not(command.shown(), format!("it cannot be told what it runs: {hidden}"));
        }
        let rule = whole.or_else(|| {
            lists.grants_for("Bash").find(|rule| match &rule.matcher {
                Matcher::Command(pattern) if script.moves => pattern.grants(&shell::adrift(&command.words)),
                Matcher::Command(pattern) => pattern.grants(&command.words),
                _ => false,
            })
        });
        match rule {
            Some(rule) => first = first.or(Some(rule)),
            None if matches!(command.role, Role::Steers | Role::Wraps) => {}
            None => return not(command.shown(), "not granted".into()),
        }
    }
    let Some(first) = first else {
        return not(String::new(), "there is no command in it that a rule grants".into());
    };
    for target in &script.writes {
        let path = path_of(target, scene);
        let mut rules = lists.grants_for("Edit");
        let fine = match &path {
            Some(path) => rules.any(|rule| grants_path(rule, path, Access::Write, scene.known)),
            // Where everything is granted, a path known only when it runs is no more than that.
            None => target.path.is_none() && whole.is_some() && rules.any(Rule::is_all),
        };
        if !fine {
            return not(format!("> {}", target.shown), "writing this file is not granted (Edit rules decide)".into());
        }
    }
    for target in &script.reads {
        let path = path_of(target, scene);
        let fine = (whole.is_some() && (path.is_some() || target.path.is_none()))
            || path.is_some_and(|path| {
                lists.grants_for("Read").any(|rule| grants_path(rule, &path, Access::Read, scene.known))
            });
        if !fine {
            return not(format!("< {}", target.shown), "reading this file is not granted (Read rules decide)".into());
        }
    }
    Ok(Some(first))
}

fn path_of(target: &Target, scene: &Scene<'_>) -> Option<Resolved> {
    resolve(target.path.as_deref()?, scene.cwd, scene.user_home)
}

/// The commands of a line, for showing.
pub(super) fn commands(script: &Script) -> Vec<String> {
    script
        .commands
        .iter()
        .filter(|command| command.role != Role::May)
        .map(Command::shown)
        .map(|c| clipped(&c))
        .collect()
}
