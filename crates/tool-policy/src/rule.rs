//! Tool patterns compiled for matching, with their origin.

use std::fmt;

use crate::command_rule::CommandRule;
use crate::path::PathRule;
use crate::url_host::HostRule;
use crate::wildcard::Wildcard;
use crate::{Application, ToolPattern};

/// The list or setting that contains a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `allowed_tools` of this owner.
    Allowed(String),
    /// The entry that every allowlist gets.
    Automatic,
    /// `ask_tools` of this owner.
    Asked(String),
    /// `disallowed_tools` of this owner.
    Disallowed(String),
    /// `main_tools` of the configuration, of a job without an allowlist of its own.
    MainTools,
    /// `main_tools` of the configuration, of the main session itself.
    OwnMainTools,
    /// A setting of the job, as written.
    Setting(&'static str),
    /// The system-wide blocks.
    Blocked,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed(owner) => write!(f, "allowed_tools of {owner}"),
            Self::Asked(owner) => write!(f, "ask_tools of {owner}"),
            Self::Automatic => f.write_str("added automatically"),
            Self::Disallowed(owner) => write!(f, "disallowed_tools of {owner}"),
            Self::MainTools | Self::OwnMainTools => f.write_str("main_tools"),
            Self::Setting(setting) => f.write_str(setting),
            Self::Blocked => f.write_str("blocked for every fork"),
        }
    }
}

/// The matcher for the calls of a pattern's tool.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// Matches every call.
    All,
    /// Matches programs with their arguments, for Bash.
    Command(CommandRule),
    /// Matches paths.
    Path(PathRule),
    /// Matches hosts.
    Host(HostRule),
    /// Matches a text of the call in any of these forms: an agent's type, a skill with its arguments.
    Text(Vec<Wildcard>),
    /// A specifier that the tool does not support. It grants nothing and denies everything.
    Unsupported,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub pattern: ToolPattern,
    pub origin: Origin,
    pub matcher: Matcher,
    /// A wildcard over tool names (`*`, `mcp__server__*`), or `None` for one tool.
    name: Option<Wildcard>,
}

impl Rule {
    pub(super) fn new(pattern: &ToolPattern, origin: Origin, application: &'static Application) -> Self {
        let tool = pattern.canonical_tool();
        let name = if tool == "*" {
            Some(Wildcard::name("*"))
        } else if let Some(rest) = tool.strip_prefix("mcp__") {
            let whole_server = !rest.contains("__");
            Some(Wildcard::name(&if whole_server { format!("{tool}__*") } else { tool.to_owned() }))
        } else {
            None
        };
        Self { matcher: matcher(pattern, application), pattern: pattern.clone(), origin, name }
    }

    /// Returns whether the rule applies to this tool (by its current name).
    pub(super) fn is_for(&self, tool: &str) -> bool {
        match &self.name {
            Some(name) => name.matches(tool),
            None => self.pattern.canonical_tool() == tool,
        }
    }

    /// Returns whether the rule may apply to a tool of this MCP server.
    pub(super) fn may_be_of_server(&self, server: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.overlaps(&Wildcard::name(&format!("mcp__{server}__*"))))
    }

    /// Returns whether the rule applies to every tool of this MCP server.
    pub(super) fn is_all_of_server(&self, server: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.covers(&Wildcard::name(&format!("mcp__{server}__*"))))
    }

    /// Returns whether the rule applies to every tool.
    pub(super) fn is_for_everything(&self) -> bool {
        self.name.as_ref().is_some_and(Wildcard::matches_everything)
    }

    /// Formats the rule as a part of a sentence.
    pub(super) fn cited(&self) -> String {
        match &self.origin {
            Origin::Asked(owner) => format!("ask_tools \"{}\" of {owner}", self.pattern),
            Origin::Disallowed(owner) => format!("disallowed_tools \"{}\" of {owner}", self.pattern),
            origin => format!("{origin} (\"{}\")", self.pattern),
        }
    }

    /// Returns whether the rule is of its owner's own allowlist, and not inherited from `main_tools`.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.origin, Origin::Allowed(_) | Origin::Automatic | Origin::OwnMainTools)
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self.matcher, Matcher::All)
    }

    /// Returns whether the rule's tool does not support its specifier.
    pub(super) fn grants_nothing(&self) -> bool {
        matches!(self.matcher, Matcher::Unsupported)
    }

    pub(super) fn name(&self) -> Option<&Wildcard> {
        self.name.as_ref()
    }
}

fn matcher(pattern: &ToolPattern, application: &'static Application) -> Matcher {
    let Some(specifier) = pattern.specifier().filter(|_| !pattern.is_whole_tool()) else { return Matcher::All };
    match pattern.canonical_tool() {
        "Bash" => Matcher::Command(CommandRule::new(specifier, application)),
        "Read" | "Edit" | "NotebookEdit" | "NotebookRead" | "Glob" | "Grep" | "LS" => {
            Matcher::Path(PathRule::new(specifier))
        }
        "WebFetch" => match specifier.strip_prefix("domain:") {
            Some(host) => Matcher::Host(HostRule::new(host)),
            None => Matcher::Unsupported,
        },
        "Agent" | "Skill" => {
            Matcher::Text(pattern.alternatives().into_iter().map(Wildcard::command_in_doubt).collect())
        }
        _ => Matcher::Unsupported,
    }
}
