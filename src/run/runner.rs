//! Does one attempt: makes the run's folder, policy and prompt, has the client do it, brings back the report.
//!
//! Knows the definition and the client; what becomes of the occurrence is the dispatcher's.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use tracing::warn;

use super::host::Host;
use super::live::{LiveRun, LiveRuns};
use super::prompt::{Budget, ForkFacts, Neighbour, Prompt};
use super::tools::{self, Reach};
use crate::agent::{AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, Request, SessionMode};
use crate::bot::{Bot, budget, main_session::Turn};
use crate::clock::Clock;
use crate::config::Config;
use crate::definition::{Background, Definition, Mode};
use crate::home::Home;
use crate::journal::{Journal, NewMessage};
use crate::policy::{Places, Policy, UpdateMode};
use crate::schedule::{Job, Launched, Launcher};

/// Background jobs that run soon or ran just now.
pub type Neighbours = Arc<dyn Fn(&Definition) -> Vec<Neighbour> + Send + Sync>;

/// Everything that an attempt needs.
pub struct Runner {
    /// The data folder.
    pub home: Home,
    /// The person's home folder (`$HOME`), which no fork sees.
    pub user_home: PathBuf,
    /// The time.
    pub clock: Clock,
    /// The record.
    pub journal: Journal,
    /// The settings in force; read anew for each run.
    pub config: watch::Receiver<Arc<Config>>,
    /// The client, chosen at start.
    pub client: Arc<dyn AgentClient>,
    /// Where forks' tokens are known.
    pub live: LiveRuns,
    /// The main session and the ping budget.
    pub bot: Bot,
    /// What else runs around now.
    pub neighbours: Neighbours,
}

#[async_trait]
impl Launcher for Runner {
    async fn launch(&self, job: Job) -> Launched {
        match self.attempt(&job).await {
            Ok(launched) => launched,
            Err(message) => Launched::failed(Failure { class: FailureClass::Internal, message }),
        }
    }
}

impl Runner {
    async fn attempt(&self, job: &Job) -> Result<Launched, String> {
        match &job.definition.mode {
            Mode::Background(background) => self.background(job, background).await,
            Mode::Foreground => {
                let turn = tokio::select! {
                    turn = self.bot.main.turn() => turn,
                    () = job.cancel.cancelled() => return Ok(Launched::cancelled()),
                };
                self.foreground(job, &turn).await
            }
        }
    }

    /// A disposable client: a fork of the main session, or a fresh one.
    async fn background(&self, job: &Job, background: &Background) -> Result<Launched, String> {
        let config = self.config.borrow().clone();
        let definition = &job.definition;
        let run_dir = self.run_dir(job)?;
        let policy = Policy::background(&definition.title(), &background.restrictions, &config.main_tools, &self.places());
        let snapshot = if background.isolated {
            None
        } else {
            self.bot.main.snapshot(&run_dir).map_err(|error| format!("the main session could not be copied: {error}"))?
        };
        let session = snapshot.map_or(SessionMode::Isolated, |transcript| SessionMode::ForkOfMain { transcript });
        let mut offered = vec![tools::PING_USER, tools::DISCORD_EMBED, tools::REPORT_UPDATES];
        if background.restrictions.update_main_session == UpdateMode::Blocked {
            offered.retain(|tool| *tool != tools::REPORT_UPDATES);
        }
        let host = self.host(job, policy, &offered);
        let budget = self.bot.budget.read(self.clock.now()).await.map_err(|error| error.to_string())?;
        let neighbours = (self.neighbours)(definition);
        let facts = ForkFacts {
            tools: &host.tools,
            knows_main_session: matches!(session, SessionMode::ForkOfMain { .. }),
            busy: self.bot.main.is_busy(),
            budget: Budget { left: budget.left(), capacity: budget::CAPACITY, next: budget.next() },
            neighbours: &neighbours,
        };
        let prompt = self.prompt(job, &config, Some(facts));
        let options = ClientOptions {
            model: background.model.clone().or_else(|| config.model.clone()),
            thinking: Some(background.thinking),
            ..self.options(definition, &config)
        }
        .with_restrictions(&background.restrictions);
        let report = self.turn(job, &config, &host, run_dir, session, options, prompt).await?;
        Ok(self.launched(report, host.delivered.lock().await.drain(..).collect()))
    }
}
