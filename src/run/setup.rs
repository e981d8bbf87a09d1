//! What a run is started with: its policy, the client's options, the agent that it runs as and those that it may call.
//!
//! Pure: definition, settings and agents are handed in. The one place where they are put together, for runs and for
//! whoever shows what a run would have.

use std::collections::BTreeMap;

use crate::agent::ClientOptions;
use crate::agents::{AgentError, Agents, NamedAgent, agents_argument, hidden_agents};
use crate::definition::{Background, Definition};
use crate::policy::{
    self, AgentRules, BOT, BgForkConfig, JobNetwork, PathRoots, Policy, ToolCall, ToolLists, ToolPattern, Verdict,
};

use super::restrictions::Restrictions;
use super::runner::RunSettings;

/// What a run has.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What it may do.
    pub policy: Policy,
    /// What the client is started with.
    pub options: ClientOptions,
    /// Rules for the client's own wall: the policy's, and those that hide the client's own agents.
    pub deny_rules: Vec<String>,
    /// The patterns that a wall of whole trees is made from: what is granted, without what is denied whole.
    pub granted: Vec<ToolPattern>,
    /// What network its programs have.
    pub network: JobNetwork,
    /// The same patterns for each agent that it may call, narrowed to what that agent may do.
    pub granted_to_agents: BTreeMap<String, Vec<ToolPattern>>,
    /// What its agent is told of its tools.
    pub restrictions: Restrictions,
    /// The prompt of the named agent that it runs as.
    pub agent_prompt: Option<String>,
}

/// Who started a spawned agent, and with what tools: what its policy is made from besides its definition, which
/// carries its caller's restrictions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spawned {
    /// Who, in words.
    pub caller: String,
    /// The agent that its caller runs as.
    pub caller_agent: Option<String>,
    /// Global and its own lists, merged.
    pub tools: ToolLists,
}

impl Setup {
    /// What a run of a definition has; `spawned` where it is no job of a file but a spawned agent.
    ///
    /// # Errors
    /// [`AgentError`] when the agent that it is to run as cannot be used now, or does not fit.
    pub fn of(
        definition: &Definition,
        spawned: Option<&Spawned>,
        settings: &RunSettings,
        places: &PathRoots,
        agents: &Agents,
    ) -> Result<Self, AgentError> {
        match definition.background() {
            None => Self::main_session(definition, settings, places, agents),
            Some(background) => Self::background(definition, background, spawned, settings, places, agents),
        }
    }

    fn main_session(
        definition: &Definition,
        settings: &RunSettings,
        places: &PathRoots,
        agents: &Agents,
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
        .with_callable(agents.usable().collect(), false, places)
    }

    fn background(
        definition: &Definition,
        background: &Background,
        spawned: Option<&Spawned>,
        settings: &RunSettings,
        places: &PathRoots,
        agents: &Agents,
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
        let callable = agents.usable().filter(|agent| !agent.main_session_only).collect();
        setup.with_callable(callable, restrictions.allowed_tools().is_some(), places)
    }

    /// Narrowed to what an agent may do.
    fn narrow(&mut self, agent: &AgentRules, main_tools: &[ToolPattern]) {
        self.policy = self.policy.clone().as_agent(agent);
        self.granted = narrowed(&self.granted, agent);
        self.restrictions.narrow_to_agent(agent, main_tools);
    }

    fn spawned(mut self, owner: &str, tools: &ToolLists, main_tools: &[ToolPattern]) -> Self {
        self.policy = self.policy.spawned(owner, tools);
        let deny = tools.deny.as_deref().unwrap_or_default();
        if let Some(allow) = &tools.allow {
            self.granted = BOT.common(&self.granted, allow);
        }
        self.without(deny);
        self.restrictions.narrow(tools.allow.as_deref(), deny, main_tools);
        self
    }

    fn without(&mut self, denied: &[ToolPattern]) {
        self.granted = BOT.without(&self.granted, denied);
    }

    /// Hands the client those of `agents` that the policy lets it call, and hides its own. `named`: the job's file names them, so
    /// each of them has to fit.
    fn with_callable(mut self, agents: Vec<&NamedAgent>, named: bool, places: &PathRoots) -> Result<Self, AgentError> {
        self.deny_rules = self.policy.deny_rules();
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
            agents.into_iter().filter(|agent| self.policy.decide(&call(agent)).verdict != Verdict::Deny).collect();
        let whole = agents_argument(callable.iter().copied());
        self.options.agents = match whole {
            // No file names them: the session goes on without the longest.
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

/// What a job is granted, and what it may be once the person was asked: a sandbox is made before the run.
fn with_asked(restrictions: &BgForkConfig, main_tools: &[ToolPattern]) -> Vec<ToolPattern> {
    let mut granted = restrictions.effective_allowed_tools().unwrap_or_else(|| main_tools.to_vec());
    granted.extend(restrictions.asked_tools().iter().cloned());
    granted
}

/// What is granted, without what an agent may not do.
fn narrowed(granted: &[ToolPattern], agent: &AgentRules) -> Vec<ToolPattern> {
    let granted = agent.tools.as_ref().map_or_else(|| granted.to_vec(), |tools| BOT.common(granted, tools));
    let mut granted = BOT.without(&granted, &agent.disallowed);
    if agent.read_only {
        granted.retain(|pattern| !["Bash", "Edit", "NotebookEdit"].contains(&pattern.canonical_tool()));
    }
    granted
}

/// The agents as one argument, without as many of the longest as have to be left out for it to fit.
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
