//! Named agents: markdown files like the agent client's subagents, and the six that are built in.
//!
//! A file is a [`NamedAgent`] only if all of it is valid. [`Agents`] resolves names: the data folder's `agents/` before
//! `~/.claude/agents/` before the built-in ones. What always holds: a name resolves to the agent of the highest source
//! that claims it, or to that source's problem, never to a lower source behind it; an agent's rules only take away.
//! Knows the policy's patterns and the reader of definitions; knows nothing of runs or of a running client.

mod builtin;
mod client_json;
mod file;
mod resolve;
mod tool_list;

pub use client_json::{LONGEST_ARGUMENT, agents_argument, agents_json, hidden_agents};
pub use resolve::{AgentEntry, Agents, user_folder};

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::definition::{KnownAgents, Problem};
use crate::home::Home;
use crate::policy::{AgentRules, PermissionMode, ToolPattern};

/// Why there is no such agent to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No source has the name.
    #[error("there is no agent `{name}`{}", .near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// As it was asked for.
        name: String,
        /// A name there is, close to it.
        near: Option<String>,
    },
    /// The highest source that has the name has it in a form that cannot be used.
    #[error("agent `{name}` cannot be used: {}:{}:{}: {}", .problem.file.display(), .problem.line, .problem.column, .problem.message)]
    Unusable {
        /// As it was asked for.
        name: String,
        /// What is wrong, and where.
        problem: Box<Problem>,
    },
    /// It is for the main session, and a background job asked for it.
    #[error("agent `{0}` works in the main session only")]
    MainSessionOnly(String),
    /// Too much text for one argument of a command line.
    #[error(
        "the agents' prompts are {length} bytes together, more than the {limit} that fit on the client's command line; shorten one, or name fewer agents"
    )]
    TooLong {
        /// Bytes of the JSON.
        length: usize,
        /// The most there may be.
        limit: usize,
    },
}

impl AgentError {
    /// What to do now.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unusable { problem, .. } if problem.hint.is_some() => problem.hint.clone().unwrap_or_default(),
            Self::Unknown { .. } | Self::Unusable { .. } => "`ollim-bot agents list` shows those there are".into(),
            Self::MainSessionOnly(_) => "choose another one".into(),
            Self::TooLong { .. } => "shorten it: the client takes it as one argument".into(),
        }
    }
}

/// The word on agents for whoever reads definitions: their files are read each time it is asked.
#[must_use]
pub fn known_agents(home: &Home, user_home: Option<&Path>) -> KnownAgents {
    let (home, user_home) = (home.clone(), user_home.map(Path::to_path_buf));
    KnownAgents::new(move |name| {
        let agents = Agents::load(&home, user_home.as_deref());
        let found = agents.for_background(name).map(|agent| agent.tools.clone());
        found.map_err(|error| (error.to_string(), error.hint()))
    })
}

/// Where an agent comes from, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The data folder's `agents/`.
    Project,
    /// The person's `~/.claude/agents/`.
    User,
    /// This program.
    Builtin,
}

impl Scope {
    /// 1 is the highest.
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::Project => 1,
            Self::User => 2,
            Self::Builtin => 3,
        }
    }

    /// The word that `--json` shows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "builtin",
        }
    }
}

/// Where an agent stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which of the three.
    pub scope: Scope,
    /// The file, absolute; `<builtin:Plan>` for a built-in one.
    pub path: PathBuf,
}

/// An agent's model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentModel {
    /// The file says nothing: the client's default for subagents.
    #[default]
    Default,
    /// `inherit`: the model of whoever calls it.
    Inherit,
    /// An alias or a full name.
    Named(String),
}

impl AgentModel {
    /// As the file writes it; `default` where it says nothing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::Inherit => "inherit",
            Self::Named(name) => name,
        }
    }
}

impl Serialize for AgentModel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A valid named agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAgent {
    /// ASCII letters, digits, `-`, `_`, `.`; unique whatever the case of its letters, as the client reads it.
    pub name: String,
    /// What it is for: the calling model picks it by this.
    pub description: String,
    /// Its system prompt. Never blank.
    pub prompt: String,
    /// The tools it has, without those that `disallowed_tools` takes away whole; `None`: all that its caller has.
    /// Never empty.
    pub tools: Option<Vec<ToolPattern>>,
    /// Tools taken away from it. A read-only agent's list holds the tools that write.
    pub disallowed_tools: Vec<ToolPattern>,
    /// Its model.
    pub model: AgentModel,
    /// What happens to a call that no list decides.
    pub permission_mode: PermissionMode,
    /// At most so many turns.
    pub max_turns: Option<u32>,
    /// It may only read (the policy holds it): the built-in `Explore` and `Plan`, and files with `permissionMode: plan`.
    pub read_only: bool,
    /// No background job may have it.
    pub main_session_only: bool,
    /// Where it stands.
    pub source: Source,
}

impl NamedAgent {
    /// What the policy needs of it.
    #[must_use]
    pub fn rules(&self) -> AgentRules {
        AgentRules {
            name: self.name.clone(),
            tools: self.tools.clone(),
            disallowed: self.disallowed_tools.clone(),
            read_only: self.read_only,
            permission_mode: self.permission_mode,
        }
    }

    /// The value for the client's `--model` where a job runs as this agent; `None`: the job's own model.
    #[must_use]
    pub fn model_argument(&self) -> Option<&str> {
        match &self.model {
            AgentModel::Named(name) => Some(name),
            AgentModel::Default | AgentModel::Inherit => None,
        }
    }
}
