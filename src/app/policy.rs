//! The permissions of a job: which rule decides a call, and where each rule comes from.

use std::path::PathBuf;

use agent_sandbox::SandboxStatus;
use serde_json::Value;

use super::{App, agents, jobs, made};
use crate::agent::SessionMode;
use crate::agent::claude::options::{ClientEnvironment, command_line};
use crate::definition::{self, Defaults, Definition, DefinitionId, FieldValue, Kind};
use crate::policy::{BOT, Decision, JobNetwork, Layer, Policy, PolicyEntry, ToolCall, ToolPattern, Verdict};
use crate::refusal::Refusal;
use crate::run::client_environment as client;
use crate::run::dry_run::{self, dry_run};
use crate::run::kernel_support::kernel_support;
use crate::run::runner::{self, RunSettings};
use crate::run::sandbox::{ClosedPlaces, SandboxPlan};
use crate::run::setup::Setup;

/// The verdict on a tool call of a definition's run.
#[derive(Debug)]
pub struct Explanation {
    /// The verdict, with its rule and layer.
    pub decision: Decision,
    /// The arguments with which the run's client is started.
    pub client_args: Vec<String>,
}

/// A definition's effective policy.
#[derive(Debug)]
pub struct JobPolicy {
    /// The definition.
    pub id: DefinitionId,
    /// Its kind.
    pub kind: Kind,
    /// Its title in a sentence: `routine morning-mail`.
    pub title: String,
    /// Whether it has an agent. A job that sends its text or runs a command has none.
    pub has_agent: bool,
    /// Every entry, with its origin.
    pub entries: Vec<PolicyEntry>,
    /// What each granted Bash rule includes, one sentence each.
    pub includes: Vec<String>,
    /// The client's tools that are visible to its agent; empty without an agent, as are the next two.
    pub visible_tools: Vec<String>,
    /// Our own tools that are visible to its agent.
    pub mcp_tools: Vec<String>,
    /// The kernel's sandbox of the job, in words.
    pub sandbox: &'static str,
    /// The arguments with which its client is started.
    pub client_args: Vec<String>,
}

/// A way to add a rule to `allowed_tools` in a job's file, in the notation that the list has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowSuggestion {
    /// The list has the rule already.
    Stands,
    /// Insert this line into the list.
    Item(String),
    /// Replace the whole list by these lines.
    Whole(String),
}

impl App {
    /// Returns how to add each of these rules to the file of its job; `None` if there is no such file, or no allowlist in it.
    #[must_use]
    pub fn allow_suggestions(&self, asked: &[(&DefinitionId, &str)]) -> Vec<Option<AllowSuggestion>> {
        let Ok(loaded) = self.load_without_settings() else { return vec![None; asked.len()] };
        let defaults = self.defaults_in(self.zone_of_records());
        let allowing = |(id, rule): &(&DefinitionId, &str)| {
            let found = loaded.definitions.get(id)?;
            let text = definition::read_text(&self.home, &found.file).ok()??;
            allow_suggestion(found, &ToolPattern::parse(rule).ok()?, &text, &defaults)
        };
        asked.iter().map(allowing).collect()
    }
}

fn allow_suggestion(
    found: &Definition,
    rule: &ToolPattern,
    text: &str,
    defaults: &Defaults,
) -> Option<AllowSuggestion> {
    let of = |definition: &Definition| Some(definition.background()?.restrictions.allowed_tools()?.to_vec());
    let list = of(found)?;
    if list.contains(rule) {
        return Some(AllowSuggestion::Stands);
    }
    let quoted = serde_json::to_string(&rule.to_string()).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let is_list = |line: &&str| line.starts_with("allowed_tools:") || line.starts_with("allowed-tools:");
    let at = lines.iter().position(is_list)?;
    // Tests the edit: the file must say the same as before, plus the rule.
    let holds = |before: &[&str], line: &str, after: &[&str]| {
        let text = [before, &[line], after].concat().join("\n");
        let parsed = definition::parse(found.kind(), &found.file, text.as_bytes(), defaults).definition;
        let now = parsed.as_ref().and_then(of).unwrap_or_default();
        now.len() == list.len() + 1 && list.iter().chain([rule]).all(|rule| now.contains(rule))
    };
    let below = lines[at + 1..].iter().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    if let Some((indent, _)) = below.and_then(|line| line.split_once("- ")) {
        let item = format!("{indent}- {quoted}");
        if holds(&lines[..=at], &item, &lines[at + 1..]) {
            return Some(AllowSuggestion::Item(item));
        }
    }
    if let Some((head, tail)) = lines[at].rfind(']').map(|end| lines[at].split_at(end)) {
        let comma = if list.is_empty() { "" } else { ", " };
        let whole = format!("{head}{comma}{quoted}{tail}");
        if holds(&lines[..at], &whole, &lines[at + 1..]) {
            return Some(AllowSuggestion::Whole(whole));
        }
    }
    let rules = list.iter().chain([rule]).map(ToString::to_string).collect();
    Some(AllowSuggestion::Whole(FieldValue::Texts(rules).entry("allowed_tools").trim_end().to_owned()))
}

/// Returns the setup of a definition's run.
pub(super) fn setup(definition: &Definition, app: &App) -> Result<Setup, Refusal> {
    let settings = RunSettings::of(&*app.config()?);
    Ok(Setup::of(definition, None, &settings, &app.places(), &agents::load(app))?)
}

/// Returns the client's arguments for a definition's run in a fresh session.
pub(super) fn client_args(definition: &Definition, setup: &Setup) -> Vec<String> {
    let session = match definition.background() {
        None => SessionMode::Main(None),
        Some(_) => SessionMode::Isolated,
    };
    command_line(&session, &setup.options, &setup.policy.visible_tools(), &setup.deny_rules)
}

/// Returns the verdict on a tool call. A Bash line is tried in the job's own shell, without effect.
pub(super) fn explain(name: &str, tool: &str, input: Value, app: &App) -> Result<Explanation, Refusal> {
    let loaded = app.load_with([name])?;
    let definition = jobs::find_readable(name, None, &loaded)?;
    let definition = made::limited(&definition, &loaded.definitions, app)?;
    let setup = setup(&definition, app)?;
    let line = input.get("command").and_then(Value::as_str).map(str::to_owned);
    let tool = &*BOT.client_name(tool);
    let call = ToolCall { tool: tool.to_owned(), input, cwd: app.home.work(), agent_type: None };
    let mut decision = setup.policy.decide(&call);
    if let ("Bash", Verdict::Allow, Some(line)) = (tool, decision.verdict, line) {
        decision = of_line(&setup, &line, decision, app)?;
    }
    // A job's own command is judged like a line of Bash.
    if definition.is_without_agent() && (definition.command.is_none() || tool != "Bash") {
        let reason = format!("{}; but this job has no agent, which alone makes such a call", decision.reason);
        decision = Decision { verdict: Verdict::Deny, layer: Layer::System, rule: None, reason, ..decision };
    }
    Ok(Explanation { decision, client_args: client_args(&definition, &setup) })
}

/// Returns a definition's effective policy.
pub(super) fn show(name: &str, app: &App) -> Result<JobPolicy, Refusal> {
    let loaded = app.load_with([name])?;
    let definition = jobs::find_readable(name, None, &loaded)?;
    let definition = made::limited(&definition, &loaded.definitions, app)?;
    let setup = setup(&definition, app)?;
    Ok(of_job(&definition, &setup))
}

pub(super) fn of_job(definition: &Definition, setup: &Setup) -> JobPolicy {
    let has_agent = !definition.is_without_agent();
    let of_agent = || {
        let ours = runner::our_tools(definition, &setup.policy);
        (setup.policy.visible_tools(), ours, client_args(definition, setup))
    };
    let (visible_tools, mcp_tools, client_args) = has_agent.then(of_agent).unwrap_or_default();
    JobPolicy {
        id: definition.id.clone(),
        kind: definition.kind(),
        title: definition.title(),
        has_agent,
        entries: setup.policy.entries(),
        includes: included(&setup.policy),
        visible_tools,
        mcp_tools,
        sandbox: kernel_support().words,
        client_args,
    }
}

/// Returns what each granted Bash rule includes.
fn included(policy: &Policy) -> Vec<String> {
    let granted = policy.entries().into_iter().filter(|entry| entry.effect != Verdict::Deny);
    granted.filter_map(|entry| BOT.includes(&ToolPattern::parse(&entry.pattern).ok()?)).collect()
}

/// Returns the verdict on the programs that a line starts. The line runs in the job's shell with no folder to write to,
/// and none of its programs runs.
fn of_line(setup: &Setup, line: &str, early: Decision, app: &App) -> Result<Decision, Refusal> {
    let Some(rights) = setup.policy.shell(None) else { return Ok(early) };
    if agent_sandbox::probe() == SandboxStatus::Not {
        return Err(Refusal::user("this kernel has no Landlock, so the line cannot be tried without an effect"));
    }
    let tried = TrialEnvironment::of(setup, app)?.run(|plan, client_environment| {
        let (policy, rights, line) = (setup.policy.clone(), rights.clone(), line.to_owned());
        async move { dry_run(&policy, plan, &rights, &client_environment, &line, None).await }
    })?;
    let commands: Vec<String> = tried.programs.iter().flat_map(|decision| decision.commands.clone()).collect();
    let read_only = tried.programs.iter().all(|decision| decision.read_only);
    let mut decision = match (tried.refused(), tried.access_error()) {
        (Some(refused), _) => refused.clone(),
        (None, Some(said)) => Decision {
            verdict: Verdict::Deny,
            layer: Layer::System,
            rule: None,
            reason: format!("in the job's shell it fails: {said}{}", hint_of(said)),
            ..early
        },
        (None, None) => {
            let asked = tried.programs.iter().find(|decision| decision.verdict == Verdict::Ask);
            asked.or_else(|| tried.programs.iter().find(|decision| decision.rule.is_some())).cloned().unwrap_or(early)
        }
    };
    if tried.cut_off {
        decision.reason.push_str(" (the line was still running after 10 seconds)");
    }
    Ok(Decision { commands, read_only, ..decision })
}

/// The environment in which a line of a job is tried, outside of any run.
pub(super) struct TrialEnvironment {
    plan: SandboxPlan,
    client_environment: ClientEnvironment,
    folder: tempfile::TempDir,
    /// `state/runs/`, if the trial has made it. It is removed again: a data folder that has it is complete.
    made: Option<PathBuf>,
}

impl TrialEnvironment {
    /// Creates a shell of the job in a folder of its own.
    pub(super) fn of(setup: &Setup, app: &App) -> Result<Self, Refusal> {
        let config = app.config()?;
        let env = app.env.texts();
        let own = std::env::current_exe().map_err(failed("our own binary cannot be found"))?;
        // The folder is where runs have theirs, because the rules recognize a run's folder by its location.
        let runs = app.home.runs();
        let made = Some(runs.clone()).filter(|runs| !runs.exists());
        std::fs::create_dir_all(&runs).map_err(failed("the folder `state/runs/` cannot be made"))?;
        std::fs::create_dir_all(app.home.work()).map_err(failed("the folder `work/` cannot be made"))?;
        let folder =
            tempfile::Builder::new().prefix("explain-").tempdir_in(&runs).map_err(failed("no folder to try it in"))?;
        let client_environment = client::client_environment(&config, &app.home, &env, &own);
        let plan = SandboxPlan {
            home: app.home.clone(),
            user_home: app.places().user_home,
            run_dir: folder.path().to_owned(),
            links: folder.path().to_owned(),
            granted: setup.granted.clone(),
            path: client::search_path(&env, &own, &app.home),
            shell_binary: client::shell_binary(&own, &app.home),
            required: false,
            limits: dry_run::LIMITS,
            network: setup.network == JobNetwork::Internet,
            proxied: client_environment.names_proxy(),
            closed: ClosedPlaces::default(),
        };
        Ok(Self { plan, client_environment, folder, made })
    }

    /// Runs the trial, and removes the folder.
    pub(super) fn run<T: Send, F: Future<Output = std::io::Result<T>>>(
        self,
        tries: impl FnOnce(SandboxPlan, ClientEnvironment) -> F + Send,
    ) -> Result<T, Refusal> {
        let Self { plan, client_environment, folder, made } = self;
        // Uses a thread of its own: for a caller inside a job, this code runs in the service, which has a runtime already.
        let tried = std::thread::scope(|scope| {
            let tried = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(tries(plan, client_environment))
            });
            tried.join().unwrap_or_else(|_| Err(std::io::Error::other("it failed")))
        });
        // The line can have written anything to the folder.
        agent_sandbox::leftovers::remove(&folder.keep()).map_err(failed("what the line has left cannot be removed"))?;
        // A service may have begun meanwhile, and then it is not empty, or will be made again.
        let _ = made.map(std::fs::remove_dir);
        tried.map_err(failed("the line cannot be tried"))
    }
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal::environment(format!("{what}: {error}"))
}

/// Returns a hint for an error message of the shell.
fn hint_of(said: &str) -> &'static str {
    match said {
        _ if said.contains("socket:") || said.contains("/dev/tcp/") || said.contains("/dev/udp/") => {
            " (a job's shell has no network)"
        }
        _ if said.contains("Permission denied") => " (Read and Edit rules say which files it opens)",
        _ => "",
    }
}
