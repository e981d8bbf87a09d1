//! Turns of the main session, and of its forks in which the person talks.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use tracing::warn;

use super::events::RunEvents;
use super::folder;
use super::host::Host;
use super::runner::Runner;
use super::setup::Setup;
use super::turn::{Turn, session_is_missing};
use crate::agent::claude::COMPACT;
use crate::agent::{AgentClient, AttemptEnd, AttemptReport, Observation, RunHost as _, SessionMode};
use crate::bot::live::UpdateKind;
use crate::bot::main_session::{self, MAKE_SHORTER, NO_ANSWER};
use crate::bot::mid_turn::MessageOutcome;
use crate::journal::{EventKind, ForkRecord, PendingUpdates, RunId};
use crate::refusal::Refusal;
use crate::schedule::Job;

/// The answer to a message that another turn took up and answered.
const ANSWERED_ABOVE: &str = "(The answer to your message before this one covers it.)";

/// The note in the prompt about a message that an earlier turn had taken up before it was cut off.
const MAY_BE_DONE: &str =
    "[a turn that was cut off had this message already, and may have acted on it: look before you do it again]";

impl Runner {
    /// Runs a turn of the main session. The dispatcher sends its answer to the person.
    pub(super) async fn foreground(&self, job: &Job, client: &Arc<dyn AgentClient>) -> Result<AttemptReport, Refusal> {
        let fork = self.fork_of(&job.definition.id).await?;
        let (main, _turn_of_fork) = tokio::select! {
            held = self.hold_conversation(job, fork.as_ref()) => held,
            () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
        };
        // An earlier turn may have answered the message meanwhile.
        let taken_up = self.bot.mid_turn.take_outcome(&job.definition.id);
        if let Some(MessageOutcome::Answered(run)) = &taken_up {
            return Ok(self.answered_above(job, run));
        }
        let (first, updates) = self.prepare_main(job, client, fork.as_ref(), main.as_ref(), taken_up.is_some()).await?;
        let host = Arc::clone(&first.host);
        if let Some(fork) = &fork {
            let report = self.run(first).await;
            host.questions.close().await;
            return Ok(with_words(self.reported(fork, job, report?).await?, job, &host).await);
        }
        if first.prompt == COMPACT && first.session == SessionMode::Main(None) {
            let text = "There is no conversation to make shorter.".to_owned();
            host.observe(Observation::Said { text: text.clone() });
            return Ok(AttemptReport { answer: Some(text), ..AttemptReport::bare(AttemptEnd::Completed) });
        }
        let is_turn = job.definition.id.is_turn();
        if is_turn {
            self.bot.mid_turn.begin(job.run.clone(), job.definition.channel.clone());
        }
        let report = self.main_turn(first).await;
        host.questions.close().await;
        if is_turn {
            self.bot.mid_turn.end(report.as_ref().is_ok_and(|report| report.end == AttemptEnd::Completed));
        }
        let report = report?;
        if main.is_some() && self.idle_client.waits().await.is_none() {
            folder::tidy(self.home.main_run()).await;
        }
        self.save_session(&report, &updates).await?;
        Ok(with_words(report, job, &host).await)
    }

    /// Waits for exclusive use of the conversation that the turn continues: the main session's, or a fork's. A job whose body is
    /// delivered as it is needs none.
    async fn hold_conversation(
        &self,
        job: &Job,
        fork: Option<&ForkRecord>,
    ) -> (Option<main_session::Turn<'_>>, Option<OwnedMutexGuard<()>>) {
        match fork {
            _ if job.definition.is_delivered_as_written() => (None, None),
            Some(fork) => (None, Some(self.bot.forks.turn(&fork.id).await)),
            None => (Some(self.bot.main.turn().await), None),
        }
    }

    /// Prepares the first try of a turn. Returns it with the reports that it contains.
    async fn prepare_main<'a>(
        &self,
        job: &'a Job,
        client: &'a Arc<dyn AgentClient>,
        fork: Option<&ForkRecord>,
        main: Option<&main_session::Turn<'_>>,
        was_cut_off: bool,
    ) -> Result<(Turn<'a>, PendingUpdates), Refusal> {
        let settings = self.settings();
        let run_dir = match main {
            Some(_) => self.main_run_dir().await?,
            None => self.run_dir(&job.run)?,
        };
        let setup = self.spawner.setup(&job.definition, None)?;
        // The main session's own lines run as the person's do if its rules grant every program. Its agents' do not.
        let everything = setup.policy.shell(None).is_some_and(|shell| shell.everything);
        let sandbox = client.starts_processes().then(|| self.sandbox(&setup, &run_dir, &settings)).transpose()?;
        let sandbox = sandbox.map(|made| if everything { made.with_plain_shell() } else { made });
        let limited = sandbox.as_ref().map(|sandbox| sandbox.for_client(!everything)).unwrap_or_default();
        let Setup { policy, mut options, deny_rules, .. } = setup;
        if job.definition.id.is_turn() {
            let chosen = self.bot.main.choice();
            options.model = chosen.model(options.model);
            options.thinking = chosen.thinking.or(options.thinking);
        }
        let system_prompt = self.system_prompt(&settings, &policy, None);
        let host = self.host(job, policy, sandbox, &settings, client.name());
        let host = Arc::new(Host { is_beside: fork.is_some(), ..host });
        let shortens = fork.is_none() && job.definition.id.is_turn() && job.definition.body.trim() == MAKE_SHORTER;
        let updates = if fork.is_some() || shortens { PendingUpdates::default() } else { self.updates().await? };
        let prompt = if shortens {
            COMPACT.to_owned()
        } else {
            let late = job.late.clone().or(was_cut_off.then(|| MAY_BE_DONE.to_owned()));
            self.prompt(&Job { late, ..job.clone() }, &host, &settings, &updates, None)?
        };
        let session = match fork {
            Some(fork) => SessionMode::Beside(self.copy_of_fork(fork, &run_dir).await?),
            None => SessionMode::Main(main.and_then(main_session::Turn::session)),
        };
        let options = system_prompt.given_to(options, &session);
        let turn =
            Turn { client, job, host, run_dir, options, session, deny_rules, prompt, sandbox: limited, settings };
        Ok((turn, updates))
    }

    /// Returns the end of a turn whose message an earlier turn took up and answered.
    fn answered_above(&self, job: &Job, run: &RunId) -> AttemptReport {
        let events = RunEvents::new(job.run.clone(), self.journal.clone());
        let text = format!("the turn of run {run} answered it: it was said while that went");
        events.add(EventKind::Note { text });
        let said = Observation::Said { text: ANSWERED_ABOVE.to_owned() };
        self.bot.live.publish(&job.definition.id, UpdateKind::Did(said.clone()));
        events.observe(said);
        AttemptReport { answer: Some(ANSWERED_ABOVE.to_owned()), ..AttemptReport::bare(AttemptEnd::Completed) }
    }

    /// Records the main session's new state, and the reports that it has received.
    async fn save_session(&self, report: &AttemptReport, updates: &PendingUpdates) -> Result<(), Refusal> {
        // Without a session no model has read the reports.
        let Some(session) = report.session.clone() else { return Ok(()) };
        let unrecorded = |error: crate::journal::JournalError| Refusal::environment(error.to_string());
        self.bot.main.save(session, report.transcript.clone()).await.map_err(unrecorded)?;
        if report.end == AttemptEnd::Completed {
            self.journal.updates_given(updates.newest).await.map_err(unrecorded)?;
        }
        Ok(())
    }

    /// Runs a turn of the main session. If the session cannot be resumed, runs the turn in a new one.
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
}

/// Adds a notice if a completed turn said nothing.
async fn with_words(mut report: AttemptReport, job: &Job, host: &Host) -> AttemptReport {
    let has_words = report.answer.as_deref().is_some_and(|answer| !answer.trim().is_empty());
    let is_silent = report.end == AttemptEnd::Completed && !has_words && report.messages.is_empty();
    if is_silent && job.definition.id.is_turn() && !host.delivery.lock().await.sent {
        report.messages.push(NO_ANSWER.to_owned());
    }
    report
}
