//! Turns of forks in which the person talks: the conversation that each continues, and the report that ends a fork.

use std::io;
use std::path::{Path, PathBuf};

use super::forks::WRITE_REPORT;
use super::runner::Runner;
use crate::agent::{AttemptEnd, AttemptReport};
use crate::bot::main_session::copy_transcript;
use crate::definition::DefinitionId;
use crate::journal::{ForkEnd, ForkRecord, RunId};
use crate::refusal::Refusal;
use crate::schedule::Job;

impl Runner {
    /// Returns the fork of a turn; `None` for the main session, or if the id is not a turn's.
    pub(super) async fn fork_of(&self, id: &DefinitionId) -> Result<Option<ForkRecord>, Refusal> {
        if !id.is_turn() {
            return Ok(None);
        }
        match self.journal.session(id).await?.and_then(|session| session.fork) {
            Some(fork) => Ok(self.journal.fork(&fork).await?),
            None => Ok(None),
        }
    }

    /// Copies the transcript that a fork's next turn continues: of its last turn, or of the conversation it was opened on.
    pub(super) async fn copy_of_fork(&self, fork: &ForkRecord, run_dir: &Path) -> Result<Option<PathBuf>, Refusal> {
        let last = match (self.journal.last_of_fork(&fork.id).await?, &fork.from_run) {
            (None, Some(run)) => {
                self.until_over(run).await;
                self.journal.conversation_of(run).await?
            }
            (last, _) => last,
        };
        match last.and_then(|last| last.transcript) {
            Some(transcript) => copy_transcript(&transcript, run_dir).map_err(not_copied),
            None if fork.from_run.is_some() => Ok(None),
            None => self.bot.main.snapshot(run_dir).map_err(not_copied),
        }
    }

    /// Waits until a run is no longer active.
    async fn until_over(&self, run: &RunId) {
        let mut activity = self.schedule.activity();
        loop {
            activity.mark_unchanged();
            let is_going = self.schedule.snapshot(0).await.active.iter().any(|active| active.run == *run);
            if !is_going || activity.changed().await.is_err() {
                return;
            }
        }
    }

    /// If the turn was to write a fork's report, passes the report to the main session and ends the fork.
    pub(super) async fn reported(
        &self,
        fork: &ForkRecord,
        job: &Job,
        mut report: AttemptReport,
    ) -> Result<AttemptReport, Refusal> {
        if job.definition.body.trim() != WRITE_REPORT {
            return Ok(report);
        }
        match report.answer.as_ref().filter(|_| report.end == AttemptEnd::Completed) {
            Some(answer) => {
                let topic = fork.topic.as_deref().unwrap_or("without a topic");
                let text = format!("[report of a fork: {topic}] {answer}");
                self.journal.report_fork(&job.run, &fork.id, text).await?;
                report
                    .messages
                    .push("The fork has ended. The main session is told this report at its next turn.".into());
            }
            // The service is stopping, or the person wants to continue the fork.
            None if report.end == AttemptEnd::Cancelled => self.journal.keep_fork(&fork.id).await?,
            // No budget is left for the report. The fork stays open, and its idle time starts now.
            None if matches!(report.end, AttemptEnd::Skipped(_)) => {
                self.journal.keep_fork(&fork.id).await?;
                self.journal.heard_in_fork(&fork.id).await?;
            }
            None => {
                self.journal.end_fork(&fork.id, ForkEnd::Exit, true).await?;
                report
                    .messages
                    .push("The report of the fork could not be written. The fork has ended, and was dropped.".into());
            }
        }
        Ok(report)
    }
}

pub(super) fn not_copied(error: io::Error) -> Refusal {
    Refusal::environment(format!("the conversation could not be copied: {error}"))
}

pub(super) fn conversation_is_gone(fork: &ForkRecord) -> Refusal {
    let from = fork.from_run.as_ref().map(|run| format!(" of run {run}")).unwrap_or_default();
    Refusal::user(format!("the conversation{from} is not there any more"))
        .hint("say it to the bot itself, not as an answer to that message")
}
