//! Checks that the services behind channels are reachable and accept our credentials. No message is sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::SendError;
use super::command::Command;
use super::discord::Discord;
use super::mail::Mail;
use super::ntfy::Ntfy;
use super::telegram::Telegram;
use crate::config::{ChannelKind, ChannelSettings};

/// Maximum wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Input to a probe besides the settings.
#[derive(Clone, Copy, Debug)]
pub struct ProbeContext<'a> {
    /// Secrets of the services, by their names in `.env`.
    pub secrets: &'a BTreeMap<String, String>,
    /// Folders that are searched for programs.
    pub path: &'a [PathBuf],
    /// The person's home folder.
    pub user_home: &'a Path,
}

/// Probes all channels concurrently. Returns each answer as text, in the same order. Must be called in a Tokio runtime.
pub async fn probe(channels: &[ChannelSettings], means: ProbeContext<'_>) -> Vec<Result<String, SendError>> {
    let one = async |channel: &ChannelSettings| {
        let late = SendError::temporary(format!("there was no answer within {} s", TIMEOUT.as_secs()));
        timeout(TIMEOUT, ask(&channel.kind, means)).await.unwrap_or(Err(late))
    };
    join_all(channels.iter().map(one)).await
}

/// Returns why a channel can deliver nothing, as far as the settings and this machine tell. Asks no service.
#[must_use]
pub fn lack(kind: &ChannelKind, means: ProbeContext<'_>) -> Option<String> {
    let unset = |name: &str, whose: &str| {
        (!means.secrets.contains_key(name)).then(|| format!("`{name}` is not set: put the {whose}'s token into .env"))
    };
    match kind {
        ChannelKind::Command(command) => {
            Command::probe(command, means.path, means.user_home).err().map(|error| error.why)
        }
        ChannelKind::Discord(_) => unset("DISCORD_TOKEN", "application"),
        ChannelKind::Telegram(_) => unset("TELEGRAM_TOKEN", "bot"),
        ChannelKind::Ntfy(_) | ChannelKind::Mail(_) => None,
    }
}

async fn ask(kind: &ChannelKind, means: ProbeContext<'_>) -> Result<String, SendError> {
    let secret = |name: &str| means.secrets.get(name).cloned();
    match kind {
        ChannelKind::Command(command) => Command::probe(command, means.path, means.user_home),
        ChannelKind::Ntfy(ntfy) => Ntfy::probe(ntfy, secret("NTFY_TOKEN")).await,
        ChannelKind::Mail(mail) => Mail::new(mail.clone(), secret("SMTP_PASSWORD")).probe().await,
        ChannelKind::Telegram(telegram) => Telegram::new(telegram, secret("TELEGRAM_TOKEN")).probe().await,
        ChannelKind::Discord(discord) => Discord::new(discord.clone(), secret("DISCORD_TOKEN")).probe().await,
    }
}
