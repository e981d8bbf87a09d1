//! Hands a job to the launcher. A panic there becomes a failed run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass, NoAgent};
use crate::definition::Definition;
use crate::journal::{JournalError, Occasion, Occurrence, RunId};

/// An attempt to make now. It is claimed, and recorded as running.
#[derive(Clone, Debug)]
pub struct Job {
    /// The attempt.
    pub run: RunId,
    /// The definition, as its file is now.
    pub definition: Arc<Definition>,
    /// The definition and the scheduled time.
    pub occurrence: Occurrence,
    /// The cause; `None`: its scheduled time.
    pub occasion: Option<Occasion>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The line in the prompt of a late run: `[late: was scheduled for 14:00, running now]`.
    pub late: Option<String>,
    /// Whether the attempt before was cut off before its first side effect. The prompt says so.
    pub cut_off: bool,
    /// Whether a person fired it.
    pub by_hand: bool,
    /// Ends the attempt when cancelled.
    pub cancel: CancellationToken,
}

/// Whether a job has the agent that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNeed {
    /// The agent is there, or not needed.
    Met,
    /// There is no agent now.
    Missing(NoAgent),
}

/// Whether the person has approved a job (`approve`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The person has approved it, or need not.
    Granted,
    /// The question to the person is open, until this time.
    Waits(DateTime<Utc>),
    /// The person is asked later, since questions about other jobs of the same maker are open. To be checked again at this time.
    AskedLater(DateTime<Utc>),
    /// The person has not approved it. The reason, as a sentence without a full stop.
    Refused(String),
}

/// Makes attempts. It marks each first side effect in the journal before it allows the effect, and returns when
/// everything that it started has ended.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Does slow work for an attempt that is independent of the job. Called before an attempt that starts processes is requested.
    fn get_ready(&self) {}
    /// Prepares an attempt at a definition that is about to fall due. It may not be made, or the definition may have changed by then.
    fn get_ready_for(self: Arc<Self>, _definition: &Arc<Definition>, _run: &RunId) {}
    /// Returns whether the body of a definition is the message and no model is asked. Such a job waits for no other run. Does not block.
    fn is_message_only(&self, definition: &Definition) -> bool {
        definition.is_delivered_as_written()
    }
    /// Returns whether the job has its agent. Called before each attempt. Without an agent, the attempt waits and does not begin.
    async fn agent_for(&self, _definition: &Definition) -> AgentNeed {
        AgentNeed::Met
    }
    /// Returns which requirement of a definition the machine does not meet, as a sentence without a full stop.
    /// Called before each attempt that no person fired. Such an attempt waits, and is not recorded as begun.
    async fn unmet_requirement(&self, _definition: &Definition) -> Option<&'static str> {
        None
    }
    /// Returns whether the person lets an attempt begin, and asks them if they were not asked. Called for a job
    /// with `approve`, for one that may have had it when the person was asked, and for one that another job made. `text`: its file as it
    /// would run. Does not wait for the answer.
    ///
    /// # Errors
    /// Fails when the journal fails.
    async fn approval(&self, _job: &Job, _text: &str) -> Result<Approval, JournalError> {
        Ok(Approval::Granted)
    }
    /// Returns whether a run of `writer` may write into the folder that `watcher` watches. `true` if that is unknown.
    async fn may_write(&self, _writer: &Arc<Definition>, _watcher: &Arc<Definition>) -> bool {
        true
    }
    /// Makes one attempt. May be called for many jobs at once, but never for two of the same definition.
    async fn launch(&self, job: Job) -> AttemptReport;
    /// Makes one attempt once `recorded` completes. What it needs may be prepared meanwhile, but nothing is started.
    ///
    /// # Errors
    /// The error of `recorded`. No attempt was made then.
    async fn launch_recorded(
        &self,
        job: Job,
        recorded: BoxFuture<'_, Result<(), JournalError>>,
    ) -> Result<AttemptReport, JournalError> {
        recorded.await?;
        Ok(self.launch(job).await)
    }
}

/// Makes a report of a failure that no client reported.
pub(super) fn failure(class: FailureClass, message: String) -> AttemptReport {
    AttemptReport::bare(AttemptEnd::Failed(Failure { class, message }))
}

/// Makes one attempt once `recorded` completes. A panic becomes an internal failure.
///
/// # Errors
/// The error of `recorded`.
pub(super) async fn attempt(
    launcher: &dyn Launcher,
    job: Job,
    recorded: BoxFuture<'_, Result<(), JournalError>>,
) -> Result<AttemptReport, JournalError> {
    let run = job.run.clone();
    AssertUnwindSafe(launcher.launch_recorded(job, recorded)).catch_unwind().await.unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a word".to_owned());
        tracing::error!(%run, panic = words, "a run panicked");
        Ok(failure(FailureClass::Internal, format!("a fault of ollim-bot itself (panic: {words}); please report it")))
    })
}

/// Returns the word for the class in the journal.
pub(super) fn class_word(class: FailureClass) -> &'static str {
    match class {
        FailureClass::SpawnFailed => "spawn_failed",
        FailureClass::InitializeTimeout => "initialize_timeout",
        FailureClass::NotLoggedIn => "not_logged_in",
        FailureClass::Overloaded => "overloaded",
        FailureClass::ErrorResult => "error_result",
        FailureClass::Garbage => "garbage",
        FailureClass::ExitedEarly => "exited_early",
        FailureClass::MainSessionMissing => "main_session_missing",
        FailureClass::SurfaceMismatch => "surface_mismatch",
        FailureClass::GateFailed => "gate_failed",
        FailureClass::CommandFailed => "command_failed",
        FailureClass::NotDelivered => "not_delivered",
        FailureClass::LimitExceeded => "limit_exceeded",
        FailureClass::NeedsClaude => "needs_claude",
        FailureClass::McpServerMissing => "mcp_server_missing",
        FailureClass::Internal => "internal",
    }
}
