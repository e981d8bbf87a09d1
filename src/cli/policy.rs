//! `policy explain`, `policy show`: what a job may do, which rule says so, and where each rule came from.

use agent_sandbox::SandboxStatus;
use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::context::Context;
use super::error::CliError;
use super::jobs;
use super::output::{BAD, Cell, FAINT, GOOD, Output, STRONG, paint};
use crate::agent::SessionMode;
use crate::agent::claude::options::command_line;
use crate::agents::Agents;
use crate::channel::terminal::plain;
use crate::daemon::{client, settings};
use crate::definition::Definition;
use crate::policy::{Decision, JobNetwork, Layer, Policy, ToolCall, ToolPattern, Verdict, includes};
use crate::run::dry_run::{self, dry_run};
use crate::run::held::held;
use crate::run::runner;
use crate::run::sandbox::SandboxPlan;
use crate::run::setup::Setup;

/// What a definition's run has.
///
/// # Errors
/// When the settings cannot be read, or the agent that it runs as cannot be used.
pub(super) fn setup(definition: &Definition, context: &Context) -> Result<Setup, CliError> {
    let settings = settings::of_runs(&*context.config()?);
    let agents = Agents::load(&context.home, context.env.path("HOME"));
    Setup::of(definition, None, &settings, &context.places(), &agents).map_err(super::agents::refused)
}

/// The client's arguments for a definition's run in a fresh session.
pub(super) fn client_args(definition: &Definition, setup: &Setup) -> Vec<String> {
    let session = match definition.background() {
        None => SessionMode::Main(None),
        Some(_) => SessionMode::Isolated,
    };
    command_line(&session, &setup.options, &setup.policy.visible_tools(), &setup.deny_rules)
}

/// `policy explain`: exit 0 allowed, 1 denied.
///
/// # Errors
/// When there is no such definition, or the input is no JSON object.
pub fn explain(args: &ExplainArgs, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let definition = jobs::find(&args.definition, None, &loaded)?;
    let input = match (&args.line, &args.input) {
        (Some(line), _) if args.tool == "Bash" => json!({ "command": line }),
        (Some(_), _) => {
            return Err(CliError::user("`--command` is for Bash").hint("use `--input` with the tool's JSON"));
        }
        (None, Some(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Value::Object(map),
            Ok(_) => {
                return Err(CliError::user("`--input` must be a JSON object").hint("as in `{\"command\": \"ls\"}`"));
            }
            Err(error) => {
                return Err(CliError::user(format!("`--input` is not JSON: {error}"))
                    .hint("quote it whole: `--input '{\"command\": \"ls\"}'`"));
            }
        },
        (None, None) if args.tool == "Bash" => {
            return Err(CliError::user("no command to explain").hint("say `--command 'git push'`"));
        }
        (None, None) => json!({}),
    };
    let setup = setup(&definition, context)?;
    let line = input.get("command").and_then(Value::as_str).map(str::to_owned);
    let mut decision =
        setup.policy.decide(&ToolCall { tool: args.tool.clone(), input, cwd: context.home.work(), agent_type: None });
    if let ("Bash", Verdict::Allow, Some(line)) = (args.tool.as_str(), decision.verdict, line) {
        decision = of_line(&setup, &line, decision, context)?;
    }
    if decision.verdict == Verdict::Deny {
        output.exit = 1;
    }
    let client_args = client_args(&definition, &setup);
    if context.json {
        output.json(&json!({
            "verdict": decision.verdict,
            "layer": decision.layer,
            "rule": decision.rule,
            "reason": decision.reason,
            "commands": decision.commands,
            "client_args": client_args,
        }));
        return Ok(());
    }
    shown(&decision, output);
    Ok(())
}

/// What the programs that a line starts are told: it runs in the job's shell with nothing to write to, and nothing that it starts
/// runs.
fn of_line(setup: &Setup, line: &str, early: Decision, context: &Context) -> Result<Decision, CliError> {
    let Some(rights) = setup.policy.shell(None) else { return Ok(early) };
    if agent_sandbox::probe() == SandboxStatus::Not {
        return Err(CliError::user("this kernel has no Landlock, so the line cannot be tried without an effect"));
    }
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| CliError::environment(format!("{what}: {error}"))
    };
    let config = context.config()?;
    let env = context.env.texts();
    let own = std::env::current_exe().map_err(failed("our own binary cannot be found"))?;
    let state = context.home.state();
    std::fs::create_dir_all(&state).map_err(failed("the folder `state/` cannot be made"))?;
    std::fs::create_dir_all(context.home.work()).map_err(failed("the folder `work/` cannot be made"))?;
    let folder =
        tempfile::Builder::new().prefix("explain-").tempdir_in(&state).map_err(failed("no folder to try it in"))?;
    let plan = SandboxPlan {
        home: context.home.clone(),
        user_home: context.places().user_home,
        run_dir: folder.path().to_owned(),
        links: folder.path().to_owned(),
        granted: setup.granted.clone(),
        path: client::search_path(&env, &own, &context.home),
        shell_binary: client::shell_binary(&own),
        required: false,
        limits: dry_run::LIMITS,
        network: setup.network == JobNetwork::Internet,
    };
    let surroundings = client::surroundings(&config, &context.home, &env, &own);
    // On a thread of its own: inside a job this is asked of the service, which has a runtime already.
    let tried = std::thread::scope(|scope| {
        let tried = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(dry_run(&setup.policy, plan, &rights, &surroundings, line))
        });
        tried.join().unwrap_or_else(|_| Err(std::io::Error::other("it failed")))
    });
    // The line has written in it what it likes.
    agent_sandbox::leftovers::remove(&folder.keep()).map_err(failed("what the line has left cannot be removed"))?;
    let tried = tried.map_err(failed("the line cannot be tried"))?;
    let commands: Vec<String> = tried.programs.iter().flat_map(|decision| decision.commands.clone()).collect();
    let read_only = tried.programs.iter().all(|decision| decision.read_only);
    let mut decision = match (tried.refused(), tried.kept_from()) {
        (Some(refused), _) => refused.clone(),
        (None, Some(said)) => Decision {
            verdict: Verdict::Deny,
            layer: Layer::System,
            reason: format!("the job's shell is kept from it: {said}{}", hint_of(said)),
            ..early
        },
        (None, None) => tried.programs.iter().find(|decision| decision.rule.is_some()).cloned().unwrap_or(early),
    };
    if tried.cut_off {
        decision.reason.push_str(" (the line was still running after 10 seconds)");
    }
    Ok(Decision { commands, read_only, ..decision })
}

/// What a person can do about what the shell says.
fn hint_of(said: &str) -> &'static str {
    match said {
        _ if said.contains("socket:") || said.contains("/dev/tcp/") || said.contains("/dev/udp/") => {
            " (a job's shell has no network)"
        }
        _ if said.contains("Permission denied") => " (Read and Edit rules say which files it opens)",
        _ => "",
    }
}

fn shown(decision: &Decision, output: &mut Output) {
    output.line(match decision.verdict {
        Verdict::Allow => paint(GOOD, "allowed"),
        Verdict::Deny => paint(BAD, "denied"),
    });
    let layer = serde_json::to_value(decision.layer).ok().and_then(|value| value.as_str().map(ToOwned::to_owned));
    let mut rows = vec![
        ("layer", layer.unwrap_or_default()),
        ("rule", decision.rule.clone().unwrap_or_else(|| "none matches".into())),
        ("reason", decision.reason.clone()),
    ];
    for (index, command) in decision.commands.iter().enumerate() {
        rows.push((if index == 0 { "commands" } else { "" }, command.clone()));
    }
    let rows: Vec<Vec<Cell>> =
        rows.into_iter().map(|(name, value)| vec![Cell::new(name, FAINT), Cell::from(value)]).collect();
    output.table(&rows);
}

/// `policy show`: every entry, and what the client is started with because of it.
///
/// # Errors
/// When there is no such definition.
pub fn show(name: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let definition = jobs::find(name, None, &loaded)?;
    let setup = setup(&definition, context)?;
    let client_args = client_args(&definition, &setup);
    let policy = setup.policy;
    let (entries, visible) = (policy.entries(), policy.visible_tools());
    let mcp = runner::our_tools(&definition, &policy);
    if context.json {
        output.json(&json!({
            "id": definition.id,
            "kind": definition.kind(),
            "entries": entries,
            "visible_tools": visible,
            "mcp_tools": mcp,
            "includes": included(&policy),
            "sandbox": held().words,
            "client_args": client_args,
        }));
        return Ok(());
    }
    output.line(paint(STRONG, &plain(&definition.title())));
    table(&policy, output);
    let list = |tools: &[String]| if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
    output.line("");
    output.table(&[
        vec![Cell::new("tools it sees", FAINT), list(&visible).into()],
        vec![Cell::new("of ours", FAINT), list(&mcp).into()],
        vec![Cell::new("sandbox", FAINT), Cell::from(held().words)],
    ]);
    Ok(())
}

/// Every entry, and where it came from.
pub(super) fn table(policy: &Policy, output: &mut Output) {
    let rows: Vec<Vec<Cell>> = policy
        .entries()
        .iter()
        .map(|entry| {
            let (word, style) = match entry.effect {
                Verdict::Allow => ("allow", GOOD),
                Verdict::Deny => ("deny", BAD),
            };
            vec![Cell::new(word, style), Cell::from(entry.pattern.to_string()), Cell::new(&entry.origin, FAINT)]
        })
        .collect();
    output.table(&rows);
    let included = included(policy);
    if !included.is_empty() {
        output.line("");
        included.iter().for_each(|line| output.line(paint(FAINT, &plain(line))));
    }
}

/// What each granted Bash rule includes.
fn included(policy: &Policy) -> Vec<String> {
    let granted = policy.entries().into_iter().filter(|entry| entry.effect == Verdict::Allow);
    granted.filter_map(|entry| includes(&ToolPattern::parse(&entry.pattern).ok()?)).collect()
}
