//! Checks that the services behind channels are reachable and accept our credentials. No message is sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::SendError;
use super::command::Command;
use super::discord::{self, Discord};
use super::mail::{self, Mail};
use super::ntfy::Ntfy;
use super::telegram::{self, Telegram};
use crate::config::{ChannelKind, ChannelSettings};

/// Maximum wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Input to a probe besides the settings.
#[derive(Clone, Debug)]
pub struct ProbeContext {
    /// Secrets of the services, by their names in `.env`.
    pub secrets: BTreeMap<String, String>,
    /// Folders that are searched for programs.
    pub path: Vec<PathBuf>,
    /// The person's home folder.
    pub user_home: PathBuf,
}

/// Probes all channels concurrently. Returns each answer as text, in the same order. Must be called in a Tokio runtime.
pub async fn probe(channels: &[ChannelSettings], means: &ProbeContext) -> Vec<Result<String, SendError>> {
    let one = async |channel: &ChannelSettings| {
        let late = SendError::temporary(format!("there was no answer within {} s", TIMEOUT.as_secs()));
        timeout(TIMEOUT, ask(&channel.kind, means)).await.unwrap_or(Err(late))
    };
    join_all(channels.iter().map(one)).await
}

/// Returns why a channel can deliver nothing, as far as the settings and this machine tell. Asks no service.
#[must_use]
pub fn lack(kind: &ChannelKind, means: &ProbeContext) -> Option<String> {
    let set = |name: &str| means.secrets.contains_key(name);
    let unless = |is_set: bool, why: &str| (!is_set).then(|| why.to_owned());
    match kind {
        ChannelKind::Command(command) => {
            Command::probe(command, &means.path, &means.user_home).err().map(|error| error.why)
        }
        ChannelKind::Discord(_) => unless(set("DISCORD_TOKEN"), discord::NO_TOKEN),
        ChannelKind::Telegram(telegram) => unless(set("TELEGRAM_TOKEN"), telegram::NO_TOKEN)
            .or_else(|| unless(telegram.owner.is_some(), telegram::NO_OWNER)),
        ChannelKind::Mail(mail) => unless(mail.user.is_none() || set("SMTP_PASSWORD"), mail::NO_PASSWORD),
        ChannelKind::Ntfy(_) => None,
    }
}

async fn ask(kind: &ChannelKind, means: &ProbeContext) -> Result<String, SendError> {
    let secret = |name: &str| means.secrets.get(name).cloned();
    match kind {
        ChannelKind::Command(command) => Command::probe(command, &means.path, &means.user_home),
        ChannelKind::Ntfy(ntfy) => Ntfy::probe(ntfy, secret("NTFY_TOKEN")).await,
        ChannelKind::Mail(mail) => Mail::new(mail.clone(), secret("SMTP_PASSWORD")).probe().await,
        ChannelKind::Telegram(telegram) => Telegram::new(telegram, secret("TELEGRAM_TOKEN")).probe().await,
        ChannelKind::Discord(discord) => Discord::new(discord.clone(), secret("DISCORD_TOKEN")).probe().await,
    }
}
