//! A job's gate outside of a run: whether the job's tools cover it, and its current verdict. Also checks commands of jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_sandbox::runner::PrespawnedRunner;
use agent_sandbox::{SandboxStatus, Start};
use serde_json::json;

use super::policy::{self, TrialEnvironment};
use super::{App, Caller};
use crate::agent::claude::options::shell_environment;
use crate::definition::{Definition, Problem, Severity};
use crate::journal::RunId;
use crate::policy::{ToolCall, Verdict};
use crate::refusal::Refusal;
use crate::run::dry_run::dry_run;
use crate::run::gate::state::KeptState;
use crate::run::gate::{self, Gate, GateVerdict, USUAL_TIMEOUT};
use crate::run::runner::RunSettings;
use crate::run::sandbox::{JobSandbox, SandboxPlan};
use crate::run::setup::Setup;
use crate::run::shell_line::ShellLine;

/// Returns the problem of a definition's gate or command. Each program that it would start is judged, and none runs.
pub(super) fn problem(definition: &Definition, app: &App) -> Option<Problem> {
    let gate = definition.gate.as_deref().map(|line| ("gate", line));
    let (name, line) = gate.or(definition.command.as_deref().map(|line| ("command", line)))?;
    // If the setup fails, the job's runs report why.
    let setup = policy::setup(definition, app).ok()?;
    let (severity, message, hint) = match trial(definition, &setup, line, app)? {
        Trial::Refused(why) => (
            Severity::Error,
            format!("the job's tools do not cover its {name}, which will fail: {why}"),
            format!("grant what it starts: `allowed_tools: ['Bash(PROGRAM ARGUMENTS)']`, or change the {name}"),
        ),
        Trial::NotInstalled(program) => (
            Severity::Warning,
            format!("its {name} starts `{program}`, which is not installed on this machine"),
            format!("install it, or change the {name}"),
        ),
    };
    Some(Problem::of_field(definition, name, severity, message, hint))
}

/// What keeps a line of a definition's file from working.
enum Trial {
    /// The rules refuse something of it. The reason.
    Refused(String),
    /// This program is not installed.
    NotInstalled(String),
}

/// Returns why a line of a definition's file would be refused; `None` if it would not, as far as that can be known. For
/// the person only: the answer contains data that the line reads, and its shell is not subject to a run's limits.
pub(super) fn refused(definition: &Definition, setup: &Setup, line: &str, app: &App) -> Option<String> {
    match trial(definition, setup, line, app)? {
        Trial::Refused(why) => Some(why),
        Trial::NotInstalled(_) => None,
    }
}

fn trial(definition: &Definition, setup: &Setup, line: &str, app: &App) -> Option<Trial> {
    if !matches!(app.caller, Caller::Person) {
        return None;
    }
    let (input, cwd) = (json!({ "command": line }), app.home.work());
    let early = setup.policy.decide(&ToolCall { tool: "Bash".into(), input, cwd, agent_type: None });
    if early.verdict == Verdict::Deny || agent_sandbox::probe() == SandboxStatus::Not {
        return (early.verdict == Verdict::Deny).then_some(Trial::Refused(early.reason));
    }
    let rights = setup.policy.shell(None)?;
    let (policy, is_gate, text) = (setup.policy.clone(), definition.gate.is_some(), line);
    let line = line.to_owned();
    let tries = |plan: SandboxPlan, client_environment| async move {
        let state = gate::state_in(&plan.run_dir);
        let besides = is_gate.then(|| (gate::STATE_VARIABLE, &*state));
        dry_run(&policy, plan, &rights, &client_environment, &line, besides).await
    };
    let tried = TrialEnvironment::of(setup, app).and_then(|trial| trial.run(tries)).ok()?;
    // The shell's own errors depend on the output of programs, which is empty here.
    let may_run = |verdict| verdict == Verdict::Allow || verdict == Verdict::Ask && definition.command.is_some();
    let missing = tried.missing_program(text).map(str::to_owned);
    match tried.programs.into_iter().find(|decision| !may_run(decision.verdict)) {
        Some(asked) if asked.verdict == Verdict::Ask => {
            Some(Trial::Refused(format!("a gate asks nobody, and {}", asked.reason)))
        }
        Some(refused) => Some(Trial::Refused(refused.reason)),
        None => missing.map(Trial::NotInstalled),
    }
}

/// The program that answers only the commands of a run.
const OWN_PROGRAM: &str = "ollim-bot";

/// The result of a gate outside of a run.
pub(super) enum TriedGate {
    /// The verdict that it would have.
    Verdict(GateVerdict),
    /// It has called `ollim-bot`, which answers a gate only in a run.
    CalledBot,
}

/// Runs a definition's gate for the person as in a run, except that its state is not kept. Returns `None` if it has no gate.
///
/// # Errors
/// If it cannot be run.
pub(super) fn try_now(definition: &Definition, setup: &Setup, app: &App) -> Result<Option<TriedGate>, Refusal> {
    let Some(line) = definition.gate.clone() else { return Ok(None) };
    let failed = |why: &str| Ok(Some(TriedGate::Verdict(GateVerdict::Failed(why.to_owned()))));
    if !matches!(app.caller, Caller::Person) {
        return failed("a job runs no gate of another one");
    }
    let Some(rights) = setup.policy.shell(None) else {
        return failed("the job's tools do not cover its gate: it has no shell");
    };
    let (policy, home) = (setup.policy.clone(), app.home.clone());
    let kept = KeptState::of(&app.home, definition);
    let after = newest_kept(&kept, app);
    let timeout = definition.gate_timeout.unwrap_or(USUAL_TIMEOUT);
    let limits = RunSettings::of(&*app.config()?).limits;
    TrialEnvironment::of(setup, app)?.run(|plan, client_environment| async move {
        let plan = SandboxPlan { limits, ..plan };
        let (run_dir, shell_binary) = (plan.run_dir.clone(), plan.shell_binary.clone());
        let sandbox = JobSandbox::make(plan, Some(&rights))?;
        let Some(shell) = sandbox.for_client(false).shell else { return Ok(None) };
        let line = ShellLine {
            line,
            is_one_stream: false,
            shell,
            work: home.work(),
            runner: PrespawnedRunner::start(&shell_binary).await?,
            clean: shell_environment(&client_environment, &run_dir.join("tmp")),
            of_programs: BTreeMap::from([("OLLIM_HOME".to_owned(), client_environment.data_folder)]),
            limits,
            group: None,
            run_dir,
        };
        let calls = Arc::new(AtomicBool::new(false));
        let calls_bot = Arc::clone(&calls);
        let decide = move |start: &Start| {
            if start.argv.first().is_some_and(|name| name.rsplit('/').next() == Some(OWN_PROGRAM)) {
                calls.store(true, Ordering::Relaxed);
            }
            sandbox.judge(&policy, start)
        };
        let gate = Gate { line, timeout, decide: Arc::new(decide) };
        let folder = gate.state();
        kept.copy_into(&folder, after.as_ref())?;
        let ended = gate.run(std::future::ready(Ok(())), std::future::pending()).await?;
        let tried = ended.map(|ended| match calls_bot.load(Ordering::Relaxed) {
            true => TriedGate::CalledBot,
            false => TriedGate::Verdict(ended.verdict.keeping(|| KeptState::look_at(&folder))),
        });
        Ok(tried)
    })
}

/// Returns the run whose copy the next gate would find; `None` for the stored state.
fn newest_kept(kept: &KeptState, app: &App) -> Option<RunId> {
    let reader = app.read_journal().ok()?;
    let runs = kept.waiting().into_iter().filter_map(|run| reader.run(&run).ok().flatten());
    let well = runs.filter(|run| run.outcome.is_well());
    well.max_by_key(|run| run.ended).map(|run| run.run)
}
