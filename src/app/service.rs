//! Commands that only the running service can execute, and the interface by which another process asks it.

use serde::{Deserialize, Serialize};

use super::{App, Outcome, jobs, runs};
use crate::agent::{ExternalAnswer, ExternalTool, JsonObject, NOTIFY, ServerState};
use crate::bot::budget::PingBudget;
use crate::bot::main_session::Choice;
use crate::definition::DefinitionId;
use crate::journal::{
    Answer, Delivery, Event, EventFilter, ForkEnd, JournalError, JournalReader, PAUSED, Question, RunId, RunState,
};
use crate::policy::ToolLists;
use crate::refusal::Refusal;
use crate::run::spawn::SpawnRequest;

/// A command that only the running service can execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServiceCommand {
    /// The service's state.
    Status,
    /// Run a definition now.
    Fire {
        /// The definition.
        id: DefinitionId,
    },
    /// End a run.
    CancelRun {
        /// The run.
        run: RunId,
    },
    /// Say something to the bot in a turn of the main session.
    Say {
        /// The person's words.
        text: String,
        /// The channel for the answer; `None` for the default channel.
        channel: Option<String>,
    },
    /// Open a fork: a conversation beside the main session.
    OpenFork {
        /// Its topic.
        topic: Option<String>,
        /// The channel in which the person talks.
        channel: String,
    },
    /// End a fork.
    EndFork {
        /// The fork; `None` for the one in which the person spoke last.
        fork: Option<DefinitionId>,
        /// The way to end it.
        how: ForkEnd,
        /// Whether to save it even if the main session has moved on.
        anyway: bool,
    },
    /// Choose the model and its thinking for the person's conversation, overriding the settings. `default` restores the settings.
    Choose {
        /// The model's name; `None` to leave it.
        model: Option<String>,
        /// `on`, `off` or a maximum number of tokens; `None` to leave it.
        thinking: Option<String>,
    },
    /// Begin a new conversation.
    BeginAnew,
    /// Continue an earlier conversation.
    ResumeConversation {
        /// The client's session id, or the beginning of it.
        session: String,
    },
    /// Answer a question.
    Answer {
        /// Its number.
        question: i64,
        /// The person's answer.
        answer: Answer,
        /// A sentence that the agent gets with a denial.
        sentence: Option<String>,
        /// The channel in which the person answers.
        channel: String,
    },
    /// Log the agent in: the first call returns a link for the person, the second takes the code from the linked page.
    Login {
        /// The code; `None` to begin.
        code: Option<String>,
    },
    /// Make a link that logs a browser in to the page.
    WebLink {
        /// Whether to end all existing browser sessions first.
        end_sessions: bool,
    },
    /// Look at the definitions of the database, since they have changed.
    Pushed,
    /// Start no more jobs.
    Pause,
    /// Start jobs again: all, or one routine that was paused after failures.
    Resume {
        /// The routine.
        id: Option<DefinitionId>,
    },
    /// Start an agent.
    Spawn(SpawnRequest),
    /// Set the tool policy of a spawned agent's session. Possible only once, and never for the main session.
    PatchSession {
        /// The session.
        session: String,
        /// The tool policy.
        #[serde(rename = "spawnToolPolicy")]
        spawn_tool_policy: ToolLists,
    },
    /// Make a job forget its previous runs, so that its session begins anew.
    ResetSession {
        /// The job.
        id: DefinitionId,
        /// The lineage of its runs; empty for the one in its file.
        lineage: String,
    },
    /// Send a message by a channel, and wait for its delivery.
    TestChannel {
        /// The channel.
        name: String,
    },
    /// The state of each of the person's MCP servers.
    McpServers,
    /// The tools of an MCP server, which is started for that.
    McpTools {
        /// The server.
        server: String,
    },
    /// Call a tool of an MCP server.
    McpCall {
        /// The server.
        server: String,
        /// The tool's bare name.
        tool: String,
        /// Its arguments.
        arguments: JsonObject,
    },
    /// Set the spending limit of the current day or month, until it ends.
    SetCap {
        /// US cents for today.
        day: Option<u64>,
        /// US cents for this month.
        month: Option<u64>,
        /// Tokens for today.
        #[serde(default)]
        tokens: Option<u64>,
    },
    /// Set how many more messages background jobs may send.
    SetBudget {
        /// The number, at most a full budget.
        left: u32,
    },
}

/// The service's reply to a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceReply {
    /// [`ServiceCommand::Status`].
    Status(Box<ServiceStatus>),
    /// [`ServiceCommand::Fire`].
    Fired {
        /// The definition.
        id: DefinitionId,
        /// The run that was started.
        run: RunId,
        /// Whether everything is paused. The run starts all the same.
        #[serde(default)]
        paused: bool,
    },
    /// [`ServiceCommand::CancelRun`].
    RunEnded {
        /// The run.
        run: RunId,
        /// How it ended, possibly before the command.
        state: RunState,
    },
    /// [`ServiceCommand::TestChannel`].
    ChannelTested {
        /// The channel.
        name: String,
        /// The outcome of the delivery; `None` if there is none yet.
        delivery: Option<Delivery>,
    },
    /// [`ServiceCommand::Say`].
    Heard {
        /// The turn that answers.
        turn: DefinitionId,
    },
    /// [`ServiceCommand::OpenFork`].
    ForkOpened {
        /// The fork.
        fork: DefinitionId,
        /// The turn that answers its topic, if it has one.
        turn: Option<DefinitionId>,
    },
    /// [`ServiceCommand::EndFork`]: the fork has ended, or its report is being written. The message to the person.
    ForkEnded(String),
    /// [`ServiceCommand::EndFork`]: the fork is saved only with `anyway`. The reason.
    ForkKept(String),
    /// [`ServiceCommand::Choose`]: the choice now in force.
    Chosen(Choice),
    /// [`ServiceCommand::BeginAnew`].
    BegunAnew,
    /// [`ServiceCommand::ResumeConversation`].
    Continued {
        /// The client's session id.
        session: String,
    },
    /// [`ServiceCommand::Answer`].
    Answered(Box<Question>),
    /// [`ServiceCommand::Login`].
    Login(LoginState),
    /// [`ServiceCommand::WebLink`].
    WebLink {
        /// The link.
        url: String,
        /// Validity of the link, in seconds.
        seconds: i64,
        /// The command that opens a tunnel, if the page listens on a socket: `ssh -L 8080:/run/user/1000/ollim.sock HOST`.
        #[serde(default)]
        tunnel: Option<String>,
    },
    /// [`ServiceCommand::Pushed`].
    Pushed,
    /// [`ServiceCommand::Pause`].
    Paused,
    /// [`ServiceCommand::Resume`].
    Resumed {
        /// The routine; `None` for all.
        id: Option<DefinitionId>,
    },
    /// [`ServiceCommand::Resume`]: the service was not paused.
    NotPaused,
    /// [`ServiceCommand::Spawn`].
    Spawned {
        /// The session.
        session: DefinitionId,
    },
    /// [`ServiceCommand::PatchSession`].
    SessionPatched {
        /// The session.
        session: String,
    },
    /// [`ServiceCommand::ResetSession`].
    SessionReset {
        /// The job.
        id: DefinitionId,
        /// Number of runs it has forgotten.
        runs: usize,
    },
    /// [`ServiceCommand::McpServers`].
    McpServers(Vec<ServerState>),
    /// [`ServiceCommand::McpTools`].
    McpTools {
        /// The server.
        server: String,
        /// Its tools.
        tools: Vec<ExternalTool>,
    },
    /// [`ServiceCommand::McpCall`].
    McpCalled(ExternalAnswer),
    /// [`ServiceCommand::SetCap`].
    CapSet,
    /// [`ServiceCommand::SetBudget`].
    BudgetSet(PingBudget),
}

/// The progress of logging the agent in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// The person has to open a link, and bring back the code from the page.
    Waits {
        /// The link.
        link: String,
        /// Validity of the link, in minutes.
        minutes: u64,
    },
    /// The agent is logged in.
    Done,
}

/// The status of the running service, by its own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its process id.
    pub pid: u32,
    /// Its start time, RFC 3339.
    pub since: String,
    /// The agent client, and why it was chosen.
    pub client: ClientStatus,
    /// The name of the default channel: `console`, unless the settings choose another.
    pub channel: String,
    /// Whether the kernel sandboxes background jobs.
    pub sandbox: Sandbox,
    /// The time zone of definitions that name none; empty if the service does not say.
    #[serde(default)]
    pub zone: String,
    /// The page's address, or why it is not served; `None` if the settings have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ListenerState>,
    /// The webhooks' address, or why they are not served; `None` if the settings have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<ListenerState>,
    /// Why the journal cannot be written; `None` if it can. Nothing starts as long as it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_fault: Option<String>,
    /// Since when the person has paused it, RFC 3339.
    pub paused: Option<String>,
    /// Since when jobs have been waiting for the client's login, RFC 3339.
    pub waiting_for_login: Option<String>,
    /// Since when jobs have been waiting for a missing client, RFC 3339; [`ClientStatus::missing`] says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for_agent: Option<String>,
    /// Whether it starts nothing more, and ends as soon as the active runs have ended.
    #[serde(default)]
    pub ending: bool,
    /// Seconds for which the main session's client has been idle; `None` if there is none, or it is answering.
    #[serde(default)]
    pub idle_client: Option<u64>,
    /// Seconds until that client ends, if nothing is said.
    #[serde(default)]
    pub idle_client_left: Option<u64>,
}

impl ServiceCommand {
    /// Whether the command has an effect only once the journal has recorded it.
    #[must_use]
    pub fn needs_journal(&self) -> bool {
        use ServiceCommand::{CancelRun, Login, McpCall, McpServers, McpTools, Pushed, Status, WebLink};
        !matches!(
            self,
            Status
                | Pushed
                | CancelRun { .. }
                | Login { .. }
                | WebLink { .. }
                | McpServers
                | McpTools { .. }
                | McpCall { .. }
        )
    }
}

impl ServiceStatus {
    /// Whether jobs that need an agent are waiting: for a login, or for the client itself.
    #[must_use]
    pub fn waits_for_agent(&self) -> bool {
        self.waiting_for_login.is_some() || self.waiting_for_agent.is_some()
    }
}

/// The state of a listener: that of the page, or that of webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerState {
    /// It is served at this address.
    Served(String),
    /// It is not served, for this reason.
    Failed(String),
}

/// The agent client in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// `claude` or `notify`.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Why it was chosen: `configured`, `not logged in`, `not found`.
    pub why: String,
    /// The tested versions, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<String>,
    /// A warning, if this version is not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// Why there is no agent and what to do, if jobs that need one are waiting for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl ClientStatus {
    /// Returns why there is nobody to talk with; `None` if there is an agent.
    #[must_use]
    pub fn no_agent(&self) -> Option<String> {
        let delivers = || format!("jobs are delivered as they are written ({})", self.why);
        self.missing.clone().or_else(|| (self.name == NOTIFY).then(delivers))
    }
}

/// The kernel's sandbox around forks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether it is enforced on background jobs.
    pub enforced: bool,
    /// Its components, or why there is none.
    pub detail: String,
}

/// Events, oldest first. The iterator blocks until the next one.
pub type Events = Box<dyn Iterator<Item = Result<Event, Refusal>> + Send>;

/// The running service as a command reaches it: directly from inside the service, by the control socket from elsewhere.
pub trait Service: Send + Sync {
    /// Sends a command to the service. Returns `None` if the service is not running.
    ///
    /// # Errors
    /// The reason why the service refused, or why it cannot be reached.
    fn ask(&self, command: ServiceCommand) -> Result<Option<ServiceReply>, Refusal>;
    /// Returns the events after `after`, or from now on, as they happen. The iterator ends with the service. Returns
    /// `None` if the service is not running.
    ///
    /// # Errors
    /// The reason why the service cannot be reached.
    fn follow(&self, after: Option<i64>, filter: EventFilter) -> Result<Option<Events>, Refusal>;
}

/// Sends a command to the service, which must be running.
pub(super) fn ask(command: ServiceCommand, app: &App) -> Result<ServiceReply, Refusal> {
    app.require_home()?;
    app.service.ask(command)?.ok_or_else(|| not_running(app))
}

/// Completes the ids in a command, which may be abbreviated. An unknown id is refused.
pub(super) fn named(command: ServiceCommand, app: &App) -> Result<ServiceCommand, Refusal> {
    Ok(match command {
        ServiceCommand::CancelRun { run } => {
            let run = runs::named(run.as_str(), &runs::open(app)?)?;
            if run.ended.is_none() || run.retry_at.is_some() {
                not_elsewhere(run.host.as_deref(), &run.run, &format!("cancel-run {}", run.run), app)?;
            }
            ServiceCommand::CancelRun { run: run.run }
        }
        ServiceCommand::ResetSession { id, .. } => {
            let job = jobs::find(id.as_str(), None, &app.load_with([id.as_str()])?)?;
            ServiceCommand::ResetSession { id: job.id.clone(), lineage: job.lineage() }
        }
        other => other,
    })
}

/// Refuses a command on a run that belongs to another host that shares the journal. `command` is the command to use there.
fn not_elsewhere(host: Option<&str>, run: &RunId, command: &str, app: &App) -> Result<(), Refusal> {
    let (hosts, me) = (runs::open(app)?.hosts()?, app.host_name().ok());
    let Some(other) = hosts.iter().find(|other| Some(&*other.name) == host && Some(&other.name) != me.as_ref()) else {
        return Ok(());
    };
    let refusal = Refusal::user(format!("run {run} is open on the host {}, and this is another one", other.name));
    Err(match other.alive {
        true => refusal.hint(format!("there: `ollim-bot {command}`")),
        false => refusal.hint("that host is gone; one that is up and may run it takes it over"),
    })
}

/// Runs a definition now.
pub(super) fn fire(id: &str, app: &App) -> Result<Outcome, Refusal> {
    let id = jobs::find(id, None, &app.load_with([id])?)?.id.clone();
    for open in runs::open(app)?.open_histories(&id)? {
        if let Some(last) = open.attempts.last() {
            not_elsewhere(open.host.as_deref(), &last.run, &format!("fire {id}"), app)?;
        }
    }
    let fired = app.service.ask(ServiceCommand::Fire { id: id.clone() })?;
    Ok(fired.map_or(Outcome::NotRunning(id), Outcome::Service))
}

/// Returns since when the person has paused everything, RFC 3339, as the service says it, or else as the journal does.
pub(super) fn paused(service: Option<&ServiceStatus>, journal: &JournalReader) -> Result<Option<String>, JournalError> {
    match service.and_then(|service| service.paused.clone()) {
        Some(since) => Ok(Some(since)),
        None => journal.setting(PAUSED),
    }
}

/// Returns the status of the service; `None` if it is not running.
pub(super) fn status(app: &App) -> Result<Option<ServiceStatus>, Refusal> {
    match app.service.ask(ServiceCommand::Status)? {
        None => Ok(None),
        Some(ServiceReply::Status(status)) => Ok(Some(*status)),
        Some(_) => Err(unexpected_reply()),
    }
}

pub(super) fn not_running(app: &App) -> Refusal {
    let refusal = Refusal::user("the service is not running").hint(app.starter().hint("start it"));
    match app.other_hosts_up() {
        Some(others) => refusal.hint(format!("or give the command on {others}, where it is running")),
        None => refusal,
    }
}

/// Returns the refusal for a reply that does not match the command.
#[must_use]
pub fn unexpected_reply() -> Refusal {
    Refusal::environment("the service gave an answer to another question")
        .hint("it may be another version: start it anew")
}
