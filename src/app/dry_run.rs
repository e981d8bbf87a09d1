//! Shows the prompt, the policy and the client's command that a run would have. Has no effect.

use std::sync::Arc;

use super::gate::TriedGate;
use super::policy::{self, JobPolicy};
use super::{App, Caller, budget, gate, jobs, made, runs, service};
use crate::definition::{self, Background, Definition, DefinitionId, FollowedEnd, Loaded, Mode};
use crate::journal::ApplicableBudget;
use crate::refusal::Refusal;
use crate::run::gate::GateVerdict;
use crate::run::memory::{self, is_job};
use crate::run::needs;
use crate::run::prompt::{Budget, ForkFacts, Prompt};
use crate::run::runner::{self, RunSettings};
use crate::run::setup::Setup;
use crate::run::system_prompt::{CreatableJobs, SystemPrompt};

/// The input of a run that began now, in a fresh session with no other runs.
#[derive(Debug)]
pub struct DryRun {
    /// The message of a job that is delivered as it is written. Such a job has no other input.
    pub delivered: Option<String>,
    /// The command of a job that runs one, and why it would be refused. No agent is involved.
    pub runs: Option<(String, Option<String>)>,
    /// The current verdict of its gate; `None` if it has none.
    pub gate: Option<GateVerdict>,
    /// The system prompt.
    pub system_prompt: String,
    /// The prompt.
    pub prompt: String,
    /// Its policy.
    pub policy: JobPolicy,
    /// The client's command line, one word each.
    pub command: Vec<String>,
    /// Maximum cost in US dollars; `None` if there is no limit, or an exhausted budget prevents the run.
    pub max_cost_usd: Option<f64>,
    /// Conditions that would delay or prevent the run, each as a sentence without its full stop.
    pub held: Vec<String>,
    /// The jobs that fall due by its end, and by which end.
    pub followed_by: Vec<(DefinitionId, FollowedEnd)>,
}

/// See [`DryRun`].
pub(super) fn dry_run(id: &str, app: &App) -> Result<DryRun, Refusal> {
    let loaded = app.load_with([id])?;
    let definition = Arc::new(made::limited(&*jobs::find_readable(id, None, &loaded)?, &loaded.definitions, app)?);
    let config = app.config()?;
    let mut setup = policy::setup(&definition, app)?;
    let applicable_budget = budget::applicable_budget(&definition, app)?;
    let max_cost_usd = applicable_budget.cap.filter(|_| applicable_budget.spent().is_none());
    setup.options.max_budget_usd = max_cost_usd;
    let (mut held, followed_by) = (held(&definition, &applicable_budget, app)?, followed_by(&definition, &loaded));
    let policy = policy::of_job(&definition, &setup);
    let settings = RunSettings::of(&config);
    let (gate, unknown) = verdict_of_gate(&definition, &setup, app)?;
    held.extend(unknown.map(str::to_owned));
    let refused = |line: &String| gate::refused(&definition, &setup, line, app);
    let runs = definition.command.as_ref().map(|line| (line.clone(), refused(line)));
    let system_prompt = system_prompt(&definition, &setup, &settings, app);
    let verdicts = setup.policy;
    let tools = &policy.mcp_tools;
    let restrictions = setup.restrictions.held_against(&verdicts, tools);
    let skills = definition::load_skills(&app.home, &definition.skills)?;
    let there = |id: &DefinitionId| loaded.definitions.values().map(|known| &**known).find(|known| is_job(known, id));
    // Only the person may see the answers of other runs.
    let memories = match app.caller {
        Caller::Person => memory::memories(&definition, there, &runs::open(app)?)?,
        Caller::Run(_) => Vec::new(),
    };
    let fork = match &definition.mode {
        Mode::Foreground => None,
        Mode::Background(Background { .. }) => Some(ForkFacts {
            tools,
            restrictions: &restrictions,
            spawned_by: None,
            knows_main_session: false,
            answers_person: false,
            busy: false,
            budget: Budget { left: crate::bot::budget::CAPACITY, capacity: crate::bot::budget::CAPACITY, next: None },
            nearby_jobs: &[],
            resumes: false,
            restart_reason: None,
            memories: &memories,
            gate: gate.as_ref().and_then(GateVerdict::wakes_with),
        }),
    };
    let prompt = Prompt {
        definition: &definition,
        now: app.now(),
        person: &settings.person,
        late: None,
        occasion: None,
        cut_off: false,
        updates: &[],
        updates_left_out: 0,
        follow_up: runner::follow_up_by(&definition, &verdicts),
        skills: &skills,
        fork,
    }
    .render();
    let command = std::iter::once(&config.claude_command).chain(&policy.client_args).cloned().collect();
    let delivered = definition.is_delivered_as_written().then(|| definition.body.trim_end().to_owned());
    Ok(DryRun { delivered, runs, gate, system_prompt, prompt, policy, command, max_cost_usd, held, followed_by })
}

/// Returns the verdict of a job's gate, or why it is not known.
fn verdict_of_gate(
    definition: &Definition,
    setup: &Setup,
    app: &App,
) -> Result<(Option<GateVerdict>, Option<&'static str>), Refusal> {
    Ok(match gate::try_now(definition, setup, app)? {
        Some(TriedGate::Verdict(verdict)) => (Some(verdict), None),
        Some(TriedGate::CalledBot) => (
            None,
            Some("its gate decides, which is not known here: it calls `ollim-bot`, which answers a gate only in a run"),
        ),
        None => (None, None),
    })
}

fn system_prompt(definition: &Definition, setup: &Setup, settings: &RunSettings, app: &App) -> String {
    let prompt = SystemPrompt {
        bot: settings.bot_name.clone(),
        person: settings.person.clone(),
        persona: definition::load_persona(&app.home).ok().flatten(),
        makes: CreatableJobs::of(&setup.policy),
        agent: setup.agent_prompt.clone(),
    };
    match &definition.mode {
        Mode::Foreground => prompt.of_conversation(),
        Mode::Background(_) => prompt.of_job(),
    }
}

/// Returns the conditions that would keep a run from starting now.
fn held(definition: &Definition, applicable_budget: &ApplicableBudget, app: &App) -> Result<Vec<String>, Refusal> {
    let zone = app.config()?.timezone;
    let spent = applicable_budget.spent().map(|spent| format!("it would be skipped: {}", spent.words(zone)));
    let status = service::status(app).ok().flatten();
    let no_agent = status.filter(|status| status.waits_for_agent() && !definition.is_without_agent()).map(|status| {
        let why = status.client.missing.unwrap_or_else(|| "it is not logged in; `ollim-bot login`".to_owned());
        format!("it would wait for the agent: {why}")
    });
    let unmet =
        needs::missing(&definition.requires, (!definition.is_delivered_as_written()).then_some(app.home.root()))
            .map(|why| format!("when it falls due it waits: {why}; fired by hand it does not"));
    let approve = "when it falls due it asks you first (`approve`); fired by hand it does not";
    let approve = definition.approve.then(|| approve.to_owned());
    Ok(spent.into_iter().chain(no_agent).chain(unmet).chain(approve).collect())
}

/// Returns the jobs that fall due by the end of a run.
fn followed_by(definition: &Definition, loaded: &Loaded) -> Vec<(DefinitionId, FollowedEnd)> {
    let followers = loaded.definitions.values().filter(|other| other.enabled).filter_map(|other| {
        let follows = other.follows().filter(|follows| follows.job == definition.id)?;
        Some((other.id.clone(), follows.outcome))
    });
    followers.collect()
}

impl DryRun {
    /// Returns sentences on the jobs that follow: `` `sum` falls due when it has completed ``.
    #[must_use]
    pub fn follower_words(&self) -> Vec<String> {
        let words = self.followed_by.iter().map(|(id, outcome)| {
            let end = match outcome {
                FollowedEnd::Completed => "completed",
                FollowedEnd::Failed => "failed",
                FollowedEnd::Any => "ended",
            };
            format!("`{id}` falls due when it has {end}")
        });
        words.collect()
    }
}
