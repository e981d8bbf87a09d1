//! A started client and the parts that serve it. It does one turn; in the main session it may do several.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_sandbox::Launch;
use agent_sandbox::cgroup::Group;
use futures::FutureExt as _;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::broker::{Broker, RunJudge};
use super::outcome::Termination;
use super::process::{Exit, Process};
use super::session::{self, ClientState, PendingMessage, Turn, TurnEnd, TurnStart};
use super::{Claude, Limits};
use crate::agent::client::{Request, SessionId, SessionMode};
use crate::agent::{CurrentHost, ExternalServer, Tokens, ToolPipe};

/// The terms under which a client was started.
pub(super) struct StartConfig {
    pub launch: Launch,
    pub greeting: Value,
    pub mcp_tools: Vec<String>,
    pub external: Vec<ExternalServer>,
}

impl StartConfig {
    /// Returns whether a client started under these terms may do a turn under `others`: it must not have more rights.
    pub(super) fn are_within(&self, others: &Self) -> bool {
        self.launch.is_within(&others.launch)
            && self.greeting == others.greeting
            && self.mcp_tools == others.mcp_tools
            && self.external == others.external
    }
}

/// The parts of a client's command line that differ from turn to turn.
#[derive(Clone)]
pub(super) struct TurnArgs {
    pub session: SessionMode,
    /// Maximum cost of all its turns together, in US dollars.
    pub max_budget_usd: Option<f64>,
}

pub(super) struct LiveClient {
    process: Process,
    pipe: ToolPipe,
    host: Arc<CurrentHost>,
    pub judge: Arc<RunJudge>,
    pub terms: StartConfig,
    pub beginning: TurnArgs,
    pub broker: Broker,
    /// The control group, removed together with the client.
    pub group: Option<Group>,
    /// The conversation that the client holds.
    session: Option<SessionId>,
    /// The cost of the turns so far. The client reports sums over all its turns.
    cost_usd: f64,
    tokens: Tokens,
    /// Messages that the client was given and has not taken up yet.
    given: Vec<PendingMessage>,
    /// Whether the client has not done a turn yet.
    is_new: bool,
    /// The value of [`IdleClient::now`](super::IdleClient) at the client's start.
    pub started_at: u64,
    /// The program of the runner.
    shell_binary: PathBuf,
}

/// The result of a turn.
pub(super) struct TurnOutcome {
    pub termination: Termination,
    pub client: ClientState,
    pub exit: Exit,
    /// The client, if it can do further turns.
    pub live: Option<LiveClient>,
    /// Whether an idle client ended before it took up this turn.
    pub is_unclaimed: bool,
}

impl LiveClient {
    /// # Errors
    /// An error if the runner cannot be started, or an old socket cannot be removed.
    pub(super) async fn start(
        claude: &Claude,
        request: &Request,
        terms: StartConfig,
        (beginning, broker, group): (TurnArgs, Broker, Option<Group>),
    ) -> std::io::Result<Self> {
        let host = Arc::new(CurrentHost::new(request.host.clone()));
        let judge = Arc::new(RunJudge {
            host: host.clone(),
            clean: claude.programs_environment(request, &broker),
            token: request.token.clone(),
            agent_tokens: request.agent_tokens.clone(),
            exceeded: Mutex::default(),
        });
        // The previous client leaves its socket behind if it used the same folder.
        if let Err(error) = std::fs::remove_file(&broker.socket)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let process =
            Process::start(claude.ready.take(&claude.shell_binary).await?, &terms.launch, judge.clone()).await?;
        let pipe = (claude.serve_tools)(&request.mcp_tools, &request.external, host.clone());
        Ok(Self {
            process,
            pipe,
            host,
            judge,
            terms,
            beginning,
            broker,
            group,
            session: None,
            cost_usd: 0.0,
            tokens: Tokens::default(),
            given: Vec::new(),
            is_new: true,
            started_at: claude.idle.now().await,
            shell_binary: claude.shell_binary.clone(),
        })
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Returns whether the client is alive, holds the conversation that the request continues, and has no other message to answer, nor a
    /// turn that it began without one.
    pub(super) fn can_continue(&mut self, request: &Request) -> bool {
        let SessionMode::Main(Some(session)) = &request.session else { return false };
        self.is_alive()
            && self.session.as_ref() == Some(session)
            && match self.given.first() {
                Some(given) => request.answers.as_ref() == Some(&given.id),
                None => !begins_turn(self.process.lines.unread()),
            }
    }

    /// Returns whether the client's remaining budget is about the request's: not more, and not much less.
    pub(super) fn has_budget_for(&self, request: &Request) -> bool {
        match (self.beginning.max_budget_usd, request.options.max_budget_usd) {
            (None, None) => true,
            (Some(whole), Some(wanted)) => {
                let left = whole - self.cost_usd;
                // Sums of costs have rounding errors.
                left < wanted * 1.001 && left > wanted * 0.9
            }
            _ => false,
        }
    }

    /// Does one turn.
    pub(super) async fn turn(mut self, request: &Request, deadline: Instant, limits: &Limits) -> TurnOutcome {
        self.host.set(Some(request.host.clone()));
        session::started(&*request.host, self.process.pid()).await;
        fail_point!(StartRecorded);
        let start = match self.is_new {
            true => TurnStart::Greet(self.terms.greeting.clone()),
            false => TurnStart::GoOn(std::mem::take(&mut self.given)),
        };
        let mut turn = Turn::new(request, limits, &self.process);
        let driven = AssertUnwindSafe(turn.drive(start, &mut self.process, &mut self.pipe));
        let termination = tokio::select! {
            biased;
            () = request.cancel.cancelled() => Termination::Cancelled,
            () = sleep_until(deadline) => Termination::TimedOut(request.timeout),
            end = driven.catch_unwind() => end.map_or(Termination::Panicked, Termination::Ended),
        };
        let is_unclaimed = !self.is_new
            && !turn.is_begun()
            && matches!(termination, Termination::Ended(TurnEnd::Exited | TurnEnd::NotInitialized));
        match &termination {
            Termination::Cancelled
            | Termination::TimedOut(_)
            | Termination::Panicked
            | Termination::Ended(TurnEnd::Silent(_)) => turn.break_off(&mut self.process).await,
            Termination::Ended(TurnEnd::Result(result)) => {
                if !result.is_error
                    && matches!(request.session, SessionMode::Main(_))
                    && turn.is_done()
                    && self.pipe.drain(limits.host_ends).await
                    && self.process.is_client_alone(&self.shell_binary).await
                {
                    self.given = std::mem::take(&mut turn.given);
                    let client = self.subtract_earlier_turns(turn.client);
                    self.host.set(None);
                    (self.is_new, self.session) = (false, client.session.clone());
                    return TurnOutcome { termination, client, exit: Exit::default(), live: Some(self), is_unclaimed };
                }
            }
            // The client cannot be used any more.
            Termination::Ended(_) => {
                let client = less(turn.client, (self.cost_usd, self.tokens));
                let exit = self.process.end(Duration::ZERO).await;
                return TurnOutcome { termination, client, exit, live: None, is_unclaimed };
            }
        }
        self.pipe.end(limits.host_ends).await;
        let killed_at = Instant::now() + limits.leave;
        turn.leave(&mut self.process, limits.leave).await;
        let (before, client) = ((self.cost_usd, self.tokens), turn.client);
        let exit = self.process.end(killed_at.saturating_duration_since(Instant::now())).await;
        TurnOutcome { termination, client: less(client, before), exit, live: None, is_unclaimed }
    }

    /// Ends the client and all its processes. It may leave by itself within `grace`, unless it already has a message to take up.
    pub(super) async fn end(self, grace: Duration, limits: &Limits) {
        let grace = if self.given.is_empty() { grace } else { Duration::ZERO };
        self.host.set(None);
        self.pipe.end(limits.host_ends).await;
        self.process.end(grace).await;
    }

    fn subtract_earlier_turns(&mut self, client: ClientState) -> ClientState {
        let before = (self.cost_usd, self.tokens);
        self.cost_usd = client.cost_usd.unwrap_or(self.cost_usd);
        self.tokens = client.tokens.unwrap_or(self.tokens);
        less(client, before)
    }
}

/// Returns whether a client's output contains the line with which it begins a turn.
fn begins_turn(output: &[u8]) -> bool {
    let mark = br#""subtype":"init""#;
    output.windows(mark.len()).any(|window| window == mark)
}

/// Returns the figures of one turn, given the sums up to it and the sums before it.
fn less(client: ClientState, (cost_usd, tokens): (f64, Tokens)) -> ClientState {
    ClientState {
        cost_usd: client.cost_usd.map(|sum| (sum - cost_usd).max(0.0)),
        tokens: client.tokens.map(|sum| sum - tokens),
        ..client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_begins_a_turn_with_its_line_of_facts() {
        for (output, expect) in [
            ("", false),
            ("{\"type\":\"rate_limit_event\"}\n", false),
            (
                "{\"type\":\"keep_alive\"}\n{\"type\":\"system\",\"subtype\":\"init\",\"cwd\":\"/\"}\n{\"type\":\"user\"",
                true,
            ),
        ] {
            assert_eq!(begins_turn(output.as_bytes()), expect, "{output}");
        }
    }
}
