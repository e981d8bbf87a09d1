//! One turn of an agent's client: its budget, its tokens and its report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::as_written::message;
use super::host::Host;
use super::runner::{RunSettings, Runner, needs_agent};
use super::tokens::{Grant, RunAuthority};
use crate::agent::{
    AgentClient, AttemptEnd, AttemptReport, ClientOptions, Failure, FailureClass, Request, Sandbox, SessionMode,
    SkipReason, UsedClient,
};
use crate::definition::{Definition, Kind};
use crate::journal::{Caps, Reservation, Usage};
use crate::policy::AskTerms;
use crate::refusal::Refusal;
use crate::schedule::Job;

/// The inputs of one client's turn.
#[derive(Clone)]
pub(super) struct Turn<'a> {
    pub(super) client: &'a Arc<dyn AgentClient>,
    pub(super) job: &'a Job,
    pub(super) host: Arc<Host>,
    pub(super) run_dir: PathBuf,
    pub(super) session: SessionMode,
    pub(super) options: ClientOptions,
    pub(super) deny_rules: Vec<String>,
    pub(super) prompt: String,
    pub(super) sandbox: Sandbox,
    pub(super) settings: RunSettings,
}

/// The tokens by which the service recognizes the processes of a turn.
struct TurnTokens {
    own: Grant,
    of_agents: BTreeMap<String, Grant>,
}

impl Runner {
    /// Runs the client. A turn without remaining budget is not started.
    pub(super) async fn run(&self, mut turn: Turn<'_>) -> Result<AttemptReport, Refusal> {
        let Turn { client, job, .. } = turn;
        let (host, caps) = (Arc::clone(&turn.host), caps(&job.definition, &turn.settings));
        let mut external = Vec::new();
        if client.starts_processes() {
            external = tokio::select! {
                found = self.external(&host) => match found {
                    Ok(found) => found,
                    Err(why) => {
                        let why = format!("a server that the job needs cannot be used: {why}");
                        let failure = Failure::new(FailureClass::McpServerMissing, why);
                        return Ok(AttemptReport::bare(AttemptEnd::Failed(failure)));
                    }
                },
                () = job.cancel.cancelled() => return Ok(AttemptReport::bare(AttemptEnd::Cancelled)),
            };
            match self.journal.reserve_cost(&job.run, &job.definition, caps.clone()).await? {
                Reservation::Cap(cap) => {
                    turn.options.max_budget_usd = cap.map(|cap| cap.usd);
                    turn.options.max_budget_from = cap.map(|cap| cap.from).unwrap_or_default();
                }
                Reservation::Spent(why) => {
                    return Ok(over_budget(&job.definition, job.cut_off, job.attempt, &why));
                }
            }
            fail_point!(CapTaken);
        }
        let granted = self.grant(&turn).await?;
        let request = Request { external, ..self.request(turn, &granted) };
        host.events.prompt(&request.prompt);
        let mut report = client.run(request).await;
        report.client.get_or_insert_with(|| UsedClient {
            name: client.name(),
            version: None,
            is_agent: client.starts_processes(),
        });
        if let Some(cost_usd) = report.cost_usd
            && let Err(error) = {
                let usage = Usage { cost_usd, tokens: report.tokens };
                self.journal.record_usage(&job.run, &job.definition, usage, caps).await
            }
        {
            // The run's end is recorded nevertheless. Until then the run's limit counts as its cost.
            warn!(%error, "what a run has cost could not be recorded at once");
        }
        report.messages.append(&mut *host.delivered.lock().await);
        Ok(report)
    }

    /// Creates the tokens. An agent's rights differ from the job's, whatever way it asks, so each agent has its own token.
    async fn grant(&self, turn: &Turn<'_>) -> Result<TurnTokens, Refusal> {
        let Turn { client, job, host, session, .. } = turn;
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
        let of_agents = host.policy.agents().map(|name| Ok((name.to_owned(), grant(authority.of_agent(name))?)));
        let of_agents = of_agents.collect::<Result<_, Refusal>>()?;
        Ok(TurnTokens { own: grant(authority)?, of_agents })
    }

    /// Builds the request to the client, without the person's own MCP servers.
    fn request(&self, turn: Turn<'_>, granted: &TurnTokens) -> Request {
        let Turn { job, host, run_dir, session, options, deny_rules, prompt, sandbox, settings, .. } = turn;
        let of_agents = granted.of_agents.iter();
        Request {
            run: job.run.to_string(),
            run_dir,
            work_dir: self.home.work(),
            prompt,
            message: message(job),
            needs_agent: needs_agent(&job.definition),
            session,
            options,
            visible_tools: host.policy.visible_tools(),
            deny_rules,
            mcp_tools: host.tools.clone(),
            external: Vec::new(),
            sandbox,
            token: granted.own.token().to_owned(),
            agent_tokens: of_agents.map(|(name, grant)| (name.clone(), grant.token().to_owned())).collect(),
            timeout: job.definition.timeout.unwrap_or(settings.timeout),
            inactivity_timeout: settings.inactivity_timeout,
            asks: asks(&job.definition, &settings),
            answers: job.definition.id.is_turn().then(|| job.definition.id.to_string()),
            limits: settings.limits,
            cancel: job.cancel.clone(),
            host,
        }
    }
}

/// Returns the cost limits of a definition's run.
fn caps(definition: &Definition, settings: &RunSettings) -> Caps {
    let (budget, zone) = settings.budget;
    Caps::of(definition, budget, zone)
}

/// Returns the end of a run without remaining budget. The person gets a message if they wait for an answer or a reminder, and about work
/// that was begun.
fn over_budget(definition: &Definition, cut_off: bool, attempt: u32, why: &str) -> AttemptReport {
    let mut report = AttemptReport::bare(AttemptEnd::Skipped(SkipReason::Budget(why.to_owned())));
    let id = &definition.id;
    let how = match (cut_off, attempt) {
        (true, _) => "was cut off when the service ended, and is not begun again",
        (false, 0..=1) => "was skipped",
        (false, _) => "failed, and is not tried again",
    };
    match definition.kind() {
        Kind::Routine | Kind::Webhook if attempt <= 1 => {}
        Kind::Routine | Kind::Webhook => report.notices.push(format!("{} {how}: {why}.", definition.title())),
        Kind::Reminder => report.notices.push(format!(
            "reminder {id} {how}: {why}. Its file is kept in reminders/failed/; `ollim-bot reminder retry {id}` brings it back."
        )),
        Kind::Session if id.is_turn() => {
            report.messages.push(format!("I was not asked: {why}. `ollim-bot budget --help` says how to raise it."));
        }
        Kind::Session => report.notices.push(format!("The spawned agent {id} was not started: {why}.")),
    }
    report
}

/// Returns whether the session to resume does not exist. The agent has received nothing then.
pub(super) fn session_is_missing(report: &AttemptReport) -> bool {
    matches!(&report.end, AttemptEnd::Failed(failure) if failure.class == FailureClass::MainSessionMissing)
}

/// Returns how long a call of a run may wait for the person; `None` if the run asks about no call.
fn asks(definition: &Definition, settings: &RunSettings) -> Option<Duration> {
    let (asked, terms) = match definition.background() {
        Some(background) => (background.restrictions.asked_tools(), background.restrictions.ask_terms()),
        None => (&settings.main_ask_tools[..], AskTerms::default()),
    };
    (!asked.is_empty()).then_some(terms.deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Mode;
    use crate::run::prompt::tests::reminder;

    #[test]
    fn that_a_budget_is_spent_is_in_words_of_the_service() {
        let definition = reminder(Mode::Foreground, None);
        for (cut_off, attempt, how) in [
            (false, 1, "was skipped"),
            (true, 2, "was cut off when the service ended, and is not begun again"),
            (false, 2, "failed, and is not tried again"),
        ] {
            let report = over_budget(&definition, cut_off, attempt, "nothing is left");
            assert_eq!((report.notices.len(), report.messages.len()), (1, 0));
            assert!(report.notices[0].starts_with(&format!("reminder {} {how}: nothing is left.", definition.id)));
        }
    }
}
