//! Chains: what a reminder hands to its next link, and the command that makes that link.
//!
//! A link is made by the same `ollim-bot reminder add` that a person would type, so both sides of the hand-over are the
//! command line's code. The definition is destructured exhaustively: a new field cannot be forgotten.

use std::time::Duration;

use crate::definition::{Background, Chain, Definition, DefinitionId, Mode, OnMissed, Thinking, Trigger};
use crate::policy::{BgForkConfig, JobNetwork, ToolPattern, UpdateMode};

/// What a chain reminder below its last link hands on.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainContext {
    /// The reminder that fired.
    pub reminder_id: DefinitionId,
    /// Its body.
    pub message: String,
    /// Which link fired.
    pub chain_depth: u32,
    /// How many follow-ups the chain may have.
    pub max_chain: u32,
    /// The first link.
    pub chain_parent: DefinitionId,
    /// Everything else that the next link inherits, as flags of `reminder add`.
    inherited: Vec<String>,
}

impl ChainContext {
    /// The hand-over of a reminder; `None` where it is no chain reminder, or the last link.
    #[must_use]
    pub fn of(definition: &Definition) -> Option<Self> {
        // No `..`: a new field of a definition must be dealt with here.
        let Definition {
            id,
            file: _,
            description,
            zone: _,
            own_zone,
            enabled: _,
            trigger,
            mode,
            skills,
            timeout,
            max_turns,
            max_cost_usd,
            on_missed,
            retry,
            created_by,
            body,
        } = definition;
        let Trigger::Reminder { run_at: _, chain: Some(Chain { max, depth, parent }) } = trigger else { return None };
        if depth >= max {
            return None;
        }
        let mut flags = Flags::default();
        if !description.is_empty() {
            flags.value("description", description);
        }
        if let Some(zone) = own_zone {
            flags.value("timezone", zone.name());
        }
        if let Mode::Background(background) = mode {
            flags.background(background);
        }
        for skill in skills {
            flags.value("skills", skill);
        }
        if let Some(timeout) = timeout {
            flags.value("timeout", &humantime::format_duration(*timeout).to_string());
        }
        if let Some(turns) = max_turns {
            flags.value("max-turns", &turns.to_string());
        }
        if let Some(cost) = max_cost_usd {
            flags.value("max-cost-usd", &cost.to_string());
        }
        match on_missed {
            OnMissed::All => {}
            OnMissed::Latest => flags.value("on-missed", "latest"),
            OnMissed::Skip => flags.value("on-missed", "skip"),
        }
        if let Some(retry) = retry {
            flags.value("retry", &retry.to_string());
        }
        if let Some(creator) = created_by {
            flags.value("created-by", creator.as_str());
        }
        Some(Self {
            reminder_id: id.clone(),
            message: body.clone(),
            chain_depth: *depth,
            max_chain: *max,
            chain_parent: parent.clone(),
            inherited: flags.0,
        })
    }

    /// [`of`](Self::of), of the last link too: then the chain may have one more.
    #[must_use]
    pub fn prolonged(definition: &Definition) -> Option<Self> {
        let mut definition = definition.clone();
        if let Trigger::Reminder { chain: Some(chain), .. } = &mut definition.trigger {
            chain.max = chain.max.max(chain.depth + 1);
        }
        Self::of(&definition)
    }

    /// The command line, after `ollim-bot`, that makes the next link `delay` from now.
    #[must_use]
    pub fn arguments(&self, delay: Duration) -> Vec<String> {
        let mut flags = Flags(vec!["reminder".into(), "add".into()]);
        let seconds = delay.as_secs();
        if seconds.is_multiple_of(60) {
            flags.value("delay", &(seconds / 60).to_string());
        } else {
            flags.value("in", &humantime::format_duration(Duration::from_secs(seconds)).to_string());
        }
        flags.value("message", &self.message);
        flags.value("max-chain", &self.max_chain.to_string());
        flags.value("chain-depth", &(self.chain_depth + 1).to_string());
        flags.value("chain-parent", self.chain_parent.as_str());
        flags.0.extend_from_slice(&self.inherited);
        flags.0
    }
}

/// Long flags; a value is always joined with `=`, so that one that begins with `-` stays a value.
#[derive(Default)]
struct Flags(Vec<String>);

impl Flags {
    fn switch(&mut self, name: &str) {
        self.0.push(format!("--{name}"));
    }

    fn value(&mut self, name: &str, value: &str) {
        self.0.push(format!("--{name}={value}"));
    }

    fn background(&mut self, background: &Background) {
        let Background { isolated, model, thinking, agent, restrictions } = background;
        self.switch("background");
        if *isolated {
            self.switch("isolated");
        }
        if let Some(model) = model {
            self.value("model", model);
        }
        match thinking {
            Thinking::Adaptive => {}
            Thinking::Disabled => self.switch("no-thinking"),
            Thinking::Budget(tokens) => self.value("thinking", &tokens.to_string()),
        }
        if let Some(agent) = agent {
            self.value("agent", agent);
        }
        self.restrictions(restrictions);
    }

    fn restrictions(&mut self, config: &BgForkConfig) {
        match config.update_main_session {
            UpdateMode::OnPing => {}
            UpdateMode::Always => self.value("update-main-session", "always"),
            UpdateMode::Freely => self.value("update-main-session", "freely"),
            UpdateMode::Blocked => self.value("update-main-session", "blocked"),
        }
        if !config.allow_ping {
            self.switch("no-ping");
        }
        if config.network == JobNetwork::None {
            self.switch("no-network");
        }
        self.list("allowed-tools", config.allowed_tools());
        self.list("blocked-tools", config.disallowed_tools());
    }

    /// An empty list is one empty value: `--allowed-tools=`.
    fn list(&mut self, name: &str, patterns: Option<&[ToolPattern]>) {
        let Some(patterns) = patterns else { return };
        if patterns.is_empty() {
            self.value(name, "");
        }
        for pattern in patterns {
            self.value(name, &pattern.to_string());
        }
    }
}
