//! Constructs the channels that the settings name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::settings::CurrentApp;
use crate::channel::Channel;
use crate::channel::command::Command;
use crate::channel::console::{Console, SilentConsole};
use crate::channel::discord::Discord;
use crate::channel::mail::Mail;
use crate::channel::ntfy::{self, Ntfy};
use crate::channel::telegram::Telegram;
use crate::config::{CONSOLE, ChannelKind, Config};
use crate::home::Home;
use crate::program::ProgramEnv;

/// Everything that channels are built from, apart from their settings.
pub(super) struct ChannelDeps<'a> {
    /// The environment for channels' programs.
    pub(super) program_env: ProgramEnv,
    /// The services' secrets, by their names in `.env`.
    pub(super) secrets: &'a BTreeMap<String, String>,
    /// The secret that authenticates the buttons of notifications.
    pub(super) buttons: &'a ntfy::Secret,
}

/// Builds every channel, by name. `console` holds the settings for the console's times. `None` silences the console.
pub(super) fn channels(
    config: &Config,
    home: &Home,
    means: &ChannelDeps<'_>,
    console: Option<CurrentApp>,
) -> BTreeMap<String, Arc<dyn Channel>> {
    let console: Arc<dyn Channel> = match console {
        Some(app) => Arc::new(Console { zone: move || app.get().zone_of_records() }),
        None => Arc::new(SilentConsole),
    };
    let mut channels = BTreeMap::from([(CONSOLE.to_owned(), console)]);
    let secret = |name: &str| means.secrets.get(name).cloned();
    for settings in &config.channels {
        let channel: Arc<dyn Channel> = match &settings.kind {
            ChannelKind::Command(command) => {
                Arc::new(Command::new(command.clone(), home.channel(&settings.name), means.program_env.clone()))
            }
            ChannelKind::Ntfy(ntfy) => {
                Arc::new(Ntfy::new(&settings.name, ntfy.clone(), means.buttons, secret("NTFY_TOKEN")))
            }
            ChannelKind::Mail(mail) => Arc::new(Mail::new(mail.clone(), secret("SMTP_PASSWORD"))),
            ChannelKind::Telegram(telegram) => Arc::new(Telegram::new(telegram, secret("TELEGRAM_TOKEN"))),
            ChannelKind::Discord(discord) => Arc::new(Discord::new(discord.clone(), secret("DISCORD_TOKEN"))),
        };
        channels.insert(settings.name.clone(), channel);
    }
    channels
}
