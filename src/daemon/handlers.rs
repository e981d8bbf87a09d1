//! Handles requests from the control socket. A change is answered only after it is on disk, so it survives the end of this
//! process.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};

use super::control::Handler;
use super::page::Page;
use super::pushed::PushedDefinitions;
use super::settings::CurrentApp;
use super::sign_in::SignIns;
use super::wire::Reply;
use crate::agent::claude::IdleClient;
use crate::app::{
    App, ClientStatus, Command, Events, ListenerState, Outcome, Service, ServiceCommand, ServiceReply, ServiceStatus,
};
use crate::bot::budget::SharedBudget;
use crate::bot::live::{LiveTurns, TurnUpdate};
use crate::bot::main_session::{Choice, DEFAULT, MAKE_SHORTER, MainSession};
use crate::channel::{OpenChat, OpenChats};
use crate::clock::Clock;
use crate::config::TERMINAL;
use crate::definition::values::{MODELS_FOR_EXAMPLE, is_model_name};
use crate::definition::{DefinitionId, Period, Thinking};
use crate::journal::{
    Delivery, DeliveryState, Event, EventFilter, EventKind, ForkRecord, Journal, JournalError, NewMessage, RunId,
};
use crate::mcp::servers::{Connection, McpServers};
use crate::refusal::Refusal;
use crate::run::converse::{ChatMessage, checked};
use crate::run::forks::{EndForkResult, FORK_BEGINS, Forks};
use crate::run::questions::Questions;
use crate::run::spawn::Spawner;
use crate::run::tokens::RunAuthority;
use crate::schedule::{FireError, LiveDefinitions, Schedule};
use crate::webhooks::ListenState;

/// The hint on when a change to config.yaml takes effect.
const READ_AGAIN: &str = "the service reads it when it starts, and on SIGHUP";

/// Maximum time that a channel's test waits for the outcome of the message, and the interval between its checks.
const TEST_TIMEOUT: Duration = Duration::from_secs(40);

/// Time after which the test of a channel that is known to fail ends.
const FAILING_AFTER: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time after which a caller is told that its command waits for the journal.
const FAULT_LASTS: Duration = Duration::from_secs(3);

/// Reads a command line and executes it on behalf of a run. Called on blocking threads.
pub type ExecuteLine = fn(&App, Arc<RunAuthority>, Vec<String>) -> Reply;

/// The parts of the service that commands reach.
#[derive(Clone)]
pub struct Handlers {
    /// The schedule.
    pub schedule: Schedule,
    /// The definitions in force.
    pub definitions: LiveDefinitions,
    /// The definitions of the database.
    pub(super) pushed: PushedDefinitions,
    /// The budget of messages that all background jobs share.
    pub budget: SharedBudget,
    /// The spawner of agents.
    pub spawner: Arc<Spawner>,
    /// Open questions to the person.
    pub questions: Questions,
    /// The main session, which cannot be patched.
    pub main: MainSession,
    /// The main session's client, while it waits between two turns.
    pub idle_client: IdleClient,
    /// The clock.
    pub clock: Clock,
    /// The part of the status that is constant while the service runs.
    pub status: ServiceStatus,
    /// Returns the client's current status.
    pub client: Arc<dyn Fn() -> ClientStatus + Send + Sync>,
    /// The person's own MCP servers.
    pub mcp_servers: McpServers,
    /// The application under the settings in force.
    pub app: CurrentApp,
    /// Conversations beside the main session.
    pub forks: Forks,
    /// The live view of turns.
    pub live: LiveTurns,
    /// Open chats at terminals.
    pub chats: OpenChats,
    /// The agent's logins.
    pub sign_ins: SignIns,
    /// The journal.
    pub journal: Journal,
    /// The web page.
    pub page: Page,
    /// Whether the service listens for webhooks.
    pub webhooks: watch::Receiver<ListenState>,
    /// See [`ExecuteLine`].
    pub execute: ExecuteLine,
    /// The channel on which the person asks, or `None` if they use no channel.
    pub asked_on: Option<String>,
}

#[async_trait]
impl Handler for Handlers {
    fn open_chat(&self) -> OpenChat {
        self.chats.open()
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    fn live(&self) -> broadcast::Receiver<TurnUpdate> {
        self.live.listen()
    }

    fn newest_event(&self) -> i64 {
        *self.journal.newest_event().borrow()
    }

    async fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, Refusal> {
        let mut newest = self.journal.newest_event();
        loop {
            newest.mark_unchanged();
            let events = self.journal.events(number, filter).await?;
            if !events.is_empty() {
                return Ok(events);
            }
            newest.changed().await.map_err(|_| Refusal::environment("the service is ending"))?;
        }
    }

    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        let app = self.app.get().with_service(Arc::new(self.clone()));
        let execute = self.execute;
        tokio::task::spawn_blocking(move || execute(&app, run, argv)).await.unwrap_or_else(|error| {
            Reply::Refused(Refusal::environment(format!("a fault of ollim-bot itself: {error}")))
        })
    }

    async fn service(&self, command: ServiceCommand) -> Result<ServiceReply, Refusal> {
        let needs_journal = command.needs_journal();
        let fault = self.journal.fault();
        // What waits for the journal would take effect when nobody expects it any more.
        if let Some(fault) = fault.borrow().as_ref().filter(|_| needs_journal) {
            return Err(Refusal::environment(format!("nothing was done: {fault}")).hint("say it again then"));
        }
        let handlers = self.clone();
        // A command that has begun goes on, also if its caller does not wait for it.
        let mut obeying = tokio::spawn(async move { handlers.obey(command).await });
        let obeyed = tokio::select! {
            obeyed = &mut obeying => obeyed,
            fault = lasting(fault), if needs_journal => {
                return Err(Refusal::environment(format!("this is not done yet: {fault}"))
                    .hint("the service has taken it, and does it as soon as the journal can be written"));
            }
        };
        obeyed.unwrap_or_else(|error| Err(Refusal::environment(format!("a fault of ollim-bot itself: {error}"))))
    }
}

/// Waits until the journal has had a fault for [`FAULT_LASTS`], and returns it.
async fn lasting(mut fault: watch::Receiver<Option<JournalError>>) -> JournalError {
    loop {
        // The journal is there as long as the service.
        let Ok(found) = fault.wait_for(Option::is_some).await.map(|found| found.clone()) else {
            return std::future::pending().await;
        };
        let passes = tokio::time::timeout(FAULT_LASTS, fault.wait_for(Option::is_none)).await;
        if let (Err(_), Some(found)) = (passes, found) {
            return found;
        }
    }
}

impl Handlers {
    /// Returns an MCP server, which is started if need be.
    async fn connected(&self, server: &str) -> Result<Arc<Connection>, Refusal> {
        let servers = &self.mcp_servers;
        let connected = servers.connect(server).await;
        let is_known = servers.settings().iter().any(|known| known.name == server);
        connected.map_err(|why| match is_known {
            true => Refusal::environment(why),
            false => Refusal::user(why).hint("`ollim-bot mcp list` shows those that there are"),
        })
    }

    /// Runs a definition now. A file that was written a moment ago may not have been read yet.
    async fn fire(&self, id: &DefinitionId) -> Result<RunId, FireError> {
        match self.schedule.fire(id.clone()).await {
            Err(FireError::NotFound(_)) => {
                self.definitions.reread_for(id).await;
                if let Err(error) = self.pushed.load_one(id).await {
                    tracing::warn!(%id, %error, "the definitions of the database could not be read");
                }
                self.schedule.fire(id.clone()).await
            }
            fired => fired,
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: a row a command")]
    async fn obey(&self, command: ServiceCommand) -> Result<ServiceReply, Refusal> {
        let refused = |error: &dyn std::error::Error| Refusal::user(error.to_string());
        match command {
            ServiceCommand::Status => {
                let now = self.schedule.snapshot(0).await;
                let webhooks = match self.webhooks.borrow().clone() {
                    None => None,
                    Some(Ok(at)) => Some(ListenerState::Served(at)),
                    Some(Err(why)) => Some(ListenerState::Failed(why)),
                };
                let (client, page) = ((self.client)(), self.page.state());
                let mut status = ServiceStatus { client, page, webhooks, ..self.status.clone() };
                status.journal_fault = self.journal.fault().borrow().as_ref().map(ToString::to_string);
                status.paused = now.paused.map(|at| at.to_rfc3339());
                status.ending = now.ending;
                let waited = self.idle_client.waits().await;
                let timeout = self.app.get().config()?.main_idle_timeout;
                status.idle_client = waited.map(|waited| waited.as_secs());
                status.idle_client_left = waited.map(|waited| timeout.saturating_sub(waited).as_secs());
                status.waiting_for_login = now.waiting_for_login.map(|at| at.to_rfc3339());
                status.waiting_for_agent = now.waiting_for_agent.map(|at| at.to_rfc3339());
                Ok(ServiceReply::Status(Box::new(status)))
            }
            ServiceCommand::Pushed => {
                self.pushed.look_soon();
                Ok(ServiceReply::Pushed)
            }
            ServiceCommand::WebLink { end_sessions } => self.page.link(end_sessions, &self.app.get()).await,
            ServiceCommand::Fire { id } => match self.fire(&id).await {
                Ok(run) => {
                    if let Some(channel) = self.asked_on.clone() {
                        self.journal.record(&run, EventKind::Requested { channel });
                    }
                    let paused = self.schedule.snapshot(0).await.paused.is_some();
                    Ok(ServiceReply::Fired { id, run, paused })
                }
                Err(error @ FireError::Elsewhere { .. }) => Err(Refusal::user(error.to_string())
                    .hint(format!("`ollim-bot fire {id}` on a host that may; `ollim-bot status` shows the hosts"))),
                Err(error @ FireError::Stopping) => Err(refused(&error)
                    .hint("start it again when it has ended: `ollim-bot run`, or `ollim-bot service restart`")),
                Err(error) => Err(refused(&error)),
            },
            ServiceCommand::CancelRun { run } if !self.withdraw(&run).await => {
                Err(Refusal::user("the model was given this message already, with the one that is being answered")
                    .hint("`/interrupt` ends that answer"))
            }
            ServiceCommand::CancelRun { run } => match self.schedule.cancel_run(run.clone()).await {
                Ok(state) => Ok(ServiceReply::RunEnded { run, state }),
                Err(error) => Err(refused(&error)),
            },
            ServiceCommand::Say { text, .. } if self.sign_ins.awaits(&text).await => {
                Err(Refusal::user("this looks like the code of a login, which is nothing for a model")
                    .hint("`ollim-bot login CODE`, or `/login CODE` here"))
            }
            ServiceCommand::Say { text, channel } => {
                let fork = match &channel {
                    Some(channel) if text != MAKE_SHORTER => self.forks.of_message(None, channel).await?,
                    _ => None,
                };
                let turn = self.say_in(fork.as_ref(), text, channel, None).await?;
                Ok(ServiceReply::Heard { turn })
            }
            ServiceCommand::OpenFork { topic, channel } => {
                let (fork, turn) = self.open_fork(topic, &channel).await?;
                Ok(ServiceReply::ForkOpened { fork: fork.id, turn })
            }
            ServiceCommand::EndFork { fork, how, anyway } => {
                let fork = self.forks.named(fork.as_ref(), TERMINAL).await?;
                self.spawner.mid_turn.stop_accepting();
                Ok(match self.forks.end(&fork, how, anyway).await? {
                    EndForkResult::Reported(text) => ServiceReply::ForkEnded(text),
                    EndForkResult::Confirm(question) => ServiceReply::ForkKept(question),
                })
            }
            ServiceCommand::Choose { model, thinking } => self.choose(model, thinking).await.map(ServiceReply::Chosen),
            ServiceCommand::BeginAnew => {
                self.spawner.mid_turn.stop_accepting();
                self.idle_client.end().await;
                self.main.begin_conversation(self.app.get().now()).await?;
                Ok(ServiceReply::BegunAnew)
            }
            ServiceCommand::ResumeConversation { session } => {
                self.spawner.mid_turn.stop_accepting();
                self.idle_client.end().await;
                match self.main.resume(&session, self.app.get().now()).await? {
                    Some(conversation) => Ok(ServiceReply::Continued { session: conversation.session.0 }),
                    None => Err(Refusal::user(format!("no earlier conversation is `{session}`, or more than one"))
                        .hint("`ollim-bot sessions list` shows them")),
                }
            }
            ServiceCommand::McpServers => Ok(ServiceReply::McpServers(self.mcp_servers.states())),
            ServiceCommand::McpTools { server } => {
                let connection = self.connected(&server).await?;
                let tools = connection.tools().await.map_err(Refusal::environment)?;
                Ok(ServiceReply::McpTools { server, tools })
            }
            ServiceCommand::McpCall { server, tool, arguments } => {
                let connection = self.connected(&server).await?;
                let answer = connection.call(&tool, arguments).await;
                match answer.is_error {
                    true => Err(Refusal::environment(format!("the call failed: {}", answer.text()))),
                    false => Ok(ServiceReply::McpCalled(answer)),
                }
            }
            ServiceCommand::TestChannel { name } => self.test_channel(name).await,
            ServiceCommand::SetCap { day, month, tokens } => {
                let config = self.app.get().config()?;
                let zone = config.timezone;
                for (period, cents, cap) in
                    [(Period::Day, day, config.budget.day), (Period::Month, month, config.budget.month)]
                {
                    if let Some(cents) = cents {
                        if cap.is_none() {
                            let name = period.name();
                            return Err(Refusal::user(format!("there is no cap for the {name} to raise"))
                                .hint(format!("`budget: {{ {name}: 5.00 }}` in config.yaml makes one; {READ_AGAIN}")));
                        }
                        #[allow(clippy::cast_precision_loss, reason = "at most a hundred million")]
                        self.journal.set_cap(period, cents as f64 / 100.0, zone).await?;
                    }
                }
                if let Some(tokens) = tokens {
                    if config.budget.tokens_day.is_none() {
                        return Err(Refusal::user("there is no cap of tokens for the day to raise").hint(format!(
                            "`budget: {{ tokens_day: 2000000 }}` in config.yaml makes one; {READ_AGAIN}"
                        )));
                    }
                    self.journal.set_tokens(tokens, zone).await?;
                }
                Ok(ServiceReply::CapSet)
            }
            ServiceCommand::SetBudget { left } => {
                let set = self.budget.set(left, self.clock.now()).await;
                set.map(ServiceReply::BudgetSet).map_err(|error| refused(&error))
            }
            ServiceCommand::Spawn(request) => {
                let session = self.spawner.spawn(request, None).await?;
                Ok(ServiceReply::Spawned { session })
            }
            ServiceCommand::PatchSession { session, spawn_tool_policy } => {
                let main = self.main.id().map(|id| id.0);
                self.spawner.patch(&session, spawn_tool_policy, main.as_deref()).await?;
                Ok(ServiceReply::SessionPatched { session })
            }
            ServiceCommand::ResetSession { id, lineage } => {
                let runs = self.journal.forget_runs(lineage).await?;
                Ok(ServiceReply::SessionReset { id, runs })
            }
            ServiceCommand::Answer { question, answer, sentence, channel } => {
                let question = self.questions.answer(question, answer, sentence, &channel).await?;
                Ok(ServiceReply::Answered(Box::new(question)))
            }
            ServiceCommand::Login { code } => self.sign_ins.login(code).await.map(ServiceReply::Login),
            ServiceCommand::Pause => {
                self.schedule.pause().await.map_err(|error| refused(&error))?;
                Ok(ServiceReply::Paused)
            }
            ServiceCommand::Resume { id: None } => {
                let was_paused = self.schedule.snapshot(0).await.paused.is_some();
                self.schedule.resume().await.map_err(|error| refused(&error))?;
                Ok(if was_paused { ServiceReply::Resumed { id: None } } else { ServiceReply::NotPaused })
            }
            ServiceCommand::Resume { id: Some(id) } => match self.schedule.resume_routine(id.clone()).await {
                Ok(true) => Ok(ServiceReply::Resumed { id: Some(id) }),
                Ok(false) => Err(Refusal::user(format!("{id} is not paused"))),
                Err(error) => Err(refused(&error)),
            },
        }
    }

    /// Starts a turn that answers the person's message.
    async fn say(&self, word: ChatMessage) -> Result<DefinitionId, Refusal> {
        self.require_agent()?;
        let turn = self.spawner.say(word).await?;
        self.main.note_message(self.clock.now());
        Ok(turn)
    }

    /// Withdraws a message of the person's if it is still possible. Returns `true` if so, or if the run is no active run.
    async fn withdraw(&self, run: &RunId) -> bool {
        let active = self.schedule.snapshot(0).await.active;
        let message = active.into_iter().find(|active| active.run == *run).map(|active| active.id);
        message.is_none_or(|message| self.spawner.mid_turn.withdraw(&message))
    }

    /// Returns an error if there is no agent to talk with.
    pub(super) fn require_agent(&self) -> Result<(), Refusal> {
        match (self.client)().no_agent() {
            Some(why) => Err(Refusal::user(format!("there is no agent to talk with: {why}"))),
            None => Ok(()),
        }
    }

    /// Starts a turn that answers the person's message in a fork or in the main session. `external` is the channel's own id of the message.
    pub(super) async fn say_in(
        &self,
        fork: Option<&ForkRecord>,
        text: String,
        channel: Option<String>,
        external: Option<String>,
    ) -> Result<DefinitionId, Refusal> {
        if let Some(fork) = fork {
            self.journal.heard_in_fork(&fork.id).await?;
        }
        let (fork, of_job) = (fork.map(|fork| fork.id.clone()), fork.and_then(|fork| fork.from_run.clone()));
        self.say(ChatMessage { text, channel, external, fork, of_job }).await
    }

    /// Opens a fork of the main session. If it has a topic, also returns the turn that answers it.
    pub(super) async fn open_fork(
        &self,
        topic: Option<String>,
        channel: &str,
    ) -> Result<(ForkRecord, Option<DefinitionId>), Refusal> {
        // Check first: a fork is opened only for a message that can be answered.
        self.require_agent()?;
        let topic = topic.filter(|topic| !topic.trim().is_empty());
        let text = topic.as_ref().map(|topic| format!("{FORK_BEGINS}{topic}"));
        text.as_deref().map(checked).transpose()?;
        let fork = self.forks.open(topic, None, Some(channel.to_owned())).await?;
        let Some(text) = text else { return Ok((fork, None)) };
        let turn = self.say_in(Some(&fork), text, Some(channel.to_owned()), None).await?;
        Ok((fork, Some(turn)))
    }

    /// Sets and returns the person's choice of model and thinking for the main session.
    async fn choose(&self, model: Option<String>, thinking: Option<String>) -> Result<Choice, Refusal> {
        if model.is_some() || thinking.is_some() {
            self.spawner.mid_turn.stop_accepting();
        }
        let mut choice = self.main.choice();
        if let Some(model) = model {
            choice.model = Some(model);
        }
        if let Some(name) = choice.model.as_ref().filter(|name| !is_model_name(name)) {
            return Err(Refusal::user(format!("`{name}` is no name of a model")).hint(MODELS_FOR_EXAMPLE));
        }
        if let Some(thinking) = thinking {
            choice.thinking = match &*thinking {
                DEFAULT => None,
                "on" => Some(Thinking::Adaptive),
                "off" => Some(Thinking::Disabled),
                tokens => {
                    Some(tokens.parse().ok().filter(|tokens| *tokens > 0).map(Thinking::Budget).ok_or_else(|| {
                        Refusal::user(format!("`{tokens}` says nothing about thinking"))
                            .hint("`on`, `off`, `8000` tokens at most, or `default`")
                    })?)
                }
            };
        }
        self.main.choose(choice.clone()).await?;
        Ok(choice)
    }

    async fn test_channel(&self, name: String) -> Result<ServiceReply, Refusal> {
        let config = self.app.get().config()?;
        if !config.has_channel(&name) {
            let names = config.channel_names().collect::<Vec<_>>().join(", ");
            return Err(Refusal::user(format!("there is no channel `{name}`")).hint(format!("there is: {names}")));
        }
        let text = format!("This is a test of the channel `{name}`. It works if you can read this.");
        let message = NewMessage { channel: Some(name.clone()), ..NewMessage::of_service(text) };
        let number = self.journal.message(message).await?;
        let delivery = self.tested(number, &name).await?;
        Ok(ServiceReply::ChannelTested { name, delivery })
    }

    /// Waits until a test message is tried, or known to wait.
    async fn tested(&self, number: i64, name: &str) -> Result<Option<Delivery>, Refusal> {
        let tried = async {
            loop {
                let delivery = self.journal.delivery(number, name).await?;
                let is_tried = |one: &Delivery| {
                    one.state != DeliveryState::Waiting || one.error.is_some() || one.held_until.is_some()
                };
                if delivery.as_ref().is_some_and(is_tried) {
                    return Ok::<_, JournalError>(delivery);
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::pin!(tried);
        match tokio::time::timeout(FAILING_AFTER, &mut tried).await {
            Ok(delivery) => Ok(delivery?),
            Err(_) => match self.failure_of(name).await {
                // Earlier messages wait for the next attempt, and this one waits behind them.
                Some(error) => {
                    let delivery = self.journal.delivery(number, name).await?;
                    Ok(delivery.map(|delivery| Delivery { error: Some(error), ..delivery }))
                }
                None => Ok(tokio::time::timeout(TEST_TIMEOUT, tried).await.unwrap_or(Ok(None))?),
            },
        }
    }

    /// Returns why a channel cannot deliver at present, if that is known.
    async fn failure_of(&self, name: &str) -> Option<String> {
        let app = self.app.get();
        let outcome = tokio::task::spawn_blocking(move || app.execute(Command::Channels)).await.ok()?.ok()?;
        let Outcome::Channels(channels) = outcome else { return None };
        let failing = channels.into_iter().find(|channel| channel.name == name)?.failing?;
        (!failing.refused && !failing.deaf).then_some(failing.error)
    }
}

impl Service for Handlers {
    fn ask(&self, command: ServiceCommand) -> Result<Option<ServiceReply>, Refusal> {
        Handle::current().block_on(self.service(command)).map(Some)
    }

    fn follow(&self, _after: Option<i64>, _filter: EventFilter) -> Result<Option<Events>, Refusal> {
        Err(Refusal::denied("what happens is shown to the person alone"))
    }
}
