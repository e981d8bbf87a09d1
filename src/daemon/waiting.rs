//! What a service says while it waits for the journal: to the person, and to the monitor.
//!
//! Nothing can be recorded then. So one message goes directly by a channel, without the outbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{sleep, timeout};

use super::channels::{ChannelDeps, channels};
use super::settings::CurrentApp;
use crate::channel::terminal::plain;
use crate::channel::{Outgoing, SentParts, ntfy};
use crate::config::{CONSOLE, Config};
use crate::heartbeat::{Beat, Heartbeats};
use crate::journal::{Journal, JournalError, NewMessage};
use crate::program::ProgramEnv;

/// Time after which the person is told. Most servers are back earlier.
const TOLD_AFTER: Duration = Duration::from_secs(30);

/// Time between two heartbeats, and between two attempts to tell the person.
const AGAIN: Duration = Duration::from_secs(60);

/// The way to the person without the journal.
#[derive(Clone)]
pub(super) struct DirectMessages {
    pub(super) app: CurrentApp,
    pub(super) program_env: ProgramEnv,
    pub(super) secrets: BTreeMap<String, String>,
    /// Whether the console shows messages.
    pub(super) has_console: bool,
}

/// A service that waits for the journal's database at its start. Clones share whether the person was told.
#[derive(Clone)]
pub(super) struct Waiting {
    messages: DirectMessages,
    config: Arc<Config>,
    since: DateTime<Utc>,
    /// Whether a channel was given the message.
    told: Arc<AtomicBool>,
}

impl Waiting {
    /// Begins a wait.
    pub(super) fn new(messages: DirectMessages, config: Arc<Config>) -> Self {
        Self { since: messages.app.get().clock.now(), messages, config, told: Arc::default() }
    }

    /// Tells the person once, and the monitor every minute. Never returns.
    pub(super) async fn tell(self, error: JournalError) {
        sleep(TOLD_AFTER).await;
        let host = self.host();
        let heart = self.config.heartbeat_url.as_ref().map(|url| Heartbeats::default().of(url, "the service"));
        let text = format!(
            "The host {host} has waited for the journal's database since {} ({}). It fires nothing until the database answers.",
            self.since(),
            plain(&error.cause())
        );
        loop {
            if let Some(heart) = &heart {
                heart
                    .beat(Beat::Fail(format!("the journal's database does not answer: the host {host} fires nothing")));
            }
            // Set before the message is sent: a channel may have taken it even if the database answers first.
            if !self.told.swap(true, Ordering::SeqCst) {
                let is_sent = self.messages.send(self.since, &text).await;
                self.told.store(is_sent, Ordering::SeqCst);
            }
            sleep(AGAIN).await;
        }
    }

    /// Returns the message for the person at the end of the wait; `None` if the person does not know of it.
    pub(super) fn over(&self) -> Option<String> {
        let (host, since) = (self.host(), self.since());
        let text = format!("The journal's database answers again. The host {host} had waited for it since {since}.");
        self.told.load(Ordering::SeqCst).then_some(text)
    }

    fn host(&self) -> String {
        self.messages.app.get().host_name().unwrap_or_default()
    }

    fn since(&self) -> String {
        moment(self.since, &self.config)
    }
}

/// Tells the person once of each fault of the journal that lasts, and when it has passed. Never returns.
pub(super) async fn tell_of_faults(messages: DirectMessages, journal: Journal) {
    let mut fault = journal.fault();
    while let Ok(found) = fault.wait_for(Option::is_some).await.map(|found| found.clone()) {
        let since = messages.app.get().clock.now();
        let Some(config) = messages.config() else { return };
        let text = format!(
            "The service has started nothing since {}: {}.",
            moment(since, &config),
            found.as_ref().map(ToString::to_string).unwrap_or_default()
        );
        let mut is_sent = false;
        let mut pause = TOLD_AFTER;
        while timeout(pause, fault.wait_for(Option::is_none)).await.is_err() {
            is_sent = is_sent || messages.send(since, &text).await;
            pause = AGAIN;
        }
        if is_sent {
            let text = format!(
                "The journal can be written again. The service had started nothing since {}.",
                moment(since, &config)
            );
            if let Err(error) = journal.message(NewMessage::of_service(text)).await {
                tracing::error!(%error, "the person is not told that the journal can be written again");
            }
        }
    }
}

fn moment(at: DateTime<Utc>, config: &Config) -> String {
    at.with_timezone(&config.timezone).format("%a %H:%M").to_string()
}

impl DirectMessages {
    fn config(&self) -> Option<Arc<Config>> {
        let config = self.app.get().config();
        config.inspect_err(|error| tracing::warn!(%error, "the person is not told that the service waits")).ok()
    }

    /// Sends a message by the first channel that takes it, unless its hours are quiet. `since`: the begin of the wait, which has one
    /// message. Returns whether a channel took it.
    async fn send(&self, since: DateTime<Utc>, text: &str) -> bool {
        let app = self.app.get();
        let Some(config) = self.config() else { return false };
        let (config, now) = (&*config, app.clock.now());
        // The message has no buttons, so any secret does.
        let buttons = match ntfy::Secret::random() {
            Ok(buttons) => buttons,
            Err(error) => {
                tracing::warn!(%error, "the person is not told that the service waits");
                return false;
            }
        };
        let means = ChannelDeps { program_env: self.program_env.clone(), secrets: &self.secrets, buttons: &buttons };
        let channels = channels(config, &app.home, &means, Some(self.app.clone()));
        // The journal's numbers are above zero, and each wait has its own.
        let message = Outgoing::plain(-since.timestamp(), now, text);
        // The console takes every message, also if nobody sees it.
        let has_console = self.has_console && config.default_channel == CONSOLE;
        for name in config.channel_names().filter(|name| *name != CONSOLE || has_console) {
            let Some(channel) = channels.get(name) else { continue };
            if config.quiet_hours_of(name).is_some_and(|hours| hours.end(now, config.timezone).is_some()) {
                return false;
            }
            match channel.send(&message, &mut SentParts::default()).await {
                Ok(_) => return true,
                Err(error) => tracing::warn!(channel = name, why = %error.why, "that the service waits was not sent"),
            }
        }
        false
    }
}
