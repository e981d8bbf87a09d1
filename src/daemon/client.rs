//! Chooses the agent client once, at start, and logs the choice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_sandbox::cgroup::DelegatedCgroup;
use agent_sandbox::prespawn::PrespawnSlot;

use crate::agent::claude::login::LoginSources;
use crate::agent::claude::{IdleClient, Limits, versions};
use crate::agent::{AgentClient, Claude, Clients, FixedClient, NOTIFY, NoAgent, Notify};
use crate::app::ClientStatus;
use crate::clock::Clock;
use crate::config::{ClientChoice, Config};
use crate::home::Home;
use crate::run::client_environment::client_environment;
use crate::search_path;

/// The inputs of the choice.
pub struct ClientSelection<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The data folder.
    pub home: &'a Home,
    /// The service's environment.
    pub env: &'a BTreeMap<String, String>,
    /// Variables of the environment and of `.env`.
    pub secrets: BTreeMap<String, String>,
    /// The path of the program's own binary.
    pub own_binary: PathBuf,
    /// The program of the sandbox's stages.
    pub shell_binary: PathBuf,
    /// The clock by which logins expire.
    pub clock: Clock,
    /// The control groups of runs.
    pub groups: Option<DelegatedCgroup>,
    /// The slot in which the main session's client waits between two turns.
    pub idle_client: IdleClient,
    /// The prespawned runner for the next run.
    pub ready: PrespawnSlot,
}

/// The chosen clients and their status.
pub struct ChosenClients {
    /// The clients that execute runs.
    pub clients: Arc<dyn Clients>,
    /// Returns the current status, for `status` and the log.
    pub status: Arc<dyn Fn() -> ClientStatus + Send + Sync>,
    /// The client that a person can log in.
    pub to_log_in: LoginClientFinder,
}

/// Finds the client that a person can log in. `Err` holds the reason why there is none, as a sentence.
pub type LoginClientFinder = Arc<dyn Fn() -> Result<Claude, String> + Send + Sync>;

/// Uses `claude` if it is installed and logged in when a run begins, and otherwise `notify` for jobs that need no agent. A lost login must
/// not hand other jobs to `notify`.
#[derive(Clone)]
struct AutoClient {
    command: String,
    folders: Vec<PathBuf>,
    user_home: PathBuf,
    claude: Claude,
    /// The client's version, if known.
    version: Option<String>,
}

impl AutoClient {
    /// Finds the client, whether logged in or not.
    fn found(&self) -> Result<Claude, String> {
        let command = &self.command;
        let found = search_path::find(command, &self.folders, &self.user_home).map_err(|_| {
            format!(
                "`{command}` was not found on the service's PATH; install it (`npm install -g \
                 @anthropic-ai/claude-code`), or say where it is with `claude_command` and start the service again"
            )
        })?;
        Ok(Claude { command: found, ..self.claude.clone() })
    }

    /// Finds the logged-in client, and the source of its login.
    fn agent(&self) -> Result<(Claude, String), NoAgent> {
        let claude = self.found().map_err(|why| NoAgent { why, lacks_login: false })?;
        let login = claude.find_login().ok_or_else(|| {
            let why = format!(
                "`{}` is not logged in; log in with `ollim-bot login`, by `/login` on a channel, or put \
                 CLAUDE_CODE_OAUTH_TOKEN=… into .env of the data folder and start the service again",
                self.command
            );
            NoAgent { why, lacks_login: true }
        })?;
        Ok((claude, login.source))
    }

    fn status(&self) -> ClientStatus {
        match self.agent() {
            Ok((_, source)) => of_claude(self.version.clone(), format!("found, login from {source}")),
            Err(NoAgent { why: missing, .. }) => {
                let why = missing.split(';').next().unwrap_or_default().to_owned();
                ClientStatus { name: NOTIFY.into(), why, missing: Some(missing), ..ClientStatus::default() }
            }
        }
    }
}

impl Clients for AutoClient {
    fn choose(&self, needs_agent: bool) -> Result<Arc<dyn AgentClient>, NoAgent> {
        match self.agent() {
            Ok((claude, _)) => Ok(Arc::new(claude)),
            Err(missing) if needs_agent => Err(missing),
            Err(_) => Ok(Arc::new(Notify)),
        }
    }
}

/// Chooses the clients that the settings ask for.
pub async fn choose(selection: ClientSelection<'_>) -> ChosenClients {
    let choice = selection.config.agent_client;
    let command = selection.config.claude_command.clone();
    if choice == ClientChoice::Notify {
        let status = ClientStatus { name: NOTIFY.into(), why: "configured".into(), ..ClientStatus::default() };
        return ChosenClients {
            clients: Arc::new(FixedClient(Arc::new(Notify))),
            status: Arc::new(move || status.clone()),
            to_log_in: Arc::new(|| Err("`agent_client: notify` needs no login".into())),
        };
    }
    let path = selection.env.get("PATH").map(String::as_str).unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
    let user_home = selection.env.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let found = search_path::find(&command, &folders, &user_home).unwrap_or_else(|_| PathBuf::from(&command));
    let claude = claude_at(found, selection);
    if choice == ClientChoice::Auto {
        let mut auto = AutoClient { command, folders, user_home, claude, version: None };
        if auto.agent().is_ok() {
            auto.version = version(&auto.claude).await;
        }
        let (shown, client) = (auto.clone(), auto.clone());
        return ChosenClients {
            clients: Arc::new(auto),
            status: Arc::new(move || shown.status()),
            to_log_in: Arc::new(move || client.found()),
        };
    }
    let status = of_claude(version(&claude).await, "configured".to_owned());
    let client = claude.clone();
    ChosenClients {
        clients: Arc::new(FixedClient(Arc::new(claude))),
        status: Arc::new(move || status.clone()),
        to_log_in: Arc::new(move || Ok(client.clone())),
    }
}

/// Asks the client for its version. Logs a failure and an untested version.
async fn version(claude: &Claude) -> Option<String> {
    let version = match claude.version().await {
        Ok(version) => version,
        Err(failure) => {
            tracing::warn!("{}", failure.message);
            return None;
        }
    };
    if let Some(untested) = versions::untested(&version) {
        tracing::warn!("{untested}");
    }
    Some(version)
}

fn of_claude(version: Option<String>, why: String) -> ClientStatus {
    let untested = version.as_deref().and_then(versions::untested);
    let tested = versions::TESTED.map(Into::into).to_vec();
    ClientStatus { name: "claude".into(), version, why, tested, untested, missing: None }
}

fn claude_at(command: PathBuf, selection: ClientSelection<'_>) -> Claude {
    Claude {
        command,
        main_config: selection.home.main_session(),
        client_environment: client_environment(selection.config, selection.home, selection.env, &selection.own_binary),
        login: LoginSources::of(selection.secrets, selection.env, selection.env.get("HOME").map(Path::new)),
        shell_binary: selection.shell_binary,
        ready: selection.ready,
        idle: selection.idle_client,
        serve_tools: crate::mcp::serve,
        clock: selection.clock,
        limits: Limits::default(),
        groups: selection.groups,
    }
}
