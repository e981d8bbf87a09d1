//! The wiring: every part of the service is made here, handed to those that need it, and ended in order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::client::{self, Chosen, Wish};
use super::control::Control;
use super::delivery::{self, Show};
use super::ending::{self, Signals, Until};
use super::files::HomeFiles;
use super::following::Following;
use super::lock::{Lock, LockError};
use super::problems::Problems;
use super::secrets::{self, SecretsError};
use super::verbs::{Commands, Verbs};
use super::wire::{Sandbox, ServiceStatus};
use crate::agent::wall::{self, Held};
use crate::bot::{Bot, budget::SharedBudget, main_session::MainSession};
use crate::clock::Clock;
use crate::config::Config;
use crate::definition::{Defaults, DefinitionError, DefinitionId, Store, Watch};
use crate::home::Home;
use crate::journal::{Journal, JournalError, NewMessage, RunId};
use crate::run::follow_up::Reminders;
use crate::run::neighbours::Neighbours;
use crate::run::runner::{RunSettings, Runner};
use crate::run::spawn::Spawner;
use crate::run::tokens::Tokens;
use crate::schedule::{Chore, Dispatcher, FireError, Housekeeping, HousekeepingError, Schedule, ScheduleError};

/// Every folder is read again so often, whatever the watch has told.
const REREAD: Duration = Duration::from_secs(10 * 60);
/// What is too old is taken out of the journal so often.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// What the service is started with.
pub struct Start {
    /// The data folder; its folders are there.
    pub home: Home,
    /// The settings.
    pub config: Arc<Config>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// What holds for definitions that do not say.
    pub defaults: Defaults,
    /// The time.
    pub clock: Clock,
    /// What ends it.
    pub until: Until,
    /// Fires this one by hand, and ends when that run is over.
    pub only: Option<DefinitionId>,
    /// Executes what is typed in forks.
    pub commands: Arc<dyn Commands>,
    /// Makes the links of chains.
    pub reminders: Arc<dyn Reminders>,
    /// Shows messages to the person.
    pub show: Show,
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
    let Start { home, config, env, defaults, clock, until, only, commands, reminders, show } = start;
    let lock = Lock::take(&home)?;
    // From here on a signal ends the service in order.
    let signals = Signals::catch().map_err(failed("catch signals"))?;
    let secrets = secrets::read(&home, &env)?;
    let journal = Journal::open(&home.journal(), clock.clone())?;
    say_kept_aside(&journal).await?;
    let own_binary = std::env::current_exe().map_err(failed("find our own binary"))?;
    let programs = programs(&env, &own_binary);
    let wish = Wish { config: &config, home: &home, env: &env, secrets, own_binary, clock: clock.clone() };
    let Chosen { client, status: client_status } = client::choose(wish).await;

    // The watch comes first: what happens from here on is told, what was before is read.
    let watch = Watch::start(&home)?;
    let definitions = Arc::new(Mutex::new(read_all(&home, defaults.clone()).await?));

    let tokens = Tokens::default();
    let neighbours = Neighbours::default();
    let budget = SharedBudget::new(journal.clone());
    let settings = Arc::new(RwLock::new(settings(&config)));
    let user_home = env.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let main = MainSession::load(journal.clone()).await?;
    let spawner = Arc::new(Spawner {
        home: home.clone(),
        user_home: user_home.clone(),
        clock: clock.clone(),
        journal: journal.clone(),
        settings: settings.clone(),
        defaults,
        schedule: OnceLock::new(),
        going: tokio::sync::Mutex::default(),
    });
    let runner = Runner {
        home: home.clone(),
        user_home,
        programs,
        clock: clock.clone(),
        journal: journal.clone(),
        settings,
        client,
        tokens: tokens.clone(),
        bot: Bot { name: config.bot_name.clone(), main: main.clone(), budget: budget.clone() },
        reminders,
        neighbours: neighbours.clone(),
        spawner: spawner.clone(),
    };
    let files = Arc::new(HomeFiles(home.clone()));
    let (schedule, dispatcher) =
        Dispatcher::new(&clock, journal.clone(), Arc::new(runner), files, config.max_concurrent_runs);
    neighbours.ask(schedule.clone());
    // Nobody else sets it.
    let _first = spawner.schedule.set(schedule.clone());
    let sessions = spawner.left_open().await.map_err(|why| failed("read the sessions")(std::io::Error::other(why)))?;

    let status = ServiceStatus {
        pid: std::process::id(),
        since: clock.now().to_rfc3339(),
        client: client_status,
        channel: "console".into(),
        sandbox: sandbox(),
        paused: None,
        waiting_for_login: None,
    };
    let control = Control::open(&home, tokens).map_err(failed("open the control socket"))?;
    let problems = Problems::load(journal.clone()).await?;
    let following = Following::start(definitions, sessions, schedule.clone(), problems).await;
    let housekeeping =
        Housekeeping::start(chores(&home, &journal, &clock, &following, config.journal_retention)).await?;
    tracing::info!(
        client = status.client.name,
        why = status.client.why,
        sandbox = status.sandbox.detail,
        "ready on {}",
        home.root().display()
    );

    let verbs = Verbs { schedule: schedule.clone(), commands, budget, spawner, main, clock: clock.clone(), status };
    let mut tasks = JoinSet::new();
    tasks.spawn(following.follow(watch));
    tasks.spawn(control.serve(Arc::new(verbs)));
    tasks.spawn(delivery::deliver(journal.clone(), Arc::clone(&show)));
    tasks.spawn(ending::watch(signals, until, schedule.clone(), clock.clone(), config.shutdown_grace));
    let firing = only.map(|id| tokio::spawn(fire_only(id, schedule.clone(), config.shutdown_grace)));
    let ended = dispatcher.run().await;

    tasks.shutdown().await;
    housekeeping.stop().await;
    delivery::last_words(&journal, &show).await;
    journal.close().await;
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
    journal.message(NewMessage { run: None, id: None, text }).await.map(drop)
}

async fn read_all(home: &Home, defaults: Defaults) -> Result<Store, DaemonError> {
    let home = home.clone();
    let store = tokio::task::spawn_blocking(move || Store::open(&home, defaults)).await;
    Ok(store.map_err(|error| failed("read the definitions")(error.into()))??)
}

/// Where forks find programs: the service's own search path, and its own binary.
fn programs(env: &BTreeMap<String, String>, own_binary: &Path) -> Vec<PathBuf> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let mut programs: Vec<PathBuf> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    programs.push(own_binary.to_owned());
    programs
}

/// What runs depend on, of the settings.
#[must_use]
pub fn settings(config: &Config) -> RunSettings {
    RunSettings {
        main_tools: config.main_tools.clone(),
        model: config.model.clone(),
        thinking: config.thinking,
        timeout: config.timeout,
        inactivity_timeout: config.inactivity_timeout,
        require_sandbox: config.require_sandbox,
        spawned_tools: config.spawned_tools.clone(),
        person: config.user_name.clone().unwrap_or_else(|| "the user".into()),
    }
}

fn sandbox() -> Sandbox {
    let (enforced, detail) = match wall::probe() {
        Held::Whole => (true, "Landlock"),
        Held::Partly => (true, "Landlock, an older one: signals to other processes are not held"),
        Held::Not => (false, "none: this kernel has no Landlock, or it is off"),
    };
    Sandbox { enforced, detail: detail.into() }
}

fn chores(home: &Home, journal: &Journal, clock: &Clock, following: &Following, retention: Duration) -> Vec<Chore> {
    let following = following.clone();
    let reread = move || -> BoxFuture<'static, ()> {
        let following = following.clone();
        async move { following.reread().await }.boxed()
    };
    let (journal, clock, runs) = (journal.clone(), clock.clone(), home.runs());
    let prune = move || -> BoxFuture<'static, ()> {
        let (journal, runs) = (journal.clone(), runs.clone());
        let before = TimeDelta::from_std(retention).ok().and_then(|span| clock.now().checked_sub_signed(span));
        async move {
            let Some(before) = before else { return };
            match journal.prune(before).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old runs were taken out of the journal"),
                Err(error) => tracing::warn!(%error, "the journal could not be pruned"),
            }
            // Its errors are logged there; a panic would be one of the folder's reading.
            let _ended = tokio::task::spawn_blocking(move || prune_folders(&runs, before)).await;
        }
        .boxed()
    };
    vec![
        Chore { name: "read all definitions again", every: REREAD, work: Box::new(reread) },
        Chore { name: "prune the journal", every: PRUNE, work: Box::new(prune) },
    ]
}

/// Removes the folders of runs that ended before then: nothing has been written in them since.
fn prune_folders(runs: &Path, before: DateTime<Utc>) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    for entry in entries.flatten() {
        let old =
            entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| DateTime::<Utc>::from(at) < before);
        if old && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, "the old folder {} could not be removed", entry.path().display());
        }
    }
}

/// Fires one by hand and stops the schedule when that run is over.
async fn fire_only(id: DefinitionId, schedule: Schedule, grace: Duration) -> Result<RunId, FireError> {
    let mut activity = schedule.activity();
    // An end of the schedule before it is loaded answers the call.
    let _ended = activity.wait_for(|now| now.loaded).await.is_err();
    let fired = schedule.fire(id).await;
    if let Ok(run) = &fired {
        while schedule.snapshot(0).await.open.iter().any(|open| open.run == *run) {
            if activity.changed().await.is_err() {
                break;
            }
        }
    }
    schedule.stop(grace);
    fired
}
