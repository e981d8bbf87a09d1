//! What a background job's file says about its fork.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use tool_policy::{Parent, PathRoots, ToolLists, ToolPattern, Widening};

use super::{BOT, help_pattern};

/// How a background job reports to the main session (`update_main_session`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// It must report.
    Always,
    /// It must report if it pinged the person.
    #[default]
    OnPing,
    /// It may report.
    Freely,
    /// It cannot report.
    Blocked,
}

/// What network a job's programs have (`network`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobNetwork {
    /// The internet, for programs that are not known for reading only.
    #[default]
    Internet,
    /// None.
    None,
}

/// What silence means, where the person is asked (`ask.default`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    /// No.
    #[default]
    Deny,
    /// Yes, to the one call.
    Allow,
}

/// How the person is asked (`ask`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskTerms {
    /// How long a call waits for an answer.
    pub deadline: Duration,
    /// What holds after that.
    pub default: Silence,
    /// The channel that asks; `None`: the job's.
    pub channel: Option<String>,
}

impl AskTerms {
    /// The bounds of a deadline.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// See [`SHORTEST`](Self::SHORTEST).
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
}

impl Default for AskTerms {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10 * 60), default: Silence::Deny, channel: None }
    }
}

/// Both `allowed_tools` and `disallowed_tools` were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`allowed_tools` and `disallowed_tools` cannot both be set")]
pub struct BothLists;

/// The restrictions that travel from a definition to its fork. It cannot hold both tool lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgForkConfig {
    /// How the job reports to the main session.
    pub update_main_session: UpdateMode,
    /// Whether the job may reach the person directly.
    pub allow_ping: bool,
    /// What network its programs have.
    pub network: JobNetwork,
    /// What the person is asked about (`ask_tools`); `None`: the file does not say.
    pub ask_tools: Option<Vec<ToolPattern>>,
    /// How; `None`: the file does not say.
    pub ask: Option<AskTerms>,
    allowed_tools: Option<Vec<ToolPattern>>,
    disallowed_tools: Option<Vec<ToolPattern>>,
}

impl Default for BgForkConfig {
    fn default() -> Self {
        Self {
            update_main_session: UpdateMode::default(),
            allow_ping: true,
            network: JobNetwork::default(),
            ask_tools: None,
            ask: None,
            allowed_tools: None,
            disallowed_tools: None,
        }
    }
}

impl BgForkConfig {
    /// # Errors
    /// [`BothLists`] when both lists are given, empty ones included.
    pub fn new(
        update_main_session: UpdateMode,
        allow_ping: bool,
        allowed_tools: Option<Vec<ToolPattern>>,
        disallowed_tools: Option<Vec<ToolPattern>>,
    ) -> Result<Self, BothLists> {
        if allowed_tools.is_some() && disallowed_tools.is_some() {
            return Err(BothLists);
        }
        Ok(Self { update_main_session, allow_ping, allowed_tools, disallowed_tools, ..Self::default() })
    }

    /// With this network for its programs.
    #[must_use]
    pub fn with_network(mut self, network: JobNetwork) -> Self {
        self.network = network;
        self
    }

    /// What the person is asked about, and how.
    #[must_use]
    pub fn asking(mut self, tools: Option<Vec<ToolPattern>>, terms: Option<AskTerms>) -> Self {
        (self.ask_tools, self.ask) = (tools, terms);
        self
    }

    /// What the person is asked about.
    #[must_use]
    pub fn asked_tools(&self) -> &[ToolPattern] {
        self.ask_tools.as_deref().unwrap_or_default()
    }

    /// How the person is asked.
    #[must_use]
    pub fn ask_terms(&self) -> AskTerms {
        self.ask.clone().unwrap_or_default()
    }

    /// The allowlist as the file has it: without the automatic entry, which is never written or handed on.
    #[must_use]
    pub fn allowed_tools(&self) -> Option<&[ToolPattern]> {
        self.allowed_tools.as_deref()
    }

    /// The denylist as the file has it.
    #[must_use]
    pub fn disallowed_tools(&self) -> Option<&[ToolPattern]> {
        self.disallowed_tools.as_deref()
    }

    /// The allowlist in force: the file's, and `Bash(ollim-bot help)` once. `None`: the file has no allowlist.
    #[must_use]
    pub fn effective_allowed_tools(&self) -> Option<Vec<ToolPattern>> {
        let mut list = self.allowed_tools.clone()?;
        let help = help_pattern();
        if !list.contains(&help) {
            list.push(help);
        }
        Some(list)
    }
}

/// Why a fork cannot make a job with these restrictions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    /// It asks for more than its parent has.
    #[error(transparent)]
    Widening(#[from] Widening),
    /// Both lists.
    #[error(transparent)]
    BothLists(#[from] BothLists),
}

/// Returns the restrictions of a job that a fork creates: those that it asks for, limited to the fork's own. Tools
/// are limited as [`Application::attenuate`](tool_policy::Application::attenuate) and
/// [`attenuate_asks`](tool_policy::Application::attenuate_asks) do; reporting, pinging and the network may only be taken away. `name` names the fork in errors.
///
/// # Errors
/// [`ChildError`] with the pattern that is too much.
///
/// `sandbox`: the folders of the sandbox that the parent runs in; `None`: it runs in none.
pub fn attenuate(
    name: &str,
    parent: &BgForkConfig,
    asked: &BgForkConfig,
    main_tools: &[ToolPattern],
    sandbox: Option<&PathRoots>,
) -> Result<BgForkConfig, ChildError> {
    let update = match parent.update_main_session {
        UpdateMode::Blocked => UpdateMode::Blocked,
        _ => asked.update_main_session,
    };
    let network = match parent.network {
        JobNetwork::None => JobNetwork::None,
        JobNetwork::Internet => asked.network,
    };
    let lists = |config: &BgForkConfig| ToolLists {
        allow: config.allowed_tools.clone(),
        deny: config.disallowed_tools.clone(),
    };
    let own = lists(parent);
    let tools = Parent { name, tools: &own, ask: parent.asked_tools(), main_tools, sandbox };
    let lists = BOT.attenuate(&tools, &lists(asked))?;
    let ask = asked.ask.clone().or_else(|| parent.ask.clone());
    // Whose silence is a yes asks as long and where its maker does.
    let ask = match (ask, &parent.ask) {
        (Some(own), Some(maker)) if own.default == Silence::Allow && maker.default == Silence::Allow => {
            Some(AskTerms { deadline: own.deadline.max(maker.deadline), channel: maker.channel.clone(), ..own })
        }
        // Where the person is asked is not a child's to choose: not every channel is as safe.
        (Some(own), Some(maker)) => Some(AskTerms { channel: maker.channel.clone(), ..own }),
        (ask, _) => ask,
    };
    let silence = |terms: &Option<AskTerms>| terms.as_ref().map(|terms| terms.default).unwrap_or_default();
    let silent = silence(&ask) == Silence::Allow && silence(&parent.ask) != Silence::Allow;
    let asks = BOT.attenuate_asks(&tools, &lists, asked.ask_tools.as_deref(), silent)?;
    let asks = Some(asks).filter(|asks| !asks.is_empty() || asked.ask_tools.is_some());
    let ToolLists { allow, deny } = lists;
    let allow_ping = parent.allow_ping && asked.allow_ping;
    Ok(BgForkConfig::new(update, allow_ping, allow, deny)?.with_network(network).asking(asks, ask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinging_and_reporting_can_only_be_taken_away() {
        let with = |update, ping| BgForkConfig::new(update, ping, None, None).unwrap();
        let quiet = with(UpdateMode::Blocked, false);
        let loud = with(UpdateMode::Always, true);
        for (parent, asked, expected) in [(&quiet, &loud, &quiet), (&loud, &quiet, &quiet), (&loud, &loud, &loud)] {
            assert_eq!(attenuate("routine x", parent, asked, &[], None).as_ref(), Ok(expected));
        }
    }
}
