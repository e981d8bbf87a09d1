//! What the shell itself may do, before any program starts.

use crate::programs::{self, base_name, git};
use crate::rule::{Matcher, Origin, Rule};
use crate::rule_set::RuleSet;
use crate::{Application, Policy, ToolPattern};

/// What the shell itself may do, before any program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRights {
    /// Every program is granted (a bare `Bash`): only `judged` programs are asked about, all others run in the shell's
    /// domain.
    pub everything: bool,
    /// Programs that run in the shell's own domain without a question: filters and wrappers that no rule names.
    pub free: Vec<&'static str>,
    /// Program names (base names) that must be asked about although they would be free or granted wholesale: those
    /// that rules name literally, and the application's command.
    pub judged: Vec<String>,
    /// Of these the names that denials and rules that ask speak of, and the application's command: programs that run others must ask about them, too.
    pub denied: Vec<String>,
    /// A denial, or a rule that asks, whose program cannot be told (`Bash(* --force)`): every program must be asked about.
    pub judge_all: bool,
    /// Programs that rules spell by a path (`./run.sh`, `/usr/bin/git`).
    pub spelled: Vec<String>,
    /// Nothing may be written by any program (a read-only agent).
    pub read_only: bool,
    /// The allowlists in force: that of the job, of an agent, of whoever spawned it.
    pub allowlists: Vec<Vec<ToolPattern>>,
}

impl ShellRights {
    /// Whether each allowlist grants all that a pattern does. No file tool's check stands before a shell, so that two lists each have
    /// a pattern that fits some of the same files is not enough.
    #[must_use]
    pub fn grant_whole(&self, pattern: &ToolPattern, application: &'static Application) -> bool {
        self.allowlists.iter().all(|list| list.iter().any(|own| application.covers(own, pattern)))
    }
}

impl Policy {
    /// What the shell of a session, or of a subagent's call, may do. `None`: no Bash rule grants anything, the shell
    /// is never started.
    #[must_use]
    pub fn shell(&self, agent_type: Option<&str>) -> Option<ShellRights> {
        let lists = self.lists_for(agent_type);
        if !lists.iter().all(|lists| grants_some(lists)) {
            return None;
        }
        let own = Some(self.application().command).filter(|own| !own.is_empty());
        let mut judged: Vec<String> = own.map(str::to_owned).into_iter().collect();
        let mut denied = judged.clone();
        let mut spelled = Vec::new();
        let mut judge_all = false;
        let denials = lists.iter().flat_map(|lists| lists.denials_for("Bash"));
        let asks = lists.iter().flat_map(|lists| lists.asks_for("Bash"));
        let grants = lists.iter().flat_map(|lists| lists.grants_for("Bash"));
        let whole = |lists: &RuleSet| lists.allow.is_none() || lists.grants_for("Bash").any(Rule::is_all);
        // What the person is asked about must come by the broker, as what is denied.
        for (rule, denies) in denials.chain(asks).map(|rule| (rule, true)).chain(grants.map(|rule| (rule, false))) {
            let Matcher::Command(pattern) = &rule.matcher else {
                judge_all |= matches!(rule.origin, Origin::Asked(_)) && lists.iter().all(|lists| whole(lists));
                continue;
            };
            let Some(program) = pattern.program() else {
                judge_all |= denies;
                continue;
            };
            if program.contains('/') {
                spelled.push(program.to_owned());
            }
            judged.push(base_name(program).to_owned());
            let names = judged.len() - 1;
            // A denied subcommand can be called by a program of its own.
            let arguments = pattern.fixed().get(1..).unwrap_or_default();
            if denies && (programs::by_base_name(program).is_git() || own == Some(base_name(program))) {
                judged.extend(git::subcommand(arguments).map(|name| format!("{}-{name}", base_name(program))));
            }
            judged.extend(git::split(program).map(|[git, _]| git));
            if denies {
                denied.extend(judged[names..].iter().cloned());
            }
        }
        for list in [&mut judged, &mut denied, &mut spelled] {
            list.sort();
            list.dedup();
        }
        let asked = |name: &str| judge_all || judged.iter().any(|judged| judged == name);
        let free = programs::free_programs().filter(|name| !asked(name)).collect();
        let read_only = lists.iter().any(|lists| lists.read_only);
        let everything = !read_only && lists.iter().all(|lists| whole(lists));
        // What everybody has and this owner asks about is opened to no program, which nobody could be asked about.
        let patterns = |lists: &&RuleSet| {
            let asked: Vec<ToolPattern> = lists.ask.iter().map(|rule| rule.pattern.clone()).collect();
            let open = |rule: &Rule| match rule.is_named() {
                true => vec![rule.pattern.clone()],
                false => self.application().without(std::slice::from_ref(&rule.pattern), &asked),
            };
            Some(lists.allow.as_ref()?.iter().flat_map(open).collect())
        };
        let allowlists = lists.iter().filter_map(patterns).collect();
        Some(ShellRights { allowlists, everything, free, judged, denied, judge_all, spelled, read_only })
    }
}

/// Whether some Bash call could pass an owner's lists.
pub(crate) fn grants_some(lists: &RuleSet) -> bool {
    !lists.denies_whole("Bash")
        && (lists.allow.is_none() || lists.grants_for("Bash").chain(lists.asks_for("Bash")).next().is_some())
}
