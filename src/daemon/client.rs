//! Which agent client does the work: decided once, at start, and said.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::wire::ClientStatus;
use crate::agent::claude::login::LoginSources;
use crate::agent::claude::options::Surroundings;
use crate::agent::claude::{self, Limits, Ready};
use crate::agent::{AgentClient, Claude, Notify};
use crate::clock::Clock;
use crate::config::{ClientChoice, Config};
use crate::home::Home;

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
    /// Our own binary: it is the wrapper of every client.
    pub own_binary: PathBuf,
    /// For the time when a login ends.
    pub clock: Clock,
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
        status: ClientStatus { name: "notify".into(), version: None, why: why.into() },
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
    Chosen { client: Arc::new(claude), status: ClientStatus { name: "claude".into(), version, why } }
}

fn claude_at(command: PathBuf, wish: Wish<'_>) -> Claude {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let added = |name: &String| Some((name.clone(), wish.env.get(name)?.clone()));
    let folder = wish.own_binary.parent().map(text);
    Claude {
        command,
        main_config: wish.home.main_session(),
        surroundings: Surroundings {
            own: wish.env.clone(),
            added: wish.config.client_env.iter().filter_map(added).collect(),
            programs: folder.into_iter().chain([text(&wish.home.bin())]).collect(),
            data_folder: text(wish.home.root()),
        },
        login: LoginSources {
            variables: wish.secrets,
            credentials: wish.env.get("HOME").map(|home| Path::new(home).join(".claude/.credentials.json")),
        },
        own_binary: wish.own_binary,
        ready: Ready::default(),
        serve_tools: crate::mcp::serve,
        clock: wish.clock,
        limits: Limits::default(),
    }
}
