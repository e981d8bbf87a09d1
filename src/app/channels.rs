//! The channels and their states.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{App, runs};
use crate::channel::probe::ProbeContext;
use crate::config::secrets::{self, SecretsError};
use crate::config::{CONSOLE, ChannelKind, Config};
use crate::journal::FailingChannel;
use crate::refusal::Refusal;

/// One channel.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelState {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is the default channel.
    pub default: bool,
    /// Whether it gets critical messages too.
    pub critical: bool,
    /// Number of messages that wait for it.
    pub waiting: u64,
    /// Why it fails or refused a message, and since when.
    pub failing: Option<FailingChannel>,
    /// Time of the last delivery that the journal knows of.
    pub delivered: Option<DateTime<Utc>>,
    /// Number of messages from people other than the owner.
    pub strangers: u64,
    /// Number of messages that were too long to be taken.
    pub not_taken: u64,
}

impl ChannelState {
    /// Whether the channel is known to work, or to fail. The console is available whenever the service is.
    #[must_use]
    pub fn is_tried(&self) -> bool {
        self.delivered.is_some() || self.failing.is_some() || self.kind == CONSOLE
    }
}

/// Returns every channel, in the order in which one takes over from another.
pub(super) fn channels(app: &App) -> Result<Vec<ChannelState>, Refusal> {
    let (config, journal) = (app.config()?, runs::open(app)?);
    let (failing, waiting) = (journal.failing_channels()?, journal.waiting_for_channels()?);
    let (heard, delivered) = (journal.channel_inputs()?, journal.last_delivered()?);
    let state = |name: &str| ChannelState {
        name: name.to_owned(),
        kind: kind(name, &config),
        default: name == config.default_channel,
        critical: config.critical_channel.as_deref() == Some(name),
        waiting: waiting.iter().find(|(channel, _)| channel == name).map_or(0, |(_, count)| *count),
        failing: failing.iter().find(|failing| failing.name == name).cloned(),
        delivered: delivered.iter().find(|(channel, _)| channel == name).map(|(_, at)| *at),
        strangers: heard.iter().find(|heard| heard.channel == name).map_or(0, |heard| heard.strangers),
        not_taken: heard.iter().find(|heard| heard.channel == name).map_or(0, |heard| heard.not_taken),
    };
    Ok(config.channel_names().map(state).collect())
}

/// Returns what a channel needs besides its settings.
pub(super) fn probe_context(app: &App) -> Result<ProbeContext, SecretsError> {
    let secrets = secrets::read(&app.home, &app.env.texts())?;
    Ok(ProbeContext { secrets, path: app.command_folders(), user_home: app.places().user_home })
}

fn kind(name: &str, config: &Config) -> &'static str {
    match config.channels.iter().find(|channel| channel.name == name).map(|channel| &channel.kind) {
        Some(ChannelKind::Command(_)) => "command",
        Some(ChannelKind::Ntfy(_)) => "ntfy",
        Some(ChannelKind::Discord(_)) => "discord",
        Some(ChannelKind::Telegram(_)) => "telegram",
        Some(ChannelKind::Mail(_)) => "mail",
        None => CONSOLE,
    }
}
