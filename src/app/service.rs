//! What only the running service can do or knows, and how an interface in another process asks it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{App, Outcome, jobs, runs};
use crate::agent::{ExternalAnswer, ExternalTool, JsonObject, NOTIFY, ServerState};
use crate::bot::budget::PingBudget;
use crate::bot::main_session::Choice;
use crate::definition::DefinitionId;
use crate::journal::{Answer, Delivery, Event, EventFilter, ForkEnd, Question, RunId, RunState};
use crate::policy::ToolLists;
use crate::refusal::Refusal;
use crate::run::spawn::SpawnRequest;

/// What the running service alone can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServiceCommand {
    /// How it is doing.
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
    /// Say something to the bot: a turn of the main session.
    Say {
        /// What.
        text: String,
        /// Where the answer goes; `None`: to the default channel.
        channel: Option<String>,
    },
    /// Open a fork: a conversation beside the main session.
    OpenFork {
        /// What it is about.
        topic: Option<String>,
        /// Where the person talks in it.
        channel: String,
    },
    /// End a fork.
    EndFork {
        /// Which; `None`: the one in which the person said something last.
        fork: Option<DefinitionId>,
        /// What becomes of it.
        how: ForkEnd,
        /// Save it also if the main session has moved on.
        anyway: bool,
    },
    /// What the person wants of the model in their conversation from now on, and before the settings. `default`: the settings.
    Choose {
        /// Its name; `None`: it stays.
        model: Option<String>,
        /// `on`, `off` or at most so many tokens; `None`: it stays.
        thinking: Option<String>,
    },
    /// Begin a new conversation.
    BeginAnew,
    /// Answer a question.
    Answer {
        /// Its number.
        question: i64,
        /// What the person says.
        answer: Answer,
        /// What the agent is told besides a no.
        sentence: Option<String>,
        /// Where the person answers.
        channel: String,
    },
    /// Log the agent in: a link for the person, then the code that they bring back.
    Login {
        /// The code; `None`: begin.
        code: Option<String>,
    },
    /// A link that logs a browser in to the page.
    WebLink {
        /// End the sessions that there are before.
        end_sessions: bool,
    },
    /// Start nothing more.
    Pause,
    /// Start jobs again: all, or a routine that was paused after failures.
    Resume {
        /// The routine.
        id: Option<DefinitionId>,
    },
    /// Start an agent.
    Spawn(SpawnRequest),
    /// Give a spawned agent's session its tool policy: once, and never the main session.
    PatchSession {
        /// The session.
        session: String,
        /// What it may use.
        #[serde(rename = "spawnToolPolicy")]
        spawn_tool_policy: ToolLists,
    },
    /// Have a job forget its runs so far: its session begins anew.
    ResetSession {
        /// The job.
        id: DefinitionId,
        /// Under what its runs are known; empty: as its file says.
        lineage: String,
    },
    /// Send a message by a channel, and wait for what becomes of it.
    TestChannel {
        /// The channel.
        name: String,
    },
    /// Each MCP server of the person's, as it is.
    McpServers,
    /// The tools of an MCP server, which is started for it.
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
    /// Set what this day or this month may cost, until it ends.
    SetCap {
        /// US cents of today.
        day: Option<u64>,
        /// US cents of this month.
        month: Option<u64>,
        /// Tokens of today.
        #[serde(default)]
        tokens: Option<u64>,
    },
    /// Set how many messages background jobs may still send.
    SetBudget {
        /// At most a full budget.
        left: u32,
    },
}

/// What the service did, or knows.
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
        /// Everything is paused; the run starts all the same.
        #[serde(default)]
        paused: bool,
    },
    /// [`ServiceCommand::CancelRun`].
    RunEnded {
        /// The run.
        run: RunId,
        /// How it ended: it may have been over already.
        state: RunState,
    },
    /// [`ServiceCommand::TestChannel`].
    ChannelTested {
        /// The channel.
        name: String,
        /// What became of the message; `None`: nothing yet.
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
        /// The turn that answers its topic, where it has one.
        turn: Option<DefinitionId>,
    },
    /// [`ServiceCommand::EndFork`]: it is over, or its report is being written. What the person is told.
    ForkEnded(String),
    /// [`ServiceCommand::EndFork`]: it is saved only if the person wants that all the same. Why.
    ForkKept(String),
    /// [`ServiceCommand::Choose`]: what holds now.
    Chosen(Choice),
    /// [`ServiceCommand::BeginAnew`].
    BegunAnew,
    /// [`ServiceCommand::Answer`].
    Answered(Box<Question>),
    /// [`ServiceCommand::Login`].
    Login(LoginState),
    /// [`ServiceCommand::WebLink`].
    WebLink {
        /// The link.
        url: String,
        /// For how many seconds it is good.
        seconds: i64,
        /// What leads to it, where the page listens on a socket: `ssh -L 8080:/run/user/1000/ollim.sock HOST`.
        #[serde(default)]
        tunnel: Option<String>,
    },
    /// [`ServiceCommand::Pause`].
    Paused,
    /// [`ServiceCommand::Resume`].
    Resumed {
        /// The routine; `None`: all.
        id: Option<DefinitionId>,
    },
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
        /// How many runs it has forgotten.
        runs: usize,
    },
    /// [`ServiceCommand::McpServers`].
    McpServers(Vec<ServerState>),
    /// [`ServiceCommand::McpTools`].
    McpTools {
        /// The server.
        server: String,
        /// What it offers.
        tools: Vec<ExternalTool>,
    },
    /// [`ServiceCommand::McpCall`].
    McpCalled(ExternalAnswer),
    /// [`ServiceCommand::SetCap`].
    CapSet,
    /// [`ServiceCommand::SetBudget`].
    BudgetSet(PingBudget),
}

/// How far the person has come with logging the agent in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    /// They open a link, and bring back the code that it shows.
    Waits {
        /// The link.
        link: String,
        /// How many minutes it is good for.
        minutes: u64,
    },
    /// The agent is logged in.
    Done,
}

/// What only the running service knows of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its process.
    pub pid: u32,
    /// Since when it runs, RFC 3339.
    pub since: String,
    /// `claude` or `notify`, and why.
    pub client: ClientStatus,
    /// `console`.
    pub channel: String,
    /// Whether the kernel holds background jobs.
    pub sandbox: Sandbox,
    /// Where the page is served, or why it is not; `None`: the settings have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ListenerState>,
    /// Where webhooks are taken, or why they are not; `None`: the settings say nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<ListenerState>,
    /// Since when it starts nothing because the person said so, RFC 3339.
    pub paused: Option<String>,
    /// Since when jobs wait for the client to be logged in, RFC 3339.
    pub waiting_for_login: Option<String>,
    /// Since when jobs wait for a client that is not there, RFC 3339; [`ClientStatus::missing`] says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for_agent: Option<String>,
    /// It starts nothing more, and ends when what is going has ended.
    #[serde(default)]
    pub ending: bool,
    /// For how many seconds the main session's client has waited for a message; `None`: there is none, or it is answering.
    #[serde(default)]
    pub idle_client: Option<u64>,
}

impl ServiceStatus {
    /// Whether jobs that need an agent wait: for a login, or for the client itself.
    #[must_use]
    pub fn waits_for_agent(&self) -> bool {
        self.waiting_for_login.is_some() || self.waiting_for_agent.is_some()
    }
}

/// Whether something is served: the page, or what webhooks are delivered to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerState {
    /// It is, at this address.
    Served(String),
    /// It is not: why.
    Failed(String),
}

/// So long the main session's client waits for another message.
pub const IDLE_CLIENT_WAITS: Duration = Duration::from_secs(15 * 60);

/// Which agent client does the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// `claude` or `notify`.
    pub name: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// Why this one: `configured`, `not logged in`, `not found`.
    pub why: String,
    /// The versions that were tested, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<String>,
    /// What is to be said of this one, where it is none between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
    /// Why there is no agent, and what to do, where jobs that need one wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl ClientStatus {
    /// Why there is nobody to talk with; `None`: there is an agent.
    #[must_use]
    pub fn no_agent(&self) -> Option<String> {
        let delivers = || format!("jobs are delivered as they are written ({})", self.why);
        self.missing.clone().or_else(|| (self.name == NOTIFY).then(delivers))
    }
}

/// The kernel's sandbox around forks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether it is put around background jobs.
    pub enforced: bool,
    /// What it is made of, or why there is none.
    pub detail: String,
}

/// Events, the oldest first. The next one is waited for.
pub type Events = Box<dyn Iterator<Item = Result<Event, Refusal>> + Send>;

/// The running service, as a command reaches it: directly inside the service, by the control socket from elsewhere.
pub trait Service: Send + Sync {
    /// Has the service do something. `None`: it does not run.
    ///
    /// # Errors
    /// Why it did not do it, or cannot be asked.
    fn ask(&self, command: ServiceCommand) -> Result<Option<ServiceReply>, Refusal>;
    /// What happens after the event `after`, or from now on, as it happens. It ends when the service does. `None`: it does not
    /// run.
    ///
    /// # Errors
    /// Why it cannot be asked.
    fn follow(&self, after: Option<i64>, filter: EventFilter) -> Result<Option<Events>, Refusal>;
}

/// Asks the service, which has to run.
pub(super) fn ask(command: ServiceCommand, app: &App) -> Result<ServiceReply, Refusal> {
    app.require_home()?;
    app.service.ask(command)?.ok_or_else(not_running)
}

/// The same with the whole ids of what it names: the beginning of one is enough, and what nobody knows is said as such.
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
            let job = jobs::find(id.as_str(), None, &app.load()?)?;
            ServiceCommand::ResetSession { id: job.id.clone(), lineage: job.lineage() }
        }
        other => other,
    })
}

/// Refuses what only the host can do that has the run: another one, where several share the journal. `command`: what does it there.
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
    let id = jobs::find(id, None, &app.load()?)?.id.clone();
    for open in runs::open(app)?.open_stories(&id)? {
        if let Some(last) = open.attempts.last() {
            not_elsewhere(open.host.as_deref(), &last.run, &format!("fire {id}"), app)?;
        }
    }
    let fired = app.service.ask(ServiceCommand::Fire { id: id.clone() })?;
    Ok(fired.map_or(Outcome::NotRunning(id), Outcome::Service))
}

/// How the service is doing; `None`: it does not run.
pub(super) fn status(app: &App) -> Result<Option<ServiceStatus>, Refusal> {
    match app.service.ask(ServiceCommand::Status)? {
        None => Ok(None),
        Some(ServiceReply::Status(status)) => Ok(Some(*status)),
        Some(_) => Err(another_answer()),
    }
}

pub(super) fn not_running() -> Refusal {
    Refusal::user("the service is not running").hint("start it: `ollim-bot run`")
}

/// A reply that no question of ours has.
#[must_use]
pub fn another_answer() -> Refusal {
    Refusal::environment("the service gave an answer to another question")
        .hint("it may be another version: start it anew")
}
