//! The policy of a session: an ordered list of layers that decides each call.
//!
//! The layers are: blocks for every fork; denials; grants; rules that ask the person; the permission mode. The first that denies
//! wins.
//! Every decision carries its layer, its rule and a sentence. Deciding never panics, and input that is not understood is denied.

use serde_json::Value;

use crate::path::{PathRoots, ResolvedRoots};
use crate::request::{self, Request};
use crate::rule::{Matcher, Origin, Rule};
use crate::rule_set::RuleSet;
use crate::start::grants_some;
use crate::visible::shows;
use crate::{AgentRules, Application, Decision, Layer, ToolCall, ToolLists, ToolPattern, Verdict, client_tools};

/// Parameters of `Agent` that leave the session: another permission mode, another checkout, or a remote machine, where no hook of ours
/// is asked.
const WAYS_OUT: [&str; 2] = ["isolation", "mode"];

/// The permissions of a session. Immutable; it can only be narrowed.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether the session is a fork, which has the system-wide blocks. The main session does not have them.
    fork: bool,
    /// Whether the session is a spawned agent, which neither calls nor spawns agents.
    spawned: bool,
    roots: ResolvedRoots,
    /// The folders as given.
    given: PathRoots,
    application: &'static Application,
    /// The rules, with those of an agent before the job's own.
    lists: Vec<RuleSet>,
    /// The rules of agents that calls name in `agent_type`.
    subagents: Vec<(String, RuleSet)>,
    /// Rules that deny the application's command that starts agents.
    pub(super) spawn_command: RuleSet,
}

/// The lists of a background job.
#[derive(Clone, Copy, Debug)]
pub struct JobRules<'a> {
    /// The job's name in sentences: `routine email-triage`.
    pub owner: &'a str,
    /// The only tools of the job, or `None` for `main_tools`.
    pub allowed: Option<&'a [ToolPattern]>,
    /// The tools denied to the job.
    pub disallowed: &'a [ToolPattern],
    /// The calls about which the person is asked.
    pub ask: &'a [ToolPattern],
    /// The tools of the main session.
    pub main_tools: &'a [ToolPattern],
}

impl Policy {
    /// Returns the policy of a background job.
    #[must_use]
    pub fn background(rules: &JobRules<'_>, roots: &PathRoots, application: &'static Application) -> Self {
        let JobRules { owner, allowed, disallowed, ask, main_tools } = *rules;
        let allow = match allowed {
            Some(patterns) => allowlist(owner, patterns, application),
            None => compiled(main_tools, &Origin::MainTools, application),
        };
        let deny = denied(disallowed, &Origin::Disallowed(owner.into()), application);
        let granted = if allowed.is_none() { main_tools } else { &[] };
        let ask = asked(ask, granted, &Origin::Asked(owner.into()), application);
        let lists = RuleSet { owner: owner.into(), allow: Some(allow), ask, deny, read_only: false };
        Self::new(true, lists, roots, application)
    }

    /// Returns the policy of the main session: calls that `main_tools` grants and read-only calls pass. The person is asked about
    /// calls that `asking` matches. [`Layer::PermissionMode`] denies the others.
    #[must_use]
    pub fn main_session(
        main_tools: &[ToolPattern],
        asking: &[ToolPattern],
        roots: &PathRoots,
        application: &'static Application,
    ) -> Self {
        let allow = compiled(main_tools, &Origin::OwnMainTools, application);
        let owner = "the main session".to_owned();
        let ask = asked(asking, main_tools, &Origin::Asked(owner.clone()), application);
        let lists = RuleSet { owner, allow: Some(allow), ask, deny: Vec::new(), read_only: false };
        Self::new(false, lists, roots, application)
    }

    fn new(fork: bool, lists: RuleSet, roots: &PathRoots, application: &'static Application) -> Self {
        let command = Some(application.spawn_command).filter(|command| !command.is_empty());
        let pattern = command.map(|command| ToolPattern::new("Bash", Some(command)));
        let deny = compiled(pattern.as_slice(), &Origin::Blocked, application);
        Self {
            fork,
            spawned: false,
            roots: ResolvedRoots::new(roots, application),
            given: roots.clone(),
            application,
            lists: vec![lists],
            subagents: Vec::new(),
            spawn_command: RuleSet { owner: String::new(), allow: None, ask: Vec::new(), deny, read_only: false },
        }
    }

    /// Narrows the policy by a setting of the job that denies tools. `setting` is its text, for sentences: `allow_ping: false`.
    #[must_use]
    pub fn denying(mut self, setting: &'static str, tools: &[&str]) -> Self {
        let rule = |tool: &&str| Rule::new(&ToolPattern::new(tool, None), Origin::Setting(setting), self.application);
        let rules: Vec<Rule> = tools.iter().map(rule).collect();
        self.lists.last_mut().into_iter().for_each(|own| own.deny.extend(rules.iter().cloned()));
        self
    }

    /// Narrows the policy to the rules of a named agent, for a session that runs as it.
    #[must_use]
    pub fn as_agent(mut self, agent: &AgentRules) -> Self {
        self.lists.insert(0, agent_lists(agent, self.application));
        self
    }

    /// Narrows the policy to a spawned agent: its lists come before its caller's, and it can start no further agents.
    #[must_use]
    pub fn spawned(mut self, owner: &str, tools: &ToolLists) -> Self {
        let allow = tools.allow.as_ref().map(|patterns| allowlist(owner, patterns, self.application));
        let deny = tools.deny.as_deref().unwrap_or_default();
        let deny = denied(deny, &Origin::Disallowed(owner.into()), self.application);
        self.lists.insert(0, RuleSet { owner: owner.into(), allow, ask: Vec::new(), deny, read_only: false });
        self.spawned = true;
        self
    }

    /// Adds agents that the session may call. Their own lists judge their calls first, then the job's.
    #[must_use]
    pub fn with_subagents(mut self, agents: &[AgentRules]) -> Self {
        let application = self.application;
        self.subagents.extend(agents.iter().map(|agent| (agent.name.clone(), agent_lists(agent, application))));
        self
    }

    /// Decides a call. Every input has an answer, and in doubt it is a denial.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Decision {
        let tool = request::tool_name(call);
        let shown = request::shown(call);
        let lists = self.lists_for(call.agent_type.as_deref());
        // The person can be asked only about a call of the main session's own turn.
        let person = !self.fork && call.agent_type.is_none();
        if tool == "Agent"
            && let Some(way) = WAYS_OUT.iter().find(|way| call.input.get(**way).is_some_and(|value| !value.is_null()))
        {
            let why = format!("`{way}` is refused: an agent runs in this session, under its rules; call it without");
            return deny(Layer::System, None, format!("{shown}: {why}"));
        }
        if let Some(why) = self.blocked_tool(tool, call).or_else(|| self.unknown_agent(tool, call)) {
            return deny(Layer::System, None, format!("{shown}: {why}"));
        }
        match request::request(call, tool, &self.given.user_home, self.application.read_link) {
            Request::Unreadable(why) => deny(Layer::System, None, format!("{shown}: denied, since {why}")),
            Request::Bash => self.decide_shell(&lists, &shown, person),
            request => self.decide_request(tool, &request, &lists, &shown, person),
        }
    }

    /// Returns the agents that calls may name.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.subagents.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn lists_for(&self, agent: Option<&str>) -> Vec<&RuleSet> {
        let own = agent.and_then(|agent| self.subagents.iter().find(|(name, _)| name == agent));
        own.map(|(_, lists)| lists).into_iter().chain(&self.lists).collect()
    }

    /// Returns why the first layer blocks a tool for forks and subagents, if it does.
    fn blocked_tool(&self, tool: &str, call: &ToolCall) -> Option<String> {
        if !self.fork && call.agent_type.is_none() {
            return None;
        }
        if self.application.spawning_tools.contains(&tool) && (self.spawned || call.agent_type.is_some()) {
            return Some(format!("{tool} is blocked for every agent that was started by another one"));
        }
        if !client_tools::BLOCKED.contains(&tool) {
            return None;
        }
        if tool == "Agent" && call.agent_type.is_none() && self.may_call_agents() {
            return None;
        }
        Some(format!("{tool} is blocked for every fork, whatever its file says"))
    }

    /// Returns why an agent may not be called, if it is none of those that the client was given.
    fn unknown_agent(&self, tool: &str, call: &ToolCall) -> Option<String> {
        let name = call.input.get("subagent_type").and_then(Value::as_str).unwrap_or(request::USUAL_AGENT);
        let roots = self.subagents.is_empty() || self.subagents.iter().any(|(roots, _)| roots == name);
        (tool == "Agent" && self.fork && !roots).then(|| format!("there is no agent `{}` here", request::clipped(name)))
    }

    /// Returns whether a job may call agents: those in its allowlist (`Agent(Explore)`), or without an allowlist those that
    /// the main session may call.
    fn may_call_agents(&self) -> bool {
        let own = self.lists.last().filter(|_| !self.spawned);
        own.into_iter().flat_map(|lists| lists.allow.iter().flatten().chain(&lists.ask)).any(|rule| match rule.origin {
            Origin::MainTools | Origin::OwnMainTools => rule.is_for("Agent"),
            Origin::Allowed(_) | Origin::Asked(_) => rule.pattern.canonical_tool() == "Agent" && !rule.is_all(),
            _ => false,
        })
    }

    /// Returns whether a tool is blocked in this fork.
    pub(super) fn is_blocked(&self, tool: &str) -> bool {
        let called = tool == "Agent" && self.may_call_agents() && self.lists.iter().all(|lists| shows(lists, tool));
        self.fork && client_tools::BLOCKED.contains(&tool) && !called
    }

    /// Decides early whether a line of the shell is started at all. Each program in it is judged when it
    /// starts.
    fn decide_shell(&self, lists: &[&RuleSet], shown: &str, person: bool) -> Decision {
        let mut rule = None;
        for list in lists {
            let denied = list.denials_for("Bash").find(|rule| !matches!(rule.matcher, Matcher::Command(_)));
            if let Some(rule) = denied {
                let text = rule.pattern.to_string();
                return deny(Layer::DisallowedTools, Some(text), format!("{shown}: denied by {}", rule.cited()));
            }
        }
        for list in lists {
            if !grants_some(list) {
                return self.not_granted(list, "Bash", person, &format!("{shown}: not granted"));
            }
            rule = list.grants_for("Bash").find(|rule| rule.is_all()).or(rule);
        }
        let everything = lists.iter().all(|list| list.allow.is_none() || list.grants_for("Bash").any(Rule::is_all));
        let writes = |list: &&RuleSet| {
            !list.read_only && (list.allow.is_none() || list.grants_for("Edit").any(|rule| !rule.grants_nothing()))
        };
        let read_only = lists.iter().any(|list| list.read_only) || !(everything || lists.iter().all(writes));
        let mut decision = allow(Layer::AllowedTools, rule, shown, read_only);
        decision.reason = format!("{shown}: the shell may run it; each program in it is judged when it starts");
        decision
    }

    fn decide_request(
        &self,
        tool: &str,
        request: &Request<'_>,
        lists: &[&RuleSet],
        shown: &str,
        person: bool,
    ) -> Decision {
        let read_only = matches!(tool, "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "WebFetch" | "WebSearch");
        if let Request::Path { path, .. } = request
            && let Some(protected) = path.everywhere().find_map(|path| self.roots.protected(path))
        {
            return deny(Layer::System, None, format!("{shown}: denied, since {}", protected.why(self.application)));
        }
        if let Some(rule) = lists.iter().find_map(|lists| lists.denying(tool, request, &self.roots)) {
            let text = rule.pattern.to_string();
            return deny(Layer::DisallowedTools, Some(text), format!("{shown}: denied by {}", rule.cited()));
        }
        let mut found = None;
        let mut asking = None;
        for list in lists {
            let writes = matches!(tool, "Edit" | "Write" | "NotebookEdit");
            if list.read_only && writes {
                return deny(Layer::DisallowedTools, None, format!("{shown}: {} is read-only", list.owner));
            }
            if list.allow.is_none() {
                continue;
            }
            let granting = list.granting(tool, request, &self.roots);
            if granting.is_none_or(|rule| !rule.is_named())
                && let Some(rule) = list.asking(granting.is_some(), tool, request, &self.roots)
            {
                asking = Some(rule);
                continue;
            }
            match granting {
                Some(rule) => found = Some(rule),
                None if person && read_only => return allow(Layer::PermissionMode, None, shown, true),
                None => return self.not_granted(list, tool, person, &format!("{shown}: not granted")),
            }
        }
        match asking {
            Some(rule) => ask(rule, shown, read_only),
            None => allow(Layer::AllowedTools, found, shown, read_only),
        }
    }

    /// Returns the denial of the third layer (of the last one for the main session), with a list of the grants.
    pub(super) fn not_granted(&self, lists: &RuleSet, tool: &str, person: bool, sentence: &str) -> Decision {
        const MOST: usize = 8;
        if person {
            return deny(Layer::PermissionMode, None, format!("{sentence}; {}", self.application.main_session));
        }
        let rules: Vec<String> = lists.grants_for(tool).map(|rule| rule.pattern.to_string()).collect();
        let hint = match rules.len() {
            0 => format!("; {} grants no {tool} call", lists.owner),
            1..=MOST => format!("; {} grants: {}", lists.owner, rules.join(", ")),
            _ => format!("; {} grants: {}, …", lists.owner, rules[..MOST].join(", ")),
        };
        deny(Layer::AllowedTools, None, format!("{sentence}{hint}"))
    }

    /// Returns whether each owner's lists may hand a pattern on (see [`Application::delegates`]), and none denies all of its calls.
    /// `false` if that cannot be told.
    #[must_use]
    pub fn covers(&self, pattern: &ToolPattern) -> bool {
        let asked = std::slice::from_ref(pattern);
        self.lists.iter().all(|lists| {
            let denied: Vec<ToolPattern> = lists.deny.iter().map(|rule| rule.pattern.clone()).collect();
            let has = |rule: &Rule| match self.fork {
                true => self.application.delegates_in(&rule.pattern, pattern, &self.roots),
                false => self.application.covers(&rule.pattern, pattern),
            };
            // A right about which the owner has to ask is handed on with the obligation to ask.
            let granted = |rules: &Vec<Rule>| rules.iter().chain(&lists.ask).any(has);
            lists.allow.as_ref().is_none_or(granted) && self.application.difference(asked, &denied) == asked
        })
    }

    /// Returns the folders to which the rules refer.
    #[must_use]
    pub fn path_roots(&self) -> &PathRoots {
        &self.given
    }

    /// Returns whether some rule grants a tool, or asks about it, by exactly its name.
    #[must_use]
    pub fn names(&self, tool: &str) -> bool {
        let rules = self.lists.iter().flat_map(|lists| lists.allow.iter().flatten().chain(&lists.ask));
        rules.into_iter().any(|rule| rule.pattern.tool() == tool)
    }

    /// Returns whether the policy is a background job's, and not the main session's.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.fork
    }

    /// Returns whether the policy is a spawned agent's.
    #[must_use]
    pub fn is_spawned(&self) -> bool {
        self.spawned
    }

    pub(super) fn all_lists(&self) -> &[RuleSet] {
        &self.lists
    }

    pub(super) fn is_fork(&self) -> bool {
        self.fork
    }

    pub(super) fn application(&self) -> &'static Application {
        self.application
    }

    pub(super) fn roots(&self) -> &ResolvedRoots {
        &self.roots
    }
}

fn compiled(patterns: &[ToolPattern], origin: &Origin, application: &'static Application) -> Vec<Rule> {
    patterns.iter().map(|pattern| Rule::new(pattern, origin.clone(), application)).collect()
}

/// Compiles a denylist and adds the other names of the actions that it denies.
fn denied(patterns: &[ToolPattern], origin: &Origin, application: &'static Application) -> Vec<Rule> {
    with_other_names(patterns, |_| true, origin, application)
}

/// Compiles the rules that ask, and adds the other names of their actions that `granted` has. A rule of the same file that grants
/// another name stands.
fn asked(
    patterns: &[ToolPattern],
    granted: &[ToolPattern],
    origin: &Origin,
    application: &'static Application,
) -> Vec<Rule> {
    let is_granted = |name: &ToolPattern| granted.iter().any(|grant| application.covers(grant, name));
    with_other_names(patterns, is_granted, origin, application)
}

/// Compiles rules and adds those of the other names of their actions that `is_meant` selects.
fn with_other_names(
    patterns: &[ToolPattern],
    is_meant: impl Fn(&ToolPattern) -> bool,
    origin: &Origin,
    application: &'static Application,
) -> Vec<Rule> {
    let mut rules = compiled(patterns, origin, application);
    let mut names: Vec<ToolPattern> = rules.iter().flat_map(|rule| application.other_names(rule)).collect();
    names.retain(is_meant);
    rules.extend(compiled(&names, origin, application));
    rules
}

/// Compiles an allowlist and adds the automatic entry.
fn allowlist(owner: &str, patterns: &[ToolPattern], application: &'static Application) -> Vec<Rule> {
    let mut rules = compiled(patterns, &Origin::Allowed(owner.into()), application);
    let automatic = application.always_allowed().filter(|pattern| !patterns.contains(pattern));
    rules.extend(automatic.map(|pattern| Rule::new(&pattern, Origin::Automatic, application)));
    rules
}

fn agent_lists(agent: &AgentRules, application: &'static Application) -> RuleSet {
    let owner = format!("agent {}", agent.name);
    let allowed = Origin::Allowed(owner.clone());
    RuleSet {
        allow: agent.tools.as_ref().map(|patterns| compiled(patterns, &allowed, application)),
        ask: Vec::new(),
        deny: denied(&agent.disallowed, &Origin::Disallowed(owner.clone()), application),
        owner,
        read_only: agent.read_only,
    }
}

pub(super) fn deny(layer: Layer, rule: Option<String>, reason: String) -> Decision {
    const MOST: usize = 4000;
    let reason = request::on_one_line(&reason, MOST);
    Decision { verdict: Verdict::Deny, layer, rule, reason, commands: Vec::new(), read_only: false }
}

/// Returns the decision to ask the person, under a rule.
pub(super) fn ask(rule: &Rule, shown: &str, read_only: bool) -> Decision {
    let reason = format!("{shown}: the person is asked, by {}", rule.cited());
    let rule = Some(rule.pattern.to_string());
    Decision { verdict: Verdict::Ask, layer: Layer::AskTools, rule, reason, commands: Vec::new(), read_only }
}

pub(super) fn allow(layer: Layer, rule: Option<&Rule>, shown: &str, read_only: bool) -> Decision {
    let reason = match rule {
        Some(rule) => format!("{shown}: granted by \"{}\" ({})", rule.pattern, rule.origin),
        None if layer == Layer::PermissionMode => format!("{shown}: it only reads"),
        None => format!("{shown}: granted"),
    };
    let rule = rule.map(|rule| rule.pattern.to_string());
    Decision { verdict: Verdict::Allow, layer, rule, reason, commands: Vec::new(), read_only }
}
