//! Does one attempt: makes the run's folder, policy and prompt, has the client do it, brings back the report.
//!
//! Knows the definition and the client; what becomes of the occurrence is the dispatcher's.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use agent_sandbox::cgroup::Delegated;
use agent_sandbox::{Limits, SandboxStatus};
use async_trait::async_trait;
use chrono_tz::Tz;
use tracing::warn;

use super::as_written::message;
use super::chain::FollowUp;
use super::delegation::DelegationLimit;
use super::delivered;
use super::events::RunEvents;
use super::exec::may_ping;
use super::expected::Expected;
use super::folder;
use super::follow_up::NextCheck;
use super::fork_turns::{conversation_is_gone, not_copied};
use super::gate::Gated;
use super::host::Host;
use super::memory::Memory;
use super::nearby_jobs;
use super::needs;
use super::prompt::{Budget, FollowUpBy, ForkFacts, Prompt};
use super::questions::{Questions, RunQuestions};
use super::restrictions::Restrictions;
use super::sandbox::{JobSandbox, SandboxPlan};
use super::setup::Setup;
use super::spawn::Spawner;
use super::system_prompt::{Makes, SystemPrompt};
use super::thread::Thread;
use super::tokens::{Grant, LastingTokens, RunAuthority, Tokens};
use super::tools::{self, DeliveryState};
use crate::agent::claude::options::ClientEnvironment;
use crate::agent::claude::{COMPACT, IdleClient};
use crate::agent::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Clients, Failure, FailureClass, NOTIFY, NoAgent, Notify,
    Observation, Request, RunHost as _, Sandbox, SessionMode, Skip, UsedClient,
};
use crate::bot::main_session::{self, MAKE_SHORTER};
use crate::bot::meanwhile::TakenUp;
use crate::bot::{Bot, budget, live::Sight};
use crate::clock::Clock;
use crate::config::{Config, SandboxChoice};
use crate::definition::{self, Background, Budget as Spendable, Definition, JobClient, Kind, Mode, Remember, Thinking};
use crate::heartbeat::{Beat, Heartbeats};
use crate::home::Home;
use crate::journal::{Caps, EventKind, Journal, JournalError, PendingUpdates, Taken};
use crate::mcp::servers::McpServers;
use crate::policy::{AskTerms, JobNetwork, Policy, ToolLists, ToolPattern, Verdict, free_programs};
use crate::refusal::Refusal;
use crate::schedule::{AgentNeed, Approval, Job, Launcher, LiveDefinitions, Schedule};

/// Reports that a turn is given at most; older ones are counted.
const UPDATES_SHOWN: usize = 10;

/// The settings that runs depend on. They may change while the service runs; each run reads them once.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The main session's tools.
    pub main_tools: Vec<ToolPattern>,
    /// What the main session asks about.
    pub main_ask_tools: Vec<ToolPattern>,
    /// The model where a definition names none.
    pub model: Option<String>,
    /// How the main session's model thinks.
    pub thinking: Thinking,
    /// Wall clock for a run where a definition says nothing.
    pub timeout: Duration,
    /// Longest silence of a client.
    pub inactivity_timeout: Duration,
    /// How far away the `notify` client puts a chain's next link.
    pub notify_chain_delay: Duration,
    /// Whether background jobs must not start without the whole kernel wall.
    pub require_sandbox: bool,
    /// Whether Bash allowlists may go unheld where the kernel cannot hold them.
    pub unheld_allowed: bool,
    /// What the processes of one run may take.
    pub limits: Limits,
    /// What the person is called in prompts: their name, or `the user`.
    pub person: String,
    /// The tools of every spawned agent.
    pub spawned_tools: ToolLists,
    /// What the bot is called in footers.
    pub bot_name: String,
    /// What everything may cost together, and the zone of its days.
    pub budget: (Spendable, Tz),
}

impl RunSettings {
    /// What runs depend on, of all settings.
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

/// Everything that attempts need.
pub struct Runner {
    /// The data folder.
    pub home: Home,
    /// The person's home folder, which no fork sees.
    pub user_home: PathBuf,
    /// Where the programs of jobs are looked for, in order: that of our own binary, own commands, `PATH`.
    pub path: Vec<PathBuf>,
    /// The program that is the sandbox's stages.
    pub shell_binary: PathBuf,
    /// What the environment of gates is made of.
    pub client_environment: ClientEnvironment,
    /// The time.
    pub clock: Clock,
    /// The record.
    pub journal: Journal,
    /// The settings in force.
    pub settings: Arc<RwLock<RunSettings>>,
    /// The clients.
    pub clients: Arc<dyn Clients>,
    /// The main session's client, between two turns.
    pub idle_client: IdleClient,
    /// The control groups of runs; `None`: none is delegated to the service.
    pub groups: Option<Delegated>,
    /// The person's own MCP servers.
    pub mcp_servers: McpServers,
    /// Where forks' tokens are known.
    pub tokens: Tokens,
    /// The tokens of the main session's client.
    pub lasting_tokens: LastingTokens,
    /// The main session and the ping budget.
    pub bot: Bot,
    /// What the person is being asked.
    pub questions: Questions,
    /// The definitions in force; the checks of chains are made here.
    pub definitions: LiveDefinitions,
    /// What else runs around now.
    pub schedule: Schedule,
    /// Starts agents.
    pub spawner: Arc<Spawner>,
    /// Tells monitors how runs go.
    pub hearts: Heartbeats,
}

#[async_trait]
impl Launcher for Runner {
    fn get_ready(&self) {
        self.clients.get_ready();
    }

    fn tells_only(&self, definition: &Definition) -> bool {
        self.tells_only(definition)
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

    async fn unmet(&self, definition: &Definition) -> Option<&'static str> {
        needs::unmet(&definition.requires, Path::new("/"))
    }

    async fn approval(&self, job: &Job) -> Result<Approval, JournalError> {
        self.questions.approval(job).await
    }

    async fn launch(&self, job: Job) -> AttemptReport {
        let job = delivered::filled(job);
        let heart = job.definition.heartbeat_url.as_deref().map(|url| self.hearts.of(url, job.definition.id.as_str()));
        if let Some(heart) = &heart {
            heart.beat(Beat::Start);
        }
        let report = match self.as_written(&job) {
            Some(report) => report,
            None => {
                let attempt = self.attempt(&job).await;
                folder::tidy(self.home.runs().join(job.run.as_str())).await;
                let failed = |refusal: Refusal| Failure::new(FailureClass::Internal, refusal.to_string());
                attempt.unwrap_or_else(|refusal| AttemptReport::bare(AttemptEnd::Failed(failed(refusal))))
            }
        };
        self.bot.live.tell(&job.definition.id, Sight::Ended);
        if let (Some(heart), Some(beat)) = (heart, last_beat(&report.end, &job)) {
            heart.beat(beat);
        }
        report
    }
}

/// What a monitor is told of an attempt's end: no word of what the job is about. One that was cancelled has neither worked nor
/// failed.
fn last_beat(end: &AttemptEnd, job: &Job) -> Option<Beat> {
    match end {
        AttemptEnd::Completed => Some(Beat::Success),
        // A gate that found nothing has worked; where the money is spent, nobody has.
        AttemptEnd::Skipped(Skip::Gate(_)) => Some(Beat::Success),
        AttemptEnd::Skipped(Skip::Budget(_)) => None,
        AttemptEnd::Failed(_) => Some(Beat::Fail(format!("failed, run {}", job.run))),
        AttemptEnd::TimedOut(_) => Some(Beat::Fail(format!("timed out, run {}", job.run))),
        AttemptEnd::Cancelled => None,
    }
}

impl Runner {
    /// The client for a job that begins now.
    ///
    /// # Errors
    /// Why there is none that can do it.
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
        let ran = self.journal.ran_by_other_than(NOTIFY, ids).await.map_err(|error| unread(error.to_string()))?;
        if ran || needs_agent(definition).is_some() { Err(missing) } else { self.clients.choose(false) }
    }

    /// An attempt by whoever does it.
    async fn attempt(&self, job: &Job) -> Result<AttemptReport, Refusal> {
        if let (Mode::Background(background), Some(command)) = (&job.definition.mode, &job.definition.command) {
            return self.exec(job, command, background).await;
        }
        let client = match self.client_for(&job.definition).await {
            Ok(client) => client,
            // It was there a moment ago.
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

    /// A disposable client: a fork of the main session, or a fresh one.
    async fn background(
        &self,
        job: &Job,
        background: &Background,
        client: &Arc<dyn AgentClient>,
    ) -> Result<AttemptReport, Refusal> {
        let settings = self.settings();
        let run_dir = self.run_dir(job)?;
        let fork = self.fork_of(&job.definition.id).await?;
        // Held until the host of a session is known: its policy may be set at any moment.
        let (running, spawned) = match job.definition.kind() {
            Kind::Session => {
                let running = self.spawner.running.lock().await;
                (Some(running), Some(self.spawner.spawned(&job.definition.id).await?))
            }
            Kind::Routine | Kind::Reminder | Kind::Webhook => (None, None),
        };
        let Setup { policy, options, deny_rules, granted, granted_to_agents, restrictions, agent_prompt, .. } =
            self.spawner.setup(&job.definition, spawned.as_ref())?;
        let system_prompt = self.system_prompt(&settings, &policy, agent_prompt);
        let network = background.restrictions.network;
        let sandbox = match client.starts_processes() {
            true => Some(self.sandbox(&policy, granted, granted_to_agents, &run_dir, &settings, network)?),
            false => None,
        };
        let limited = sandbox.as_ref().map(|sandbox| sandbox.for_client(true)).unwrap_or_default();
        let host = self.host(job, policy, sandbox, &settings, client.name(), fork.is_some());
        if let Some(running) = running {
            running.add(&job.definition.id, &host);
        }
        let gate = match self.gate(job, &host, &settings).await? {
            Gated::Woken { said } => said,
            Gated::Ended(end) => return Ok(AttemptReport::bare(end)),
        };
        let expected = job
            .definition
            .expect
            .clone()
            .map(|expect| Expected::new(expect, self.home.work(), may_ping(&job.definition)));
        let its_turn = async {
            let Some(fork) = &fork else { return Ok((None, None)) };
            let turn = self.bot.forks.turn(&fork.id).await;
            let copy = self.copy_of_fork(fork, &run_dir).await?.ok_or_else(|| conversation_is_gone(fork))?;
            Ok::<_, Refusal>((Some(turn), Some(copy)))
        };
        let (_turn, copy) = tokio::select! {
            turn = its_turn => turn?,
            () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
        };
        let mut thread = self.thread(&job.definition, &run_dir).await?;
        let snapshot = match (copy, &thread) {
            (Some(copy), _) => Some(copy),
            (None, Thread::On(copy)) => Some(copy.clone()),
            (None, _) if background.isolated => None,
            (None, _) => self.bot.main.snapshot(&run_dir).map_err(not_copied)?,
        };
        let (session, updates) = match snapshot {
            Some(transcript) if fork.is_none() && matches!(thread, Thread::None) => {
                (SessionMode::ForkOfMain { transcript }, self.updates().await?)
            }
            Some(transcript) => (SessionMode::ForkOfMain { transcript }, PendingUpdates::default()),
            None => (SessionMode::Isolated, PendingUpdates::default()),
        };
        let restrictions = restrictions.held_against(&host.policy, &host.tools);
        let mut facts = Facts {
            restrictions,
            deny_rules,
            spawned_by: spawned.map(|spawned| spawned.caller),
            answers_person: fork.is_some(),
            memories: self.memories(&job.definition).await?,
            goes_on: false,
            begins_anew: None,
            gate,
        };
        facts.begins(&thread, &host);
        let resumes = fork.is_none() && matches!(session, SessionMode::ForkOfMain { .. });
        let knows_main_session = resumes && matches!(thread, Thread::None);
        let prompt = self.fork_prompt(job, &host, &settings, &updates, &facts, knows_main_session).await?;
        let deny_rules = &facts.deny_rules.clone();
        let first = Turn {
            client,
            job,
            host: &host,
            run_dir,
            options: match background.isolated {
                true => system_prompt.given_to(options.clone(), &SessionMode::Isolated),
                false => system_prompt.given_to(options.clone(), &session),
            },
            session,
            deny_rules,
            prompt,
            sandbox: limited,
            settings: &settings,
        };
        let report = async {
            let report = self.run(first.clone()).await?;
            if let Some(fork) = &fork {
                return self.reported(fork, job, report).await;
            }
            if !(resumes && session_is_missing(&report)) {
                return Ok(report);
            }
            if knows_main_session {
                // The job is not lost with the conversation, which the main session's next turn begins anew.
                warn!("the main session cannot be forked; the job starts fresh");
            } else {
                thread = self.unreadable_thread(&job.definition).await?;
                facts.begins(&thread, &host);
            }
            let prompt = self.fork_prompt(job, &host, &settings, &PendingUpdates::default(), &facts, false).await?;
            let session = SessionMode::Isolated;
            let options = system_prompt.given_to(options, &session);
            self.run(Turn { session, options, prompt, ..first }).await
        };
        let mut report = report.await;
        host.questions.close().await;
        if report.as_ref().is_ok_and(|report| matches!(report.end, AttemptEnd::Skipped(_))) {
            // What woke the agent is new again when there is money for it.
            self.drop_state(job)?;
        }
        if let (Some(expected), Ok(report)) = (expected, &mut report) {
            expected.hold(report, &*host.delivery.lock().await);
        }
        let completed = report.as_ref().is_ok_and(|report| report.end == AttemptEnd::Completed);
        if completed && job.definition.remember == Remember::Thread {
            self.drop_older(&job.definition);
        }
        report
    }

    /// The prompt of a background job, with what is so around it now.
    async fn fork_prompt(
        &self,
        job: &Job,
        host: &Host,
        settings: &RunSettings,
        updates: &PendingUpdates,
        narrowed: &Facts,
        knows_main_session: bool,
    ) -> Result<String, Refusal> {
        let budget =
            self.bot.budget.read(self.clock.now()).await.map_err(|error| Refusal::environment(error.to_string()))?;
        // Who has one task leaves nothing to others.
        let nearby_jobs = match narrowed.spawned_by {
            Some(_) => Vec::new(),
            None => nearby_jobs::around(&job.definition, self.clock.now(), &self.schedule).await,
        };
        let facts = ForkFacts {
            tools: &host.tools,
            restrictions: &narrowed.restrictions,
            spawned_by: narrowed.spawned_by.as_deref(),
            knows_main_session,
            answers_person: narrowed.answers_person,
            busy: self.bot.main.is_busy(self.clock.now()),
            budget: Budget { left: budget.left(), capacity: budget::CAPACITY, next: budget.next() },
            nearby_jobs: &nearby_jobs,
            goes_on: narrowed.goes_on,
            begins_anew: narrowed.begins_anew.as_deref(),
            memories: &narrowed.memories,
            gate: narrowed.gate.as_deref(),
        };
        self.prompt(job, host, settings, updates, Some(facts))
    }

    /// A turn of the main session; the dispatcher sends its answer to the person.
    async fn foreground(&self, job: &Job, client: &Arc<dyn AgentClient>) -> Result<AttemptReport, Refusal> {
        // What is told as it is written waits for no conversation.
        let fork = self.fork_of(&job.definition.id).await?;
        let wait = async {
            match &fork {
                Some(fork) => (None, Some(self.bot.forks.turn(&fork.id).await)),
                None => (Some(self.bot.main.turn().await), None),
            }
        };
        let (turn, _turn_of_fork) = match job.definition.is_delivered_as_written() {
            true => (None, None),
            false => tokio::select! {
                turn = wait => turn,
                () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
            },
        };
        // The turn before may have answered it.
        let taken_up = self.bot.meanwhile.became_of(&job.definition.id);
        if let Some(TakenUp::Answered(run)) = &taken_up {
            let events = RunEvents::new(job.run.clone(), self.journal.clone());
            let text = format!("the turn of run {run} answered it: it was said while that went");
            events.add(EventKind::Note { text });
            let said = Observation::Said { text: ANSWERED_ABOVE.to_owned() };
            self.bot.live.tell(&job.definition.id, Sight::Did(said.clone()));
            events.observe(said);
            let answer = Some(ANSWERED_ABOVE.to_owned());
            return Ok(AttemptReport { answer, ..AttemptReport::bare(AttemptEnd::Completed) });
        }
        let settings = self.settings();
        let run_dir = match &turn {
            Some(_) => self.main_run_dir().await?,
            None => self.run_dir(job)?,
        };
        let Setup { policy, mut options, deny_rules, granted, granted_to_agents, .. } =
            self.spawner.setup(&job.definition, None)?;
        let is_turn = job.definition.id.is_turn();
        if is_turn {
            let chosen = self.bot.main.choice();
            options.model = chosen.model(options.model);
            options.thinking = chosen.thinking.or(options.thinking);
        }
        let system_prompt = self.system_prompt(&settings, &policy, None);
        let deny_rules = &deny_rules;
        // The person's own session is held by its rules alone, unless these grant some programs and not others. Its agents are held.
        let everything = policy.shell(None).is_none_or(|shell| shell.everything);
        let sandbox = if !client.starts_processes() || everything && granted_to_agents.is_empty() {
            None
        } else {
            let made = self.sandbox(&policy, granted, granted_to_agents, &run_dir, &settings, JobNetwork::Internet)?;
            Some(if everything { made.with_plain_shell() } else { made })
        };
        let shell_only = sandbox.as_ref().map(|sandbox| sandbox.for_client(false)).unwrap_or_default();
        let host = self.host(job, policy, sandbox, &settings, client.name(), fork.is_some());
        let shortens = fork.is_none() && is_turn && job.definition.body.trim() == MAKE_SHORTER;
        let updates = if fork.is_some() || shortens { PendingUpdates::default() } else { self.updates().await? };
        let prompt = match shortens {
            true => COMPACT.to_owned(),
            false => {
                let was_cut_off = taken_up.is_some().then_some(MAY_BE_DONE);
                let job = Job { late: job.late.clone().or(was_cut_off.map(str::to_owned)), ..job.clone() };
                self.prompt(&job, &host, &settings, &updates, None)?
            }
        };
        let session = match &fork {
            Some(fork) => SessionMode::Beside(self.copy_of_fork(fork, &run_dir).await?),
            None => SessionMode::Main(turn.as_ref().and_then(main_session::Turn::session)),
        };
        let first = Turn {
            client,
            job,
            host: &host,
            run_dir,
            options: system_prompt.given_to(options, &session),
            session,
            deny_rules,
            prompt,
            sandbox: shell_only,
            settings: &settings,
        };
        if let Some(fork) = &fork {
            let report = self.run(first).await;
            host.questions.close().await;
            return self.reported(fork, job, report?).await;
        }
        if shortens && first.session == SessionMode::Main(None) {
            let text = "There is no conversation to make shorter.".to_owned();
            host.observe(Observation::Said { text: text.clone() });
            return Ok(AttemptReport { answer: Some(text), ..AttemptReport::bare(AttemptEnd::Completed) });
        }
        if is_turn {
            self.bot.meanwhile.begin(job.run.clone(), job.definition.channel.clone());
        }
        let report = self.main_turn(first).await;
        host.questions.close().await;
        if is_turn {
            self.bot.meanwhile.end(report.as_ref().is_ok_and(|report| report.end == AttemptEnd::Completed));
        }
        let report = report?;
        if turn.is_some() && self.idle_client.waits().await.is_none() {
            folder::tidy(self.home.main_run()).await;
        }
        if let Some(session) = report.session.clone() {
            self.bot
                .main
                .keep(session, report.transcript.clone())
                .await
                .map_err(|error| Refusal::environment(error.to_string()))?;
        }
        // A client without a session has no model that read them.
        if report.end == AttemptEnd::Completed && report.session.is_some() {
            self.journal
                .updates_given(updates.newest)
                .await
                .map_err(|error| Refusal::environment(error.to_string()))?;
        }
        Ok(report)
    }

    /// A turn of the main session: of a new one where the old one cannot be resumed.
    async fn main_turn(&self, turn: Turn<'_>) -> Result<AttemptReport, Refusal> {
        let report = self.run(turn.clone()).await?;
        if !session_is_missing(&report) {
            return Ok(report);
        }
        warn!("the main session can no longer be resumed; a new one is started");
        self.bot.main.forget().await.map_err(|error| Refusal::environment(error.to_string()))?;
        let mut report = self.run(Turn { session: SessionMode::Main(None), ..turn }).await?;
        let told = "The main session could not be resumed, so a new one was started: what was talked about before is not in it.";
        report.messages.insert(0, told.into());
        Ok(report)
    }

    async fn run(&self, turn: Turn<'_>) -> Result<AttemptReport, Refusal> {
        let Turn { client, job, host, run_dir, session, mut options, deny_rules, prompt, sandbox, settings } = turn;
        let caps = caps(&job.definition, settings);
        let external = match client.starts_processes() {
            true => tokio::select! {
                external = self.external(host) => match external {
                    Ok(external) => external,
                    Err(why) => {
                        let why = format!("{why}, and the job needs it");
                        let failure = Failure::new(FailureClass::McpServerMissing, why);
                        return Ok(AttemptReport::bare(AttemptEnd::Failed(failure)));
                    }
                },
                () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
            },
            false => Vec::new(),
        };
        if client.starts_processes() {
            match self.journal.take_cost(&job.run, &job.definition, caps.clone()).await? {
                Taken::Cap(cap) => options.max_budget_usd = cap,
                Taken::Spent(why) => return Ok(over_budget(&job.definition, &why)),
            }
        }
        let authority = RunAuthority::new(job.run.clone(), job.definition.title(), host.limit.clone(), host.clone());
        let lasts = matches!(session, SessionMode::Main(_)) && client.starts_processes();
        if lasts && self.idle_client.waits().await.is_none() {
            self.lasting_tokens.renew();
        }
        let grant = |authority: RunAuthority| {
            let granted = match lasts {
                true => self
                    .lasting_tokens
                    .of(authority.agent.as_deref())
                    .map(|token| self.tokens.grant_as(token, authority)),
                false => self.tokens.grant(authority),
            };
            granted.map_err(|error| Refusal::environment(format!("no token could be made for the run: {error}")))
        };
        // What an agent may do is not what the job may do, by whatever way it asks.
        let agents = host.policy.agents().map(|name| Ok((name.to_owned(), grant(authority.of_agent(name))?)));
        let agents = agents.collect::<Result<BTreeMap<String, Grant>, Refusal>>()?;
        let own = grant(authority)?;
        let request = Request {
            run: job.run.to_string(),
            run_dir,
            work_dir: self.home.work(),
            prompt,
            message: message(job),
            needs_agent: needs_agent(&job.definition),
            session,
            options,
            visible_tools: host.policy.visible_tools(),
            deny_rules: deny_rules.to_vec(),
            mcp_tools: host.tools.clone(),
            external,
            sandbox,
            token: own.token().to_owned(),
            agent_tokens: agents.iter().map(|(name, grant)| (name.clone(), grant.token().to_owned())).collect(),
            timeout: job.definition.timeout.unwrap_or(settings.timeout),
            inactivity_timeout: settings.inactivity_timeout,
            asks: asks(&job.definition, settings),
            answers: job.definition.id.is_turn().then(|| job.definition.id.to_string()),
            limits: settings.limits,
            cancel: job.cancel.clone(),
            host: host.clone(),
        };
        host.events.prompt(&request.prompt);
        let mut report = client.run(request).await;
        report.client.get_or_insert_with(|| UsedClient {
            name: client.name(),
            version: None,
            is_agent: client.starts_processes(),
        });
        if let Some(cost) = report.cost_usd
            && let Err(error) = self.journal.settle_cost(&job.run, job.definition.title(), cost, caps).await
        {
            // The run's end is recorded all the same; until then its cap counts.
            warn!(%error, "what a run has cost could not be recorded at once");
        }
        report.messages.append(&mut *host.delivered.lock().await);
        Ok(report)
    }

    /// What the run's processes may reach, and the folders that this needs.
    pub(super) fn sandbox(
        &self,
        policy: &Policy,
        granted: Vec<ToolPattern>,
        granted_to_agents: BTreeMap<String, Vec<ToolPattern>>,
        run_dir: &Path,
        settings: &RunSettings,
        network: JobNetwork,
    ) -> Result<JobSandbox, Refusal> {
        let plan = SandboxPlan {
            home: self.home.clone(),
            user_home: self.user_home.clone(),
            run_dir: run_dir.to_owned(),
            links: run_dir.to_owned(),
            granted,
            path: self.path.clone(),
            shell_binary: self.shell_binary.clone(),
            required: settings.require_sandbox,
            limits: settings.limits,
            network: network == JobNetwork::Internet,
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
                // Its policy may be narrowed while it works, so each of its programs is asked about.
                rights.everything = false;
                rights.judged.extend(free_programs().map(str::to_owned));
            }
            let own = JobSandbox::make(plan, rights.as_ref())?;
            granted_to_agents.into_iter().try_fold(own, |sandbox, (name, granted)| {
                sandbox.with_agent(&name, granted, policy.shell(Some(&name)).as_ref())
            })
        };
        make().map_err(|error: io::Error| {
            Refusal::environment(format!("a folder of the job's sandbox could not be made: {error}"))
        })
    }

    pub(super) fn host(
        &self,
        job: &Job,
        policy: Policy,
        sandbox: Option<JobSandbox>,
        settings: &RunSettings,
        client: &'static str,
        is_beside: bool,
    ) -> Arc<Host> {
        Arc::new(Host {
            run: job.run.clone(),
            events: RunEvents::new(job.run.clone(), self.journal.clone()),
            client,
            definition: job.definition.clone(),
            is_beside,
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
        })
    }

    fn prompt(
        &self,
        job: &Job,
        host: &Host,
        settings: &RunSettings,
        updates: &PendingUpdates,
        fork: Option<ForkFacts<'_>>,
    ) -> Result<String, Refusal> {
        // Read now, not when the definition was: a skill is edited at any moment.
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

    /// Its persona is read now: the file is edited at any moment.
    fn system_prompt(&self, settings: &RunSettings, policy: &Policy, agent: Option<String>) -> SystemPrompt {
        let persona = definition::load_persona(&self.home).unwrap_or_else(|problem| {
            warn!("{}: {}", problem.file.display(), problem.message);
            None
        });
        let (bot, person) = (settings.bot_name.clone(), settings.person.clone());
        SystemPrompt { bot, person, persona, makes: Makes::of(policy), agent }
    }

    async fn updates(&self) -> Result<PendingUpdates, Refusal> {
        self.journal.pending_updates(UPDATES_SHOWN).await.map_err(|error| Refusal::environment(error.to_string()))
    }

    pub(super) fn settings(&self) -> RunSettings {
        self.settings.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The main session's, which it finds as its client has left it; what an earlier client has left is gone.
    async fn main_run_dir(&self) -> Result<PathBuf, Refusal> {
        if self.idle_client.waits().await.is_none() {
            folder::tidy(self.home.main_run()).await;
        }
        made_folders([self.home.work(), self.home.main_run()])
    }

    /// The run's own folder, made.
    pub(super) fn run_dir(&self, job: &Job) -> Result<PathBuf, Refusal> {
        made_folders([self.home.work(), self.home.runs().join(job.run.as_str())])
    }
}

/// What the person reads where they would have read the answer to a message that another turn has taken up.
const ANSWERED_ABOVE: &str = "(The answer to your message before this one covers it.)";

/// What the prompt says of a message that an earlier turn had taken up when it was cut off.
const MAY_BE_DONE: &str =
    "[a turn that was cut off had this message already, and may have acted on it: look before you do it again]";

/// Makes both, which this user alone can look into, and returns the second.
fn made_folders([first, second]: [PathBuf; 2]) -> Result<PathBuf, Refusal> {
    let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    let made = make(&first).and_then(|()| make(&second));
    made.map_err(|error| Refusal::environment(format!("the run's folder could not be made: {error}")))?;
    Ok(second)
}

/// What a background job's file does not say and its run has.
struct Facts {
    restrictions: Restrictions,
    deny_rules: Vec<String>,
    spawned_by: Option<String>,
    /// It is a turn that the person reads.
    answers_person: bool,
    /// What earlier runs have answered.
    memories: Vec<Memory>,
    /// It goes on with the job's own session.
    goes_on: bool,
    /// Why the job's own session begins anew.
    begins_anew: Option<String>,
    /// What the job's gate printed.
    gate: Option<String>,
}

impl Facts {
    /// Where the job's own session begins is told the agent, and the record.
    fn begins(&mut self, thread: &Thread, host: &Host) {
        self.goes_on = matches!(thread, Thread::On(_));
        self.begins_anew = thread.lost();
        if let Some(text) = self.begins_anew.clone() {
            host.events.add(EventKind::Note { text });
        }
        if let Thread::Lost(_, last) = thread {
            self.memories.insert(0, last.clone());
        }
    }
}

/// One client's turn.
#[derive(Clone)]
struct Turn<'a> {
    client: &'a Arc<dyn AgentClient>,
    job: &'a Job,
    host: &'a Arc<Host>,
    run_dir: PathBuf,
    session: SessionMode,
    options: ClientOptions,
    deny_rules: &'a [String],
    prompt: String,
    sandbox: Sandbox,
    settings: &'a RunSettings,
}

/// What a definition's run may cost.
fn caps(definition: &Definition, settings: &RunSettings) -> Caps {
    let (budget, zone) = settings.budget;
    Caps { run: definition.max_cost_usd, job_day: definition.max_cost_day_usd, budget, zone }
}

/// The end of a run for which nothing is left. Who waits for an answer, or for a reminder, is told each time.
fn over_budget(definition: &Definition, why: &str) -> AttemptReport {
    let mut report = AttemptReport::bare(AttemptEnd::Skipped(Skip::Budget(why.to_owned())));
    match definition.kind() {
        Kind::Routine | Kind::Webhook => {}
        Kind::Reminder => report.messages.push(format!(
            "reminder {0} was skipped: {why}. Its file is kept in reminders/failed/; `ollim-bot reminder retry {0}` brings it back.",
            definition.id
        )),
        Kind::Session if definition.id.is_turn() => {
            report.messages.push(format!("I was not asked: {why}. `ollim-bot budget --day USD` raises it."));
        }
        Kind::Session => report.messages.push(format!("The spawned agent {} was not started: {why}.", definition.id)),
    }
    report
}

/// Whether the session that was to go on could not be resumed. Then the agent was not asked anything.
fn session_is_missing(report: &AttemptReport) -> bool {
    matches!(&report.end, AttemptEnd::Failed(failure) if failure.class == FailureClass::MainSessionMissing)
}

/// Bare names of our tools that a run of a definition has: those that make sense for it and that its policy grants.
#[must_use]
pub fn our_tools(definition: &Definition, policy: &Policy) -> Vec<String> {
    let mut offered = match definition.mode {
        // The person reads what it says.
        Mode::Background(_) if definition.kind() == Kind::Session && definition.id.is_turn() => {
            vec![tools::REPORT_UPDATES]
        }
        Mode::Background(_) => vec![tools::PING_USER, tools::DISCORD_EMBED, tools::REPORT_UPDATES],
        // The person reads what it says, and can be led beside it.
        Mode::Foreground if definition.id.is_turn() => vec![tools::DISCORD_EMBED, tools::ENTER_FORK],
        Mode::Foreground => vec![tools::DISCORD_EMBED],
    };
    if !policy.is_spawned() {
        offered.push(tools::SPAWN_AGENT);
        // Its other name is there for who asks for it.
        if policy.names("mcp__discord__sessions_spawn") {
            offered.push(tools::SESSIONS_SPAWN);
        }
    }
    if FollowUp::of(definition).is_some() {
        offered.push(tools::FOLLOW_UP_CHAIN);
    }
    policy.visible_mcp(&offered)
}

/// The way in which a run of a definition can make its chain's next link.
#[must_use]
pub fn follow_up_by(definition: &Definition, policy: &Policy) -> Option<FollowUpBy> {
    FollowUp::of(definition)?;
    if our_tools(definition, policy).iter().any(|tool| tool == tools::FOLLOW_UP_CHAIN) {
        return Some(FollowUpBy::Tool);
    }
    let command = ["ollim-bot", "follow-up-chain", "--in", "10"].map(str::to_owned);
    (policy.decide_command(&command, None).verdict != Verdict::Deny).then_some(FollowUpBy::Command)
}

/// How long a call of a run may wait for the person; `None`: it asks about none.
fn asks(definition: &Definition, settings: &RunSettings) -> Option<Duration> {
    let (asked, terms) = match definition.background() {
        Some(background) => (background.restrictions.asked_tools(), background.restrictions.ask_terms()),
        None => (&settings.main_ask_tools[..], AskTerms::default()),
    };
    (!asked.is_empty()).then_some(terms.deadline)
}

/// Why only a model can do a job; `None`: the `notify` client can deliver its body.
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
    if definition.gate.is_some() {
        return Some("it has a `gate`, which wakes an agent".into());
    }
    if definition.remember != Remember::None || !definition.context_from.is_empty() {
        return Some("it is told earlier answers (`remember`, `context_from`), which only an agent reads".into());
    }
    if let Some(agent) = &background.agent {
        return Some(format!("it runs as the agent `{agent}`"));
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
    let (beyond, _) = beyond.into_iter().find(|(_, tool)| !tool.starts_with("mcp__discord") || spawns(tool))?;
    Some(format!("it is granted {beyond}, which only an agent can use"))
}
