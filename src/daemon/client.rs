//! Which agent client does the work: decided once, at start, and said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_sandbox::cgroup::Delegated;

use crate::agent::claude::login::LoginSources;
use crate::agent::claude::{self, Limits, Ready, versions};
use crate::agent::{AgentClient, Claude, Notify};
use crate::app::ClientStatus;
use crate::clock::Clock;
use crate::config::{ClientChoice, Config};
use crate::home::Home;
use crate::run::client_environment::{client_environment, shell_binary};

/// What the choice depends on.
pub struct Wish<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The data folder.
    pub home: &'a Home,
    /// The service's environment.
    pub env: &'a BTreeMap<String, String>,
    /// The environment, and `.env`.
    pub secrets: BTreeMap<String, String>,
    /// Our own binary.
    pub own_binary: PathBuf,
    /// For the time when a login ends.
    pub clock: Clock,
    /// The control groups of runs.
    pub groups: Option<Delegated>,
}

/// The client and what is said of it.
pub struct Chosen {
    /// Does the work.
    pub client: Arc<dyn AgentClient>,
    /// For `status` and the log.
    pub status: ClientStatus,
}

/// `auto` takes `claude` where it is found and logged in, else `notify`.
pub async fn choose(wish: Wish<'_>) -> Chosen {
    let choice = wish.config.agent_client;
    let command = wish.config.claude_command.clone();
    let path = wish.env.get("PATH").map(String::as_str).unwrap_or_default();
    let found = claude::find(&command, OsStr::new(path));
    let claude = claude_at(found.clone().unwrap_or_else(|| PathBuf::from(&command)), wish);
    let notify = |why: &str| Chosen {
        client: Arc::new(Notify),
        status: ClientStatus { name: "notify".into(), why: why.into(), ..ClientStatus::default() },
    };
    let why = match (choice, &found) {
        (ClientChoice::Notify, _) => return notify("configured"),
        (ClientChoice::Auto, None) => return notify(&format!("`{command}` was not found")),
        (ClientChoice::Auto, Some(_)) => match claude.find_login() {
            None => return notify(&format!("`{command}` is not logged in")),
            Some(login) => format!("found, login from {}", login.source),
        },
        (ClientChoice::Claude, _) => "configured".to_owned(),
    };
    let version = match claude.version().await {
        Ok(version) => Some(version),
        Err(failure) => {
            tracing::warn!("{}", failure.message);
            None
        }
    };
    let untested = version.as_deref().and_then(versions::untested);
    if let Some(untested) = &untested {
        tracing::warn!("{untested}");
    }
    let tested = versions::TESTED.map(Into::into).to_vec();
    Chosen { client: Arc::new(claude), status: ClientStatus { name: "claude".into(), version, why, tested, untested } }
}

fn claude_at(command: PathBuf, wish: Wish<'_>) -> Claude {
    Claude {
        command,
        main_config: wish.home.main_session(),
        client_environment: client_environment(wish.config, wish.home, wish.env, &wish.own_binary),
        login: LoginSources {
            variables: wish.secrets,
            credentials: wish.env.get("HOME").map(|home| Path::new(home).join(".claude/.credentials.json")),
        },
        shell_binary: shell_binary(&wish.own_binary),
        ready: Ready::default(),
        serve_tools: crate::mcp::serve,
        clock: wish.clock,
        limits: Limits::default(),
        groups: wish.groups,
    }
}
