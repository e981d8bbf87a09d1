//! Discord: the private conversation of one person, the owner, with their application. It needs no server.
//!
//! Messages are sent by REST. The owner's messages, button presses and commands arrive over a connection to the gateway (`gateway`), which
//! is open while the channel listens. One message that is edited shows a running turn (`turn`).

mod attachments;
mod body;
mod gateway;
mod incoming;
mod interaction;
mod listener;
mod message;
mod progress;
mod rest;
#[cfg(test)]
mod tests;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::{ApplicationMarker, ChannelMarker, MessageMarker, UserMarker};

use super::permanent_failure::PermanentFailure;
use super::sent::last_part;
use super::status::{self, Statuses};
use super::terminal::plain;
use super::{Channel, Inbound, Outgoing, SendError, SentParts};
use crate::config::DiscordChannel;
use crate::definition::{DefinitionId, Urgency};
use rest::{Failure, Rest, UNKNOWN_MESSAGE, permanent};

/// The Discord channel.
pub struct Discord {
    inner: Arc<Inner>,
}

/// State shared by the tasks of the channel.
struct Inner {
    settings: DiscordChannel,
    token: String,
    rest: Rest,
    known: OnceCell<CachedIds>,
    statuses: Statuses,
    /// Time for which later messages wait for the files of a message.
    patience: Duration,
    /// The reason why the channel cannot work again, if so.
    lost: PermanentFailure,
}

/// Ids that are requested once.
#[derive(Clone, Copy, Debug)]
struct CachedIds {
    application: Id<ApplicationMarker>,
    owner: Id<UserMarker>,
    /// The private conversation of the owner with the bot.
    dm: Id<ChannelMarker>,
}

/// The reason why a channel without a token delivers nothing.
pub(super) const NO_TOKEN: &str = "`DISCORD_TOKEN` is not set: put the application's token into .env";

impl Discord {
    /// Creates the channel. Nothing is sent before the first message. Must be called in a Tokio runtime.
    #[must_use]
    pub fn new(settings: DiscordChannel, token: Option<String>) -> Self {
        let lost = match token {
            Some(_) => None,
            None => Some(NO_TOKEN.to_owned()),
        };
        let token = token.unwrap_or_default();
        let inner = Inner {
            rest: Rest::new(&token, settings.api.as_deref()),
            settings,
            token,
            known: OnceCell::new(),
            statuses: Statuses::default(),
            patience: message::PATIENCE,
            lost: PermanentFailure::new(lost),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Checks the token. Returns the name of its bot.
    pub(super) async fn probe(&self) -> Result<String, SendError> {
        self.inner.lost.check()?;
        let bot = self.inner.rest.get("users/@me".into()).await?;
        let name = bot["username"].as_str().map(|name| format!(" for {}", plain(name))).unwrap_or_default();
        Ok(format!("Discord takes the token{name}"))
    }
}

#[async_trait]
impl Channel for Discord {
    async fn send(&self, message: &Outgoing, sent: &mut SentParts) -> Result<Option<String>, SendError> {
        self.inner.lost.check()?;
        self.inner.deliver(message, sent).await?;
        Ok(Some(sent.name()))
    }

    async fn listen(&self, inbound: Inbound) {
        if self.inner.lost.check().is_ok() {
            let why = gateway::listen(Arc::clone(&self.inner), inbound).await;
            tracing::error!(%why, "Discord is not listened to any more");
            self.inner.lost.set(why);
        }
        std::future::pending().await
    }

    fn takes_commands(&self) -> bool {
        true
    }

    async fn permanent_failure(&self) -> String {
        self.inner.lost.until().await
    }

    async fn remove_buttons(&self, external: &str, _message: &Outgoing, outcome: &str) -> Result<(), SendError> {
        // The id belongs to a message of another channel.
        let Some(id) = last_part(external) else { return Ok(()) };
        let known = self.inner.known().await?;
        Ok(self.inner.remove_buttons(known.dm, id, outcome).await?)
    }

    async fn remove_status(&self, turn: &DefinitionId, external: &str) -> Result<(), SendError> {
        self.inner.lost.check()?;
        status::remove_status(&*self.inner, turn, external).await
    }
}

impl Inner {
    /// Returns the ids of the application, the owner and their conversation.
    async fn known(&self) -> Result<CachedIds, Failure> {
        self.known.get_or_try_init(|| self.ask()).await.copied()
    }

    async fn ask(&self) -> Result<CachedIds, Failure> {
        let application: incoming::Application =
            incoming::read("application", self.rest.get("applications/@me".into()).await?)?;
        let owner = match &self.settings.owner {
            Some(owner) => owner.parse().ok(),
            None => application.owner(),
        };
        let owner = owner.ok_or_else(|| {
            permanent("Discord does not say whose the application is: set `owner` of the channel to your user id")
        })?;
        let body = json!({ "recipient_id": owner.to_string() });
        let dm = self.rest.send(Method::Post, "users/@me/channels".into(), &body).await?;
        let dm: incoming::Channel = incoming::read("channel", dm)?;
        Ok(CachedIds { application: application.id, owner, dm: dm.id })
    }

    /// Sends the parts of a message that were not sent yet. The last part has the buttons.
    async fn deliver(&self, message: &Outgoing, sent: &mut SentParts) -> Result<(), SendError> {
        let known = self.known().await?;
        let bodies = body::messages(message);
        let last = bodies.len() - 1;
        for (part, body) in bodies.into_iter().enumerate().skip(sent.count()) {
            let answered = message.reply_to.as_deref().filter(|_| part == 0).and_then(|answered| answered.parse().ok());
            let body = body::replying(body, answered);
            let body = body::once(body, &body::nonce(message.number, message.at, part));
            let id = match message.answers.as_ref().filter(|_| part == 0) {
                Some(turn) => self.answer(known.dm, turn, sent.status(), body).await?,
                None if message.urgency == Urgency::Low => self.create(known.dm, &body::quiet(body)).await?,
                None => self.create(known.dm, &body).await?,
            };
            sent.add(id.to_string(), part == last).await?;
        }
        Ok(())
    }

    /// Sends one Discord message.
    async fn create(&self, to: Id<ChannelMarker>, body: &Value) -> Result<Id<MessageMarker>, Failure> {
        Ok(self.created(to, body).await?.id)
    }

    async fn created(&self, to: Id<ChannelMarker>, body: &Value) -> Result<incoming::Message, Failure> {
        let created = self.rest.send(Method::Post, format!("channels/{to}/messages"), body).await?;
        incoming::read("message", created)
    }

    /// Edits a message. Returns whether the message still exists.
    async fn edit(&self, of: Id<ChannelMarker>, message: Id<MessageMarker>, body: &Value) -> Result<bool, Failure> {
        is_edited(self.rest.send(Method::Patch, format!("channels/{of}/messages/{message}"), body).await)
    }

    /// Edits a message that a newer edit follows. It waits for no rate limit, since the answer waits for this.
    async fn edit_meanwhile(
        &self,
        of: Id<ChannelMarker>,
        message: Id<MessageMarker>,
        body: &Value,
    ) -> Result<bool, Failure> {
        is_edited(self.rest.send_once(Method::Patch, format!("channels/{of}/messages/{message}"), body).await)
    }

    /// Replaces a message's buttons by their outcome.
    async fn remove_buttons(
        &self,
        of: Id<ChannelMarker>,
        message: Id<MessageMarker>,
        outcome: &str,
    ) -> Result<(), Failure> {
        // A message that the person deleted has no buttons.
        self.edit(of, message, &body::settled(outcome)).await.map(drop)
    }

    /// Replies to an incoming message. Its id makes the nonce of each part unique.
    async fn reply(&self, to: Id<ChannelMarker>, answered: u64, text: &str) -> Result<(), Failure> {
        for (part, body) in body::texts(text).into_iter().enumerate() {
            self.create(to, &body::once(body, &format!("{answered:x}.r{part}"))).await?;
        }
        Ok(())
    }
}

/// Returns whether a message was edited. `false`: it is gone.
fn is_edited(answer: Result<Value, Failure>) -> Result<bool, Failure> {
    match answer {
        Ok(_) => Ok(true),
        Err(failure) if failure.code == UNKNOWN_MESSAGE => Ok(false),
        Err(failure) => Err(failure),
    }
}
