//! The restrictions of a background job, as its file sets them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use tool_policy::{AttenuationError, Parent, PathRoots, ToolLists, ToolPattern};

use super::{BOT, help_pattern};

/// How a background job reports to the main session (`update_main_session`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateMode {
    /// It must report.
    Always,
    /// It must report if it sent the person a message.
    #[default]
    OnPing,
    /// It may report.
    Freely,
    /// It cannot report.
    Blocked,
}

/// The network of a job's programs (`network`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobNetwork {
    /// The internet. Programs that are known only to read get no network.
    #[default]
    Internet,
    /// No network.
    None,
}

/// The verdict when the person does not answer in time (`ask.default`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskDefault {
    /// The call is denied.
    #[default]
    Deny,
    /// The one call is allowed.
    Allow,
}

/// The terms of a question to the person (`ask`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskTerms {
    /// Time that a call waits for an answer.
    pub deadline: Duration,
    /// The verdict after the deadline.
    pub default: AskDefault,
    /// The channel of the question; `None` for the job's.
    pub channel: Option<String>,
}

impl AskTerms {
    /// Minimum deadline.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// Maximum deadline.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
}

impl Default for AskTerms {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(10 * 60), default: AskDefault::Deny, channel: None }
    }
}

/// The error of a definition with both `allowed_tools` and `disallowed_tools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`allowed_tools` and `disallowed_tools` cannot both be set")]
pub struct BothLists;

/// The restrictions that a definition passes to its fork. They never hold both tool lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgForkConfig {
    /// How the job reports to the main session.
    pub update_main_session: UpdateMode,
    /// Whether the job may send messages to the person.
    pub allow_ping: bool,
    /// The network of the job's programs.
    pub network: JobNetwork,
    /// Calls that the person is asked about (`ask_tools`); `None` if the file does not set it.
    pub ask_tools: Option<Vec<ToolPattern>>,
    /// The terms of questions; `None` if the file does not set them.
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

    /// Sets the network of the job's programs.
    #[must_use]
    pub fn with_network(mut self, network: JobNetwork) -> Self {
        self.network = network;
        self
    }

    /// Sets the calls that the person is asked about, and the terms of the questions.
    #[must_use]
    pub fn asking(mut self, tools: Option<Vec<ToolPattern>>, terms: Option<AskTerms>) -> Self {
        (self.ask_tools, self.ask) = (tools, terms);
        self
    }

    /// Returns the calls that the person is asked about.
    #[must_use]
    pub fn asked_tools(&self) -> &[ToolPattern] {
        self.ask_tools.as_deref().unwrap_or_default()
    }

    /// Returns the terms of questions, or the default ones.
    #[must_use]
    pub fn ask_terms(&self) -> AskTerms {
        self.ask.clone().unwrap_or_default()
    }

    /// Returns the allowlist of the file, without the automatic entry, which is never written or passed on.
    #[must_use]
    pub fn allowed_tools(&self) -> Option<&[ToolPattern]> {
        self.allowed_tools.as_deref()
    }

    /// Returns the denylist of the file.
    #[must_use]
    pub fn disallowed_tools(&self) -> Option<&[ToolPattern]> {
        self.disallowed_tools.as_deref()
    }

    /// Returns the effective allowlist: the file's, and `Bash(ollim-bot help)` once. Returns `None` if the file has no allowlist.
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

/// The reason why a fork cannot create a job with these restrictions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    /// The job would have more than its parent.
    #[error(transparent)]
    Widening(#[from] AttenuationError),
    /// The job has both tool lists.
    #[error(transparent)]
    BothLists(#[from] BothLists),
}

/// Returns the restrictions of a job that a fork creates: those that it asks for, limited to the fork's own. Tools are
/// limited by [`Application::attenuate`](tool_policy::Application::attenuate) and
/// [`attenuate_asks`](tool_policy::Application::attenuate_asks); reporting, pinging and the network can only be taken
/// away. `name` names the fork in errors. `sandbox` holds the folders of the parent's sandbox; `None` if it has none.
///
/// # Errors
/// [`ChildError`] with the pattern that exceeds the fork's own.
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
    // If silence means yes, the child waits at least as long as its maker, and asks in the maker's channel.
    let ask = match (ask, &parent.ask) {
        (Some(own), Some(maker)) if own.default == AskDefault::Allow && maker.default == AskDefault::Allow => {
            Some(AskTerms { deadline: own.deadline.max(maker.deadline), channel: maker.channel.clone(), ..own })
        }
        // A child cannot choose the channel: not every channel is equally safe.
        (Some(own), Some(maker)) => Some(AskTerms { channel: maker.channel.clone(), ..own }),
        (ask, _) => ask,
    };
    let silence = |terms: &Option<AskTerms>| terms.as_ref().map(|terms| terms.default).unwrap_or_default();
    let silent = silence(&ask) == AskDefault::Allow && silence(&parent.ask) != AskDefault::Allow;
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
