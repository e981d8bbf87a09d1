//! The gate of a job's run.

use std::io;
use std::sync::Arc;

use agent_sandbox::Start;
use serde_json::json;

use super::state::KeptState;
use super::{Decide, Gate, GateEnd, GateVerdict, USUAL_TIMEOUT};
use crate::agent::{AttemptEnd, Failure, FailureClass, SkipReason};
use crate::journal::{Denial, EventKind};
use crate::refusal::Refusal;
use crate::run::exec::may_ping;
use crate::run::host::Host;
use crate::run::runner::{RunSettings, Runner};
use crate::run::sandbox::Judged;
use crate::run::shell_line::{Beginning, FileLine};
use crate::schedule::Job;

/// Works on files of a gate on a thread for that. The gate chooses how many there are, and nothing else may wait for them.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// The consequence of a gate for its run.
pub(in crate::run) enum GateOutcome {
    /// The agent is woken.
    Woken {
        /// The output of the gate; `None` if the job has no gate.
        said: Option<String>,
    },
    /// The agent is not woken, and the run ends in this way.
    Ended(AttemptEnd),
}

/// Returns what decides about the programs of a gate.
fn decided_by(host: &Arc<Host>) -> Decide {
    let host = Arc::clone(host);
    Arc::new(move |start: &Start| match &host.sandbox {
        Some(sandbox) => sandbox.judge(host.policy(), start),
        None => Judged::denied("denied: this session has no sandbox".into(), start),
    })
}

impl Runner {
    /// Runs a job's gate, if it has one.
    ///
    /// # Errors
    /// An error if our own part failed.
    pub(in crate::run) async fn gate(
        &self,
        job: &Job,
        host: &Arc<Host>,
        settings: &RunSettings,
    ) -> Result<GateOutcome, Refusal> {
        let Some(line) = &job.definition.gate else { return Ok(GateOutcome::Woken { said: None }) };
        let failed =
            |why: String| Ok(GateOutcome::Ended(AttemptEnd::Failed(Failure::new(FailureClass::GateFailed, why))));
        let internal = |what: &str, error: io::Error| Refusal::environment(format!("{what}: {error}"));
        let runner = self.line_runner().await?;
        let line = FileLine { text: line, is_one_stream: false, policy: host.policy(), sandbox: host.sandbox.as_ref() };
        let mut line = match self.shell_line(&line, &job.run, runner, settings)? {
            Ok(line) => line,
            Err(denial) => {
                let why = denial.reason.clone();
                host.record(denial).await;
                return failed(format!("the job's tools do not cover its gate: {why}"));
            }
        };
        let Beginning { own, ready } = self.beginning(job, host, None, &mut line.of_programs)?;
        let timeout = job.definition.gate_timeout.unwrap_or(USUAL_TIMEOUT);
        let gate = Gate { line, timeout, decide: decided_by(host) };
        let (state, folder) = (KeptState::of(&self.home, &job.definition), gate.state());
        self.resolve_states(&state).await?;
        let (kept, to) = (state.clone(), folder.clone());
        let copied = apart(move || kept.copy_into(&to, None)).await;
        copied.map_err(|error| internal("what the gate keeps cannot be read", error))?;
        let ended = gate.run(ready, job.cancel.cancelled()).await;
        drop(own);
        let Some(GateEnd { verdict, refused }) = ended.map_err(|error| internal("the gate cannot be run", error))?
        else {
            return Ok(GateOutcome::Ended(AttemptEnd::Cancelled));
        };
        for decision in refused {
            let input = json!({ "command": decision.commands.first() });
            let (layer, rule, reason) = (decision.layer.to_string(), decision.rule, decision.reason);
            host.record(Denial { tool: "Bash".into(), input, layer, rule, reason }).await;
        }
        let run = job.run.clone();
        let left = apart(move || {
            let verdict = verdict.keeping(|| state.take(&folder, &run));
            // The agent must not see the gate's state.
            agent_sandbox::leftovers::remove(&folder).map(|()| verdict)
        });
        let verdict = left.await.map_err(|error| internal("the gate's folder cannot be removed", error))?;
        fail_point!(GateEnded);
        let note = |text: String| host.events.add(EventKind::Note { text });
        match verdict {
            GateVerdict::Wake(said) => {
                note("the gate woke the agent".into());
                Ok(GateOutcome::Woken { said: Some(said) })
            }
            GateVerdict::Skip(why) => Ok(GateOutcome::Ended(AttemptEnd::Skipped(SkipReason::Gate(why)))),
            // The reason contains the gate's own words, which may not reach the person.
            GateVerdict::Failed(why) if !may_ping(&job.definition) => {
                note(why);
                failed(format!("the gate failed; `ollim-bot runs show {}` says how", job.run))
            }
            GateVerdict::Failed(why) => failed(why),
        }
    }

    /// Discards the state that the gate of this run wrote.
    ///
    /// # Errors
    /// An error if it cannot be removed.
    pub(in crate::run) fn drop_state(&self, job: &Job) -> Result<(), Refusal> {
        let dropped = KeptState::of(&self.home, &job.definition).discard(&job.run);
        dropped.map_err(|error| Refusal::environment(format!("what the gate keeps cannot be dropped: {error}")))
    }

    /// Promotes or discards the states of earlier runs, depending on their ends.
    async fn resolve_states(&self, state: &KeptState) -> Result<(), Refusal> {
        let waiting = state.waiting();
        if waiting.is_empty() {
            return Ok(());
        }
        let internal = |error: io::Error| Refusal::environment(format!("what the gate keeps cannot be kept: {error}"));
        let ended = self.journal.ends_of(waiting.clone()).await;
        let ended = ended.map_err(|error| Refusal::environment(error.to_string()))?;
        for run in waiting.iter().filter(|run| !ended.iter().any(|(known, _)| known == *run)) {
            state.discard(run).map_err(internal)?;
        }
        // The runs are in order, so that the last one counts.
        for (run, end) in ended {
            if end.is_well() {
                state.promote(&run).map_err(internal)?;
            } else if end.is_over() {
                state.discard(&run).map_err(internal)?;
            }
        }
        Ok(())
    }
}
