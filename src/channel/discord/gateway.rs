//! The connection to Discord's gateway, which delivers events.
//!
//! The library reconnects and resumes. This module passes the events on, waits longer with each failure, and returns the reason once
//! Discord refuses the bot for good.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;
use tokio::time::sleep;
use twilight_gateway::{ConfigBuilder, Intents, Message as Frame, Shard, ShardId};
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::UserMarker;

use super::incoming::{self, Event, Interaction, Message, Ready};
use super::listener::{Incoming, NOT_UNDERSTOOD};
use super::rest::{Failure, permanent};
use super::{CachedIds, Inner, body};
use crate::channel::Inbound;
use crate::channel::backoff::Backoff;

/// Listens until Discord refuses the bot for good. Returns the reason.
pub(super) async fn listen(inner: Arc<Inner>, inbound: Inbound) -> String {
    // Aborting this task ends all that it spawned.
    let mut task = JoinSet::new();
    task.spawn(run(inner, inbound));
    match task.join_next().await {
        Some(Ok(why)) => why,
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => format!("the connection to Discord failed ({error}): start the service again"),
        },
        None => "the connection to Discord was never begun".into(),
    }
}

async fn run(inner: Arc<Inner>, inbound: Inbound) -> String {
    let known = match with_retries(|| inner.known()).await {
        Ok(known) => known,
        Err(failure) => return failure.why,
    };
    let url = match with_retries(|| inner.gateway_url()).await {
        Ok(url) => url,
        Err(failure) => return failure.why,
    };
    let config = ConfigBuilder::new(inner.token.clone(), Intents::DIRECT_MESSAGES).proxy_url(url).build();
    let mut shard = Shard::with_config(ShardId::ONE, config);
    let (heard, hearing) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(Arc::clone(&inner).forward_incoming(known, inbound.clone(), hearing));
    tasks.spawn(register(Arc::clone(&inner), known));
    let mut connection =
        Connection { inner, known, inbound, heard, tasks, own: None, backoff: Backoff::default(), closed: None };
    while let Some(frame) = shard.next().await {
        match frame {
            Ok(Frame::Text(text)) => connection.take(&text),
            Ok(Frame::Close(frame)) => {
                let why = frame.map(|frame| (frame.code, frame.reason.into_owned()));
                let wait = connection.failed(format!("it was closed: {why:?}"));
                connection.closed = why;
                sleep(wait).await;
            }
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
                connection.failed(format!("{error}{source}"));
            }
        }
        while connection.tasks.try_join_next().is_some() {}
    }
    ended(connection.closed)
}

/// The state of the connection.
struct Connection {
    inner: Arc<Inner>,
    known: CachedIds,
    inbound: Inbound,
    heard: UnboundedSender<Incoming>,
    tasks: JoinSet<()>,
    /// User id of the bot.
    own: Option<Id<UserMarker>>,
    backoff: Backoff,
    /// Code and reason with which it was last closed.
    closed: Option<(u16, String)>,
}

impl Connection {
    /// Records a failure. Returns the wait before the next attempt. The library itself waits if it cannot open a connection.
    fn failed(&mut self, why: String) -> Duration {
        let wait = self.backoff.failed();
        // Discord closes connections now and then, so one failure is worth neither a wait nor a warning.
        if self.backoff.failures() == 2 {
            tracing::warn!(%why, "Discord cannot be listened to; it is tried again");
        } else {
            tracing::debug!(%why, "the connection to Discord ended");
        }
        if self.backoff.failures() > 1 { wait } else { Duration::ZERO }
    }

    fn works(&mut self) {
        if self.backoff.failures() > 1 {
            tracing::info!("Discord is listened to again");
        }
        self.backoff.worked();
    }

    fn take(&mut self, text: &str) {
        let Ok(event) = serde_json::from_str::<Event>(text) else { return };
        let taken = match event.name.as_deref() {
            Some("READY") => parsed(event.data).map(|ready: Ready| {
                self.works();
                self.own = Some(ready.user.id);
                let inbound = self.inbound.clone();
                self.tasks.spawn(async move { inbound.hears().await });
                // The receiver is gone once the service stops.
                let _sent = self.heard.send(Incoming::Gap);
            }),
            Some("RESUMED") => {
                self.works();
                Ok(())
            }
            Some("MESSAGE_CREATE") => parsed(event.data).map(|message| self.forward_message(message)),
            Some("INTERACTION_CREATE") => parsed(event.data).map(|interaction: Interaction| {
                let (inner, inbound) = (Arc::clone(&self.inner), self.inbound.clone());
                self.tasks.spawn(inner.interact(self.known, inbound, interaction));
            }),
            _ => Ok(()),
        };
        if let Err(error) = taken {
            tracing::warn!(%error, event = event.name, "{NOT_UNDERSTOOD}");
        }
    }

    fn forward_message(&mut self, message: Message) {
        // The gateway also delivers the bot's own messages.
        if Some(message.author.id) == self.own || !Inner::is_from_person(&message) {
            return;
        }
        let eyes = match message.author.id == self.known.owner {
            true => self.inner.add_reaction(message.channel_id, message.id),
            false => tokio::spawn(async {}),
        };
        let _sent = self.heard.send(Incoming::Message(Box::new(message), eyes));
    }
}

fn parsed<T: for<'de> Deserialize<'de>>(data: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(data)
}

/// Registers the commands with Discord.
async fn register(inner: Arc<Inner>, known: CachedIds) {
    let path = format!("applications/{}/commands", known.application);
    let commands = body::commands();
    if let Err(failure) = with_retries(|| inner.rest.send(Method::Put, path.clone(), &commands)).await {
        tracing::error!(%failure, "the commands could not be told to Discord; those of before stay");
    }
}

/// Retries a request until it succeeds or fails for good.
async fn with_retries<T, F: Future<Output = Result<T, Failure>>>(mut ask: impl FnMut() -> F) -> Result<T, Failure> {
    let mut backoff = Backoff::default();
    loop {
        match ask().await {
            Err(failure) if failure.retryable => tracing::warn!(%failure, "Discord is asked again"),
            other => return other,
        }
        sleep(backoff.failed()).await;
    }
}

impl Inner {
    async fn gateway_url(&self) -> Result<String, Failure> {
        let gateway: incoming::Gateway = incoming::read("gateway", self.rest.get("gateway/bot".into()).await?)?;
        let url = gateway.url.trim_end_matches('/').to_owned();
        let host = ["wss://", "ws://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]/".contains(c);
        match host.is_some_and(|host| !host.is_empty() && host.chars().all(plain)) {
            true => Ok(url),
            false => Err(permanent("Discord's address of the gateway cannot be used")),
        }
    }
}

/// Returns the reason why the connection is not reopened.
fn ended(closed: Option<(u16, String)>) -> String {
    let (code, reason) = closed.unwrap_or_default();
    match code {
        4004 => "Discord does not accept `DISCORD_TOKEN` any more (4004): put the application's token into .env, and start the \
                 service again"
            .into(),
        4013 | 4014 => format!(
            "Discord does not let the bot hear direct messages ({code}): look at the application's page, and start the service again"
        ),
        _ => format!(
            "Discord closed the connection for good ({code} {}): start the service again",
            crate::channel::terminal::plain(&reason)
        ),
    }
}
