//! Constructs the parts of the service in order, hands each to those that need it, and ends them in order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;

use super::channels::{self, Programs};
use super::client::{self, Chosen, Wish};
use super::control::Control;
use super::ending::{self, Ending, Hangups, Until};
use super::event_stream::{EventStream, ShowEvent};
use super::files::HomeFiles;
use super::handlers::{ExecuteLine, Handlers};
use super::hearing::{ExecuteWords, ServiceHearing};
use super::heartbeat;
use super::hosts;
use super::lock::{Lock, LockError};
use super::maintenance::Maintenance;
use super::page::Page;
use super::problems::Problems;
use super::runtime_files;
use super::settings::{AppInForce, Current, InForce, Settings};
use super::shared_files::SharedFiles;
use super::sign_in::SignIns;
use super::supervisor::Supervisor;
use crate::agent::claude::IdleClient;
use crate::agents;
use crate::app::{App, Sandbox, ServiceStatus};
use crate::bot::{
    Bot, budget::SharedBudget, fork_turns::ForkTurns, live::LiveTurns, main_session::MainSession, meanwhile::Meanwhile,
};
use crate::channel::{Deliveries, Ear, OpenChats, ntfy};
use crate::config::secrets::{self, SecretsError};
use crate::definition::{self, Defaults, DefinitionError, DefinitionId, Store, Watch};
use crate::heartbeat::Heartbeats;
use crate::home::Home;
use crate::journal::{Journal, JournalError, NewMessage, Question, RunId};
use crate::mcp::servers::McpServers;
use crate::refusal::Refusal;
use crate::run::client_environment;
use crate::run::folder;
use crate::run::forks::Forks;
use crate::run::kernel_support::kernel_support;
use crate::run::questions::Questions;
use crate::run::runner::{RunSettings, Runner};
use crate::run::spawn::Spawner;
use crate::run::tokens::{LastingTokens, Tokens};
use crate::run::watching::Watching;
use crate::schedule::{
    Dispatcher, FireError, Housekeeping, HousekeepingError, LiveDefinitions, Schedule, ScheduleError, StageView,
};
use crate::webhooks::Webhooks;
use agent_sandbox::cgroup::Delegated;

/// What the service is started with.
pub struct Start {
    /// What can be asked of it, on a data folder whose folders are there.
    pub app: App,
    /// What ends it.
    pub until: Until,
    /// Fires this one by hand, and ends when that run is over.
    pub only: Option<DefinitionId>,
    /// Executes command lines of runs.
    pub execute: ExecuteLine,
    /// Executes command lines that the person gives by a channel.
    pub execute_words: ExecuteWords,
    /// Is told what happens, messages among it; they are shown nowhere else then.
    pub events: Option<ShowEvent>,
}

/// Why the service did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The data folder is another's.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The secrets cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The buttons of notifications cannot be known.
    #[error(transparent)]
    Buttons(#[from] ntfy::SecretError),
    /// The definitions cannot be read or followed.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The dispatcher ended by itself.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Housekeeping cannot be started.
    #[error(transparent)]
    Housekeeping(#[from] HousekeepingError),
    /// The one that was to be fired was not.
    #[error(transparent)]
    Fire(#[from] FireError),
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] Refusal),
    /// Something that every service needs.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

/// Runs the service until it is told to end, or [`Start::until`] ends it; everything is recorded then. The run that
/// [`Start::only`] made, if it was asked for.
///
/// # Errors
/// [`DaemonError`].
pub async fn run(start: Start) -> Result<Option<RunId>, DaemonError> {
    let ended = serve(start).await;
    // Who writes may learn of a lost lease before the thread that renews it.
    if let Err(
        DaemonError::Journal(JournalError::Fenced)
        | DaemonError::Schedule(ScheduleError::Journal(JournalError::Fenced)),
    ) = &ended
    {
        hosts::start_again("another host may have taken over");
    }
    ended
}

async fn serve(start: Start) -> Result<Option<RunId>, DaemonError> {
    let Start { app, until, only, execute, execute_words, events } = start;
    let Settings { config, defaults } = Settings::of(&app)?;
    let (home, env, clock) = (app.home.clone(), app.env.texts(), app.clock.clone());
    let app = AppInForce::new(app);
    // From here on a signal ends the service in order.
    let (mut signals, hangups) = ending::catch().map_err(failed("catch signals"))?;
    let lock = Arc::new(Lock::take(&home)?);
    fail_point!(Locked);
    end_leftovers(&home).await;
    // What jobs of the same user hold open must not keep it from starting others.
    agent_sandbox::many_descriptors();
    // Of a service that is started for one run by somebody else's, nobody is told.
    let supervisor = if only.is_none() { Supervisor::of(&env) } else { Supervisor::default() };
    let secrets = secrets::read(&home, &env)?;
    if only.is_some() {
        hosts::end_with_lease();
    }
    // A server that is away is waited for, unless the service is told to end.
    let as_started = app.get();
    let journal = tokio::select! {
        opened = hosts::open(&as_started, &config) => opened?,
        () = signals.next() => return Ok(None),
    };
    fail_point!(JournalOpened);
    let events = events.map(|events| Arc::new(EventStream::from_now(journal.clone(), events)));
    say_kept_aside(&journal).await?;
    // Before the definitions are read: what was cancelled elsewhere while this host was away must not fire.
    let shared_files = SharedFiles::of(&home, app.get().host_name(), &journal, &config).await?;
    if let Some(files) = &shared_files {
        tokio::select! {
            () = files.begin() => {}
            () = signals.next() => return Ok(None),
        }
    }
    let own_binary = std::env::current_exe().map_err(failed("find our own binary"))?;
    let path = client_environment::search_path(&env, &own_binary, &home);
    let shell_binary = client_environment::shell_binary(&own_binary);
    let groups = Delegated::take();
    let sandbox = sandbox(&groups);
    let held = groups.as_ref().is_ok_and(|groups| groups.controllers().iter().any(|name| name == "cpu"));
    if config.limits.cpus.is_some() && !held {
        tracing::warn!(
            "`limits.cpus` has no effect: no control group that limits processors is delegated to the service (systemd: `Delegate=yes`)"
        );
    }
    let groups = groups.ok();
    let of_commands = groups.clone();
    let for_gates = client_environment::client_environment(&config, &home, &env, &own_binary);
    let idle_client = IdleClient::default();
    let wish = Wish {
        config: &config,
        home: &home,
        env: &env,
        secrets: secrets.clone(),
        own_binary,
        clock: clock.clone(),
        groups,
        idle_client: idle_client.clone(),
    };
    let Chosen { clients, status: client_status, to_log_in } = client::choose(wish).await;

    // The watch comes first: what happens from here on is told, what was before is read.
    let own_agents = env.get("HOME").map(|person| agents::user_folder(Path::new(person)));
    let watch = Watch::start(&home, own_agents.as_deref())?;
    let store = read_all(&home, defaults.clone()).await?;
    let (schedule, inbox) = Schedule::channel(config.max_concurrent_runs);
    schedule.alert_after(config.alert_after);
    let (definitions, problems_of_files) = LiveDefinitions::new(store, schedule.clone());

    let buttons = ntfy::Secret::of(&journal).await?;
    let programs = Programs {
        shell_binary: &shell_binary,
        path: &path,
        user_home: &user_home(&env),
        env: &env,
        secrets: &secrets,
        buttons: &buttons,
    };
    let mcp_servers = McpServers::new(&config.mcp_servers, home.clone(), programs.surroundings(&home), secrets.clone());
    let channels = channels::channels(&config, &home, &programs, events.is_none().then(|| app.clone()));
    let chats = OpenChats::default();
    let tokens = Tokens::default();
    let budget = SharedBudget::new(journal.clone());
    let live = LiveTurns::default();
    let for_runs = Arc::new(RwLock::new(RunSettings::of(&config)));
    let user_home = user_home(&env);
    let main = MainSession::load(journal.clone()).await?;
    let meanwhile = Meanwhile::default();
    let spawner = Arc::new(Spawner {
        home: home.clone(),
        user_home: user_home.clone(),
        clock: clock.clone(),
        journal: journal.clone(),
        settings: Arc::clone(&for_runs),
        defaults,
        schedule: schedule.clone(),
        meanwhile: meanwhile.clone(),
        running: tokio::sync::Mutex::default(),
    });
    let hearts = Heartbeats::default();
    let questions = Questions::new(journal.clone(), clock.clone());
    questions.end_left_open().await?;
    let runner = Runner {
        questions: questions.clone(),
        home: home.clone(),
        user_home,
        path,
        shell_binary,
        client_environment: for_gates,
        clock: clock.clone(),
        journal: journal.clone(),
        settings: Arc::clone(&for_runs),
        clients,
        tokens: tokens.clone(),
        idle_client: idle_client.clone(),
        lasting_tokens: LastingTokens::default(),
        mcp_servers: mcp_servers.clone(),
        groups: of_commands,
        bot: Bot {
            main: main.clone(),
            meanwhile,
            budget: budget.clone(),
            live: live.clone(),
            forks: ForkTurns::default(),
        },
        definitions: definitions.clone(),
        schedule: schedule.clone(),
        spawner: spawner.clone(),
        hearts: hearts.clone(),
    };
    let files = HomeFiles { home: home.clone(), definitions: definitions.clone() };
    let mut dispatcher = Dispatcher::new(inbox, &clock, journal.clone(), Arc::new(runner), Arc::new(files));
    if !config.share_files {
        dispatcher = dispatcher.with_files_of_its_own();
    }
    let sessions = spawner.left_open().await.map_err(|why| failed("read the sessions")(std::io::Error::other(why)))?;

    // Of a service that is started for one run, nobody expects a page.
    let listen = config.web.as_ref().filter(|_| only.is_none());
    let (page, listener) = Page::open(listen, config.web_url.as_deref(), journal.clone()).await?;
    let status = ServiceStatus {
        page: page.state(),
        pid: std::process::id(),
        since: clock.now().to_rfc3339(),
        client: client_status(),
        channel: config.default_channel.clone(),
        sandbox,
        paused: None,
        waiting_for_login: None,
        ending: false,
        idle_client: None,
    };
    let control = Control::open(&home, tokens.clone()).map_err(failed("open the control socket"))?;
    let problems = Problems::load(journal.clone()).await?;
    problems.all(definitions.start(sessions).await).await;
    let in_force = InForce {
        app: app.clone(),
        started: Arc::clone(&config),
        current: watch::Sender::new(config),
        runs: for_runs,
        schedule: schedule.clone(),
        definitions: definitions.clone(),
        journal: journal.clone(),
        idle_client: idle_client.clone(),
        mcp_servers: mcp_servers.clone(),
    };
    let current = in_force.current.subscribe();
    let listened = channels.clone();
    let deliveries = Deliveries::start(channels, chats.clone(), journal.clone(), &clock, current.clone()).await?;
    let maintenance = Maintenance {
        home: home.clone(),
        journal: journal.clone(),
        clock: clock.clone(),
        definitions: definitions.clone(),
        schedule: schedule.clone(),
        settings: current.clone(),
    };
    let housekeeping = Housekeeping::start(maintenance.tasks()).await?;
    tracing::info!(
        client = status.client.name,
        why = status.client.why,
        sandbox = status.sandbox.detail,
        "ready on {}",
        home.root().display()
    );

    let webhooks = Webhooks::new(
        (home.clone(), env.clone()),
        clock.clone(),
        definitions.clone(),
        schedule.clone(),
        journal.clone(),
        tokens.clone(),
    );
    let watching = Watching::new(home.clone(), definitions.clone(), schedule.clone(), journal.clone(), spawner.clone());
    let ending = Ending {
        signals,
        until,
        schedule: schedule.clone(),
        clock: clock.clone(),
        settings: current.clone(),
        supervisor: supervisor.clone(),
    };
    let forks = Forks { journal: journal.clone(), spawner: spawner.clone(), main: main.clone(), clock: clock.clone() };
    let handlers = Handlers {
        schedule: schedule.clone(),
        budget,
        spawner,
        questions,
        main: main.clone(),
        idle_client: idle_client.clone(),
        mcp_servers,
        clock: clock.clone(),
        status,
        app,
        chats,
        forks: forks.clone(),
        live,
        sign_ins: SignIns::new(to_log_in, schedule.clone()),
        journal: journal.clone(),
        client: client_status,
        page: page.clone(),
        execute,
        asked_on: None,
    };
    let ended_questions = handlers.questions.ended();
    let answers = handlers.questions.ended();
    let of_hosts = handlers.questions.clone();
    let hearing = Arc::new(ServiceHearing {
        handlers: handlers.clone(),
        channels: listened.clone(),
        execute: execute_words,
        told: Mutex::default(),
    });
    let web =
        listener.map(|listener| (page.web(handlers.clone(), definitions.clone(), &journal, tokens.clone()), listener));
    let mut tasks = JoinSet::new();
    if let Some((web, listener)) = web {
        tasks.spawn(web.serve(listener));
    }
    tasks.spawn(look_at_answers(answers, schedule.clone()));
    tasks.spawn(of_hosts.follow());
    // Of a service that was started for one run, nobody expects that it listens.
    if only.is_none() {
        for (name, channel) in listened {
            let (ear, journal) = (Ear::new(name, hearing.clone()), journal.clone());
            tasks.spawn(async move {
                journal.until_main().await;
                channel.listen(ear).await;
            });
        }
        let (of_forks, of_main) = (journal.clone(), main.clone());
        tasks.spawn(async move {
            if !of_forks.is_main() {
                of_forks.until_main().await;
                if let Err(error) = of_main.reload().await {
                    tracing::error!(%error, "the conversation of the host that had it before is not known here");
                }
            }
            look_after_forks(forks).await;
        });
        if let Some(files) = shared_files {
            tasks.spawn(files.follow());
        }
        tasks.spawn(watching.run());
        if let Some(address) = current.borrow().webhooks.clone() {
            tasks.spawn(webhooks.serve(address));
        }
        tasks.spawn(super::idle_client::end_when_idle(idle_client.clone(), main, home.clone()));
        tasks.spawn(async move { hearing.show_answers(ended_questions).await });
    }
    let (swept, now) = (home.clone(), clock.now());
    tasks.spawn_blocking(move || {
        if let Err(error) = definition::sweep(&swept, now) {
            tracing::warn!(%error, "what killed writers may have left in the folders of definitions was not removed");
        }
    });
    if let Some(events) = events.clone() {
        tasks.spawn(async move { events.follow().await });
    }
    tasks.spawn(definitions.follow(watch));
    tasks.spawn(problems.follow(problems_of_files));
    tasks.spawn(async move { control.serve(Arc::new(handlers)).await });
    tasks.spawn(runtime_files::watch(Arc::clone(&lock), home.clone(), schedule.clone(), journal.trouble()));
    if only.is_none() {
        tasks.spawn(heartbeat::beat(hearts.clone(), schedule.clone(), current.clone(), journal.trouble()));
    }
    tasks.spawn(supervisor.clone().pulse(schedule.clone()));
    tasks.spawn(supervisor.clone().status(schedule.clone()));
    tasks.spawn(ending.watch(serve_hangups(hangups, in_force, supervisor)));
    let (of_service, last_settings) = (only.is_none(), current.clone());
    let firing = only.map(|id| tokio::spawn(fire_only(id, schedule.clone(), current)));
    let ended = dispatcher.run().await;
    fail_point!(ScheduleEnded);

    tasks.shutdown().await;
    idle_client.end().await;
    folder::tidy(home.main_run()).await;
    let fault = ended.as_ref().err().map(ToString::to_string);
    heartbeat::last(&hearts, &last_settings, fault, of_service).await;
    housekeeping.stop().await;
    deliveries.finish().await;
    if let Some(events) = events {
        events.finish().await;
    }
    journal.close().await;
    fail_point!(JournalClosed);
    if lock.is_lost(&home) {
        // The socket and the token may be another service's by now.
        return Err(LockError::Lost { path: home.lock() }.into());
    }
    // Who asks now is told that nothing runs, not kept waiting.
    let _absent = fs::remove_file(home.socket());
    let _absent = fs::remove_file(home.user_token());
    drop(lock);
    ended?;
    match firing {
        Some(firing) => Ok(Some(firing.await.map_err(|error| failed("fire it")(error.into()))??)),
        None => Ok(None),
    }
}

fn user_home(env: &BTreeMap<String, String>) -> PathBuf {
    env.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

fn failed(what: &'static str) -> impl FnOnce(std::io::Error) -> DaemonError {
    move |source| DaemonError::Io { what, source }
}

async fn say_kept_aside(journal: &Journal) -> Result<(), JournalError> {
    let Some(path) = journal.kept_aside() else { return Ok(()) };
    let text = format!(
        "The journal was damaged. It was kept as {}, and a new one was started: what ran before is not known to it.",
        path.display()
    );
    tracing::error!("{text}");
    journal.message(NewMessage::of_service(text)).await.map(drop)
}

async fn read_all(home: &Home, defaults: Defaults) -> Result<Store, DaemonError> {
    let home = home.clone();
    let store = tokio::task::spawn_blocking(move || Store::open(&home, defaults)).await;
    Ok(store.map_err(|error| failed("read the definitions")(error.into()))??)
}

/// Ends what runs of the previous process have left: nothing, unless their runners were killed together with it.
async fn end_leftovers(home: &Home) {
    let runs = home.runs();
    let ended = tokio::task::spawn_blocking(move || agent_sandbox::tree::end_runs(&runs)).await;
    match ended.unwrap_or_else(|error| Err(error.into())) {
        Ok(0) => {}
        Ok(ended) => {
            tracing::warn!(ended, "processes of the previous process's runs were still there; they were ended")
        }
        Err(error) => tracing::warn!(%error, "what runs of the previous process have left cannot be ended"),
    }
}

fn sandbox(groups: &Result<Delegated, String>) -> Sandbox {
    let support = kernel_support();
    let limits = match groups {
        Ok(groups) => format!("limits by control groups ({})", groups.controllers().join(", ")),
        Err(why) => format!("limits looked after twice a second: {why}"),
    };
    Sandbox { enforced: support.enforced, detail: format!("{}; {limits}", support.words) }
}

/// Says when something could fire, and from then on reads the settings again at each SIGHUP. Never returns.
async fn serve_hangups(mut hangups: Hangups, in_force: InForce, supervisor: Supervisor) {
    // An end of the schedule before it is loaded ends this too.
    let _ended = in_force.schedule.activity().wait_for(|now| now.loaded).await.is_err();
    supervisor.ready("nothing is going").await;
    loop {
        hangups.next().await;
        supervisor.reloading().await;
        let said = in_force.reread().await;
        supervisor.ready(&said).await;
    }
}

/// How often forks are looked after.
const FORKS: Duration = Duration::from_secs(60);

/// Asks about forks that are idle, and ends those that stay so. Never returns.
async fn look_after_forks(forks: Forks) {
    loop {
        tokio::time::sleep(FORKS).await;
        if let Err(error) = forks.look_after().await {
            tracing::warn!(%error, "the person's forks could not be looked after");
        }
    }
}

/// How soon a run that found no login is looked at again.
const LOOKS_AGAIN: Duration = Duration::from_millis(100);

/// Fires one by hand and stops the schedule when that run is over.
async fn fire_only(id: DefinitionId, schedule: Schedule, settings: Current) -> Result<RunId, FireError> {
    let mut activity = schedule.activity();
    // An end of the schedule before it is loaded answers the call.
    let _ended = activity.wait_for(|now| now.loaded).await.is_err();
    let fired = schedule.fire(id).await;
    if let Ok(run) = &fired {
        loop {
            let now = schedule.snapshot(0).await;
            let Some(active) = now.active.iter().find(|active| active.run == *run) else { break };
            // It might wait for ever. It stays open, and a service goes on with it once there is an agent.
            let waits = matches!(active.stage, StageView::Waiting | StageView::RetryIn(_));
            let no_login = now.waiting_for_login.is_some();
            if waits && no_login {
                break;
            }
            // That its end is recorded, and it waits, is no news of the schedule's own.
            let longest = if no_login { LOOKS_AGAIN } else { Duration::MAX };
            if let Ok(Err(_)) = tokio::time::timeout(longest, activity.changed()).await {
                break;
            }
        }
    }
    schedule.stop(settings.borrow().shutdown_grace);
    fired
}

/// Tells the schedule of each answer, since a run may wait for it. Never returns.
async fn look_at_answers(mut answers: broadcast::Receiver<Question>, schedule: Schedule) {
    // One that was missed is looked at with the next.
    while !matches!(answers.recv().await, Err(broadcast::error::RecvError::Closed)) {
        schedule.answered();
    }
    std::future::pending().await
}
