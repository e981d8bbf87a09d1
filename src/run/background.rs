//! Background runs. Each has a disposable client that forks the main session, continues the job's own session, or starts fresh.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{MutexGuard, OwnedMutexGuard};
use tracing::warn;

use super::exec::may_ping;
use super::expected::Expected;
use super::fork_turns::{conversation_is_gone, not_copied};
use super::gate::GateOutcome;
use super::host::Host;
use super::memory::Memory;
use super::nearby_jobs;
use super::prompt::{Budget, ForkFacts};
use super::restrictions::Restrictions;
use super::runner::{RunSettings, Runner};
use super::setup::{Setup, Spawned};
use super::spawn::RunningSessions;
use super::system_prompt::SystemPrompt;
use super::thread::Thread;
use super::turn::{Turn, session_is_missing};
use crate::agent::{AgentClient, AttemptEnd, AttemptReport, ClientOptions, Sandbox, SessionMode};
use crate::bot::{budget, main_session};
use crate::definition::{Background, Definition, Kind, Remember};
use crate::journal::{EventKind, ForkRecord, PendingUpdates};
use crate::refusal::Refusal;
use crate::schedule::Job;

/// A background run with everything that its file determines.
struct PreparedRun<'a> {
    job: &'a Job,
    client: &'a Arc<dyn AgentClient>,
    settings: RunSettings,
    run_dir: PathBuf,
    /// The fork of which this run is a turn, if any. The person reads its answer.
    fork: Option<ForkRecord>,
    host: Arc<Host>,
    /// Whether the run does not know the main session.
    isolated: bool,
    options: ClientOptions,
    system_prompt: SystemPrompt,
    deny_rules: Vec<String>,
    restrictions: Restrictions,
    spawned_by: Option<String>,
    sandbox: Sandbox,
}

impl<'a> PreparedRun<'a> {
    fn turn(&self, session: SessionMode, prompt: String) -> Turn<'a> {
        let mut options = self.options.clone();
        if self.isolated && matches!(session, SessionMode::ForkOfMain { .. }) {
            // Without this the client would use the resumed session's model, which the file may no longer name.
            options.model.get_or_insert_with(|| main_session::DEFAULT.to_owned());
        }
        Turn {
            client: self.client,
            job: self.job,
            host: Arc::clone(&self.host),
            run_dir: self.run_dir.clone(),
            options: match self.isolated {
                true => self.system_prompt.given_to(options, &SessionMode::Isolated),
                false => self.system_prompt.given_to(options, &session),
            },
            session,
            deny_rules: self.deny_rules.clone(),
            prompt,
            sandbox: self.sandbox.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// The results of earlier runs and of the gate, for a run's prompt.
struct EarlierRuns {
    /// The answers of earlier runs.
    memories: Vec<Memory>,
    /// Whether the run continues the job's own session.
    resumes: bool,
    /// The reason why the job's own session starts anew, if it does.
    restart_reason: Option<String>,
    /// The output of the job's gate.
    gate: Option<String>,
}

impl EarlierRuns {
    /// Records how the job's own session begins, for the prompt and as an event.
    fn begins(&mut self, thread: &Thread, host: &Host) {
        self.resumes = matches!(thread, Thread::On(_));
        self.restart_reason = thread.lost();
        if let Some(text) = self.restart_reason.clone() {
            host.events.add(EventKind::Note { text });
        }
        if let Thread::Lost(_, last) = thread {
            self.memories.insert(0, last.clone());
        }
    }
}

impl Runner {
    /// Runs the agent, unless the job's gate prevents it, and checks the report against the job's expectations.
    pub(super) async fn background(
        &self,
        job: &Job,
        background: &Background,
        client: &Arc<dyn AgentClient>,
    ) -> Result<AttemptReport, Refusal> {
        let prepared = self.prepare(job, background, client).await?;
        let gate = match self.gate(job, &prepared.host, &prepared.settings).await? {
            GateOutcome::Woken { said } => said,
            GateOutcome::Ended(end) => return Ok(AttemptReport::bare(end)),
        };
        let expect = job.definition.expect.clone();
        let expected = expect.map(|expect| Expected::new(expect, self.home.work(), may_ping(&job.definition)));
        let (_turn, copy) = tokio::select! {
            turn = self.turn_of_fork(&prepared) => turn?,
            () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
        };
        let mut report = self.in_session(&prepared, copy, gate).await;
        prepared.host.questions.close().await;
        if report.as_ref().is_ok_and(|report| matches!(report.end, AttemptEnd::Skipped(_))) {
            // The gate reports the same change again when there is budget for the agent.
            self.drop_state(job)?;
        }
        if let (Some(expected), Ok(report)) = (expected, &mut report) {
            expected.hold(report, &*prepared.host.delivery.lock().await);
        }
        let completed = report.as_ref().is_ok_and(|report| report.end == AttemptEnd::Completed);
        if completed && job.definition.remember == Remember::Thread {
            self.drop_older(&job.definition);
        }
        report
    }

    async fn prepare<'a>(
        &self,
        job: &'a Job,
        background: &Background,
        client: &'a Arc<dyn AgentClient>,
    ) -> Result<PreparedRun<'a>, Refusal> {
        let settings = self.settings();
        let run_dir = self.run_dir(&job.run)?;
        let fork = self.fork_of(&job.definition.id).await?;
        // Held until the session's host is known, since its policy may be set at any moment.
        let (running, spawned, setup) = match job.definition.kind() {
            Kind::Session => {
                let (running, spawned, setup) = self.session_setup(&job.definition).await?;
                (Some(running), Some(spawned), setup)
            }
            Kind::Routine | Kind::Reminder | Kind::Webhook => (None, None, self.setup(&job.definition, None).await?),
        };
        // A gate runs in the job's shell, whatever does the job.
        let sandbox = match client.starts_processes() || job.definition.gate.is_some() {
            true => Some(self.sandbox(&setup, &run_dir, &settings)?),
            false => None,
        };
        let limited = sandbox.as_ref().map(|sandbox| sandbox.for_client(true)).unwrap_or_default();
        let Setup { policy, options, deny_rules, restrictions, agent_prompt, .. } = setup;
        let system_prompt = self.system_prompt(&settings, &policy, agent_prompt);
        let host = self.host(job, policy, sandbox, &settings, client.name());
        let host = Arc::new(Host { is_beside: fork.is_some(), ..host });
        if let Some(running) = running {
            running.add(&job.definition.id, &host);
        }
        Ok(PreparedRun {
            job,
            client,
            settings,
            run_dir,
            fork,
            isolated: background.isolated,
            options,
            system_prompt,
            deny_rules,
            restrictions: restrictions.held_against(&host.policy, &host.tools),
            spawned_by: spawned.map(|spawned| spawned.caller),
            sandbox: limited,
            host,
        })
    }

    /// Returns the setup of a session with its present policy, and keeps the policy from being set until the guard is dropped.
    async fn session_setup(
        &self,
        session: &Arc<Definition>,
    ) -> Result<(MutexGuard<'_, RunningSessions>, Spawned, Setup), Refusal> {
        loop {
            let spawned = self.spawner.spawned(&session.id).await?;
            // Others wait for the guard, so this comes first: long lists of tools take long.
            let setup = self.setup(session, Some(spawned.clone())).await?;
            let running = self.spawner.running.lock().await;
            if self.spawner.spawned(&session.id).await? == spawned {
                return Ok((running, spawned, setup));
            }
        }
    }

    /// Returns the setup of a run, made on a thread for that.
    pub(super) async fn setup(&self, job: &Arc<Definition>, spawned: Option<Spawned>) -> Result<Setup, Refusal> {
        let (spawner, job) = (Arc::clone(&self.spawner), Arc::clone(job));
        let made = tokio::task::spawn_blocking(move || spawner.setup(&job, spawned.as_ref()));
        made.await.map_err(|error| Refusal::environment(error.to_string()))?
    }

    /// Waits for the turn of a message in a fork. The fork's conversation does not change while the returned guard is held.
    async fn turn_of_fork(
        &self,
        prepared: &PreparedRun<'_>,
    ) -> Result<(Option<OwnedMutexGuard<()>>, Option<PathBuf>), Refusal> {
        let Some(fork) = &prepared.fork else { return Ok((None, None)) };
        let turn = self.bot.forks.turn(&fork.id).await;
        let copy = self.copy_of_fork(fork, &prepared.run_dir).await?.ok_or_else(|| conversation_is_gone(fork))?;
        Ok((Some(turn), Some(copy)))
    }

    /// Runs the client, and again in a fresh session if the one to resume cannot be read. `copy` is the fork's conversation.
    async fn in_session(
        &self,
        prepared: &PreparedRun<'_>,
        copy: Option<PathBuf>,
        gate: Option<String>,
    ) -> Result<AttemptReport, Refusal> {
        let PreparedRun { job, host, fork, .. } = prepared;
        let mut thread = self.thread(&job.definition, &prepared.run_dir).await?;
        let (session, updates) = self.session(prepared, copy, &thread).await?;
        let memories = self.memories(&job.definition).await?;
        let mut past = EarlierRuns { memories, resumes: false, restart_reason: None, gate };
        past.begins(&thread, host);
        let resumes = fork.is_none() && matches!(session, SessionMode::ForkOfMain { .. });
        let knows_main_session = resumes && matches!(thread, Thread::None);
        let prompt = self.fork_prompt(prepared, &updates, &past, knows_main_session).await?;
        let report = self.run(prepared.turn(session, prompt)).await?;
        if let Some(fork) = fork {
            return self.reported(fork, job, report).await;
        }
        if !(resumes && session_is_missing(&report)) {
            return Ok(report);
        }
        if knows_main_session {
            // The job runs although the conversation is lost; the main session's next turn begins a new one.
            warn!("the main session cannot be forked; the job starts fresh");
        } else {
            thread = self.unreadable_thread(&job.definition).await?;
            past.begins(&thread, host);
        }
        let prompt = self.fork_prompt(prepared, &PendingUpdates::default(), &past, false).await?;
        self.run(prepared.turn(SessionMode::Isolated, prompt)).await
    }

    /// Returns the session that the client starts with, and the pending reports for a fork of the main session.
    async fn session(
        &self,
        prepared: &PreparedRun<'_>,
        copy: Option<PathBuf>,
        thread: &Thread,
    ) -> Result<(SessionMode, PendingUpdates), Refusal> {
        let transcript = match (copy, thread) {
            (Some(copy), _) => Some(copy),
            (None, Thread::On(copy)) => Some(copy.clone()),
            (None, _) if prepared.isolated => None,
            (None, _) => self.bot.main.snapshot(&prepared.run_dir).map_err(not_copied)?,
        };
        let updates = match &transcript {
            Some(_) if prepared.fork.is_none() && matches!(thread, Thread::None) => self.updates().await?,
            _ => PendingUpdates::default(),
        };
        let session = transcript.map_or(SessionMode::Isolated, |transcript| SessionMode::ForkOfMain { transcript });
        Ok((session, updates))
    }

    /// Builds the prompt of a background job, with the present facts around it.
    async fn fork_prompt(
        &self,
        prepared: &PreparedRun<'_>,
        updates: &PendingUpdates,
        past: &EarlierRuns,
        knows_main_session: bool,
    ) -> Result<String, Refusal> {
        let PreparedRun { job, host, settings, .. } = prepared;
        let budget =
            self.bot.budget.read(self.clock.now()).await.map_err(|error| Refusal::environment(error.to_string()))?;
        // A spawned agent has one task and leaves nothing to other jobs.
        let nearby_jobs = match prepared.spawned_by {
            Some(_) => Vec::new(),
            None => nearby_jobs::around(&job.definition, self.clock.now(), &self.schedule).await,
        };
        let facts = ForkFacts {
            tools: &host.tools,
            restrictions: &prepared.restrictions,
            spawned_by: prepared.spawned_by.as_deref(),
            knows_main_session,
            answers_person: prepared.fork.is_some(),
            busy: self.bot.main.is_busy(self.clock.now()),
            budget: Budget { left: budget.left(), capacity: budget::CAPACITY, next: budget.next() },
            nearby_jobs: &nearby_jobs,
            resumes: past.resumes,
            restart_reason: past.restart_reason.as_deref(),
            memories: &past.memories,
            gate: past.gate.as_deref(),
        };
        self.prompt(job, host, settings, updates, Some(facts))
    }
}
