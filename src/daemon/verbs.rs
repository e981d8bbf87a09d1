//! What the control socket can be asked for, answered from the schedule. What changes anything is answered when it is on
//! the disk: a person's word holds from then on, whatever becomes of this process.

use std::sync::Arc;

use async_trait::async_trait;

use super::control::Answers;
use super::wire::{Reply, Request, ServiceStatus};
use crate::bot::budget::SharedBudget;
use crate::bot::main_session::MainSession;
use crate::clock::Clock;
use crate::definition::DefinitionId;
use crate::journal::{RunId, RunState};
use crate::run::spawn::Spawner;
use crate::run::tokens::RunAuthority;
use crate::schedule::Schedule;

/// Executes what is typed in forks: the same code as in the person's own processes. Called on blocking threads.
pub trait Commands: Send + Sync + 'static {
    /// Decides and executes `ollim-bot` with these arguments on behalf of a run.
    fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply;
}

/// The service's answers.
pub struct Verbs {
    /// What fires.
    pub schedule: Schedule,
    /// What executes commands.
    pub commands: Arc<dyn Commands>,
    /// What background jobs may send, all together.
    pub budget: SharedBudget,
    /// Starts agents.
    pub spawner: Arc<Spawner>,
    /// The conversation, which is nobody's child.
    pub main: MainSession,
    /// The time.
    pub clock: Clock,
    /// What does not change while it runs.
    pub status: ServiceStatus,
}

#[async_trait]
impl Answers for Verbs {
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        let commands = Arc::clone(&self.commands);
        tokio::task::spawn_blocking(move || commands.execute(run, argv))
            .await
            .unwrap_or_else(|error| Reply::Refused(format!("a fault of ollim-bot itself: {error}")))
    }

    async fn verb(&self, request: Request) -> Reply {
        match request {
            Request::Execute { .. } => Reply::Refused("only runs have commands executed".into()),
            Request::Status => {
                let now = self.schedule.snapshot(0).await;
                let mut status = self.status.clone();
                status.paused = now.paused.map(|at| at.to_rfc3339());
                status.waiting_for_login = now.waiting_for_login.map(|at| at.to_rfc3339());
                Reply::Status(Box::new(status))
            }
            Request::Fire { id } => match self.schedule.fire(DefinitionId::new(id)).await {
                Ok(run) => Reply::Fired { run: run.to_string() },
                Err(error) => Reply::Refused(error.to_string()),
            },
            Request::CancelRun { run } => match self.schedule.cancel_run(RunId::new(run.clone())).await {
                Ok(RunState::Cancelled) => Reply::Done(format!("run {run} is cancelled")),
                Ok(state) => Reply::Done(format!("run {run} has ended: {state}")),
                Err(error) => Reply::Refused(error.to_string()),
            },
            Request::SetBudget { left } => match self.budget.set(left, self.clock.now()).await {
                Ok(budget) => Reply::Done(format!("{} pings left", budget.left())),
                Err(error) => Reply::Refused(error.to_string()),
            },
            Request::Spawn(request) => match self.spawner.spawn(request, None).await {
                Ok(session) => Reply::Spawned { session: session.to_string() },
                Err(why) => Reply::Refused(why),
            },
            Request::SessionsPatch { session, spawn_tool_policy } => {
                let main = self.main.id().map(|id| id.0);
                match self.spawner.patch(&session, spawn_tool_policy, main.as_deref()).await {
                    Ok(said) => Reply::Done(said),
                    Err(why) => Reply::Refused(why),
                }
            }
            Request::Pause => match self.schedule.pause().await {
                Ok(()) => Reply::Done("paused: nothing starts until `ollim-bot resume`".into()),
                Err(error) => Reply::Refused(error.to_string()),
            },
            Request::Resume { id: None } => match self.schedule.resume().await {
                Ok(()) => Reply::Done("resumed".into()),
                Err(error) => Reply::Refused(error.to_string()),
            },
            Request::Resume { id: Some(id) } => {
                match self.schedule.resume_routine(DefinitionId::new(id.clone())).await {
                    Ok(true) => Reply::Done(format!("routine {id} is resumed")),
                    Ok(false) => Reply::Refused(format!("{id} is not paused")),
                    Err(error) => Reply::Refused(error.to_string()),
                }
            }
        }
    }
}
