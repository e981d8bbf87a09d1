//! The rights of the shell itself, before any program starts.

use crate::programs::{self, base_name, git};
use crate::rule::{Matcher, Origin, Rule};
use crate::rule_set::RuleSet;
use crate::{Application, Policy, ToolPattern};

/// The rights of the shell itself, before any program starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRights {
    /// Whether every program is granted (a bare `Bash`): only `judged` programs are asked about, and all others run in the shell's
    /// domain.
    pub everything: bool,
    /// Programs that run in the shell's own domain without a question: filters and wrappers that no rule names.
    pub free: Vec<&'static str>,
    /// Names of programs (base names) that must be asked about although they would be free or granted wholesale: those
    /// that rules name literally, and the application's command.
    pub judged: Vec<String>,
    /// Names in `judged` that denials and asking rules name, and the application's command: programs that run others ask about them too.
    pub denied: Vec<String>,
    /// Programs that denials and asking rules spell by a path.
    pub denied_paths: Vec<String>,
    /// Whether a denial or an asking rule names no definite program (`Bash(* --force)`), so every program must be asked about.
    pub judge_all: bool,
    /// Programs that rules spell by a path (`./run.sh`, `/usr/bin/git`).
    pub spelled: Vec<String>,
    /// Whether no program may write anything (a read-only agent).
    pub read_only: bool,
    /// The allowlists in force: those of the job, of an agent, and of the agent's caller.
    pub allowlists: Vec<Vec<ToolPattern>>,
}

impl ShellRights {
    /// Returns whether each allowlist grants everything that a pattern does. A shell has no check per file as file tools have, so two lists
    /// whose patterns merely overlap are not enough.
    #[must_use]
    pub fn grant_whole(&self, pattern: &ToolPattern, application: &'static Application) -> bool {
        self.allowlists.iter().all(|list| list.iter().any(|own| application.covers(own, pattern)))
    }
}

impl Policy {
    /// Returns the rights of the shell of a session, or of a subagent's call. `None` if no Bash rule grants anything, so that the shell
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
        let (mut spelled, mut denied_paths) = (Vec::new(), Vec::new());
        let mut judge_all = false;
        let denials = lists.iter().flat_map(|lists| lists.denials_for("Bash"));
        let asks = lists.iter().flat_map(|lists| lists.asks_for("Bash"));
        let grants = lists.iter().flat_map(|lists| lists.grants_for("Bash"));
        let whole = |lists: &RuleSet| lists.allow.is_none() || lists.grants_for("Bash").any(Rule::is_all);
        // Programs about which the person is asked must reach the broker, like denied ones.
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
                denied_paths.extend(Some(program.to_owned()).filter(|_| denies));
            }
            judged.push(base_name(program).to_owned());
            let names = judged.len() - 1;
            // A denied subcommand may also be callable as a separate program.
            let arguments = pattern.fixed().get(1..).unwrap_or_default();
            if denies && (programs::by_base_name(program).is_git() || own == Some(base_name(program))) {
                judged.extend(git::subcommand(arguments).map(|name| format!("{}-{name}", base_name(program))));
            }
            judged.extend(git::split(program).map(|[git, _]| git));
            if denies {
                denied.extend(judged[names..].iter().cloned());
            }
        }
        for list in [&mut judged, &mut denied, &mut denied_paths, &mut spelled] {
            list.sort();
            list.dedup();
        }
        let asked = |name: &str| judge_all || judged.iter().any(|judged| judged == name);
        let free = programs::free_programs().filter(|name| !asked(name)).collect();
        let read_only = lists.iter().any(|lists| lists.read_only);
        let everything = !read_only && lists.iter().all(|lists| whole(lists));
        // A grant of `main_tools` about which this owner asks is open to no program, since nobody can be asked about single files.
        let patterns = |lists: &&RuleSet| {
            let asked: Vec<ToolPattern> = lists.ask.iter().map(|rule| rule.pattern.clone()).collect();
            let open = |rule: &Rule| match rule.is_named() {
                true => vec![rule.pattern.clone()],
                false => self.application().difference(std::slice::from_ref(&rule.pattern), &asked),
            };
            Some(lists.allow.as_ref()?.iter().flat_map(open).collect())
        };
        let allowlists = lists.iter().filter_map(patterns).collect();
        Some(ShellRights { allowlists, everything, free, judged, denied, denied_paths, judge_all, spelled, read_only })
    }
}

/// Returns whether some Bash call could pass an owner's lists.
pub(crate) fn grants_some(lists: &RuleSet) -> bool {
    !lists.denies_whole("Bash")
        && (lists.allow.is_none() || lists.grants_for("Bash").chain(lists.asks_for("Bash")).next().is_some())
}
