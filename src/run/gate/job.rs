//! The gate of a job's run.

use std::path::Path;
use std::sync::Arc;

use agent_sandbox::Start;
use serde_json::json;

use super::state::KeptState;
use super::{Gate, GateEnd, GateVerdict, USUAL_TIMEOUT};
use crate::agent::claude::options::shell_environment;
use crate::agent::{AttemptEnd, Failure, FailureClass};
use crate::journal::{Denial, EventKind};
use crate::policy::{Layer, ToolCall, Verdict};
use crate::refusal::Refusal;
use crate::run::host::{Host, layer_name};
use crate::run::runner::{RunSettings, Runner};
use crate::run::sandbox::Judged;
use crate::run::tokens::RunAuthority;
use crate::schedule::{Job, SKIPPED_BY_GATE};

/// What becomes of a run by its gate.
pub(in crate::run) enum Gated {
    /// The agent is woken. `said`: what the gate printed; `None`: the job has no gate.
    Woken {
        /// See above.
        said: Option<String>,
    },
    /// It is not, and this is its end.
    Ended(AttemptEnd),
}

impl Runner {
    /// Runs a job's gate, where it has one.
    ///
    /// # Errors
    /// When something of ours failed.
    pub(in crate::run) async fn gate(
        &self,
        job: &Job,
        host: &Arc<Host>,
        run_dir: &Path,
        settings: &RunSettings,
    ) -> Result<Gated, Refusal> {
        let Some(line) = &job.definition.gate else { return Ok(Gated::Woken { said: None }) };
        // What the gate spawns or makes is paid for by whoever pays for this run.
        self.journal
            .note_payer(&job.run, &job.definition)
            .await
            .map_err(|error| Refusal::environment(error.to_string()))?;
        let failed = |why: String| Ok(Gated::Ended(AttemptEnd::Failed(Failure::new(FailureClass::GateFailed, why))));
        let call = ToolCall {
            tool: "Bash".into(),
            input: json!({ "command": line }),
            cwd: self.home.work(),
            agent_type: None,
        };
        let early = host.policy().decide(&call);
        let shell = host.sandbox.as_ref().and_then(|sandbox| sandbox.for_client(false).shell);
        let Some(shell) = shell.filter(|_| early.verdict != Verdict::Deny) else {
            let (layer, reason) = (layer_name(early.layer), early.reason.clone());
            host.record(Denial { tool: "Bash".into(), input: call.input, layer, rule: early.rule, reason }).await;
            return failed(format!("the job's tools do not cover its gate: {}", early.reason));
        };
        let internal = |what: &str, error: std::io::Error| Refusal::environment(format!("{what}: {error}"));
        let authority =
            RunAuthority::new(job.run.clone(), job.definition.title(), host.limit.clone(), Arc::clone(host) as _);
        let own =
            self.tokens.grant(authority).map_err(|error| internal("no token could be made for the gate", error))?;
        let decides = Arc::clone(host);
        let gate = Gate {
            line: line.clone(),
            timeout: job.definition.gate_timeout.unwrap_or(USUAL_TIMEOUT),
            shell,
            decide: Arc::new(move |start: &Start| match &decides.sandbox {
                Some(sandbox) => sandbox.judge(decides.policy(), start),
                None => Judged::nothing(start),
            }),
            run_dir: run_dir.to_owned(),
            work: self.home.work(),
            shell_binary: self.shell_binary.clone(),
            clean: shell_environment(&self.client_environment, &run_dir.join("tmp")),
            of_programs: [
                ("OLLIM_HOME", self.client_environment.data_folder.as_str()),
                ("OLLIM_RUN_TOKEN", own.token()),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            limits: settings.limits,
        };
        let (state, folder) = (KeptState::of(&self.home, &job.definition), gate.state());
        self.settle(&state).await?;
        state.copy_into(&folder, None).map_err(|error| internal("what the gate keeps cannot be read", error))?;
        let ended = gate.run(job.cancel.cancelled()).await;
        drop(own);
        let Some(GateEnd { mut verdict, refused }) =
            ended.map_err(|error| internal("the gate cannot be run", error))?
        else {
            return Ok(Gated::Ended(AttemptEnd::Cancelled));
        };
        for decision in refused {
            let input = json!({ "command": decision.commands.first() });
            let (layer, rule, reason) = (layer_name(decision.layer), decision.rule, decision.reason);
            host.record(Denial { tool: "Bash".into(), input, layer, rule, reason }).await;
        }
        if !matches!(verdict, GateVerdict::Failed(_))
            && let Err(error) = state.take(&folder, &job.run)
        {
            verdict = GateVerdict::Failed(format!("what the gate wrote to $OLLIM_STATE cannot be kept: {error}"));
        }
        // The agent is given nothing of it.
        agent_sandbox::leftovers::remove(&folder)
            .map_err(|error| internal("the gate's folder cannot be removed", error))?;
        let note = |text: String| host.events.add(EventKind::Note { text });
        match verdict {
            GateVerdict::Wake(said) => {
                note("the gate woke the agent".into());
                Ok(Gated::Woken { said: Some(said) })
            }
            GateVerdict::Skip(why) => Ok(Gated::Ended(AttemptEnd::Skipped(format!("{SKIPPED_BY_GATE}{why}")))),
            GateVerdict::Failed(why) => failed(why),
        }
    }

    /// Drops what the gate of this run wrote.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(in crate::run) fn drop_state(&self, job: &Job) -> Result<(), Refusal> {
        let dropped = KeptState::of(&self.home, &job.definition).discard(&job.run);
        dropped.map_err(|error| Refusal::environment(format!("what the gate keeps cannot be dropped: {error}")))
    }

    /// Keeps or drops the copies of earlier runs, by how these ended.
    async fn settle(&self, state: &KeptState) -> Result<(), Refusal> {
        let waiting = state.waiting();
        if waiting.is_empty() {
            return Ok(());
        }
        let internal =
            |error: std::io::Error| Refusal::environment(format!("what the gate keeps cannot be kept: {error}"));
        let ended = self.journal.ends_of(waiting.clone()).await;
        let ended = ended.map_err(|error| Refusal::environment(error.to_string()))?;
        for run in waiting.iter().filter(|run| !ended.iter().any(|(known, _)| known == *run)) {
            state.discard(run).map_err(internal)?;
        }
        // In the order of the runs: the last one counts.
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

impl Judged {
    /// For a run without a sandbox, which starts nothing.
    fn nothing(start: &Start) -> Self {
        let message = "denied: this session has no sandbox".to_owned();
        let decision = crate::policy::Decision {
            verdict: Verdict::Deny,
            layer: Layer::System,
            rule: None,
            reason: message.clone(),
            commands: vec![start.argv.join(" ")],
            read_only: false,
        };
        Self { decision, answer: agent_sandbox::Answer::Deny { code: 126, message } }
    }
}
