//! The hand-over to whoever runs a job. A panic there becomes a failed run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass, NoAgent};
use crate::definition::Definition;
use crate::journal::{JournalError, Occasion, Occurrence, RunId};

/// An attempt to make now. It is claimed, and recorded as running.
#[derive(Clone, Debug)]
pub struct Job {
    /// The attempt.
    pub run: RunId,
    /// The definition as its file is now.
    pub definition: Arc<Definition>,
    /// When it fell due.
    pub occurrence: Occurrence,
    /// What it fell due for; `None`: its time.
    pub occasion: Option<Occasion>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The line for the prompt of a late run: `[late: was scheduled for 14:00, running now]`.
    pub late: Option<String>,
    /// The attempt before was cut off before its first side effect; the prompt says so.
    pub cut_off: bool,
    /// A person fired it.
    pub by_hand: bool,
    /// Ends the attempt when cancelled.
    pub cancel: CancellationToken,
}

/// Whether a job has the agent that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNeed {
    /// It has, or can do without.
    Met,
    /// There is no agent now.
    Missing(NoAgent),
}

/// Whether the person has said that a job may begin (`approve`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// They have, or need not.
    Granted,
    /// They are being asked, until then.
    Waits(DateTime<Utc>),
    /// They have not: why, as a sentence without its full stop.
    Refused(String),
}

/// Makes attempts. It marks each first effect in the journal before it allows it, and returns when everything that
/// it started has ended.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Called before an attempt is asked for, to prepare what takes time and depends on no job.
    fn get_ready(&self) {}
    /// Whether a definition's body is the message, and nothing is asked of anybody: then it waits for no other run. Returns at once.
    fn tells_only(&self, definition: &Definition) -> bool {
        definition.is_delivered_as_written()
    }
    /// Asked before each attempt. One whose need is not met waits, and is not recorded as begun.
    async fn agent_for(&self, _definition: &Definition) -> AgentNeed {
        AgentNeed::Met
    }
    /// What the machine lacks of what a definition requires, as a sentence without its full stop. Asked before each attempt that no
    /// person has asked for: it waits then, and is not recorded as begun.
    async fn unmet(&self, _definition: &Definition) -> Option<&'static str> {
        None
    }
    /// Whether the person lets an attempt begin; asks them where they were not. Asked about a job with `approve`, and about one that may
    /// have had it when the person was asked. Returns at once.
    ///
    /// # Errors
    /// When the journal fails.
    async fn approval(&self, _job: &Job) -> Result<Approval, JournalError> {
        Ok(Approval::Granted)
    }
    /// Whether a run of `writer` may write into the folder that `watcher` watches. Where that cannot be told it may.
    async fn may_write(&self, _writer: &Arc<Definition>, _watcher: &Arc<Definition>) -> bool {
        true
    }
    /// Makes one attempt. May be called for many jobs at once, never for two of the same definition.
    async fn launch(&self, job: Job) -> AttemptReport;
}

/// A report of a failure that no client has reported.
pub(super) fn failure(class: FailureClass, message: String) -> AttemptReport {
    AttemptReport::bare(AttemptEnd::Failed(Failure { class, message }))
}

/// Makes one attempt; a panic becomes a failure of our own.
pub(super) async fn attempt(launcher: &dyn Launcher, job: Job) -> AttemptReport {
    let run = job.run.clone();
    AssertUnwindSafe(launcher.launch(job)).catch_unwind().await.unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a word".to_owned());
        tracing::error!(%run, panic = words, "a run panicked");
        failure(FailureClass::Internal, format!("a fault of ollim-bot itself (panic: {words}); please report it"))
    })
}

/// The class's word in the record.
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
