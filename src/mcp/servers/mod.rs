//! The person's own MCP servers: started on first use, shared by all runs (unless `per_run`), and restarted after they end.
//!
//! A program runs in its own sandbox with the variables that its settings name. A remote server is reached by streamable HTTP. Output of
//! servers is bounded. A server that hangs, floods or dies affects only the calls that wait for it.

mod connection;
mod http;
mod last_words;
mod metered;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agent::{ExternalAnswer, ExternalTool, ServerState};
use crate::config::McpServer;
use crate::home::Home;
use crate::program::ProgramEnv;
pub use connection::Connection;

/// The first and the longest pause before a server that failed to start is started again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// All servers of the settings. Clones share them.
#[derive(Clone)]
pub struct McpServers(Arc<Shared>);

struct Shared {
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
    home: Home,
    program_env: ProgramEnv,
    /// The variables of `.env` and the service's environment.
    secrets: BTreeMap<String, String>,
}

/// One server, whether it is running or not.
struct Server {
    settings: McpServer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Arc<Connection>>,
    /// Number of consecutive failures to start.
    failures: u32,
    /// When to try again, and why the start failed.
    failed: Option<(Instant, String)>,
    /// Number of starts.
    starts: u64,
}

impl McpServers {
    /// Creates the servers. None is started before it is needed.
    #[must_use]
    pub fn new(settings: &[McpServer], home: Home, program_env: ProgramEnv, secrets: BTreeMap<String, String>) -> Self {
        let servers = Self(Arc::new(Shared { servers: RwLock::default(), home, program_env, secrets }));
        servers.replace(settings);
        servers
    }

    /// Replaces the settings. A server whose settings have changed ends, and starts again when it is needed.
    pub fn replace(&self, settings: &[McpServer]) {
        let mut servers = self.0.servers.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *servers);
        for settings in settings {
            let same = before.get(&settings.name).filter(|server| server.settings == *settings).cloned();
            let server =
                same.unwrap_or_else(|| Arc::new(Server { settings: settings.clone(), state: Mutex::default() }));
            servers.insert(settings.name.clone(), server);
        }
    }

    /// Returns their names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.servers.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Returns their settings.
    #[must_use]
    pub fn settings(&self) -> Vec<McpServer> {
        let servers = self.0.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.values().map(|server| server.settings.clone()).collect()
    }

    /// Returns the running server with this name. Starts it if it is not running, or if each run has its own.
    ///
    /// # Errors
    /// If there is no such server, or it does not start: as a sentence without its full stop.
    pub async fn connect(&self, name: &str) -> Result<Arc<Connection>, String> {
        let server = self.server(name)?;
        if server.settings.per_run {
            return self.start(&server.settings).await.map(Arc::new);
        }
        let mut state = server.state.lock().await;
        if let Some(running) = &state.running {
            running.settled().await;
        }
        if let Some(running) = state.running.as_ref().filter(|running| !running.is_over()) {
            return Ok(running.clone());
        }
        if let Some(ended) = state.running.take() {
            tracing::warn!(server = name, why = ended.last_words(), "an MCP server has ended; it is started again");
        }
        if let Some((_, why)) = state.failed.as_ref().filter(|(until, _)| *until > Instant::now()) {
            return Err(why.clone());
        }
        state.starts += 1;
        match self.start(&server.settings).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                (state.failures, state.failed) = (0, None);
                state.running = Some(connection.clone());
                Ok(connection)
            }
            Err(why) => {
                let pause = BACKOFF.1.min(BACKOFF.0 * 2_u32.saturating_pow(state.failures.min(10)));
                state.failures += 1;
                state.failed = Some((Instant::now() + pause, why.clone()));
                tracing::warn!(server = name, %why, "an MCP server does not start");
                Err(why)
            }
        }
    }

    /// Returns the state of each server, ordered by name. Starts none.
    #[must_use]
    pub fn states(&self) -> Vec<ServerState> {
        let servers = self.0.servers.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut states = Vec::new();
        for (name, server) in servers {
            let own = format!("the MCP server `{name}` ");
            let why = |why: &String| why.strip_prefix(&own).unwrap_or(why).to_owned();
            let unstarted = ServerState::unstarted(name, server.settings.reached_by(), server.settings.per_run);
            // The lock is held while the server is starting.
            let Ok(state) = server.state.try_lock() else {
                let says = Some("it is starting".to_owned());
                states.push(ServerState { says, ..unstarted });
                continue;
            };
            let running = state.running.as_ref().filter(|running| !running.is_over());
            let ended = state.running.as_ref().filter(|running| running.is_over());
            let ended = ended.map(|ended| format!("it has ended: {}", ended.last_words()));
            states.push(ServerState {
                tools: running.map(|running| running.listed().len()),
                says: running.and_then(|running| running.says()),
                wrong: state.failed.as_ref().map(|(_, text)| why(text)).or(ended),
                starts: state.starts,
                ..unstarted
            });
        }
        states
    }

    fn server(&self, name: &str) -> Result<Arc<Server>, String> {
        let servers = self.0.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.get(name).cloned().ok_or_else(|| format!("there is no MCP server `{name}` in `mcp_servers`"))
    }

    async fn start(&self, settings: &McpServer) -> Result<Connection, String> {
        let shared = &self.0;
        let secret = |name: &String| match shared.secrets.get(name) {
            Some(value) => Ok((name.clone(), value.clone())),
            None => Err(format!(
                "the MCP server `{}` needs {name}, which .env did not have when the service started; write `{name}=…` into .env, and \
                 start the service anew",
                settings.name
            )),
        };
        let secrets = settings.secrets().iter().map(secret).collect::<Result<_, _>>()?;
        let started = Connection::start(settings, &shared.home, &shared.program_env, secrets);
        match tokio::time::timeout(settings.timeout, started).await {
            Ok(started) => started,
            Err(_) => Err(format!(
                "the MCP server `{}` did not answer within {} s",
                settings.name,
                settings.timeout.as_secs()
            )),
        }
    }
}

/// The servers of a run, each with those of its tools that the run's rules grant.
#[derive(Default)]
pub struct RunServers(BTreeMap<String, RunServer>);

struct RunServer {
    connection: Arc<Connection>,
    /// The tools granted when the run began.
    granted: BTreeSet<String>,
    servers: McpServers,
}

impl RunServers {
    /// Adds a server with its granted tools.
    pub fn add(&mut self, name: &str, servers: &McpServers, connection: Arc<Connection>, granted: &[ExternalTool]) {
        let granted = granted.iter().map(|tool| tool.name.clone()).collect();
        self.0.insert(name.to_owned(), RunServer { connection, granted, servers: servers.clone() });
    }

    /// Calls a tool. Refuses one that was not granted when the run began, whatever the server offers now.
    pub async fn call(&self, server: &str, tool: &str, arguments: Map<String, Value>) -> ExternalAnswer {
        let Some(known) = self.0.get(server).filter(|known| known.granted.contains(tool)) else {
            return ExternalAnswer::refused(format!("`{tool}` of `{server}` is not among this job's tools."));
        };
        known.connection.settled().await;
        if known.connection.per_run && known.connection.is_over() {
            let why = known.connection.last_words();
            return ExternalAnswer::refused(format!(
                "`{tool}` was not called: `{server}` has ended ({why}), and this run has it no more."
            ));
        }
        // The connection from the run's beginning may have ended.
        let connection = match known.connection.is_over() {
            true => known.servers.connect(server).await,
            false => Ok(known.connection.clone()),
        };
        match connection {
            Ok(connection) => connection.call(tool, arguments).await,
            Err(why) => ExternalAnswer::refused(format!("`{tool}` was not called: {why}.")),
        }
    }
}
