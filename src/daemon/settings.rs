//! The settings in force: read at start, and again on SIGHUP.
//!
//! Settings that can change while the service runs do so. The others keep their value from the start and are named in the log.
//! Unusable settings change nothing and are reported.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::agent::claude::IdleClient;
use crate::app::App;
use crate::config::Config;
use crate::definition::Defaults;
use crate::journal::{Journal, NewMessage};
use crate::mcp::servers::McpServers;
use crate::refusal::Refusal;
use crate::run::runner::RunSettings;
use crate::schedule::{LiveDefinitions, Schedule};

/// The current settings.
pub type CurrentSettings = watch::Receiver<Arc<Config>>;

/// The application under the settings that were read last. Clones share it.
#[derive(Clone)]
pub struct CurrentApp(Arc<RwLock<App>>);

impl CurrentApp {
    /// Starts with the settings of `app`.
    #[must_use]
    pub fn new(app: App) -> Self {
        Self(Arc::new(RwLock::new(app)))
    }

    /// Returns the current application.
    #[must_use]
    pub fn get(&self) -> App {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reloads the settings. If they cannot be used, the old ones remain in force. Blocks.
    fn reread(&self) -> Result<Settings, Refusal> {
        let fresh = self.get().reread();
        let settings = Settings::of(&fresh)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(settings)
    }
}

/// The values of the settings and the environment.
pub(super) struct Settings {
    pub(super) config: Arc<Config>,
    /// Defaults for definitions.
    pub(super) defaults: Defaults,
}

impl Settings {
    pub(super) fn of(app: &App) -> Result<Self, Refusal> {
        Ok(Self { config: app.config()?, defaults: app.defaults()? })
    }
}

/// Settings that take effect without a restart, for example at the next run.
const LIVE: [&str; 26] = [
    "mcp_servers",
    "timezone",
    "model",
    "thinking",
    "main_tools",
    "main_ask_tools",
    "tools",
    "default_channel",
    "critical_channel",
    "quiet_hours",
    "failover_after",
    "timeout",
    "inactivity_timeout",
    "main_idle_timeout",
    "max_concurrent_runs",
    "shutdown_grace",
    "alert_after",
    "notify_chain_delay",
    "require_sandbox",
    "sandbox",
    "limits",
    "budget",
    "journal_retention",
    "heartbeat_url",
    "user_name",
    "bot_name",
];

/// The difference that a reload of the settings makes.
#[derive(Debug, PartialEq, Eq)]
struct Changes {
    /// Keys and values that take effect now.
    live: Vec<(&'static str, String)>,
    /// Keys that take effect at the next start.
    at_start: Vec<&'static str>,
}

fn compare(started: &Config, before: &Config, now: &Config) -> Changes {
    let mut changes = Changes { live: Vec::new(), at_start: Vec::new() };
    for ((now, before), started) in now.settings().into_iter().zip(before.settings()).zip(started.settings()) {
        if !LIVE.contains(&now.key) {
            if now.value != started.value {
                changes.at_start.push(now.key);
            }
        } else if now.value != before.value {
            changes.live.push((now.key, now.value.to_string()));
        }
    }
    changes
}

/// The parts that act on settings, and the source of the settings.
pub(super) struct SettingsTargets {
    pub(super) app: CurrentApp,
    pub(super) started: Arc<Config>,
    pub(super) current: watch::Sender<Arc<Config>>,
    pub(super) runs: Arc<RwLock<RunSettings>>,
    pub(super) schedule: Schedule,
    pub(super) definitions: LiveDefinitions,
    pub(super) journal: Journal,
    pub(super) idle_client: IdleClient,
    pub(super) mcp_servers: McpServers,
}

impl SettingsTargets {
    /// Reloads settings and folders. Returns the result as one line.
    pub(super) async fn reread(&self) -> String {
        let app = self.app.clone();
        let read = tokio::task::spawn_blocking(move || app.reread()).await;
        let fault = |error| Err(Refusal::environment(format!("a fault of ollim-bot itself: {error}")));
        match read.unwrap_or_else(fault) {
            Ok(settings) => self.take(settings).await,
            Err(refusal) => {
                let hints = refusal.hints.iter().map(|hint| format!("\nhint: {hint}")).collect::<String>();
                let wrong = format!("{refusal}{hints}");
                self.definitions.reread().await;
                let said = "The settings cannot be used, so they stay as they were.";
                tracing::error!("{said}\n{wrong}");
                self.notify_person(format!("{said}\n{wrong}")).await;
                said.to_owned()
            }
        }
    }

    async fn take(&self, settings: Settings) -> String {
        let Settings { config, defaults } = settings;
        let Changes { live, at_start } = compare(&self.started, &self.current.borrow(), &config);
        self.mcp_servers.replace(&config.mcp_servers);
        *self.runs.write().unwrap_or_else(PoisonError::into_inner) = RunSettings::of(&config);
        if !live.is_empty() {
            // The idle client was started under the old settings.
            self.idle_client.end().await;
        }
        self.schedule.limit(config.max_concurrent_runs);
        self.schedule.alert_after(config.alert_after);
        self.current.send_replace(config);
        self.definitions.reread_with(defaults).await;
        for (key, value) in &live {
            tracing::info!("settings: `{key}` is now {value}");
        }
        if at_start.is_empty() {
            let said = if live.is_empty() { "The settings are as they were." } else { "The settings were read again." };
            tracing::info!("{said}");
            return said.to_owned();
        }
        let keys = at_start.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let said = format!(
            "The settings were read again. What {keys} says now takes effect when the service is started again."
        );
        tracing::warn!("{said}");
        self.notify_person(said.clone()).await;
        said
    }

    async fn notify_person(&self, text: String) {
        if let Err(error) = self.journal.message(NewMessage::of_service(text)).await {
            tracing::warn!(%error, "that could not be told");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono_tz::Tz;

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn every_setting_is_live_or_waits_for_the_next_start() {
        let keys: Vec<_> = Config::defaults(Tz::UTC).settings().into_iter().map(|setting| setting.key).collect();
        let at_start: Vec<_> = keys.iter().copied().filter(|key| !LIVE.contains(key)).collect();
        assert_eq!(
            at_start,
            [
                "agent_client",
                "claude_command",
                "client_env",
                "channels",
                "journal",
                "host",
                "host_labels",
                "share_files",
                "web",
                "web_url",
                "webhooks"
            ]
        );
        assert!(LIVE.iter().all(|key| keys.contains(key)));
    }

    #[test]
    fn what_changed_is_named_by_when_it_counts() {
        let started = config("agent_client: notify\n");
        let before = config("agent_client: notify\nmax_concurrent_runs: 2\n");
        let now = config("agent_client: claude\nmax_concurrent_runs: 3\n");
        let changes = compare(&started, &before, &now);
        assert_eq!(changes.live, [("max_concurrent_runs", "3".to_owned())]);
        assert_eq!(changes.at_start, ["agent_client"]);
        // A change that still waits is reported again; one that was reverted is not.
        assert_eq!(compare(&started, &now, &now), Changes { live: vec![], at_start: vec!["agent_client"] });
        assert_eq!(compare(&started, &before, &before), Changes { live: vec![], at_start: vec![] });
    }
}
