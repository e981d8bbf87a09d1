//! One attempt: creates the run's folder, policy and prompt, runs the client, and returns the report.
//!
//! The runner knows the definition and the client. The dispatcher decides what follows for the occurrence.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use agent_sandbox::cgroup::DelegatedCgroup;
use agent_sandbox::prespawn::PrespawnSlot;
use agent_sandbox::{Limits, SandboxStatus};
use async_trait::async_trait;
use chrono_tz::Tz;
use futures::future::BoxFuture;
use tracing::warn;

use super::chain::FollowUp;
use super::delegation::DelegationLimit;
use super::delivered;
use super::events::RunEvents;
use super::exec::PreparedCommand;
use super::folder;
use super::follow_up::NextCheck;
use super::host::Host;
use super::needs;
use super::prepared::PreparedSlot;
use super::prompt::{FollowUpBy, ForkFacts, Prompt};
use super::questions::{Questions, RunQuestions};
use super::sandbox::{ClosedPlaces, JobSandbox, SandboxPlan};
use super::setup::Setup;
use super::spawn::Spawner;
use super::system_prompt::{CreatableJobs, SystemPrompt};
use super::tokens::{LastingTokens, Tokens};
use super::tools::{self, DeliveryState};
use super::watching::{self, Sight};
use crate::agent::claude::IdleClient;
use crate::agent::claude::options::ClientEnvironment;
use crate::agent::{
    AgentClient, AttemptEnd, AttemptReport, Clients, Failure, FailureClass, NOTIFY, NoAgent, Notify, SkipReason,
};
use crate::bot::{Bot, live::UpdateKind};
use crate::clock::Clock;
use crate::config::{Config, SandboxChoice};
use crate::definition::{self, Background, Budget as Spendable, Definition, JobClient, Kind, Mode, Remember, Thinking};
use crate::heartbeat::{Beat, Heartbeats};
use crate::home::Home;
use crate::journal::{Journal, JournalError, PendingUpdates, RunId};
use crate::mcp::servers::McpServers;
use crate::policy::{JobNetwork, OWN_SERVER, Policy, ToolLists, ToolPattern, Verdict, free_programs, own_tool};
use crate::refusal::Refusal;
use crate::schedule::{AgentNeed, Approval, Job, Launcher, LiveDefinitions, Schedule};

/// Maximum number of reports in a turn's prompt. Older ones are only counted.
const UPDATES_SHOWN: usize = 10;

/// The settings that affect runs. They may change while the service runs; each run reads them once.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// The main session's tools.
    pub main_tools: Vec<ToolPattern>,
    /// The tools about which the main session asks the person.
    pub main_ask_tools: Vec<ToolPattern>,
    /// The model for definitions that name none.
    pub model: Option<String>,
    /// The thinking mode of the main session's model.
    pub thinking: Thinking,
    /// Maximum wall-clock time of a run, for definitions that set none.
    pub timeout: Duration,
    /// Maximum time without output of a client.
    pub inactivity_timeout: Duration,
    /// The delay of a chain's next check that the `notify` client schedules.
    pub notify_chain_delay: Duration,
    /// Whether background jobs must not start without the whole kernel sandbox.
    pub require_sandbox: bool,
    /// Whether jobs with a Bash allowlist may run on a kernel that cannot enforce it.
    pub unheld_allowed: bool,
    /// Resource limits for all processes of one run together.
    pub limits: Limits,
    /// The person's name in prompts, or `the user`.
    pub person: String,
    /// The tools of every spawned agent.
    pub spawned_tools: ToolLists,
    /// The bot's name in footers.
    pub bot_name: String,
    /// The budget of everything together, and the person's time zone, which determines its days.
    pub budget: (Spendable, Tz),
}

impl RunSettings {
    /// Selects the settings that affect runs.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            main_tools: config.main_tools.clone(),
            main_ask_tools: config.main_ask_tools.clone(),
            model: config.model.clone(),
            thinking: config.thinking,
            timeout: config.timeout,
            inactivity_timeout: config.inactivity_timeout,
            notify_chain_delay: config.notify_chain_delay,
            require_sandbox: config.require_sandbox,
            limits: config.limits,
            unheld_allowed: config.sandbox == SandboxChoice::None,
            spawned_tools: config.tools.clone(),
            person: config.user_name.clone().unwrap_or_else(|| "the user".into()),
            bot_name: config.bot_name.clone(),
            budget: (config.budget, config.timezone),
        }
    }
}

/// The parts that attempts need.
pub struct Runner {
    /// The data folder.
    pub home: Home,
    /// The person's home folder, which is hidden from forks.
    pub user_home: PathBuf,
    /// The search path for jobs' programs: our own binary's folder, the person's own commands, `PATH`.
    pub path: Vec<PathBuf>,
    /// The program of the sandbox's stages.
    pub shell_binary: PathBuf,
    /// The basis of gates' environments.
    pub client_environment: ClientEnvironment,
    /// The clock.
    pub clock: Clock,
    /// The journal.
    pub journal: Journal,
    /// The present settings.
    pub settings: Arc<RwLock<RunSettings>>,
    /// The clients.
    pub clients: Arc<dyn Clients>,
    /// The main session's client, between two turns.
    pub idle_client: IdleClient,
    /// The prespawned runner for the next run.
    pub ready: PrespawnSlot,
    /// The command that falls due in a moment.
    pub prepared: PreparedSlot,
    /// The control groups of runs; `None` if none is delegated to the service.
    pub groups: Option<DelegatedCgroup>,
    /// The person's own MCP servers.
    pub mcp_servers: McpServers,
    /// The tokens of forks.
    pub tokens: Tokens,
    /// The tokens of the main session's client.
    pub lasting_tokens: LastingTokens,
    /// The main session and the ping budget.
    pub bot: Bot,
    /// The questions to the person.
    pub questions: Questions,
    /// The present definitions. Chains add their next checks here.
    pub definitions: LiveDefinitions,
    /// The schedule, which also lists the other jobs around now.
    pub schedule: Schedule,
    /// The spawner of agents.
    pub spawner: Arc<Spawner>,
    /// The monitors' heartbeats.
    pub hearts: Heartbeats,
}

#[async_trait]
impl Launcher for Runner {
    fn get_ready(&self) {
        let (ready, shell_binary) = (self.ready.clone(), self.shell_binary.clone());
        tokio::spawn(async move { ready.fill(&shell_binary).await });
    }

    fn get_ready_for(self: Arc<Self>, definition: &Arc<Definition>, run: &RunId) {
        if is_prepared_early(definition) {
            self.prepare_ahead(definition, run);
        }
    }

    fn is_message_only(&self, definition: &Definition) -> bool {
        self.is_message_only(definition)
    }

    async fn agent_for(&self, definition: &Definition) -> AgentNeed {
        if definition.is_without_agent() {
            return AgentNeed::Met;
        }
        match self.client_for(definition).await {
            Ok(_) => AgentNeed::Met,
            Err(missing) => AgentNeed::Missing(missing),
        }
    }

    async fn unmet_requirement(&self, definition: &Definition) -> Option<&'static str> {
        needs::missing(&definition.requires, (!self.is_message_only(definition)).then_some(self.home.root()))
    }

    async fn approval(&self, job: &Job, text: &str) -> Result<Approval, JournalError> {
        let (_, zone) = self.settings().budget;
        let is_needed = !job.by_hand && self.spawner.needs_approval(&job.definition).await;
        self.questions.approval(job, text, zone, is_needed).await
    }

    async fn may_write(&self, writer: &Arc<Definition>, watcher: &Arc<Definition>) -> bool {
        if writer.is_delivered_as_written() {
            return false;
        }
        let (spawner, writer, watcher) = (Arc::clone(&self.spawner), Arc::clone(writer), Arc::clone(watcher));
        let servers = self.mcp_servers.settings();
        let looked = tokio::task::spawn_blocking(move || {
            let setup = |definition: &Definition| spawner.setup(definition, None).ok();
            let sight = Sight::of(&setup(&watcher)?, &spawner.home);
            let place = watching::place(watcher.watches()?, &sight).ok()?;
            Some(watching::writes_into(&place, &setup(&writer)?.policy, &spawner.home, &servers).is_some())
        });
        looked.await.ok().flatten().unwrap_or(true)
    }

    async fn launch(&self, job: Job) -> AttemptReport {
        self.launch_prepared(delivered::filled(job), None).await
    }

    async fn launch_recorded(
        &self,
        job: Job,
        recorded: BoxFuture<'_, Result<(), JournalError>>,
    ) -> Result<AttemptReport, JournalError> {
        let job = delivered::filled(job);
        let prepare = async {
            match is_prepared_early(&job.definition) && !job.cancel.is_cancelled() {
                true => Some(self.command_of(&job.definition, &job.run).await),
                false => None,
            }
        };
        let (recorded, mut prepared) = tokio::join!(recorded, prepare);
        let is_old = |command: &PreparedCommand| recorded.is_err() || command.settings != self.settings();
        let old = prepared.take_if(|prepared| prepared.as_ref().is_ok_and(is_old));
        if old.is_some() || recorded.is_err() {
            if let Some(Ok(command)) = old {
                command.discard().await;
            }
            folder::tidy(self.home.runs().join(job.run.as_str())).await;
        }
        recorded?;
        Ok(self.launch_prepared(job, prepared).await)
    }
}

impl Runner {
    /// Makes an attempt. `prepared`: a command that is prepared already, or why it cannot be.
    async fn launch_prepared(&self, job: Job, prepared: Option<Result<PreparedCommand, Refusal>>) -> AttemptReport {
        let heart = job.definition.heartbeat_url.as_deref().map(|url| self.hearts.of(url, job.definition.id.as_str()));
        if let Some(heart) = &heart {
            heart.beat(Beat::Start);
        }
        let report = match self.as_written(&job) {
            Some(report) => report,
            None => {
                let attempt = self.attempt(&job, prepared).await;
                folder::tidy(self.home.runs().join(job.run.as_str())).await;
                let failed = |refusal: Refusal| Failure::new(FailureClass::Internal, refusal.to_string());
                attempt.unwrap_or_else(|refusal| AttemptReport::bare(AttemptEnd::Failed(failed(refusal))))
            }
        };
        let completed = report.end == AttemptEnd::Completed;
        self.bot.live.publish(&job.definition.id, UpdateKind::Ended { completed });
        if let (Some(heart), Some(beat)) = (heart, last_beat(&report.end, &job)) {
            heart.beat(beat);
        }
        report
    }
}

/// Returns whether a definition's command is prepared before its attempt is recorded. What a maker may is read after that.
fn is_prepared_early(definition: &Definition) -> bool {
    definition.runs_command() && definition.created_by.is_none()
}

/// Returns the beat for an attempt's end, without a word about the job's content. A cancelled attempt sends none.
fn last_beat(end: &AttemptEnd, job: &Job) -> Option<Beat> {
    match end {
        AttemptEnd::Completed => Some(Beat::Success),
        // A gate that found nothing to do has succeeded. Without budget nothing has been done.
        AttemptEnd::Skipped(SkipReason::Gate(_)) => Some(Beat::Success),
        AttemptEnd::Skipped(SkipReason::Budget(_)) => None,
        AttemptEnd::Failed(_) => Some(Beat::Fail(format!("failed, run {}", job.run))),
        AttemptEnd::TimedOut(_) => Some(Beat::Fail(format!("timed out, run {}", job.run))),
        AttemptEnd::Cancelled | AttemptEnd::Refused(_) => None,
    }
}

impl Runner {
    /// Returns the client for a job that begins now.
    ///
    /// # Errors
    /// The reason why no client can do it.
    async fn client_for(&self, definition: &Definition) -> Result<Arc<dyn AgentClient>, NoAgent> {
        if definition.is_delivered_as_written() {
            return Ok(Arc::new(Notify));
        }
        let missing = match self.clients.choose(true) {
            Ok(agent) => return Ok(agent),
            Err(missing) => missing,
        };
        let chain = definition.chain().map(|chain| chain.parent.clone());
        let ids = std::iter::once(definition.id.clone()).chain(chain).chain(definition.created_by.clone()).collect();
        let unread = |why: String| NoAgent { why, lacks_login: false };
        let ran = self.journal.ran_with_another_client(NOTIFY, ids).await.map_err(|error| unread(error.to_string()))?;
        if ran || needs_agent(definition).is_some() { Err(missing) } else { self.clients.choose(false) }
    }

    /// Runs an attempt by the job's command or by a client.
    async fn attempt(
        &self,
        job: &Job,
        prepared: Option<Result<PreparedCommand, Refusal>>,
    ) -> Result<AttemptReport, Refusal> {
        if let Some(prepared) = prepared {
            return self.exec(job, prepared?).await;
        }
        if job.definition.runs_command() {
            return self.exec(job, self.prepare_command(&job.definition, &job.run).await?).await;
        }
        let job = &Job { definition: self.spawner.limited(&job.definition).await?, ..job.clone() };
        let client = match self.client_for(&job.definition).await {
            Ok(client) => client,
            // The dispatcher found a client a moment ago.
            Err(missing) => {
                let failure = Failure::new(FailureClass::SpawnFailed, missing.why);
                return Ok(AttemptReport::bare(AttemptEnd::Failed(failure)));
            }
        };
        match &job.definition.mode {
            Mode::Background(background) => self.background(job, background, &client).await,
            Mode::Foreground => self.foreground(job, &client).await,
        }
    }

    /// Creates the sandbox of the run's processes, with the folders that it needs.
    pub(super) fn sandbox(&self, setup: &Setup, run_dir: &Path, settings: &RunSettings) -> Result<JobSandbox, Refusal> {
        let policy = &setup.policy;
        let plan = SandboxPlan {
            home: self.home.clone(),
            user_home: self.user_home.clone(),
            run_dir: run_dir.to_owned(),
            links: run_dir.to_owned(),
            granted: setup.granted.clone(),
            path: self.path.clone(),
            shell_binary: self.shell_binary.clone(),
            required: settings.require_sandbox,
            limits: settings.limits,
            network: setup.network == JobNetwork::Internet,
            proxied: self.client_environment.names_proxy(),
            closed: ClosedPlaces::default(),
        };
        let rights = policy.shell(None);
        let listed = rights.as_ref().is_some_and(|rights| !rights.everything);
        if listed && !settings.unheld_allowed && agent_sandbox::probe() == SandboxStatus::Not {
            return Err(Refusal::environment(
                "this kernel has no Landlock, so the job's Bash rules cannot be held and it was not started; use Linux \
                        5.13 or newer, or say `sandbox: none` in config.yaml to go without",
            ));
        }
        let make = || {
            let mut rights = rights;
            if let Some(rights) = rights.as_mut().filter(|_| policy.is_spawned()) {
                // The policy may be narrowed during the run, so the shell asks about each program.
                rights.everything = false;
                rights.judged.extend(free_programs().map(str::to_owned));
            }
            let own = JobSandbox::make(plan, rights.as_ref())?;
            setup.granted_to_agents.iter().try_fold(own, |sandbox, (name, granted)| {
                sandbox.with_agent(name, granted.clone(), policy.shell(Some(name)).as_ref())
            })
        };
        make().map_err(|error: io::Error| {
            Refusal::environment(format!("a folder of the job's sandbox could not be made: {error}"))
        })
    }

    /// Creates a run's host. The caller sets `is_beside` for a turn of a fork.
    pub(super) fn host(
        &self,
        job: &Job,
        policy: Policy,
        sandbox: Option<JobSandbox>,
        settings: &RunSettings,
        client: &'static str,
    ) -> Host {
        Host {
            run: job.run.clone(),
            events: RunEvents::new(job.run.clone(), self.journal.clone()),
            client,
            definition: job.definition.clone(),
            is_beside: false,
            tools: our_tools(&job.definition, &policy),
            servers: OnceLock::new(),
            limit: DelegationLimit::of(&job.definition, &policy, settings),
            policy,
            sandbox,
            allowed_lines: std::sync::Mutex::default(),
            questions: RunQuestions::new(
                self.questions.clone(),
                job.run.clone(),
                job.definition.clone(),
                job.definition.timeout.unwrap_or(settings.timeout),
                settings.main_tools.clone(),
                settings.budget.1,
            ),
            asked_commands: std::sync::Mutex::default(),
            denials: AtomicU32::new(0),
            narrowed: OnceLock::new(),
            spawner: self.spawner.clone(),
            journal: self.journal.clone(),
            clock: self.clock.clone(),
            bot: self.bot.clone(),
            bot_name: settings.bot_name.clone(),
            next_check: NextCheck::of(&job.definition),
            notify_delay: settings.notify_chain_delay,
            definitions: self.definitions.clone(),
            delivery: tokio::sync::Mutex::new(DeliveryState::default()),
            delivered: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn prompt(
        &self,
        job: &Job,
        host: &Host,
        settings: &RunSettings,
        updates: &PendingUpdates,
        fork: Option<ForkFacts<'_>>,
    ) -> Result<String, Refusal> {
        // Skills are read now, since they may have been edited after the definition was read.
        let skills = definition::load_skills(&self.home, &job.definition.skills)
            .map_err(|error| Refusal::environment(error.to_string()))?;
        let prompt = Prompt {
            definition: &job.definition,
            now: self.clock.now(),
            person: &settings.person,
            late: job.late.as_deref(),
            occasion: job.occasion.as_ref(),
            cut_off: job.cut_off,
            updates: &updates.texts,
            updates_left_out: updates.left_out,
            follow_up: follow_up_by(&job.definition, &host.policy),
            skills: &skills,
            fork,
        };
        Ok(prompt.render())
    }

    /// Builds the system prompt. The persona is read now, since its file may be edited at any time.
    pub(super) fn system_prompt(&self, settings: &RunSettings, policy: &Policy, agent: Option<String>) -> SystemPrompt {
        let persona = definition::load_persona(&self.home).unwrap_or_else(|problem| {
            warn!("{}: {}", problem.file.display(), problem.message);
            None
        });
        let (bot, person) = (settings.bot_name.clone(), settings.person.clone());
        SystemPrompt { bot, person, persona, makes: CreatableJobs::of(policy), agent }
    }

    pub(super) async fn updates(&self) -> Result<PendingUpdates, Refusal> {
        self.journal.pending_updates(UPDATES_SHOWN).await.map_err(|error| Refusal::environment(error.to_string()))
    }

    pub(super) fn settings(&self) -> RunSettings {
        self.settings.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Creates the main session's run folder. Files of its idle client stay; those of an earlier client are removed.
    pub(super) async fn main_run_dir(&self) -> Result<PathBuf, Refusal> {
        if self.idle_client.waits().await.is_none() {
            folder::tidy(self.home.main_run()).await;
        }
        made_folders([self.home.work(), self.home.main_run()])
    }

    /// Creates the run's own folder.
    pub(super) fn run_dir(&self, run: &RunId) -> Result<PathBuf, Refusal> {
        made_folders([self.home.work(), self.home.runs().join(run.as_str())])
    }
}

/// Creates both folders, accessible to this user only, and returns the second.
fn made_folders([first, second]: [PathBuf; 2]) -> Result<PathBuf, Refusal> {
    let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    let made = make(&first).and_then(|()| make(&second));
    made.map_err(|error| Refusal::environment(format!("the run's folder could not be made: {error}")))?;
    Ok(second)
}

/// Returns the bare names of our tools for a run of a definition: those that suit it and that its policy grants.
#[must_use]
pub fn our_tools(definition: &Definition, policy: &Policy) -> Vec<String> {
    let mut offered = match definition.mode {
        // The person reads the turn's text, so it needs no tool to send messages.
        Mode::Background(_) if definition.kind() == Kind::Session && definition.id.is_turn() => {
            vec![tools::REPORT_UPDATES]
        }
        Mode::Background(_) => vec![tools::PING_USER, tools::DISCORD_EMBED, tools::REPORT_UPDATES],
        // The person reads the turn's text, and can talk in a fork beside it.
        Mode::Foreground if definition.id.is_turn() => vec![tools::DISCORD_EMBED, tools::ENTER_FORK],
        Mode::Foreground => vec![tools::DISCORD_EMBED],
    };
    if !policy.is_spawned() {
        offered.push(tools::SPAWN_AGENT);
        // The tool's other name is offered only to a job whose rules name it.
        if policy.names(own_tool!("sessions_spawn")) {
            offered.push(tools::SESSIONS_SPAWN);
        }
    }
    if FollowUp::of(definition).is_some() {
        offered.push(tools::FOLLOW_UP_CHAIN);
    }
    policy.visible_mcp(&offered)
}

/// Returns how a run of a definition can schedule its chain's next check.
#[must_use]
pub fn follow_up_by(definition: &Definition, policy: &Policy) -> Option<FollowUpBy> {
    FollowUp::of(definition)?;
    if our_tools(definition, policy).iter().any(|tool| tool == tools::FOLLOW_UP_CHAIN) {
        return Some(FollowUpBy::Tool);
    }
    let command = ["ollim-bot", "follow-up-chain", "--in", "10"].map(str::to_owned);
    (policy.decide_command(&command, None).verdict != Verdict::Deny).then_some(FollowUpBy::Command)
}

/// Returns a field of a definition that says how its agent works.
fn agent_field(definition: &Definition, background: &Background) -> Option<&'static str> {
    let fields = [
        ("isolated", background.isolated),
        ("model", background.model.is_some()),
        ("thinking", background.thinking != Thinking::default()),
        ("max_turns", definition.max_turns.is_some()),
        ("max_cost_usd", definition.max_cost_usd.is_some()),
        ("max_cost_day_usd", definition.max_cost_day_usd.is_some()),
    ];
    fields.into_iter().find(|(_, is_set)| *is_set).map(|(field, _)| field)
}

/// Returns the reason why only a model can do a job; `None` if the `notify` client can deliver its body.
#[must_use]
pub fn needs_agent(definition: &Definition) -> Option<String> {
    if definition.client == Some(JobClient::Claude) {
        return Some("its file says `client: claude`".into());
    }
    if definition.kind() == Kind::Session {
        let what =
            if definition.background().is_some() { "it is a spawned agent" } else { "it is a message to the bot" };
        return Some(what.into());
    }
    if !definition.skills.is_empty() {
        return Some("it has `skills`".into());
    }
    let background = definition.background()?;
    if !background.restrictions.allow_ping {
        return Some(
            "it may send you no message (`allow_ping: false`), and without an agent its text would be one".into(),
        );
    }
    if definition.gate.is_some() {
        return Some("it has a `gate`, which wakes an agent".into());
    }
    if definition.remember != Remember::None || !definition.context_from.is_empty() {
        return Some("it is told earlier answers (`remember`, `context_from`), which only an agent reads".into());
    }
    if let Some(agent) = &background.agent {
        return Some(format!("it runs as the agent `{agent}`"));
    }
    // Without an agent the person gets the text of a job. That of a webhook is about what others send.
    if let Some(field) = definition.hook().and_then(|_| agent_field(definition, background)) {
        return Some(format!("it is a webhook with `{field}`, which only an agent heeds"));
    }
    if background.restrictions.disallowed_tools().is_some_and(|denied| !denied.is_empty()) {
        return Some("it has the main session's tools (`disallowed_tools`), which only an agent can use".into());
    }
    if let Some(asked) = background.restrictions.asked_tools().first() {
        return Some(format!("it asks the person about {asked}, which only an agent can use"));
    }
    let allowed = background.restrictions.allowed_tools()?;
    let spawns = |tool: &str| tool.ends_with(tools::SPAWN_AGENT) || tool.ends_with(tools::SESSIONS_SPAWN);
    let beyond = allowed.iter().map(|pattern| (pattern, pattern.tool()));
    let (beyond, _) = beyond.into_iter().find(|(_, tool)| !tool.starts_with(OWN_SERVER) || spawns(tool))?;
    Some(format!("it is granted {beyond}, which only an agent can use"))
}
