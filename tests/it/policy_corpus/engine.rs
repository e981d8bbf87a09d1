//! The translation of a corpus entry for the engine: the job's configuration and the call.

use std::path::PathBuf;

use ollim_bot::agents::Agents;
use ollim_bot::policy::{self, BgForkConfig, PathRoots, Policy, ToolCall, ToolPattern, UpdateMode, Verdict};

use super::entry::{Case, Rules, Updates};
use super::workspace::Workspace;

/// The main session's tools in these corpora: all that an ordinary person would grant it.
const MAIN_TOOLS: [&str; 9] =
    ["Bash", "Read", "Edit", "Glob", "Grep", "NotebookEdit", "WebFetch", "WebSearch", "mcp__discord__*"];

/// # Panics
/// Panics if a rule of the corpora is no pattern.
pub fn patterns<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<ToolPattern> {
    texts
        .into_iter()
        .map(|text| ToolPattern::parse(text).unwrap_or_else(|error| panic!("the rule `{text}`: {error}")))
        .collect()
}

pub fn main_tools() -> Vec<ToolPattern> {
    patterns(MAIN_TOOLS)
}

/// Returns the job's configuration. A read-only agent belongs to a job that may do everything: it is restricted only because
/// just the calls that count as read-only pass.
pub fn config(rules: &Rules, fill: impl Fn(&str) -> String) -> BgForkConfig {
    let list = |texts: &Option<Vec<String>>| {
        texts.as_ref().map(|texts| {
            let filled: Vec<String> = texts.iter().map(|text| fill(text)).collect();
            patterns(filled.iter().map(String::as_str))
        })
    };
    let allowed = if rules.read_only { Some(main_tools()) } else { list(&rules.allowed_tools) };
    let updates = match rules.update_main_session {
        Some(Updates::Blocked) => UpdateMode::Blocked,
        None => UpdateMode::default(),
    };
    BgForkConfig::new(updates, rules.allow_ping, allowed, list(&rules.disallowed_tools)).expect("one kind of rules")
}

/// Returns the call as the client's hook reports it.
pub fn call(case: &Case, workspace: &Workspace) -> ToolCall {
    let entry = &case.entry;
    ToolCall {
        tool: entry.tool().to_owned(),
        input: workspace.fill_value(entry.input()),
        cwd: workspace.cwd(entry),
        agent_type: entry.agent_type.clone(),
    }
}

/// Returns the policy of a case's job.
pub fn policy(case: &Case, workspace: &Workspace) -> Policy {
    let places = PathRoots { root: workspace.data(), work: workspace.work(), user_home: workspace.home() };
    let config: BgForkConfig = config(&case.rules, |text| workspace.fill(text));
    let policy = policy::background("routine t", &config, &main_tools(), &places);
    if !case.rules.read_only {
        return policy;
    }
    // About half of the cases use each agent.
    let agent = if case.entry.name.len().is_multiple_of(2) { "Plan" } else { "Explore" };
    policy.as_agent(&Agents::built_in().get(agent).expect("it is built in").rules())
}

/// Returns the patterns that a case's sandbox is built from.
pub fn granted(case: &Case, workspace: &Workspace) -> Vec<ToolPattern> {
    let config = config(&case.rules, |text| workspace.fill(text));
    match config.effective_allowed_tools() {
        // A read-only agent writes nowhere.
        _ if case.rules.read_only => patterns(["Read", "Glob", "Grep"]),
        Some(granted) => granted,
        None => main_tools(),
    }
}

/// Returns the policy of a job with these rules, and its patterns.
pub fn of_rules(rules: &[&str], workspace: &Workspace) -> (Policy, Vec<ToolPattern>) {
    let list = Some(patterns(rules.iter().copied()));
    let config = BgForkConfig::new(UpdateMode::default(), true, list, None).expect("one kind of rules");
    let places = PathRoots { root: workspace.data(), work: workspace.work(), user_home: workspace.home() };
    let granted = config.effective_allowed_tools().unwrap_or_default();
    (policy::background("routine t", &config, &main_tools(), &places), granted)
}

/// Returns the search path for programs on a ground.
pub fn search_path(workspace: &Workspace) -> Vec<PathBuf> {
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    [workspace.root().join("bin"), workspace.data().join("bin")].into_iter().chain(system).collect()
}

/// The engine's verdict on an entry.
#[derive(Debug)]
pub struct EngineVerdict {
    /// Whether the call may run. For a read-only agent, it must also count as read-only.
    pub runs: bool,
    /// The whole decision, with its layer, rule and reason.
    pub why: String,
}

pub fn decide(case: &Case, workspace: &Workspace) -> EngineVerdict {
    let decision = policy(case, workspace).decide(&call(case, workspace));
    let allowed = decision.verdict == Verdict::Allow;
    EngineVerdict { runs: allowed && (decision.read_only || !case.rules.read_only), why: format!("{decision:?}") }
}
