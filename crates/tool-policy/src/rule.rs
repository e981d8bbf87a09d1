//! A tool pattern compiled for matching, with where it came from.

use std::fmt;

use crate::command_rule::CommandRule;
use crate::path::PathRule;
use crate::url_host::HostRule;
use crate::wildcard::Wildcard;
use crate::{Application, ToolPattern};

/// Where a rule stands.
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
    /// `main_tools` of the configuration.
    MainTools,
    /// A setting of the job, as it is written.
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
            Self::MainTools => f.write_str("main_tools"),
            Self::Setting(setting) => f.write_str(setting),
            Self::Blocked => f.write_str("blocked for every fork"),
        }
    }
}

/// What a pattern matches of its tool's calls.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// Every call.
    All,
    /// Bash: programs with their arguments.
    Command(CommandRule),
    /// Paths.
    Path(PathRule),
    /// Hosts.
    Host(HostRule),
    /// A text of the call, in one of these forms: an agent's type, a skill with its arguments.
    Text(Vec<Wildcard>),
    /// A specifier that this tool does not have: it grants nothing and denies everything.
    Unsupported,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub pattern: ToolPattern,
    pub origin: Origin,
    pub matcher: Matcher,
    /// Wildcard over tool names (`*`, `mcp__server__*`); `None` for one tool.
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

    /// Whether it speaks of this tool (by its present name).
    pub(super) fn is_for(&self, tool: &str) -> bool {
        match &self.name {
            Some(name) => name.matches(tool),
            None => self.pattern.canonical_tool() == tool,
        }
    }

    /// Whether it may speak of a tool of this MCP server.
    pub(super) fn may_be_of_server(&self, server: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.overlaps(&Wildcard::name(&format!("mcp__{server}__*"))))
    }

    /// Whether it speaks of every tool of this MCP server.
    pub(super) fn is_all_of_server(&self, server: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.covers(&Wildcard::name(&format!("mcp__{server}__*"))))
    }

    /// Whether it names every tool there is.
    pub(super) fn is_for_everything(&self) -> bool {
        self.name.as_ref().is_some_and(Wildcard::matches_everything)
    }

    /// The rule as a part of a sentence.
    pub(super) fn cited(&self) -> String {
        match &self.origin {
            Origin::Asked(owner) => format!("ask_tools \"{}\" of {owner}", self.pattern),
            Origin::Disallowed(owner) => format!("disallowed_tools \"{}\" of {owner}", self.pattern),
            origin => format!("{origin} (\"{}\")", self.pattern),
        }
    }

    /// Whether the owner's file names it, and it is not what everybody has.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.origin, Origin::Allowed(_) | Origin::Automatic)
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self.matcher, Matcher::All)
    }

    /// Whether its specifier is one that its tool does not have.
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
        "Agent" | "Skill" => Matcher::Text(pattern.alternatives().into_iter().map(Wildcard::command).collect()),
        _ => Matcher::Unsupported,
    }
}
