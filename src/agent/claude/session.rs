//! One turn of a client: our side of the control protocol, from `initialize` to `result`.
//!
//! A tool call runs only if the host allowed it in time, after the client had listed its visible tools and they had
//! been found to be the policy's. A fault anywhere, ours or the client's, denies the call. Every question of the client
//! is answered, unless the client does not read.
//!
//! A `result` ends the turn only when nothing that the client started is running. Until then the client's input stays
//! open: its tasks ask for their calls, and their end begins another turn with its own `result`.

mod ending;
mod surface;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use self::surface::{forbidden_tools, missing_server, missing_tool};
use super::Limits;
use super::ledger::{OpenRequests, VerdictLedger};
use super::lines::LineError;
use super::process::{Process, Sender};
use super::protocol::{self, AnswerForm, Block, Call, Compaction, Incoming, Init, TurnResult};
use super::tasks::Tasks;
use crate::agent::tools::SERVER;
use crate::agent::{FurtherMessage, Observation, Request, RunHost, SessionId, Tokens, ToolPipe};
use crate::policy::{ToolCall, Verdict};

/// Maximum number of questions that wait for the host at once. Further ones are denied at once.
const MAX_PENDING: usize = 64;

/// Maximum number of malformed lines in one turn.
const MALFORMED: u32 = 100;

/// The id of our first request.
const INITIALIZE: &str = "ollim-initialize";

/// The state that the client has reported so far. It outlives a turn that is cut off.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    pub session: Option<SessionId>,
    pub answer: Option<String>,
    pub cost_usd: Option<f64>,
    pub turns: Option<u32>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub tokens: Option<Tokens>,
    /// Requests to the API that the client retries.
    pub api: ApiRetries,
    /// Tasks that the client has started and not ended.
    pub tasks: Tasks,
    /// Number of calls requested after the client's input was closed. They did not run.
    pub asked_too_late: u32,
    /// The first tool that the client ran without a verdict, or against it.
    pub unjudged: Option<String>,
    /// The last compaction of the conversation.
    pub compacted: Option<Compaction>,
}

/// A message that the client has received and not yet given to the model.
#[derive(Clone, Debug)]
pub(super) struct PendingMessage {
    /// Our id of the message in the protocol.
    uuid: String,
    /// The id of the person's message ([`FurtherMessage::id`]).
    pub id: String,
}

/// The way in which a turn begins.
#[derive(Debug)]
pub(super) enum TurnStart {
    /// The turn begins with a new client. The value is its first message.
    Greet(Value),
    /// The turn begins with an idle client that already has these messages. It answers the first, which is not sent again.
    GoOn(Vec<PendingMessage>),
}

/// The client's own retries of API requests.
#[derive(Debug, Default)]
pub(super) struct ApiRetries {
    pub retries: u32,
    /// The last failure of the API; `None` if it has answered since, or never failed.
    pub fault: Option<String>,
}

/// The way in which a turn ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// The client reported the result.
    Result(Box<TurnResult>),
    /// The client closed its output.
    Exited,
    /// The client did not answer `initialize` in time.
    NotInitialized,
    /// The client answered `initialize` with an error.
    Refused(String),
    /// The API refuses the login.
    Unauthorized,
    /// The client shows tools that it must not show.
    Surface(Vec<String>),
    /// The client ran this tool without a verdict, or against it.
    Unjudged(String),
    /// The conversation is too long, and this job's client may not compact it.
    TooLong,
    /// The client shows none of the tools of a server that the job has.
    WithoutServer { name: String, version: String },
    /// The client does not show this tool, which the job's own rules name.
    WithoutTool { name: String, version: String },
    /// The client wrote too many malformed lines. The text is the last one's fault.
    Malformed(String),
    /// The client's output cannot be read, or a line is too long.
    Unreadable(LineError),
    /// The client wrote nothing for this time, although it waited for nothing.
    Silent(Duration),
}

/// One turn. It outlives [`Turn::drive`], so that the client's last messages are still processed.
pub(super) struct Turn<'a> {
    request: &'a Request,
    limits: &'a Limits,
    out: Sender,
    pid: u32,
    /// The state that the client has reported.
    pub client: ClientState,
    initialized: bool,
    /// Messages that the client has received and not yet given to the model.
    pub given: Vec<PendingMessage>,
    /// Whether `system/init` came and its tools passed the check.
    checked: bool,
    malformed: u32,
    /// A result that is held back, since the client still has tasks.
    held: Option<Box<TurnResult>>,
    /// The time by which the client starts to report on its ended tasks, if it does at all.
    resumes_by: Option<Instant>,
    /// The model's calls without a result yet: tool and input by the client's id.
    calls: HashMap<String, (String, Value)>,
    verdicts: VerdictLedger,
    /// Questions and notifications for the host, each in its own task.
    asked: JoinSet<()>,
    /// Pending verdicts, by the id of the client's question.
    judging: HashMap<String, AbortHandle>,
    /// Pending requests at our server.
    at_server: OpenRequests,
}

impl<'a> Turn<'a> {
    pub(super) fn new(request: &'a Request, limits: &'a Limits, process: &Process) -> Self {
        Self {
            request,
            limits,
            out: process.sender(),
            pid: process.pid(),
            client: ClientState::default(),
            initialized: false,
            given: Vec::new(),
            checked: false,
            malformed: 0,
            held: None,
            resumes_by: None,
            calls: HashMap::new(),
            verdicts: VerdictLedger::default(),
            asked: JoinSet::new(),
            judging: HashMap::new(),
            at_server: OpenRequests::default(),
        }
    }

    /// Does the turn. May be cancelled at any moment if [`break_off`](Self::break_off) follows: it allows no further call.
    pub(super) async fn drive(&mut self, start: TurnStart, process: &mut Process, pipe: &mut ToolPipe) -> TurnEnd {
        let initialized_by = Instant::now() + self.limits.initialize;
        let is_resumed = matches!(start, TurnStart::GoOn(_));
        match start {
            TurnStart::Greet(greeting) => self.out.send(&greeting),
            TurnStart::GoOn(given) => {
                (self.initialized, self.given) = (true, given);
                if self.given.is_empty() {
                    self.out.send(&protocol::user(&self.request.prompt, None));
                }
            }
        }
        let mut last_heard = Instant::now();
        let mut waiting_for_person = self.request.host.waiting_for_person();
        let end = loop {
            let silent_at = last_heard + self.request.inactivity_timeout;
            tokio::select! {
                line = process.lines.next() => {
                    last_heard = Instant::now();
                    match line {
                        Ok(Some(line)) => if let Some(end) = self.handle_line(&line, pipe) { break end },
                        Ok(None) => break self.held.take().map_or(TurnEnd::Exited, TurnEnd::Result),
                        Err(error) => break TurnEnd::Unreadable(error),
                    }
                }
                Some(message) = pipe.from_server.recv() => self.forward_answer(message),
                Some(_) = self.asked.join_next() => last_heard = Instant::now(),
                // An idle client sends `system/init` as soon as it receives the prompt.
                () = sleep_until(initialized_by), if !self.initialized || is_resumed && !self.checked => break TurnEnd::NotInitialized,
                message = self.request.host.further_message(), if self.checked => self.give(message),
                // A call has begun to wait for a person, or has its answer.
                Ok(()) = waiting_for_person.changed() => last_heard = Instant::now(),
                () = sleep_until(silent_at), if self.is_idle() && *waiting_for_person.borrow() == 0 => break TurnEnd::Silent(self.request.inactivity_timeout),
                () = async { sleep_until(self.resumes_by.unwrap_or(silent_at)).await }, if self.resumes_by.is_some() => {
                    if let Some(result) = self.held.take() {
                        break TurnEnd::Result(result);
                    }
                    self.resumes_by = None;
                }
            }
        };
        self.drain_pending().await;
        end
    }

    /// Returns whether the client has begun the turn.
    pub(super) fn is_begun(&self) -> bool {
        self.checked
    }

    /// Returns whether neither a call nor anything that the client started is pending.
    pub(super) fn is_done(&self) -> bool {
        self.is_idle() && !self.client.tasks.any()
    }

    fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.at_server.len() == 0
    }

    /// Returns the timeout for a verdict, which may need a person.
    fn verdict_within(&self) -> Duration {
        self.limits.verdict + self.request.asks.unwrap_or_default()
    }

    /// Sends a further message. The client gives it to the model between two steps, or after the turn as the next turn's.
    fn give(&mut self, message: FurtherMessage) {
        // Without an id nobody would notice when the model gets the message, so it gets a turn of its own later.
        let Ok(random) = agent_sandbox::token::random() else { return };
        let uuid = uuid_of(&random);
        self.out.send(&protocol::user(&message.prompt, Some(&uuid)));
        self.given.push(PendingMessage { uuid, id: message.id });
    }

    fn mark_received(&mut self, uuid: &str) {
        let Some(at) = self.given.iter().position(|given| given.uuid == uuid) else { return };
        let PendingMessage { id, .. } = self.given.remove(at);
        if self.request.answers.as_ref() != Some(&id) {
            self.request.host.mark_received(&id);
        }
    }

    fn is_main(&self) -> bool {
        self.request.session.is_attended()
    }

    fn handle_line(&mut self, line: &[u8], pipe: &ToolPipe) -> Option<TurnEnd> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let message = match protocol::read(line) {
            Ok(message) => message,
            Err(fault) => {
                self.malformed += 1;
                tracing::debug!(%fault, "a line of the agent client is no message");
                return (self.malformed > MALFORMED).then(|| TurnEnd::Malformed(fault.to_string()));
            }
        };
        match message {
            Incoming::Init(init) => {
                // Another turn begins, which ends with its own result.
                (self.held, self.resumes_by) = (None, None);
                return self.check_surface(init);
            }
            Incoming::Tasks(news) => {
                self.client.tasks.apply(news);
                self.resumes_by =
                    (self.held.is_some() && !self.client.tasks.any()).then(|| Instant::now() + self.limits.leave);
            }
            Incoming::ApiRetry { status: Some(401) } => return Some(TurnEnd::Unauthorized),
            Incoming::ApiRetry { status } => self.retries(status),
            Incoming::Letters(text) => self.request.host.text_delta(&text),
            Incoming::Assistant(blocks) => {
                self.client.api.fault = None;
                self.handle_blocks(blocks);
            }
            Incoming::User(blocks) => {
                self.results(blocks);
                return self.client.unjudged.clone().map(TurnEnd::Unjudged);
            }
            Incoming::TakenUp { id } => self.mark_received(&id),
            Incoming::Compacted(compaction) => self.compacted(compaction),
            Incoming::Result(result) => return self.ended(result),
            Incoming::Request { id, request } => return self.asked(&id, request, pipe),
            Incoming::Cancel { id } => {
                tracing::debug!(id, "the agent client took a question back");
                if let Some(judging) = self.judging.remove(&id) {
                    judging.abort();
                }
            }
            Incoming::Response { id, error } if id == INITIALIZE => match error {
                Some(error) => return Some(TurnEnd::Refused(error)),
                None if !self.initialized => {
                    self.initialized = true;
                    self.out.send(&protocol::user(&self.request.prompt, None));
                }
                None => {}
            },
            Incoming::Response { id, .. } => tracing::debug!(id, "an answer to nothing that was asked"),
            Incoming::Other(kind) => tracing::trace!(kind, "a message that is not acted on"),
        }
        None
    }

    /// Compares the client's visible tools with the policy's.
    fn check_surface(&mut self, init: Init) -> Option<TurnEnd> {
        let surplus = forbidden_tools(&init.tools, self.request);
        if !surplus.is_empty() {
            return Some(TurnEnd::Surface(surplus));
        }
        if let Some(server) = missing_server(&init.tools, self.request) {
            return Some(TurnEnd::WithoutServer { name: server.to_owned(), version: init.claude_code_version });
        }
        if let Some(name) = missing_tool(&init.tools, self.request) {
            return Some(TurnEnd::WithoutTool { name, version: init.claude_code_version });
        }
        self.checked = true;
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        (self.client.version, self.client.model) = (said(init.claude_code_version), said(init.model));
        let (version, model) = (self.client.version.clone(), self.client.model.clone());
        self.request.host.observe(Observation::ClientReady { version, model });
        self.now_in(init.session_id);
        None
    }

    fn now_in(&mut self, session: String) {
        let session = SessionId(session);
        if session.0.is_empty() || self.client.session.as_ref() == Some(&session) {
            return;
        }
        self.client.session = Some(session.clone());
        let (host, pid) = (self.request.host.clone(), self.pid);
        self.notify_host(async move { host.started(pid, Some(session)).await });
    }

    fn compacted(&mut self, compaction: Compaction) {
        let (before, after) = (compaction.pre_tokens, compaction.post_tokens);
        self.client.compacted = Some(compaction);
        self.request.host.observe(Observation::Compacted { before, after });
    }

    fn retries(&mut self, status: Option<u16>) {
        tracing::debug!(?status, "the agent client tries its request again");
        let fault = match status {
            Some(status) => format!("the API does not answer as it should ({status})"),
            None => "the API cannot be reached".to_owned(),
        };
        self.client.api.retries += 1;
        self.client.api.fault = Some(fault.clone());
        self.request.host.observe(Observation::ApiRetry { fault });
    }

    fn handle_blocks(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            match block {
                Block::Text { text } if !text.is_empty() => {
                    self.request.host.observe(Observation::Said { text: text.clone() });
                    self.client.answer = Some(text);
                }
                Block::ToolUse { id, name, input } => {
                    let (call, tool, input_seen) = (id.clone(), name.clone(), input.clone());
                    self.request.host.observe(Observation::ToolCall { call, tool, input: input_seen });
                    self.calls.insert(id, (name, input));
                }
                _ => {}
            }
        }
    }

    /// Reports the results of calls. If our hook was never asked about a failed call, the client itself refused it. A call that ran
    /// without being allowed is noted: a client may get tools at any time that it asks nobody about.
    fn results(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let Some((tool, input)) = self.calls.remove(&tool_use_id) else { continue };
            let reason = protocol::text_of(&content);
            // A denial is reported once, although `permission_denials` repeats it. Some denials are not marked as errors.
            let failed = is_error == Some(true) || protocol::reads_as_denial(&reason);
            let (call, bytes) = (tool_use_id.clone(), reason.len());
            self.request.host.observe(Observation::ToolResult { call, bytes, failed });
            // A result without an id, as in published examples of the protocol, belongs to no verdict.
            if !failed && !tool_use_id.is_empty() && !self.verdicts.is_allowed(&tool_use_id) {
                self.client.unjudged.get_or_insert_with(|| tool.clone());
            }
            if failed && self.verdicts.refused_unasked(&tool_use_id) {
                let host = self.request.host.clone();
                self.notify_host(async move { host.client_denied(tool, input, reason).await });
            }
        }
    }

    fn asked(&mut self, id: &str, question: protocol::Request, pipe: &ToolPipe) -> Option<TurnEnd> {
        match question {
            protocol::Request::BeforeTool(call) => self.judge(id, call, AnswerForm::Hook),
            protocol::Request::Permission(call) => self.judge(id, call, AnswerForm::Permission),
            protocol::Request::UnreadableCall(form) => {
                deny(&self.out, id, form, "denied: ollim-bot does not understand how this call is put");
            }
            protocol::Request::BeforeStop { is_repeated } => self.may_stop(id, is_repeated),
            protocol::Request::Mcp { server, message } => match pipe.to_servers.get(&server) {
                Some(to_server) => self.serve(id, &server, message, to_server),
                None => self.out.send(&protocol::refusal(id, &format!("there is no MCP server `{server}` here"))),
            },
            protocol::Request::BeforeCompaction => {
                self.out.send(&protocol::block(id, "this job's conversation is not compacted"));
                return Some(TurnEnd::TooLong);
            }
            protocol::Request::Unknown(what) => {
                tracing::debug!(what, "the agent client asks for something unknown");
                self.out.send(&protocol::refusal(id, &format!("`{what}` is not supported")));
            }
        }
        None
    }

    fn judge(&mut self, id: &str, call: Call, form: AnswerForm) {
        let (id, out) = (id.to_string(), self.out.clone());
        if !self.checked {
            return deny(&out, &id, form, "denied: the agent client has not said yet which tools it shows");
        }
        // A fork asks nobody, and `dontAsk` should have prevented this question.
        if matches!(form, AnswerForm::Permission) && !self.is_main() {
            return deny(&out, &id, form, "denied: nobody can be asked in a background job");
        }
        if self.asked.len() >= MAX_PENDING {
            return deny(&out, &id, form, "denied: too many calls at once; make fewer, one after the other");
        }
        let (host, verdicts, within) = (self.request.host.clone(), self.verdicts.clone(), self.verdict_within());
        let question = id.clone();
        let judging = self.asked.spawn(async move {
            let asked = host.decide(ToolCall {
                tool: call.tool_name.clone(),
                input: call.tool_input.clone(),
                cwd: call.cwd,
                agent_type: call.agent_type,
            });
            let (decided, none) = match timeout(within, AssertUnwindSafe(asked).catch_unwind()).await {
                Ok(Ok(decision)) => (Some(decision), ""),
                Ok(Err(_)) => (None, "denied: ollim-bot failed to judge this call (a fault of its own)"),
                Err(_) => (None, "denied: ollim-bot did not come to a verdict in time"),
            };
            let allow = decided.as_ref().is_some_and(|decision| decision.verdict == Verdict::Allow);
            let reason = decided.as_ref().map_or_else(|| none.to_owned(), |decision| decision.reason.clone());
            host.observe(Observation::ToolDecided {
                call: call.tool_use_id.clone(),
                allowed: allow,
                reason: if allow { String::new() } else { reason.clone() },
                layer: decided.as_ref().map(|decision| decision.layer),
                rule: decided.and_then(|decision| decision.rule),
            });
            verdicts.give(call.tool_use_id, call.tool_name, allow);
            out.send(&protocol::verdict(&id, form, allow, &reason, &call.tool_input));
        });
        self.judging.retain(|_, judging| !judging.is_finished());
        self.judging.insert(question, judging);
    }

    fn may_stop(&mut self, id: &str, is_repeated: bool) {
        let (id, out, host) = (id.to_string(), self.out.clone(), self.request.host.clone());
        let within = self.limits.verdict;
        self.asked.spawn(async move {
            let asked = timeout(within, AssertUnwindSafe(host.stop(is_repeated)).catch_unwind()).await;
            // On a fault the turn may end, so that an agent never runs forever.
            let go_on = asked.ok().and_then(Result::ok).flatten();
            out.send(&protocol::stop(&id, go_on.as_deref()));
        });
    }

    fn serve(&mut self, id: &str, server: &str, mut message: Value, to_server: &ServerChannel) {
        let Some(rpc) = message.get("id").filter(|rpc| !rpc.is_null()).cloned() else {
            // A notification; losing one changes nothing.
            let _ = to_server.try_send(message);
            return self.out.send(&protocol::mcp_taken(id));
        };
        if let Some(refused) = self.refused_call(server, &message) {
            let content = json!([{"type": "text", "text": refused}]);
            let result = json!({"jsonrpc": "2.0", "id": rpc, "result": {"content": content, "isError": true}});
            return self.out.send(&protocol::mcp(id, result));
        }
        let room = self.at_server.len() < MAX_PENDING;
        let ours = self.at_server.open(id, rpc.clone());
        message["id"] = ours.into();
        if !room || to_server.try_send(message).is_err() {
            self.at_server.close(ours);
            let error = json!({"code": -32000, "message": "too many calls at once, or the server has ended"});
            self.out.send(&protocol::mcp(id, json!({"jsonrpc": "2.0", "id": rpc, "error": error})));
        }
    }

    /// Returns the refusal of a server's tool call that the hook has not approved. The client always asks the hook first;
    /// if it does not, the call has no effect.
    fn refused_call(&self, server: &str, message: &Value) -> Option<String> {
        if message.get("method").and_then(Value::as_str) != Some("tools/call") {
            return None;
        }
        let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        let approved = self.verdicts.redeem(&format!("mcp__{server}__{name}"));
        (!approved).then(|| format!("`{name}` was not approved for this call, so nothing was done"))
    }

    /// Passes on a server's answer to a request of the client. Other messages of a server are dropped.
    fn forward_answer(&mut self, mut message: Value) {
        let answer = message.get("method").is_none();
        match message.get("id").and_then(Value::as_u64).and_then(|ours| self.at_server.close(ours)) {
            Some(question) if answer => {
                message["id"] = question.rpc;
                self.out.send(&protocol::mcp(&question.request, message));
            }
            _ => tracing::debug!("a message of the tool server that answers nothing"),
        }
    }

    /// Notifies the host in a separate task, so that a fault of the host does not affect the turn.
    fn notify_host(&mut self, telling: impl Future<Output = ()> + Send + 'static) {
        self.asked.spawn(async move {
            if AssertUnwindSafe(telling).catch_unwind().await.is_err() {
                tracing::error!("keeping the record of a run panicked");
            }
        });
    }
}

/// Returns the first message to a client that is started for this request.
pub(super) fn greeting(request: &Request, limits: &Limits) -> Value {
    let ours = (!request.mcp_tools.is_empty()).then_some(SERVER);
    let servers: Vec<&str> = ours.into_iter().chain(request.external.iter().map(|server| &*server.name)).collect();
    let waits = limits.client_waits + request.asks.unwrap_or_default();
    protocol::initialize(INITIALIZE, waits.as_secs(), &servers, request.host.may_continue(), &request.options)
}

/// A channel of requests and notifications to one server.
type ServerChannel = tokio::sync::mpsc::Sender<Value>;

/// Formats random hex digits as a UUID (RFC 9562, version 4).
fn uuid_of(random: &str) -> String {
    let part = |from: usize, to: usize| random.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn deny(out: &Sender, id: &str, form: AnswerForm, reason: &str) {
    out.send(&protocol::verdict(id, form, false, reason, &Value::Null));
}

/// Notifies the host of the client's process at the start of a turn. A panic of the host is only logged.
pub(super) async fn started(host: &dyn RunHost, pid: u32) {
    if AssertUnwindSafe(host.started(pid, None)).catch_unwind().await.is_err() {
        tracing::error!("keeping the record of a run panicked");
    }
}
