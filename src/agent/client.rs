//! The interface of agent clients: requests, hosts and reports.

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

/// A JSON object.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The client's id of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The conversation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// A new conversation, discarded after the run.
    Isolated,
    /// A copy of the main session, or of the job's own earlier conversation. It resumes a snapshot of the transcript.
    ForkOfMain {
        /// The copy in the run's folder.
        transcript: PathBuf,
    },
    /// A turn of the main session itself; `None` if there is none yet.
    Main(Option<SessionId>),
    /// A turn of a conversation beside the main session, with the main session's rights. It resumes this copy of a
    /// transcript; `None` if there is nothing to resume.
    Beside(Option<PathBuf>),
}

impl SessionMode {
    /// Returns whether the person takes part in the conversation.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        matches!(self, Self::Main(_) | Self::Beside(_))
    }
}

/// The client's options, named as in the Agent SDKs. Patterns are in the client's own format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// The effective allowlist, including the automatic entry; `None` means no allowlist.
    pub allowed_tools: Option<Vec<String>>,
    /// The denylist; `None` means no denylist.
    pub disallowed_tools: Option<Vec<String>>,
    /// A model's alias or full name.
    pub model: Option<String>,
    /// The thinking mode; `None` means the client's default.
    pub thinking: Option<crate::definition::Thinking>,
    /// Maximum number of turns.
    pub max_turns: Option<u32>,
    /// Maximum cost, in US dollars.
    pub max_budget_usd: Option<f64>,
    /// The origin of `max_budget_usd`, in words. The client does not receive it.
    pub max_budget_from: &'static str,
    /// The agents that the client may call, in the format of `--agents`; `None` means none.
    pub agents: Option<String>,
    /// The replacement of the client's own system prompt.
    pub system_prompt: Option<String>,
    /// Text that is appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the run ends where the client would compact the conversation. After a compaction the client reads files again and asks nobody.
    pub never_compact: bool,
}

impl ClientOptions {
    /// Sets the restrictions of a background job.
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
    /// The run's name in logs: 8 hex digits.
    pub run: String,
    /// The run's own folder for the client's configuration, transcript and temporary files. It exists with mode 0700.
    pub run_dir: PathBuf,
    /// The client's working folder. It exists.
    pub work_dir: PathBuf,
    /// The whole prompt, beginning with our tag.
    pub prompt: String,
    /// The person's own text, which the `notify` client delivers.
    pub message: String,
    /// The reason why only a model can do this job (`tools beyond …`, `skills`); `None` if `notify` can.
    pub needs_agent: Option<String>,
    /// The conversation of the turn.
    pub session: SessionMode,
    /// The client's options.
    pub options: ClientOptions,
    /// Exactly the built-in tools that are visible to the client (`--tools`).
    pub visible_tools: Vec<String>,
    /// Rules for the client's own permission check (`--disallowedTools`).
    pub deny_rules: Vec<String>,
    /// Our server's MCP tools that are visible to the client, by bare name (`ping_user`).
    pub mcp_tools: Vec<String>,
    /// Further MCP servers, with their visible tools.
    pub external: Vec<ExternalServer>,
    /// The sandbox of the client and its shell.
    pub sandbox: Sandbox,
    /// The token that identifies this run on the control socket.
    pub token: String,
    /// The tokens of the agents that the client may call, by agent name.
    pub agent_tokens: BTreeMap<String, String>,
    /// Maximum wall-clock time of the whole run.
    pub timeout: Duration,
    /// Maximum time without output of the client.
    pub inactivity_timeout: Duration,
    /// Time for a person to answer about a call; `None` if the run asks nobody.
    pub asks: Option<Duration>,
    /// The id of the person's message that this turn answers ([`FurtherMessage::id`]); `None` if it answers none.
    pub answers: Option<String>,
    /// Resource limits for all processes of the run together.
    pub limits: Limits,
    /// Ends the run when cancelled, by a person or by the service's shutdown.
    pub cancel: CancellationToken,
    /// The host that answers the client's questions.
    pub host: Arc<dyn RunHost>,
}

/// The access of a client's processes, whatever its tools are. The client adds the access that each of its runs needs.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// The client's own domain; `None` means the service's own access (a turn of the main session).
    pub client: Option<Domain>,
    /// The shell, in which each program is judged when it starts. `None` means no shell at all if the client has a domain, and
    /// the system's shell otherwise.
    pub shell: Option<ShellSpec>,
    /// The shells of the agents that the client may call, by agent name.
    pub agents: BTreeMap<String, ShellSpec>,
}

/// A message that the person sends during a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherMessage {
    /// The message's id, by which its turn learns that the model received it.
    pub id: String,
    /// The whole prompt, beginning with our tag.
    pub prompt: String,
}

/// Our server's answer to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// A sentence for the agent.
    pub text: String,
    /// Whether the call was refused or failed.
    pub is_error: bool,
}

/// The other side of a running client. It decides calls, serves tools and keeps the record. Every method may be
/// called from several tasks at once. The client treats an error or a panic as a denial.
#[async_trait]
pub trait RunHost: Send + Sync {
    /// Decides a call before it runs. Side effects are durably marked before an allow is returned.
    async fn decide(&self, call: ToolCall) -> Decision;
    /// Returns how many calls and programs wait for a person now. Such a wait does not count as the client's silence. The default
    /// is for a host that asks nobody.
    fn waiting_for_person(&self) -> watch::Receiver<u32> {
        watch::channel(0).1
    }
    /// Returns whether [`stop`](Self::stop) may continue the turn of this run. If not, it is not called.
    fn may_continue(&self) -> bool;
    /// Decides whether the client's shell may start a program. Side effects are durably marked before an allow is returned.
    /// The answer's environment is added to the clean one.
    async fn judge(&self, _start: Start) -> Answer {
        Answer::Deny { code: 126, message: "denied: nothing may be started here".into() }
    }
    /// Returns the subagent that runs a script of the client's shell; `None` means the session itself.
    ///
    /// # Errors
    /// A sentence for the agent if the script belongs to no allowed call.
    async fn caller(&self, _script: String) -> Result<Option<String>, String> {
        Ok(None)
    }
    /// Decides at the end of a turn: `Some(reason)` continues it. `is_repeated` says that this method has continued it before.
    async fn stop(&self, is_repeated: bool) -> Option<String>;
    /// Serves one of our MCP tools, by its bare name. The hook has approved the call.
    async fn call_tool(&self, name: &str, arguments: serde_json::Value) -> ToolAnswer;
    /// Serves a tool of a further server. The hook has approved the call. The default, for a host without servers, refuses.
    async fn call_external(&self, server: &str, tool: &str, _arguments: JsonObject) -> ExternalAnswer {
        ExternalAnswer::refused(format!("there is no tool `{tool}` of `{server}` here"))
    }
    /// Records the process that holds everything the client starts. Called when it starts, and again when the client
    /// reports its session.
    async fn started(&self, pid: u32, session: Option<SessionId>);
    /// Records an observation of the client. Called in the order of events; returns at once.
    fn observe(&self, _seen: Observation) {}
    /// Receives a part of the model's text, before [`observe`](Self::observe) receives the whole. Called only if the person
    /// takes part; returns at once.
    fn text_delta(&self, _text: &str) {}
    /// Waits for a message that the person sends during the turn. Cancel safe.
    async fn further_message(&self) -> FurtherMessage {
        std::future::pending().await
    }
    /// Records that the model received a message from [`further_message`](Self::further_message). This turn answers it.
    fn mark_received(&self, _id: &str) {}
    /// Records a call that the client itself refused without asking the hook.
    async fn client_denied(&self, tool: String, input: serde_json::Value, reason: String);
    /// Delivers the person's own text for the `notify` client, and schedules the job's next follow-up if it has one.
    ///
    /// # Errors
    /// A sentence on the cause. Nothing is delivered then.
    async fn deliver(&self, text: String) -> Result<(), String>;
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub class: FailureClass,
    /// A sentence for the person: the cause and the remedy.
    pub message: String,
}

/// The kinds of failure. The record names them in snake_case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The client could not be started.
    SpawnFailed,
    /// The client did not answer `initialize`.
    InitializeTimeout,
    /// The login is missing or was refused (401).
    NotLoggedIn,
    /// The API answered 408, 429 or 5xx, or cannot be reached.
    Overloaded,
    /// The client ended the turn with an error.
    ErrorResult,
    /// The client wrote too many malformed lines, or a line over 64 MiB.
    Garbage,
    /// The client exited without a result.
    ExitedEarly,
    /// The session to resume does not exist.
    MainSessionMissing,
    /// The client shows tools that the policy hides, or none of a server that the job has.
    SurfaceMismatch,
    /// The job needs an agent, and none is available.
    NeedsClaude,
    /// The job's gate neither woke its agent nor skipped the occurrence.
    GateFailed,
    /// The job's command exited with a code other than 0, or a program was refused.
    CommandFailed,
    /// The run completed without the delivery that the job's file requires.
    NotDelivered,
    /// The run's processes exceeded `limits`.
    LimitExceeded,
    /// An MCP server that the job's rules name is not available.
    McpServerMissing,
    /// A fault of our own: a panic, a full disk.
    Internal,
}

impl Failure {
    /// Creates a failure of this kind, with a sentence for the person.
    #[must_use]
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

impl FailureClass {
    /// Returns whether its message may quote the job: the client or the API wrote it.
    #[must_use]
    pub fn quotes_job(self) -> bool {
        use FailureClass::{ErrorResult, ExitedEarly, Garbage, Overloaded, SpawnFailed, SurfaceMismatch};
        matches!(self, ErrorResult | ExitedEarly | Garbage | Overloaded | SpawnFailed | SurfaceMismatch)
    }

    /// Returns whether another attempt may succeed without a change.
    #[must_use]
    pub fn may_pass(self) -> bool {
        matches!(
            self,
            Self::InitializeTimeout | Self::Overloaded | Self::ExitedEarly | Self::SpawnFailed | Self::McpServerMissing
        )
    }
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The client finished its turn.
    Completed,
    /// The attempt failed.
    Failed(Failure),
    /// The attempt exceeded a time limit, which the sentence names.
    TimedOut(String),
    /// `Request::cancel` ended it.
    Cancelled,
    /// The person refused a part of it when asked. The text says which, as a sentence without its full stop.
    Refused(String),
    /// No client was started, which is no failure.
    Skipped(SkipReason),
}

/// The reason why no client was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The job's gate found nothing to do. The text is its reason.
    Gate(String),
    /// A budget is used up. The text names it, as a sentence without its full stop.
    Budget(String),
}

impl SkipReason {
    /// The prefix in the record of a skip by a gate.
    pub const BY_GATE: &str = "gate: ";
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(said) => write!(f, "{}{said}", Self::BY_GATE),
            Self::Budget(why) => write!(f, "budget: {why}"),
        }
    }
}

/// The client that did a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedClient {
    /// `claude` or `notify`.
    pub name: &'static str,
    /// The version that the client reports, if any.
    pub version: Option<String>,
    /// Whether the client uses a model, and so a login.
    pub is_agent: bool,
}

/// The end of an attempt, with the client's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptReport {
    /// The end of the attempt.
    pub end: AttemptEnd,
    /// The client's last text: a foreground job's answer.
    pub answer: Option<String>,
    /// The client's session.
    pub session: Option<SessionId>,
    /// The path of the transcript.
    pub transcript: Option<PathBuf>,
    /// The cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Number of the model's turns.
    pub turns: Option<u32>,
    /// The model that the client reports.
    pub model: Option<String>,
    /// The token usage.
    pub tokens: Option<Tokens>,
    /// The client that was used; `None` if none was started.
    pub client: Option<UsedClient>,
    /// Messages to the person. They are committed with the outcome, so that each is sent exactly once.
    pub messages: Vec<String>,
    /// What the service tells the person about the run, in words of its own. It is limited like all messages about a job.
    pub notices: Vec<String>,
}

impl AttemptReport {
    /// Creates a report with this end and no figures.
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
            notices: Vec::new(),
        }
    }
}

/// A client that can do a turn. [`run`](Self::run) returns when everything that it started has ended.
#[async_trait]
pub trait AgentClient: Send + Sync {
    /// `claude` or `notify`.
    fn name(&self) -> &'static str;
    /// Returns whether the client starts processes, which need a sandbox.
    fn starts_processes(&self) -> bool {
        true
    }
    /// Does the turn. Never panics; the report contains every fault.
    async fn run(&self, request: Request) -> AttemptReport;
}
