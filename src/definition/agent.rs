//! Named agents as definitions refer to them: in `agent`, and in rules like `Agent(Explore)`.
//!
//! A higher module knows the agents and whether each is usable. It passes that knowledge as a function.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Defaults, Definition, Parsed, Problem, Severity, parse};
use crate::policy::{OWN_SERVER, ToolPattern};

/// The fields of a definition that name agents.
const FIELDS: [&str; 2] = ["agent", "allowed_tools"];

/// The tools of an agent for a background job (`None` for all that the job has). The error is why the agent is
/// unusable, and what to do.
pub type AgentTools = Result<Option<Vec<ToolPattern>>, (String, String)>;

/// A function that looks up an agent.
type AgentLookup = Arc<dyn Fn(&str) -> AgentTools + Send + Sync>;

/// Looks up agents by name. The default accepts every name.
#[derive(Clone, Default)]
pub struct KnownAgents(Option<AgentLookup>);

impl KnownAgents {
    /// Creates a lookup. `word` is called whenever a definition that names an agent is read.
    pub fn new(word: impl Fn(&str) -> AgentTools + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(word)))
    }

    fn ask(&self, name: &str) -> AgentTools {
        self.0.as_ref().map_or(Ok(None), |word| word(name))
    }
}

impl fmt::Debug for KnownAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownAgents")
    }
}

/// Adds the problems of the agents that a definition names: an error if the job's own agent is unusable, a warning for
/// each missing agent that it may call. `text` is the parsed text.
pub(super) fn check(file: &Path, text: &[u8], defaults: &Defaults, parsed: &mut Parsed) {
    let Some(definition) = &parsed.definition else { return };
    let problem = |severity, field: &str, (line, column), (message, hint)| Problem {
        line,
        column,
        field: Some(field.into()),
        id: Some(definition.id.clone()),
        ..Problem::of_file(file, severity, message, Some(hint))
    };
    let mut found = Vec::new();
    if let Some(name) = definition.background().and_then(|background| background.agent.as_deref()) {
        let at = parse::position(text, "agent");
        match defaults.agents.ask(name) {
            Err(said) => found.push(problem(Severity::Error, "agent", at, said)),
            Ok(Some(tools)) if !tools.iter().any(reaches_somebody) => {
                let message =
                    format!("agent `{name}` has none of our tools, so the job can neither reach you nor report");
                let hint = "what it finds then stands in its transcript only; an agent's file may name `mcp__bot__report_updates`";
                found.push(problem(Severity::Warning, "agent", at, (message, hint.into())));
            }
            Ok(_) => {}
        }
    }
    for (item, name) in callable(definition) {
        if let Err(said) = defaults.agents.ask(name) {
            let at = parse::item_position(text, "allowed_tools", item);
            found.push(problem(Severity::Warning, "allowed_tools", at, said));
        }
    }
    if found.is_empty() {
        return;
    }
    parsed.problems.extend(found);
    parsed.problems.sort_by_key(|problem| (problem.line, problem.column));
    if parsed.problems.iter().any(Problem::is_error) {
        parsed.definition = None;
    }
}

fn reaches_somebody(pattern: &ToolPattern) -> bool {
    pattern.tool() == "*" || pattern.tool().starts_with(OWN_SERVER)
}

/// Whether a file must be read again when agents change: it names agents, or has a problem with them.
pub(super) fn concerns(definition: Option<&Definition>, problems: &[Problem]) -> bool {
    let names = |definition: &Definition| {
        definition.background().is_some_and(|background| background.agent.is_some())
            || callable(definition).next().is_some()
    };
    definition.is_some_and(names)
        || problems.iter().any(|problem| problem.field.as_deref().is_some_and(|field| FIELDS.contains(&field)))
}

/// Returns the folder of the data folder's agents, relative to it.
pub(super) fn folder() -> PathBuf {
    PathBuf::from("agents")
}

/// Returns the agents that a definition's allowlist names without wildcards, with their indices in the list.
fn callable(definition: &Definition) -> impl Iterator<Item = (usize, &str)> {
    let list = definition.background().and_then(|background| background.restrictions.allowed_tools());
    let name = |pattern: &'_ ToolPattern| matches!(pattern.tool(), "Agent" | "Task");
    let named = list.into_iter().flatten().enumerate().filter(move |(_, pattern)| name(pattern));
    let names = named.flat_map(|(item, pattern)| pattern.alternatives().into_iter().map(move |name| (item, name)));
    names.filter(|(_, name)| !name.contains('*'))
}
