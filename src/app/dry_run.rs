//! The prompt, the policy and the client's command that a run would have, and nothing done.

use super::policy::{self, JobPolicy};
use super::{App, Caller, gate, jobs, runs};
use crate::definition::{self, Background, DefinitionId, Mode};
use crate::refusal::Refusal;
use crate::run::gate::GateVerdict;
use crate::run::memory::{self, is_job};
use crate::run::prompt::{Budget, ForkFacts, Prompt};
use crate::run::runner::{self, RunSettings};
use crate::run::system_prompt::{Makes, SystemPrompt};

/// What a run that began now, in a fresh session with nothing else around, would be given.
#[derive(Debug)]
pub struct DryRun {
    /// The message of a job that is delivered as it is written: it is given nothing else.
    pub delivered: Option<String>,
    /// The command of a job that runs one, and why it would be refused: no agent is given anything.
    pub runs: Option<(String, Option<String>)>,
    /// What its gate says now; `None`: it has none.
    pub gate: Option<GateVerdict>,
    /// The system prompt.
    pub system_prompt: String,
    /// The prompt.
    pub prompt: String,
    /// Its policy.
    pub policy: JobPolicy,
    /// The client's command line, a word each.
    pub command: Vec<String>,
}

/// See [`DryRun`].
pub(super) fn dry_run(id: &str, app: &App) -> Result<DryRun, Refusal> {
    let loaded = app.load()?;
    let definition = jobs::find_to_read(id, None, &loaded)?;
    let config = app.config()?;
    let setup = policy::setup(&definition, app)?;
    let policy = policy::of_job(&definition, &setup);
    let settings = RunSettings::of(&config);
    let gate = gate::try_now(&definition, &setup, app)?;
    let refused = |line: &String| gate::refused(&definition, &setup, line, app);
    let runs = definition.command.as_ref().map(|line| (line.clone(), refused(line)));
    let system_prompt = SystemPrompt {
        bot: settings.bot_name,
        person: settings.person.clone(),
        persona: definition::load_persona(&app.home).ok().flatten(),
        makes: Makes::of(&setup.policy),
        agent: setup.agent_prompt,
    };
    let system_prompt = match &definition.mode {
        Mode::Foreground => system_prompt.of_conversation(),
        Mode::Background(_) => system_prompt.of_job(),
    };
    let verdicts = setup.policy;
    let tools = &policy.mcp_tools;
    let restrictions = setup.restrictions.held_against(&verdicts, tools);
    let skills = definition::load_skills(&app.home, &definition.skills)?;
    let there = |id: &DefinitionId| loaded.definitions.values().map(|known| &**known).find(|known| is_job(known, id));
    // What other runs have answered is for the person to see.
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
            goes_on: false,
            begins_anew: None,
            memories: &memories,
            gate: match &gate {
                Some(GateVerdict::Wake(said)) => Some(said),
                _ => None,
            },
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
    Ok(DryRun { delivered, runs, gate, system_prompt, prompt, policy, command })
}
