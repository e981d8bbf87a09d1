//! What every agent client is given and gives back.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_sandbox::{Answer, Domain, Limits, ShellSpec, Start};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::tools::{ExternalAnswer, ExternalServer};
use super::{Observation, Tokens};
use crate::policy::{BgForkConfig, Decision, ToolCall};

/// An object of JSON.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The client's own id of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which conversation a client has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// A fresh one, thrown away afterwards.
    Isolated,
    /// A copy of the main session, thrown away afterwards: the snapshot of its transcript to resume.
    ForkOfMain {
        /// The copy in the run's folder.
        transcript: PathBuf,
    },
    /// A turn of the main session itself; `None` where there is none yet.
    Main(Option<SessionId>),
    /// A turn of a conversation beside the main session, with all that the main session has: a copy of the transcript that it
    /// goes on from; `None` where there is nothing yet.
    Beside(Option<PathBuf>),
}

impl SessionMode {
    /// Whether the person takes part.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        matches!(self, Self::Main(_) | Self::Beside(_))
    }
}

/// The client's options, named as the Agent SDKs name them. Patterns are in the client's own format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// The allowlist in force, the automatic entry included; `None`: no allowlist.
    pub allowed_tools: Option<Vec<String>>,
    /// The denylist; `None`: none.
    pub disallowed_tools: Option<Vec<String>>,
    /// Model alias or full name.
    pub model: Option<String>,
    /// `None`: the client's default.
    pub thinking: Option<crate::definition::Thinking>,
    /// At most so many turns.
    pub max_turns: Option<u32>,
    /// At most so many US dollars.
    pub max_budget_usd: Option<f64>,
    /// What has set that, in words; the client is not told.
    pub max_budget_from: &'static str,
    /// The agents that it may call, as `--agents` takes them; `None`: none.
    pub agents: Option<String>,
    /// Replaces the client's own system prompt.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
}

impl ClientOptions {
    /// Sets what a background job's file restricts.
    #[must_use]
    pub fn with_restrictions(mut self, config: &BgForkConfig) -> Self {
        let words = |list: &[crate::policy::ToolPattern]| list.iter().map(ToString::to_string).collect();
        self.allowed_tools = config.effective_allowed_tools().as_deref().map(words);
        self.disallowed_tools = config.disallowed_tools().map(words);
        self
    }
}

/// One turn for a client to do.
pub struct Request {
    /// Names the run in logs: 8 hex digits.
    pub run: String,
    /// The run's own folder: the client's configuration, transcript, temporary files. Exists, 0700.
    pub run_dir: PathBuf,
    /// The client's working folder. Exists.
    pub work_dir: PathBuf,
    /// The whole prompt, our tag first.
    pub prompt: String,
    /// The person's own text: what the `notify` client delivers.
    pub message: String,
    /// Why only a model can do this job (`tools beyond …`, `skills`); `None`: `notify` can.
    pub needs_agent: Option<String>,
    /// Which conversation.
    pub session: SessionMode,
    /// The client's options.
    pub options: ClientOptions,
    /// Built-in tools that exist for the client (`--tools`), exactly.
    pub visible_tools: Vec<String>,
    /// Rules for the client's own wall (`--disallowedTools`).
    pub deny_rules: Vec<String>,
    /// MCP tools of our server that exist for the client: bare names (`ping_user`).
    pub mcp_tools: Vec<String>,
    /// Servers beside ours, with their tools that exist for the client.
    pub external: Vec<ExternalServer>,
    /// What the client and its shell may reach.
    pub sandbox: Sandbox,
    /// The token that stands for this run on the control socket.
    pub token: String,
    /// Those that stand for the agents that it may call.
    pub agent_tokens: BTreeMap<String, String>,
    /// Wall clock for the whole run.
    pub timeout: Duration,
    /// Longest silence of the client.
    pub inactivity_timeout: Duration,
    /// How long a call may wait for a person; `None`: it asks nobody.
    pub asks: Option<Duration>,
    /// What the person's message is called that this turn answers ([`FurtherMessage::id`]); `None`: it answers none.
    pub answers: Option<String>,
    /// What its processes may take together.
    pub limits: Limits,
    /// Ends the run when cancelled (a person, or the service stopping).
    pub cancel: CancellationToken,
    /// Answers the client's questions.
    pub host: Arc<dyn RunHost>,
}

/// What a client's processes may reach, whatever its tools are. The client adds what every run of it needs.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// The client's own domain; `None`: whatever the service may (a turn of the main session).
    pub client: Option<Domain>,
    /// The shell that it is given, in which each program is judged when it starts. `None`: in a domain it has no shell at all,
    /// elsewhere the system's.
    pub shell: Option<ShellSpec>,
    /// The shells of the agents that it may call, by their names.
    pub agents: BTreeMap<String, ShellSpec>,
}

/// Something that the person says while a turn goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherMessage {
    /// Its own name, by which its turn finds out that it was taken up.
    pub id: String,
    /// The whole prompt, our tag first.
    pub prompt: String,
}

/// What our server answers to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// A sentence for the agent.
    pub text: String,
    /// Whether the call was refused or failed.
    pub is_error: bool,
}

/// The other side of a running client: decides calls, serves tools, keeps the record. Every method may be
/// called from several tasks at once. An error or a panic of one is a denial to the client.
#[async_trait]
pub trait RunHost: Send + Sync {
    /// The verdict on a call, before it runs. Effects are durably marked before an allow is returned.
    async fn decide(&self, call: ToolCall) -> Decision;
    /// How many of its calls and programs wait for a person now. Such a wait is no silence of the client's. Whoever asks nobody has
    /// none.
    fn parked(&self) -> watch::Receiver<u32> {
        watch::channel(0).1
    }
    /// Whether [`stop`](Self::stop) may keep the turn of this run going; if not, it is not asked.
    fn may_hold_up(&self) -> bool;
    /// The verdict on a program that the client's shell is about to start. Effects are durably marked before it may. An
    /// environment in the answer is added to the clean one.
    async fn judge(&self, _start: Start) -> Answer {
        Answer::Deny { code: 126, message: "denied: nothing may be started here".into() }
    }
    /// The subagent that a script of the client's shell belongs to; `None`: the session itself.
    ///
    /// # Errors
    /// A sentence for the agent: the script belongs to no call that was allowed.
    async fn caller(&self, _script: String) -> Result<Option<String>, String> {
        Ok(None)
    }
    /// The client is about to end its turn. `Some(reason)` keeps it going. `again`: it was kept going before.
    async fn stop(&self, again: bool) -> Option<String>;
    /// Serves one of our MCP tools, by its bare name. The hook has approved the call.
    async fn call_tool(&self, name: &str, arguments: serde_json::Value) -> ToolAnswer;
    /// Serves a tool of a server beside ours. The hook has approved the call. Whoever has none refuses.
    async fn call_external(&self, server: &str, tool: &str, _arguments: JsonObject) -> ExternalAnswer {
        ExternalAnswer::refused(format!("there is no tool `{tool}` of `{server}` here"))
    }
    /// A process that holds everything the client starts is there: told once when it is started, and again when
    /// the client has said which session it has.
    async fn started(&self, pid: u32, session: Option<SessionId>);
    /// Something that the client was seen to say or do. Called in the order in which it did; returns at once.
    fn observe(&self, _seen: Observation) {}
    /// A part of what the model says, before [`observe`](Self::observe) has the whole of it. Told in turns of the main session
    /// only; returns at once.
    fn letters(&self, _text: &str) {}
    /// Waits for what the person says while the turn goes. May be dropped and called again; nothing is lost.
    async fn said_meanwhile(&self) -> FurtherMessage {
        std::future::pending().await
    }
    /// The client has given the model something that was [said meanwhile](Self::said_meanwhile): this turn answers it.
    fn taken_up(&self, _id: &str) {}
    /// A call that the client itself refused, without asking the hook.
    async fn client_denied(&self, tool: String, input: serde_json::Value, reason: String);
    /// The `notify` client delivers the person's own text, and the job's next link is scheduled where it has one.
    ///
    /// # Errors
    /// A sentence on what failed; then nothing is delivered.
    async fn deliver(&self, text: String) -> Result<(), String>;
}

/// Why a run did not do its work. The classes of failure are those of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub class: FailureClass,
    /// A sentence for the person: what went wrong and what to do.
    pub message: String,
}

/// Kinds of failure, as the record names them (snake_case).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The client could not be started.
    SpawnFailed,
    /// It did not answer `initialize`.
    InitializeTimeout,
    /// No login, or a refused one (401).
    NotLoggedIn,
    /// 429, 5xx, no network.
    Overloaded,
    /// The client ended the turn with an error.
    ErrorResult,
    /// Too many lines that are not JSON, or a line over 64 MiB.
    Garbage,
    /// It ended without a result.
    ExitedEarly,
    /// The session to resume does not exist.
    MainSessionMissing,
    /// It shows tools that the policy does not, or none of ours that it does.
    SurfaceMismatch,
    /// The job asks for what only an agent can do, and there is none.
    NeedsClaude,
    /// The job's gate neither woke its agent nor skipped the occurrence.
    GateFailed,
    /// The job's command did not end with exit code 0, or was refused a program.
    CommandFailed,
    /// The run ended well, without what the job's file expects of it.
    NotDelivered,
    /// Its processes took more than `limits` allows.
    LimitExceeded,
    /// An MCP server of the person's, which the job's rules name, is not there.
    McpServerMissing,
    /// A fault of our own: a panic, a full disk.
    Internal,
}

impl Failure {
    /// Of this kind, with a sentence for the person.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

impl FailureClass {
    /// Whether another attempt may succeed by itself.
    #[must_use]
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::InitializeTimeout | Self::Overloaded | Self::ExitedEarly | Self::SpawnFailed | Self::McpServerMissing
        )
    }
}

/// How one attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The client finished its turn.
    Completed,
    /// It did not.
    Failed(Failure),
    /// It went over its time; the sentence says which limit.
    TimedOut(String),
    /// `Request::cancel` ended it.
    Cancelled,
    /// No client was asked, and that is in order.
    Skipped(Skip),
}

/// Why no client was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The job's gate has looked and found nothing to do: what it said.
    Gate(String),
    /// Nothing is left to pay with: of what, as a sentence without its full stop.
    Budget(String),
}

impl Skip {
    /// How the reason of a skip by a gate begins in the record.
    pub const BY_GATE: &str = "gate: ";
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(said) => write!(f, "{}{said}", Self::BY_GATE),
            Self::Budget(why) => write!(f, "budget: {why}"),
        }
    }
}

/// Which client did a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedClient {
    /// `claude` or `notify`.
    pub name: &'static str,
    /// As it says itself, where it does.
    pub version: Option<String>,
    /// Whether it has a model, and so a login.
    pub is_agent: bool,
}

/// An attempt's end with what the client reported.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptReport {
    /// How it ended.
    pub end: AttemptEnd,
    /// The client's last text: a foreground job's answer.
    pub answer: Option<String>,
    /// The session it had.
    pub session: Option<SessionId>,
    /// The transcript on disk.
    pub transcript: Option<PathBuf>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Turns of the model.
    pub turns: Option<u32>,
    /// The model that it says it has.
    pub model: Option<String>,
    /// What it took of it.
    pub tokens: Option<Tokens>,
    /// Who did it; `None`: nobody was asked.
    pub client: Option<UsedClient>,
    /// What the person is told in the same commit as the outcome, so that it is told exactly once.
    pub messages: Vec<String>,
}

impl AttemptReport {
    /// Ended so, and the client reported nothing.
    #[must_use]
    pub fn bare(end: AttemptEnd) -> Self {
        Self {
            end,
            answer: None,
            session: None,
            transcript: None,
            cost_usd: None,
            turns: None,
            model: None,
            tokens: None,
            client: None,
            messages: Vec::new(),
        }
    }
}

/// Something that can do a turn. It returns when everything it started has ended.
#[async_trait]
pub trait AgentClient: Send + Sync {
    /// `claude` or `notify`.
    fn name(&self) -> &'static str;
    /// Whether it starts processes, which need a sandbox.
    fn starts_processes(&self) -> bool {
        true
    }
    /// A run is about to be asked for: what takes time and depends on none may be made ready.
    fn get_ready(&self) {}
    /// Does the turn. Never panics; every fault is in the report.
    async fn run(&self, request: Request) -> AttemptReport;
}
