//! Takes the data folder and opens its journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{DaemonError, failed};
use crate::app::App;
use crate::clock::Clock;
use crate::config::{Config, secrets};
use crate::daemon::event_stream::{EventStream, ShowEvent};
use crate::daemon::hosts;
use crate::daemon::lock::Lock;
use crate::daemon::settings::{CurrentApp, Settings};
use crate::daemon::shared_files::SharedFiles;
use crate::daemon::shutdown::{self, Hangups, Signals};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::waiting::{DirectMessages, Waiting};
use crate::definition::Defaults;
use crate::home::Home;
use crate::journal::{Journal, JournalError, NewMessage};
use crate::program::ProgramEnv;
use crate::run::client_environment::{copy_shell_binary, search_path, shell_binary};

/// A data folder that this service has locked, and its journal.
pub(super) struct OpenedHome {
    pub(super) app: CurrentApp,
    /// The way to the person without the journal.
    pub(super) messages: DirectMessages,
    pub(super) config: Arc<Config>,
    pub(super) defaults: Defaults,
    pub(super) home: Home,
    /// The service's environment.
    pub(super) env: BTreeMap<String, String>,
    /// Variables of the environment and of `.env`.
    pub(super) secrets: BTreeMap<String, String>,
    /// The environment for the person's programs.
    pub(super) program_env: ProgramEnv,
    /// Our own binary.
    pub(super) own_binary: PathBuf,
    pub(super) clock: Clock,
    pub(super) lock: Arc<Lock>,
    pub(super) signals: Signals,
    pub(super) hangups: Hangups,
    /// The supervisor. A service for a single run notifies none.
    pub(super) supervisor: Supervisor,
    pub(super) journal: Journal,
    /// Shows events to the starter of the service.
    pub(super) events: Option<Arc<EventStream>>,
    /// The files shared between hosts, or `None` if none are.
    pub(super) shared_files: Option<SharedFiles>,
}

impl OpenedHome {
    /// Returns `None` if a signal ended the service first. `for_one_run`: see [`super::Start::only`].
    pub(super) async fn open(
        app: App,
        for_one_run: bool,
        events: Option<ShowEvent>,
    ) -> Result<Option<Self>, DaemonError> {
        let Settings { config, defaults } = Settings::of(&app)?;
        let (home, env, clock) = (app.home.clone(), app.env.texts(), app.clock.clone());
        // From here on signals end the service in order.
        let (mut signals, hangups) = shutdown::catch().map_err(failed("catch signals"))?;
        let lock = Arc::new(Lock::take(&home)?);
        fail_point!(Locked);
        end_leftovers(&home).await;
        // Descriptors that jobs of the same user hold open must not keep the service from starting other jobs.
        agent_sandbox::many_descriptors();
        let supervisor = if for_one_run { Supervisor::default() } else { Supervisor::of(&env) };
        let secrets = secrets::read(&home, &env)?;
        if for_one_run {
            hosts::end_with_lease();
        }
        let own_binary = std::env::current_exe().map_err(failed("find our own binary"))?;
        keep_shell_binary(&own_binary, &home);
        let program_env = program_env(&home, &env, &own_binary);
        // A person who starts a single run sees that it waits.
        let messages = DirectMessages {
            app: CurrentApp::new(app.clone()),
            program_env: program_env.clone(),
            secrets: secrets.clone(),
            has_console: events.is_none(),
        };
        let waiting = (!for_one_run).then(|| Waiting::new(messages.clone(), config.clone()));
        // Wait for an unreachable server, unless a signal ends the service.
        let journal = tokio::select! {
            opened = hosts::open(&app, &config, supervisor.clone(), waiting, &lock) => opened?,
            () = signals.next() => return Ok(None),
        };
        fail_point!(JournalOpened);
        let events = events.map(|events| Arc::new(EventStream::from_now(journal.clone(), events)));
        notify_of_damaged_journal(&journal).await?;
        // Before the definitions are read: a job that was cancelled elsewhere while this host was away must not fire.
        let shared_files = SharedFiles::of(&home, app.host_name(), &journal, &config).await?;
        if let Some(files) = &shared_files {
            tokio::select! {
                () = files.begin() => {}
                () = signals.next() => return Ok(None),
            }
        }
        Ok(Some(Self {
            app: messages.app.clone(),
            messages,
            config,
            defaults,
            home,
            env,
            secrets,
            program_env,
            own_binary,
            clock,
            lock,
            signals,
            hangups,
            supervisor,
            journal,
            events,
            shared_files,
        }))
    }
}

/// Makes the service's copy of `ollim-shell`. Without it the service works, too.
fn keep_shell_binary(own_binary: &Path, home: &Home) {
    if let Err(error) = copy_shell_binary(own_binary, home) {
        tracing::warn!(
            "an upgrade will end what jobs do meanwhile: `ollim-shell` cannot be copied into state/: {error}"
        );
    }
}

fn program_env(home: &Home, env: &BTreeMap<String, String>, own_binary: &Path) -> ProgramEnv {
    ProgramEnv {
        shell_binary: shell_binary(own_binary, home),
        path: search_path(env, own_binary, home),
        user_home: user_home(env).map_or_else(|| PathBuf::from("/"), Path::to_path_buf),
        data_folder: home.root().to_owned(),
        locale: ProgramEnv::locale(env),
    }
}

/// Returns the person's home folder, if the environment names one.
pub(super) fn user_home(env: &BTreeMap<String, String>) -> Option<&Path> {
    env.get("HOME").map(Path::new)
}

/// Ends leftover processes of the previous process's runs, channels and MCP servers. There are some only if their runners were killed
/// with it.
async fn end_leftovers(home: &Home) {
    let folders = [home.runs(), home.channels(), home.mcp_servers()];
    let ended = tokio::task::spawn_blocking(move || agent_sandbox::tree::end_runs(&folders)).await;
    match ended.unwrap_or_else(|error| Err(error.into())) {
        Ok(0) => {}
        Ok(ended) => {
            tracing::warn!(ended, "processes of the previous process were still there; they were ended")
        }
        Err(error) => tracing::warn!(%error, "what the previous process has left running cannot be ended"),
    }
}

async fn notify_of_damaged_journal(journal: &Journal) -> Result<(), JournalError> {
    let Some(path) = journal.kept_aside() else { return Ok(()) };
    let text = format!(
        "The journal was damaged. It was kept as {}, and a new one was started: what ran before is not known to it.",
        path.display()
    );
    tracing::error!("{text}");
    journal.message(NewMessage::of_service(text)).await.map(drop)
}
