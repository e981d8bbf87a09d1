//! Constructs the parts of the service in order, and hands each to those that need it.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use tokio::sync::{mpsc, watch};

use super::background::Background;
use super::execution::Execution;
use super::opened_home::{OpenedHome, user_home};
use super::{DaemonError, failed};
use crate::agent::claude::IdleClient;
use crate::agents;
use crate::app::ServiceStatus;
use crate::bot::Bot;
use crate::bot::budget::SharedBudget;
use crate::bot::fork_turns::ForkTurns;
use crate::bot::live::LiveTurns;
use crate::bot::main_session::MainSession;
use crate::bot::mid_turn::MidTurnMessages;
use crate::channel::{Channel, Deliveries, OpenChats, ntfy};
use crate::daemon::channels::{ChannelDeps, channels};
use crate::daemon::control::Control;
use crate::daemon::cut_off_input;
use crate::daemon::files::HomeFiles;
use crate::daemon::handlers::{ExecuteLine, Handlers};
use crate::daemon::maintenance::Maintenance;
use crate::daemon::page::Page;
use crate::daemon::problems::Problems;
use crate::daemon::pushed::PushedDefinitions;
use crate::daemon::settings::{CurrentSettings, SettingsTargets};
use crate::daemon::sign_in::SignIns;
use crate::definition::{Defaults, DefinitionId, Store, Watch};
use crate::heartbeat::Heartbeats;
use crate::home::Home;
use crate::mcp::servers::McpServers;
use crate::run::forks::Forks;
use crate::run::prepared::PreparedSlot;
use crate::run::questions::Questions;
use crate::run::runner::{RunSettings, Runner};
use crate::run::spawn::Spawner;
use crate::run::tokens::{LastingTokens, Tokens};
use crate::run::watching::FolderWatches;
use crate::schedule::{Dispatcher, Housekeeping, Inbox, LiveDefinitions, ProblemsOfFile, Schedule};
use crate::webhooks::{ListenState, Webhooks};

/// The parts that are ended in order, and the background tasks.
pub(super) struct Parts {
    pub(super) dispatcher: Dispatcher,
    pub(super) deliveries: Deliveries,
    pub(super) housekeeping: Housekeeping,
    pub(super) schedule: Schedule,
    pub(super) settings: CurrentSettings,
    pub(super) hearts: Heartbeats,
    pub(super) idle_client: IdleClient,
    pub(super) background: Background,
}

impl Parts {
    /// Constructs all parts. Nothing fires yet. `only`: the definition of which a service makes a single run.
    pub(super) async fn construct(
        opened: &OpenedHome,
        only: Option<&DefinitionId>,
        execute: ExecuteLine,
    ) -> Result<Self, DaemonError> {
        let of_service = only.is_none();
        let OpenedHome { home, journal, clock, config, .. } = opened;
        let execution = Execution::choose(opened).await;
        let (read, inbox) = LoadedDefinitions::begin(opened).await?;
        let (schedule, definitions) = (read.schedule.clone(), read.definitions.clone());
        let shared = Shared::construct(opened, &read).await?;
        let runner = shared.runner(opened, &execution, &read);
        let pushed = read.pushed.clone();
        let files = HomeFiles { home: home.clone(), definitions: definitions.clone(), pushed: pushed.clone() };
        let mut dispatcher = Dispatcher::new(inbox, clock, journal.clone(), Arc::new(runner), Arc::new(files));
        if !config.share_files {
            dispatcher = dispatcher.with_files_of_its_own();
        }
        let sessions = shared.spawner.left_open().await;
        let mut in_use = sessions.map_err(|why| failed("read the sessions")(std::io::Error::other(why)))?;
        in_use.extend(pushed.in_use(only.cloned()).await?);
        // Nobody expects a page of a service for a single run.
        let listen = config.web.as_ref().filter(|_| of_service);
        let (page, listener) = Page::open(listen, config.web_url.as_deref(), journal.clone()).await?;
        let control = Control::open(home, shared.tokens.clone()).map_err(failed("open the control socket"))?;
        let hosts = journal.hosts().filter(|_| !config.share_files);
        let problems = Problems::new(home.root(), journal.clone(), hosts.map(|hosts| hosts.borrow().me.name.clone()));
        problems.all(definitions.start(in_use).await).await;
        let in_force = shared.in_force(opened, &execution, &read);
        let settings = in_force.current.subscribe();
        let chats = OpenChats::default();
        let (channels, tokens) = (shared.channels.clone(), shared.tokens.clone());
        let deliveries =
            Deliveries::start(channels.clone(), chats.clone(), journal.clone(), clock, settings.clone()).await?;
        let housekeeping = Housekeeping::start(maintenance(opened, &read, &settings).tasks()).await?;
        let (hearts, idle_client) = (shared.hearts.clone(), execution.idle_client.clone());
        let (webhooks, watching) = (shared.webhooks(opened, &read), shared.watching(opened, &read));
        let handlers = shared.handlers(opened, execution, &read, (page, webhooks.state()), (chats, execute));
        tracing::info!(
            client = handlers.status.client.name,
            why = handlers.status.client.why,
            sandbox = handlers.status.sandbox.detail,
            "ready on {}",
            home.root().display()
        );
        let background = Background {
            tokens,
            listener,
            control,
            problems,
            in_force,
            channels,
            webhooks,
            watching,
            handlers,
            read,
            hearts: hearts.clone(),
            settings: settings.clone(),
        };
        Ok(Self { dispatcher, deliveries, housekeeping, schedule, settings, hearts, idle_client, background })
    }
}

/// The loaded definitions, the schedule that receives them, and the watch on their files.
pub(super) struct LoadedDefinitions {
    pub(super) schedule: Schedule,
    pub(super) definitions: LiveDefinitions,
    pub(super) pushed: PushedDefinitions,
    pub(super) watch: Watch,
    pub(super) problems_of_files: mpsc::UnboundedReceiver<ProblemsOfFile>,
}

impl LoadedDefinitions {
    async fn begin(opened: &OpenedHome) -> Result<(Self, Inbox), DaemonError> {
        // Start the watch first: it reports all later changes, and reading covers all earlier ones.
        let own_agents = user_home(&opened.env).map(agents::user_folder);
        let watch = Watch::start(&opened.home, own_agents.as_deref())?;
        let store = read_all(&opened.home, opened.defaults.clone()).await?;
        let (schedule, inbox) = Schedule::channel(opened.config.max_concurrent_runs);
        schedule.alert_after(opened.config.alert_after);
        let (definitions, problems_of_files) = LiveDefinitions::new(store, schedule.clone());
        let pushed = PushedDefinitions::new(&opened.home, &opened.clock, &opened.journal, &schedule, &definitions);
        Ok((Self { schedule, definitions, pushed, watch, problems_of_files }, inbox))
    }
}

async fn read_all(home: &Home, defaults: Defaults) -> Result<Store, DaemonError> {
    let home = home.clone();
    let store = tokio::task::spawn_blocking(move || Store::open(&home, defaults)).await;
    Ok(store.map_err(|error| failed("read the definitions")(error.into()))??)
}

fn maintenance(opened: &OpenedHome, read: &LoadedDefinitions, settings: &CurrentSettings) -> Maintenance {
    Maintenance {
        home: opened.home.clone(),
        journal: opened.journal.clone(),
        clock: opened.clock.clone(),
        defaults: opened.defaults.clone(),
        definitions: read.definitions.clone(),
        pushed: read.pushed.clone(),
        schedule: read.schedule.clone(),
        settings: settings.clone(),
    }
}

/// The parts that both runs and commands use.
struct Shared {
    channels: BTreeMap<String, Arc<dyn Channel>>,
    mcp_servers: McpServers,
    tokens: Tokens,
    for_runs: Arc<RwLock<RunSettings>>,
    bot: Bot,
    spawner: Arc<Spawner>,
    questions: Questions,
    hearts: Heartbeats,
}

impl Shared {
    async fn construct(opened: &OpenedHome, read: &LoadedDefinitions) -> Result<Self, DaemonError> {
        let OpenedHome { home, journal, clock, config, secrets, program_env, .. } = opened;
        let mcp_servers = McpServers::new(&config.mcp_servers, home.clone(), program_env.clone(), secrets.clone());
        let means =
            ChannelDeps { program_env: program_env.clone(), secrets, buttons: &ntfy::Secret::of(journal).await? };
        // With an event stream, events report messages in place of the console.
        let console = opened.events.is_none().then(|| opened.app.clone());
        let channels = channels(config, home, &means, console);
        let for_runs = Arc::new(RwLock::new(RunSettings::of(config)));
        let bot = Bot {
            main: MainSession::load(journal.clone()).await?,
            mid_turn: MidTurnMessages::default(),
            budget: SharedBudget::new(journal.clone()),
            live: LiveTurns::default(),
            forks: ForkTurns::default(),
        };
        let spawner = Arc::new(Spawner {
            home: home.clone(),
            user_home: program_env.user_home.clone(),
            clock: clock.clone(),
            journal: journal.clone(),
            settings: Arc::clone(&for_runs),
            defaults: opened.defaults.clone(),
            definitions: read.definitions.clone(),
            schedule: read.schedule.clone(),
            mid_turn: bot.mid_turn.clone(),
            running: tokio::sync::Mutex::default(),
        });
        let questions = Questions::new(home.clone(), opened.defaults.clone(), journal.clone(), clock.clone());
        questions.end_left_open().await?;
        cut_off_input::notify(journal).await?;
        let (tokens, hearts) = (Tokens::default(), Heartbeats::default());
        Ok(Self { channels, mcp_servers, tokens, for_runs, bot, spawner, questions, hearts })
    }

    fn runner(&self, opened: &OpenedHome, execution: &Execution, read: &LoadedDefinitions) -> Runner {
        Runner {
            questions: self.questions.clone(),
            home: opened.home.clone(),
            user_home: opened.program_env.user_home.clone(),
            path: opened.program_env.path.clone(),
            shell_binary: opened.program_env.shell_binary.clone(),
            client_environment: execution.client_environment.clone(),
            clock: opened.clock.clone(),
            journal: opened.journal.clone(),
            settings: Arc::clone(&self.for_runs),
            clients: Arc::clone(&execution.chosen.clients),
            tokens: self.tokens.clone(),
            idle_client: execution.idle_client.clone(),
            ready: execution.ready.clone(),
            prepared: PreparedSlot::default(),
            lasting_tokens: LastingTokens::default(),
            mcp_servers: self.mcp_servers.clone(),
            groups: execution.groups.clone(),
            bot: self.bot.clone(),
            definitions: read.definitions.clone(),
            schedule: read.schedule.clone(),
            spawner: Arc::clone(&self.spawner),
            hearts: self.hearts.clone(),
        }
    }

    fn in_force(&self, opened: &OpenedHome, execution: &Execution, read: &LoadedDefinitions) -> SettingsTargets {
        SettingsTargets {
            app: opened.app.clone(),
            started: Arc::clone(&opened.config),
            current: watch::Sender::new(Arc::clone(&opened.config)),
            runs: Arc::clone(&self.for_runs),
            schedule: read.schedule.clone(),
            definitions: read.definitions.clone(),
            journal: opened.journal.clone(),
            idle_client: execution.idle_client.clone(),
            mcp_servers: self.mcp_servers.clone(),
        }
    }

    fn webhooks(&self, opened: &OpenedHome, read: &LoadedDefinitions) -> Webhooks {
        let OpenedHome { home, env, clock, journal, .. } = opened;
        let (definitions, schedule) = (read.definitions.clone(), read.schedule.clone());
        Webhooks::new(
            (home.clone(), env.clone()),
            clock.clone(),
            definitions,
            schedule,
            journal.clone(),
            self.tokens.clone(),
        )
    }

    fn watching(&self, opened: &OpenedHome, read: &LoadedDefinitions) -> FolderWatches {
        let (definitions, schedule) = (read.definitions.clone(), read.schedule.clone());
        FolderWatches::new(
            opened.home.clone(),
            definitions,
            schedule,
            opened.journal.clone(),
            Arc::clone(&self.spawner),
        )
    }

    fn handlers(
        self,
        opened: &OpenedHome,
        execution: Execution,
        read: &LoadedDefinitions,
        (page, webhooks): (Page, watch::Receiver<ListenState>),
        (chats, execute): (OpenChats, ExecuteLine),
    ) -> Handlers {
        let OpenedHome { journal, clock, .. } = opened;
        let Execution { idle_client, chosen, .. } = execution;
        let schedule = self.spawner.schedule.clone();
        let forks = Forks {
            journal: journal.clone(),
            spawner: Arc::clone(&self.spawner),
            main: self.bot.main.clone(),
            clock: clock.clone(),
        };
        let status = ServiceStatus {
            page: page.state(),
            webhooks: None,
            pid: std::process::id(),
            since: clock.now().to_rfc3339(),
            client: (chosen.status)(),
            channel: opened.config.default_channel.clone(),
            sandbox: execution.sandbox,
            zone: opened.config.timezone.name().to_owned(),
            journal_fault: None,
            paused: None,
            waiting_for_login: None,
            waiting_for_agent: None,
            ending: false,
            idle_client: None,
            idle_client_left: None,
        };
        Handlers {
            budget: self.bot.budget,
            spawner: self.spawner,
            questions: self.questions,
            main: self.bot.main,
            idle_client,
            mcp_servers: self.mcp_servers,
            clock: clock.clone(),
            status,
            app: opened.app.clone(),
            chats,
            forks,
            live: self.bot.live,
            sign_ins: SignIns::new(chosen.to_log_in, schedule.clone()),
            schedule,
            definitions: read.definitions.clone(),
            pushed: read.pushed.clone(),
            journal: journal.clone(),
            client: chosen.status,
            page,
            webhooks,
            execute,
            asked_on: None,
        }
    }
}
