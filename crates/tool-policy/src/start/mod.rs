//! Judges a program that a job's shell, or a program of the job, is about to start.
//!
//! The engine knows the real words, folder and environment, so it guesses nothing. Every owner's lists are checked in
//! order. The first denial wins, and of several grants the narrowest applies.

mod environment;
mod folder;
mod judge;
mod proposals;
mod rights;
mod shell;
mod words;
mod writing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) use environment::{is_known, is_name, is_word};
pub use rights::{Executes, Location, Rights, Writes};
pub use shell::ShellRights;
pub(super) use shell::grants_some;
pub(super) use words::StartWords;

use crate::policy::{allow, ask, deny};
use crate::rule::{Matcher, Rule};
use crate::rule_set::RuleSet;
use crate::{Decision, Layer, Policy, Verdict, request};

/// A program that a job's shell, or a program of the job, is about to start.
#[derive(Clone, Copy, Debug)]
pub struct ProgramStart<'a> {
    /// The real arguments, starting with the program's name. U+FFFD replaces text that is not UTF-8.
    pub argv: &'a [String],
    /// The real working folder, absolute, without symlinks.
    pub cwd: &'a Path,
    /// Variables that differ from the run's clean environment: set or changed by the line.
    pub env: &'a BTreeMap<String, String>,
    /// The type of the calling subagent (`Explore`), or `None` for the job's own session.
    pub agent_type: Option<&'a str>,
}

/// The decision on a program's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramDecision {
    /// The verdict with its evidence.
    pub decision: Decision,
    /// The place where the program runs. If the person is asked: once they agree.
    pub location: Location,
}

/// The combined grant of all lists.
struct CombinedGrant<'a> {
    /// The location, or `None` if there is no list.
    location: Option<Location>,
    rule: Option<&'a Rule>,
    /// The rule under which the person is asked first.
    asking: Option<&'a Rule>,
    /// The layer that decides.
    layer: Layer,
}

/// Approximate maximum length of a program's words in a decision, in bytes.
const MAX_SHOWN: usize = 4096;

/// Maximum number of matching steps for one decision.
const MAX_STEPS: usize = 1024 * 1024;

impl Policy {
    /// Decides whether a program may start, and with what rights. All words have an answer, and in doubt it is
    /// a denial.
    #[must_use]
    pub fn decide_program(&self, start: &ProgramStart<'_>) -> ProgramDecision {
        let line = shown(start.argv);
        let about = format!("Bash \"{}\"", request::clipped(&line));
        let mut decided = self.judge_program(start, &about);
        decided.decision.commands = vec![line];
        decided
    }

    /// Decides a call of the application's own command with known words. `agent`: the calling agent, or `None` for the job
    /// itself.
    #[must_use]
    pub fn decide_command(&self, words: &[String], agent: Option<&str>) -> Decision {
        let cwd = self.roots().work.last().cloned().unwrap_or_else(|| PathBuf::from("/"));
        self.decide_program(&ProgramStart { argv: words, cwd: &cwd, env: &BTreeMap::new(), agent_type: agent }).decision
    }

    fn judge_program(&self, asked: &ProgramStart<'_>, about: &str) -> ProgramDecision {
        let lists = self.lists_for(asked.agent_type);
        let refused = |layer, rule, why: &str| ProgramDecision {
            decision: deny(layer, rule, format!("{about}: {why}")),
            location: Location::Nowhere,
        };
        if let Some(why) = words::unreadable(asked.argv) {
            return refused(Layer::System, None, &format!("denied, since {why}"));
        }
        if steps(&lists, asked.argv) > MAX_STEPS {
            return refused(
                Layer::System,
                None,
                "denied, since its arguments are too long to judge; pass them in a file",
            );
        }
        let start = StartWords::new(asked.argv, asked.cwd, self.application());
        // The person can be asked only about a call of the main session's own turn.
        let person = !self.is_fork() && asked.agent_type.is_none();
        if !person && let Some(why) = self.blocked_start(&start, asked) {
            return refused(Layer::System, None, &why);
        }
        if self.is_fork()
            && asked.agent_type.is_some()
            && let Some(rule) = denying(&self.spawn_command, &start)
        {
            return refused(Layer::System, Some(rule.pattern.to_string()), &format!("denied by {}", rule.cited()));
        }
        if let Some(rule) = lists.iter().find_map(|lists| denying(lists, &start)) {
            let text = rule.pattern.to_string();
            return refused(Layer::DisallowedTools, Some(text), &format!("denied by {}", rule.cited()));
        }
        let granted = match self.granted(lists, &start, asked, about) {
            Ok(granted) => granted,
            Err(decision) => return ProgramDecision { decision, location: Location::Nowhere },
        };
        let CombinedGrant { location, rule, asking, layer } = granted;
        let location = location.unwrap_or(Location::Nowhere);
        let read_only = match &location {
            Location::Nowhere => false,
            Location::Here => true,
            Location::Outside(rights) => rights.only_reads() && start.own.is_none(),
        };
        let mut decision = match asking {
            Some(rule) => ask(rule, about, read_only),
            None => allow(layer, rule, about, read_only),
        };
        if asking.is_none() && location == Location::Here && rule.is_none() {
            decision.reason = format!("{about}: it runs without a rule, and without any power");
        }
        ProgramDecision { decision, location }
    }

    /// Returns the combined grant of `lists`. Each must grant the start. In the person's own turn, read-only programs need no rule.
    fn granted<'a>(
        &'a self,
        lists: Vec<&'a RuleSet>,
        start: &StartWords<'_>,
        asked: &ProgramStart<'_>,
        about: &str,
    ) -> Result<CombinedGrant<'a>, Decision> {
        let person = !self.is_fork() && asked.agent_type.is_none();
        let context = judge::Context { asked, roots: self.roots(), application: self.application() };
        let mut granted = CombinedGrant { location: None, rule: None, asking: None, layer: Layer::AllowedTools };
        for list in lists {
            let found = match judge::granted(list, start, &context) {
                Ok(grant) => {
                    granted.rule = grant.rule.or(granted.rule);
                    granted.asking = grant.asking.or(granted.asking);
                    grant.location
                }
                Err(refusal) => match judge::reading(start).filter(|_| person) {
                    Some(rights) => {
                        granted.layer = Layer::PermissionMode;
                        Location::Outside(rights)
                    }
                    None => return Err(self.refused_by(list, refusal, person, about)),
                },
            };
            granted.location = Some(match granted.location.take() {
                Some(before) => before.and(found),
                None => found,
            });
        }
        Ok(granted)
    }

    fn refused_by(&self, list: &RuleSet, refusal: judge::Refusal, person: bool, about: &str) -> Decision {
        match refusal {
            // A list of the rule's grants would be no help here.
            judge::Refusal::OnlyReads(_) if !person => deny(Layer::AllowedTools, None, format!("{about}: {refusal}")),
            _ => self.not_granted(list, "Bash", person, &format!("{about}: {refusal}")),
        }
    }

    /// Returns why no fork may start a program, whatever its rules.
    fn blocked_start(&self, start: &StartWords<'_>, asked: &ProgramStart<'_>) -> Option<String> {
        let application = self.application();
        let mut variables = asked.env.iter();
        if let Some((name, _)) = variables.find(|(name, value)| environment::is_reserved(name, value, application)) {
            return Some(format!("`{}` cannot be set in a job; leave it out", request::clipped(name)));
        }
        if application.has_refused_flag(start.words) {
            return Some(format!("`{}` is refused inside a job", application.refused_flag));
        }
        if application.is_family(start.program) {
            return None;
        }
        let (word, protected) = folder::protected(start, self.roots())?;
        let what = if word.is_empty() { "its folder".to_owned() } else { format!("`{}`", request::clipped(word)) };
        Some(format!("{what} is out of reach: {}", protected.why(application)))
    }
}

/// Returns the denial in a list that matches a start.
fn denying<'a>(lists: &'a RuleSet, start: &StartWords<'_>) -> Option<&'a Rule> {
    lists.denials_for("Bash").find(|rule| judge::blocks_start(rule, start))
}

/// Estimates the steps of matching: the number of rules that search through all words, times the words' length.
fn steps(lists: &[&RuleSet], words: &[String]) -> usize {
    let length: usize = words.iter().map(|word| word.len() + 1).sum();
    let rules = lists.iter().flat_map(|lists| lists.allow.iter().flatten().chain(&lists.ask).chain(&lists.deny));
    let searching =
        rules.filter(|rule| matches!(&rule.matcher, Matcher::Command(pattern) if pattern.searches())).count();
    length.saturating_mul(searching)
}

/// Formats words as a person would type them.
fn shown(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./+:=,@%^{}".contains(c);
    let mut line = String::new();
    for word in words {
        if line.len() > MAX_SHOWN {
            return line + " …";
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let part = match word.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => &word[..end],
            None => word,
        };
        match !part.is_empty() && part.chars().all(plain) {
            true => line.push_str(part),
            false => line.extend(["'", &part.replace('\'', "'\\''"), "'"]),
        }
        if part.len() < word.len() {
            line.push('…');
        }
    }
    line
}

impl ProgramDecision {
    /// Returns whether the program starts.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.decision.verdict == Verdict::Allow
    }
}
