//! The setup of a run: its policy, the client's options, the agent that it runs as, and the agents that it may call.
//!
//! Pure: the caller passes definition, settings and agents. This is the only place that combines them, both for runs and
//! for displays of what a run would have.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;

use crate::agent::ClientOptions;
use crate::agents::{AgentError, Agents, NamedAgent, agents_argument, hidden_agents};
use crate::definition::{Background, Definition};
use crate::home::Home;
use crate::policy::{
    self, AgentRules, BOT, BgForkConfig, JobNetwork, PathRoots, Policy, ToolCall, ToolLists, ToolPattern, Verdict,
};

use super::restrictions::Restrictions;
use super::runner::RunSettings;
use super::sandbox::opens_files;

/// The setup of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The policy.
    pub policy: Policy,
    /// The client's options.
    pub options: ClientOptions,
    /// Rules for the client's own permission check: the policy's, and those that hide the client's own agents.
    pub deny_rules: Vec<String>,
    /// The patterns that the sandbox is made from: the granted ones, without those that are denied whole.
    pub granted: Vec<ToolPattern>,
    /// The network access of its programs.
    pub network: JobNetwork,
    /// The same patterns for each agent that it may call, limited to that agent's rights.
    pub granted_to_agents: BTreeMap<String, Vec<ToolPattern>>,
    /// The restrictions that the prompt names.
    pub restrictions: Restrictions,
    /// The prompt of the named agent that it runs as.
    pub agent_prompt: Option<String>,
}

/// The caller of a spawned agent, and the agent's tools. Its policy is made from these and from its definition, which
/// contains the caller's restrictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spawned {
    /// The caller's title.
    pub caller: String,
    /// The agent that its caller runs as.
    pub caller_agent: Option<String>,
    /// The settings' lists and its own, merged.
    pub tools: ToolLists,
}

impl Setup {
    /// Returns the setup of a definition's run. `spawned` is given for a spawned agent. `agents` may be read on demand: most jobs have none.
    ///
    /// # Errors
    /// [`AgentError`] if the agent that it runs as cannot be used now, or does not fit.
    pub fn of(
        definition: &Definition,
        spawned: Option<&Spawned>,
        settings: &RunSettings,
        places: &PathRoots,
        agents: impl Deref<Target = Agents>,
    ) -> Result<Self, AgentError> {
        match definition.background() {
            None => Self::main_session(definition, settings, places, &agents),
            Some(background) => Self::background(definition, background, spawned, settings, places, &agents),
        }
    }

    fn main_session(
        definition: &Definition,
        settings: &RunSettings,
        places: &PathRoots,
        agents: &impl Deref<Target = Agents>,
    ) -> Result<Self, AgentError> {
        let options = ClientOptions {
            model: settings.model.clone(),
            thinking: Some(settings.thinking),
            max_turns: definition.max_turns,
            max_budget_usd: definition.max_cost_usd,
            ..ClientOptions::default()
        };
        Self {
            policy: policy::main_session(&settings.main_tools, &settings.main_ask_tools, places),
            options,
            deny_rules: Vec::new(),
            granted: settings.main_tools.iter().chain(&settings.main_ask_tools).cloned().collect(),
            network: JobNetwork::Internet,
            granted_to_agents: BTreeMap::new(),
            restrictions: Restrictions::default(),
            agent_prompt: None,
        }
        .with_callable(|| agents.usable().collect(), false, places)
    }

    fn background(
        definition: &Definition,
        background: &Background,
        spawned: Option<&Spawned>,
        settings: &RunSettings,
        places: &PathRoots,
        agents: &impl Deref<Target = Agents>,
    ) -> Result<Self, AgentError> {
        let Background { isolated: _, model, thinking, agent, restrictions } = background;
        let own = agent.as_deref().map(|name| agents.for_background(name)).transpose()?;
        let options = ClientOptions {
            model: model
                .clone()
                .or_else(|| own.and_then(NamedAgent::model_argument).map(ToOwned::to_owned))
                .or_else(|| settings.model.clone()),
            thinking: Some(*thinking),
            max_turns: least(definition.max_turns, own.and_then(|agent| agent.max_turns)),
            max_budget_usd: definition.max_cost_usd,
            never_compact: restrictions.asked_tools().iter().any(opens_files),
            ..ClientOptions::default()
        }
        .with_restrictions(restrictions);
        let mut setup = Self {
            policy: policy::background(&definition.title(), restrictions, &settings.main_tools, places),
            options,
            deny_rules: Vec::new(),
            granted: with_asked(restrictions, &settings.main_tools),
            network: restrictions.network,
            granted_to_agents: BTreeMap::new(),
            restrictions: Restrictions::of(restrictions),
            agent_prompt: own.map(|agent| agent.prompt.clone()),
        };
        setup.without(restrictions.disallowed_tools().unwrap_or_default());
        if let Some(spawned) = spawned {
            let caller = spawned.caller_agent.as_deref().map(|name| agents.for_background(name)).transpose()?;
            if let Some(caller) = caller {
                setup.narrow(&caller.rules(), &settings.main_tools);
            }
            setup = setup.spawned(&definition.title(), &spawned.tools, &settings.main_tools);
        }
        if let Some(own) = own {
            setup.narrow(&own.rules(), &settings.main_tools);
        }
        let callable = || agents.usable().filter(|agent| !agent.main_session_only).collect();
        setup.with_callable(callable, restrictions.allowed_tools().is_some(), places)
    }

    /// Limits the setup to the rights of an agent.
    fn narrow(&mut self, agent: &AgentRules, main_tools: &[ToolPattern]) {
        self.policy = self.policy.clone().as_agent(agent);
        self.granted = narrowed(&self.granted, agent);
        self.restrictions.narrow_to_agent(agent, main_tools);
    }

    fn spawned(mut self, owner: &str, tools: &ToolLists, main_tools: &[ToolPattern]) -> Self {
        self.policy = self.policy.spawned(owner, tools);
        let deny = tools.deny.as_deref().unwrap_or_default();
        if let Some(allow) = &tools.allow {
            self.granted = BOT.intersection(&self.granted, allow);
        }
        self.without(deny);
        self.restrictions.narrow(tools.allow.as_deref(), deny, main_tools);
        self
    }

    fn without(&mut self, denied: &[ToolPattern]) {
        self.granted = BOT.difference(&self.granted, denied);
    }

    /// Gives the client those of `agents` that the policy lets it call, and hides the client's own. `named` says that the job has an
    /// allowlist, so that each agent has to fit.
    fn with_callable<'a>(
        mut self,
        agents: impl FnOnce() -> Vec<&'a NamedAgent>,
        named: bool,
        places: &PathRoots,
    ) -> Result<Self, AgentError> {
        self.deny_rules = self.policy.deny_rules();
        self.deny_rules.extend(closed_files(&places.root));
        if !self.policy.visible_tools().iter().any(|tool| tool == "Agent") {
            return Ok(self);
        }
        let call = |agent: &NamedAgent| ToolCall {
            tool: "Agent".into(),
            input: serde_json::json!({ "subagent_type": agent.name }),
            cwd: places.work.clone(),
            agent_type: None,
        };
        let mut callable: Vec<&NamedAgent> =
            agents().into_iter().filter(|agent| self.policy.decide(&call(agent)).verdict != Verdict::Deny).collect();
        let whole = agents_argument(callable.iter().copied());
        self.options.agents = match whole {
            // Without an allowlist no file names the agents, so the session runs without the longest ones.
            Err(AgentError::TooLong { .. }) if !named => longest_left_out(&mut callable)?,
            whole => whole?,
        };
        let rules: Vec<AgentRules> = callable.iter().map(|agent| agent.rules()).collect();
        self.granted_to_agents =
            rules.iter().map(|rules| (rules.name.clone(), narrowed(&self.granted, rules))).collect();
        self.policy = self.policy.with_subagents(&rules);
        self.deny_rules.extend(hidden_agents(callable));
        Ok(self)
    }
}

/// Returns denials for the client of what no session may read in the data folder. After a compaction the client reads files of the
/// conversation again and asks nobody, but it heeds denials, also for the target of a link.
fn closed_files(root: &Path) -> Vec<String> {
    let home = Home::new(root.canonicalize().unwrap_or_else(|_| root.to_owned()));
    let files = [home.env_file(), home.config_file(), home.journal(), home.user_token()];
    let folders =
        [home.agents(), home.bin(), home.reminders(), home.routines(), home.skills(), home.tools(), home.webhooks()];
    let root = home.root().display().to_string();
    // A rule has no way to quote other characters.
    let is_plain = root.chars().all(|letter| letter.is_alphanumeric() || "/._-".contains(letter));
    if !is_plain {
        return Vec::new();
    }
    let files = files.iter().map(|file| format!("Read(/{})", file.display()));
    files.chain(folders.iter().map(|folder| format!("Read(/{}/**)", folder.display()))).collect()
}

/// Returns the granted patterns and those that ask the person: the sandbox is made before the run.
fn with_asked(restrictions: &BgForkConfig, main_tools: &[ToolPattern]) -> Vec<ToolPattern> {
    let mut granted = restrictions.effective_allowed_tools().unwrap_or_else(|| main_tools.to_vec());
    granted.extend(restrictions.asked_tools().iter().cloned());
    granted
}

/// Returns the granted patterns, limited to the rights of an agent.
fn narrowed(granted: &[ToolPattern], agent: &AgentRules) -> Vec<ToolPattern> {
    let granted = agent.tools.as_ref().map_or_else(|| granted.to_vec(), |tools| BOT.intersection(granted, tools));
    let mut granted = BOT.difference(&granted, &agent.disallowed);
    if agent.read_only {
        granted.retain(|pattern| !["Bash", "Edit", "NotebookEdit"].contains(&pattern.canonical_tool()));
    }
    granted
}

/// Returns the agents as one argument. Leaves out the longest ones until it fits.
fn longest_left_out(callable: &mut Vec<&NamedAgent>) -> Result<Option<String>, AgentError> {
    loop {
        match agents_argument(callable.iter().copied()) {
            Err(AgentError::TooLong { .. }) => {
                let longest = callable.iter().enumerate().max_by_key(|(_, agent)| agent.prompt.len());
                let Some((at, agent)) = longest else { return Ok(None) };
                tracing::warn!(
                    agent = agent.name,
                    "its prompt is too long to be handed to the client with the others'"
                );
                callable.remove(at);
            }
            fits => return fits,
        }
    }
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
