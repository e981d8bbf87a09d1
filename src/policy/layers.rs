//! The policy of a session: the layers in their order, and one decision for each call.
//!
//! Layers: what is blocked for every fork; the denials; the grants; the permission mode. The first that says no wins.
//! Every decision carries its layer, its rule and a sentence. Deciding never panics: what is not understood is denied.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;

use super::attenuate::covers;
use super::call::{self, Request};
use super::grants::without;
use super::lists::Lists;
use super::path::{Known, Places};
use super::program::grants_some;
use super::rule::{Matcher, Origin, Rule};
use super::surface::shows;
use super::{AgentRules, BgForkConfig, Decision, Layer, SpawnTools, ToolCall, ToolPattern, UpdateMode, Verdict, known};

/// Our tools that start agents.
const SPAWNING: [&str; 2] = ["mcp__discord__spawn_agent", "mcp__discord__sessions_spawn"];

/// Our command that starts agents, denied as by a list.
pub(super) static SPAWN_COMMAND: LazyLock<Lists> = LazyLock::new(|| {
    let pattern = ToolPattern::parse("Bash(ollim-bot spawn *)").ok();
    let deny = pattern.iter().map(|pattern| Rule::new(pattern, Origin::Blocked)).collect();
    Lists { owner: String::new(), allow: None, deny, read_only: false }
});

/// What an `Agent` call can ask for beside an agent: another permission mode, another checkout, or a machine elsewhere,
/// where no hook of ours is asked.
const WAYS_OUT: [&str; 2] = ["isolation", "mode"];

/// What a session may do. Immutable; it can only be narrowed.
#[derive(Clone, Debug)]
pub struct Policy {
    /// A fork has the system-wide blocks; the main session has not.
    fork: bool,
    /// A spawned agent: it calls no agents and spawns none.
    spawned: bool,
    known: Known,
    user_home: PathBuf,
    /// The job's own lists last: an agent's come before.
    lists: Vec<Lists>,
    /// The lists of agents that calls name in `agent_type`.
    subagents: Vec<(String, Lists)>,
}

impl Policy {
    /// The policy of a background job. `owner` names it in sentences (`routine email-triage`); `main_tools` are what
    /// the main session has.
    #[must_use]
    pub fn background(owner: &str, config: &BgForkConfig, main_tools: &[ToolPattern], places: &Places) -> Self {
        let allow = match config.effective_allowed_tools() {
            Some(patterns) => {
                let written = config.allowed_tools().unwrap_or_default();
                patterns
                    .iter()
                    .map(|pattern| {
                        let by_itself = !written.contains(pattern);
                        let origin = if by_itself { Origin::Automatic } else { Origin::Allowed(owner.into()) };
                        Rule::new(pattern, origin)
                    })
                    .collect()
            }
            None => main_tools.iter().map(|pattern| Rule::new(pattern, Origin::MainTools)).collect(),
        };
        let written = config.disallowed_tools().unwrap_or_default();
        let mut deny: Vec<Rule> =
            written.iter().map(|pattern| Rule::new(pattern, Origin::Disallowed(owner.into()))).collect();
        if !config.allow_ping {
            for tool in ["mcp__discord__ping_user", "mcp__discord__discord_embed"] {
                deny.push(Rule::new(&ToolPattern::bare(tool), Origin::NoPing));
            }
        }
        if config.update_main_session == UpdateMode::Blocked {
            deny.push(Rule::new(&ToolPattern::bare("mcp__discord__report_updates"), Origin::NoUpdates));
        }
        Self::new(true, Lists { owner: owner.into(), allow: Some(allow), deny, read_only: false }, places)
    }

    /// The policy of the main session: what `main_tools` grants and calls that only read pass. The rest would be put to
    /// the person; as long as no channel can ask, [`Layer::PermissionMode`] denies it.
    #[must_use]
    pub fn main_session(main_tools: &[ToolPattern], places: &Places) -> Self {
        let allow = main_tools.iter().map(|pattern| Rule::new(pattern, Origin::MainTools)).collect();
        let owner = "the main session";
        let lists = Lists { owner: owner.into(), allow: Some(allow), deny: Vec::new(), read_only: false };
        Self::new(false, lists, places)
    }

    fn new(fork: bool, lists: Lists, places: &Places) -> Self {
        Self {
            fork,
            spawned: false,
            known: Known::new(places),
            user_home: places.user_home.clone(),
            lists: vec![lists],
            subagents: Vec::new(),
        }
    }

    /// Narrowed to what a named agent may do, for a session that runs as it.
    #[must_use]
    pub fn as_agent(mut self, agent: &AgentRules) -> Self {
        self.lists.insert(0, agent_lists(agent));
        self
    }

    /// Narrowed to what a spawned agent may do: its lists come before its caller's, and it can start no further agents.
    #[must_use]
    pub fn spawned(mut self, owner: &str, tools: &SpawnTools) -> Self {
        let by_itself = ToolPattern::ollim_bot_help();
        let allow = tools.allow.as_ref().map(|patterns| {
            let written = patterns.iter().map(|pattern| Rule::new(pattern, Origin::Allowed(owner.into())));
            let automatic = (!patterns.contains(&by_itself)).then(|| Rule::new(&by_itself, Origin::Automatic));
            written.chain(automatic).collect()
        });
        let denied = tools.deny.iter().flatten();
        let deny = denied.map(|pattern| Rule::new(pattern, Origin::Disallowed(owner.into()))).collect();
        self.lists.insert(0, Lists { owner: owner.into(), allow, deny, read_only: false });
        self.spawned = true;
        self
    }

    /// With the agents that it may call: their calls are held against their own lists, then against the job's.
    #[must_use]
    pub fn with_subagents(mut self, agents: &[AgentRules]) -> Self {
        self.subagents.extend(agents.iter().map(|agent| (agent.name.clone(), agent_lists(agent))));
        self
    }

    /// Decides a call. Total: whatever the input, there is an answer, and it is no in doubt.
    #[must_use]
    pub fn decide(&self, call: &ToolCall) -> Decision {
        let tool = call::tool_name(call);
        let shown = call::shown(call);
        let lists = self.lists_for(call.agent_type.as_deref());
        // A call of the main session's own turn, about which the person can be asked.
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
        match call::request(call, tool, &self.user_home) {
            Request::Unreadable(why) => deny(Layer::System, None, format!("{shown}: denied, since {why}")),
            Request::Bash => self.decide_shell(&lists, &shown, person),
            request => self.decide_request(tool, &request, &lists, &shown, person),
        }
    }

    /// The agents that its calls may name.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.subagents.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn lists_for(&self, agent: Option<&str>) -> Vec<&Lists> {
        let own = agent.and_then(|agent| self.subagents.iter().find(|(name, _)| name == agent));
        own.map(|(_, lists)| lists).into_iter().chain(&self.lists).collect()
    }

    /// The first layer, for tools: what no fork and no subagent may call.
    fn blocked_tool(&self, tool: &str, call: &ToolCall) -> Option<String> {
        if !self.fork && call.agent_type.is_none() {
            return None;
        }
        if SPAWNING.contains(&tool) && (self.spawned || call.agent_type.is_some()) {
            return Some(format!("{tool} is blocked for every agent that was started by another one"));
        }
        if !known::BLOCKED.contains(&tool) {
            return None;
        }
        if tool == "Agent" && call.agent_type.is_none() && self.may_call_agents() {
            return None;
        }
        Some(format!("{tool} is blocked for every fork, whatever its file says"))
    }

    /// Why an agent may not be called that is none of those that were handed to the client.
    fn unknown_agent(&self, tool: &str, call: &ToolCall) -> Option<String> {
        let name = call.input.get("subagent_type").and_then(Value::as_str).unwrap_or(call::USUAL_AGENT);
        let known = self.subagents.is_empty() || self.subagents.iter().any(|(known, _)| known == name);
        (tool == "Agent" && self.fork && !known).then(|| format!("there is no agent `{}` here", call::clipped(name)))
    }

    /// Whether a job may call agents: those that its allowlist names (`Agent(Explore)`); without an allowlist, those that the
    /// main session may call.
    fn may_call_agents(&self) -> bool {
        let own = self.lists.last().filter(|_| !self.spawned);
        own.into_iter().flat_map(|lists| lists.allow.iter().flatten()).any(|rule| match rule.origin {
            Origin::MainTools => rule.is_for("Agent"),
            Origin::Allowed(_) => rule.pattern.canonical_tool() == "Agent" && !rule.is_all(),
            _ => false,
        })
    }

    /// Whether a job is shown a tool that forks do not have.
    pub(super) fn is_blocked(&self, tool: &str) -> bool {
        let called = tool == "Agent" && self.may_call_agents() && self.lists.iter().all(|lists| shows(lists, tool));
        self.fork && known::BLOCKED.contains(&tool) && !called
    }

    /// Decides early about a line of the shell: whether it is started at all. Each program in it is judged when it
    /// starts.
    fn decide_shell(&self, lists: &[&Lists], shown: &str, person: bool) -> Decision {
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
        let writes = |list: &&Lists| {
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
        lists: &[&Lists],
        shown: &str,
        person: bool,
    ) -> Decision {
        let read_only = matches!(tool, "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" | "WebFetch" | "WebSearch");
        if let Request::Path { path, .. } = request
            && let Some(protected) = path.everywhere().find_map(|path| self.known.protected(path))
        {
            return deny(Layer::System, None, format!("{shown}: denied, since {}", protected.why()));
        }
        if let Some(rule) = lists.iter().find_map(|lists| lists.denying(tool, request, &self.known)) {
            let text = rule.pattern.to_string();
            return deny(Layer::DisallowedTools, Some(text), format!("{shown}: denied by {}", rule.cited()));
        }
        let mut found = None;
        for list in lists {
            let writes = matches!(tool, "Edit" | "Write" | "NotebookEdit");
            if list.read_only && writes {
                return deny(Layer::DisallowedTools, None, format!("{shown}: {} is read-only", list.owner));
            }
            if list.allow.is_none() {
                continue;
            }
            match list.granting(tool, request, &self.known) {
                Some(rule) => found = Some(rule),
                None if person && read_only => return allow(Layer::PermissionMode, None, shown, true),
                None => return self.not_granted(list, tool, person, &format!("{shown}: not granted")),
            }
        }
        allow(Layer::AllowedTools, found, shown, read_only)
    }

    /// The denial of the third layer (of the fourth for the main session), with what would have been granted.
    pub(super) fn not_granted(&self, lists: &Lists, tool: &str, person: bool, sentence: &str) -> Decision {
        const MOST: usize = 8;
        if person {
            let why = "the main session has what `main_tools` in config.yaml grants, and nobody can be asked yet";
            return deny(Layer::PermissionMode, None, format!("{sentence}; {why}"));
        }
        let rules: Vec<String> = lists.grants_for(tool).map(|rule| rule.pattern.to_string()).collect();
        let hint = match rules.len() {
            0 => format!("; {} grants no {tool} call", lists.owner),
            1..=MOST => format!("; {} grants: {}", lists.owner, rules.join(", ")),
            _ => format!("; {} grants: {}, …", lists.owner, rules[..MOST].join(", ")),
        };
        deny(Layer::AllowedTools, None, format!("{sentence}{hint}"))
    }

    /// Whether every call that a pattern allows is granted by each owner's lists, and none of them denies all of these calls.
    /// `false` where that cannot be told.
    #[must_use]
    pub fn covers(&self, pattern: &ToolPattern) -> bool {
        let asked = std::slice::from_ref(pattern);
        self.lists.iter().all(|lists| {
            let denied: Vec<ToolPattern> = lists.deny.iter().map(|rule| rule.pattern.clone()).collect();
            let granted = |rules: &Vec<Rule>| rules.iter().any(|rule| covers(&rule.pattern, pattern));
            lists.allow.as_ref().is_none_or(granted) && without(asked, &denied) == asked
        })
    }

    /// Whether some rule grants a tool by just its name.
    #[must_use]
    pub fn names(&self, tool: &str) -> bool {
        self.lists.iter().flat_map(|lists| lists.allow.iter().flatten()).any(|rule| rule.pattern.tool() == tool)
    }

    /// Whether it is a background job's, and not the main session's.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.fork
    }

    /// Whether it is a spawned agent's.
    #[must_use]
    pub fn is_spawned(&self) -> bool {
        self.spawned
    }

    pub(super) fn all_lists(&self) -> &[Lists] {
        &self.lists
    }

    pub(super) fn is_fork(&self) -> bool {
        self.fork
    }

    pub(super) fn known_places(&self) -> &Known {
        &self.known
    }
}

fn agent_lists(agent: &AgentRules) -> Lists {
    let owner = format!("agent {}", agent.name);
    Lists {
        owner: owner.clone(),
        allow: agent
            .tools
            .as_ref()
            .map(|patterns| patterns.iter().map(|p| Rule::new(p, Origin::Allowed(owner.clone()))).collect()),
        deny: agent.disallowed.iter().map(|p| Rule::new(p, Origin::Disallowed(owner.clone()))).collect(),
        read_only: agent.read_only,
    }
}

pub(super) fn deny(layer: Layer, rule: Option<String>, reason: String) -> Decision {
    const MOST: usize = 4000;
    let reason = call::on_one_line(&reason, MOST);
    Decision { verdict: Verdict::Deny, layer, rule, reason, commands: Vec::new(), read_only: false }
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
