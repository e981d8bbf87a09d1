//! Named agents: Markdown files like the client's subagents, and the six built-in ones.
//!
//! A file is a [`NamedAgent`] only if all of it is valid. [`Agents`] resolves names: the data folder's `agents/` comes
//! before `~/.claude/agents/`, and that before the built-in ones. A name always resolves to the agent of the highest source
//! that claims it, or to that source's problem, never to a lower source. An agent's rules only take rights away.
//! This module uses the policy's patterns and the definitions' parser. It does not know runs or a running client.

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

/// The reason why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No source has the name.
    #[error("there is no agent `{name}`{}", .near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// The requested name.
        name: String,
        /// An existing name that is similar.
        near: Option<String>,
    },
    /// The highest source that claims the name is broken.
    #[error("agent `{name}` cannot be used: {}:{}:{}: {}", .problem.file.display(), .problem.line, .problem.column, .problem.message)]
    Unusable {
        /// The requested name.
        name: String,
        /// The first problem of that source.
        problem: Box<Problem>,
    },
    /// A background job requested an agent of the main session.
    #[error("agent `{0}` works in the main session only")]
    MainSessionOnly(String),
    /// The agents' JSON does not fit into one command-line argument.
    #[error(
        "the agents' prompts are {length} bytes together, more than the {limit} that fit on the client's command line; shorten one, or name fewer agents"
    )]
    TooLong {
        /// Length of the JSON, in bytes.
        length: usize,
        /// Maximum length, in bytes.
        limit: usize,
    },
}

impl AgentError {
    /// Returns the advice to show with the error.
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

/// Returns the lookup of agents for the definitions' parser. It reads the agents' files again at each call.
#[must_use]
pub fn known_agents(home: &Home, user_home: Option<&Path>) -> KnownAgents {
    let (home, user_home) = (home.clone(), user_home.map(Path::to_path_buf));
    KnownAgents::new(move |name| {
        let agents = Agents::load(&home, user_home.as_deref());
        let found = agents.for_background(name).map(|agent| agent.tools.clone());
        found.map_err(|error| (error.to_string(), error.hint()))
    })
}

/// The source of an agent, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The data folder's `agents/`.
    Project,
    /// The person's `~/.claude/agents/`.
    User,
    /// The agents embedded in this program.
    Builtin,
}

impl Scope {
    /// Returns the priority; 1 is the highest.
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::Project => 1,
            Self::User => 2,
            Self::Builtin => 3,
        }
    }

    /// Returns the word that `--json` shows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "builtin",
        }
    }
}

/// The location of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The scope of the file.
    pub scope: Scope,
    /// The absolute path of the file; `<builtin:Plan>` for a built-in agent.
    pub path: PathBuf,
}

/// An agent's model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentModel {
    /// The client's default for subagents: the file names no model or `default`.
    #[default]
    Default,
    /// The caller's model (`inherit`).
    Inherit,
    /// A model's alias or full name.
    Named(String),
}

impl AgentModel {
    /// Returns the model as a file writes it; `default` if the file names none.
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
    /// ASCII letters, digits, `-`, `_`, `.`. Unique regardless of case, since the client ignores case.
    pub name: String,
    /// The agent's purpose, by which the calling model picks it.
    pub description: String,
    /// The system prompt. Never blank.
    pub prompt: String,
    /// The tools, without those that `disallowed_tools` takes away whole. Never empty. `None` means all tools of the caller.
    pub tools: Option<Vec<ToolPattern>>,
    /// Tools that the agent may not use. For a read-only agent they include the writing tools.
    pub disallowed_tools: Vec<ToolPattern>,
    /// The model that the agent uses.
    pub model: AgentModel,
    /// The treatment of a call that no list decides.
    pub permission_mode: PermissionMode,
    /// Maximum number of turns.
    pub max_turns: Option<u32>,
    /// Whether the policy lets it only read: the built-in `Explore` and `Plan`, and files with `permissionMode: plan`.
    pub read_only: bool,
    /// Whether only the main session may use it, and no background job.
    pub main_session_only: bool,
    /// The location of its file.
    pub source: Source,
}

impl NamedAgent {
    /// Returns the rules that the policy needs.
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

    /// Returns the value of the client's `--model` for a job that runs as this agent; `None` means the job's own model.
    #[must_use]
    pub fn model_argument(&self) -> Option<&str> {
        match &self.model {
            AgentModel::Named(name) => Some(name),
            AgentModel::Default | AgentModel::Inherit => None,
        }
    }
}
