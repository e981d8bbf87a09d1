//! What the owner writes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

use super::incoming::{self, Message};
use super::rest::Failure;
use super::{Inner, Known, attachments};
use crate::channel::{Ear, Heard, Response, Said};

/// The reaction to a message that is being answered, and how it is written in an address.
const EYES: &str = "👀";
const EYES_IN_PATH: &str = "%F0%9F%91%80";

/// What a stranger is told.
pub(super) const TO_STRANGERS: &str = "This bot talks with its owner alone.";

/// How many messages are fetched at once: Discord's limit.
const PAGE: usize = 100;

/// Wait before messages are fetched again that could not be.
const AGAIN: Duration = Duration::from_secs(5);

/// A message that comes from a person, and an ordinary one or an answer.
const KINDS: [u8; 2] = [0, 19];

/// What the connection brings, in order.
pub(super) enum Incoming {
    /// There may be messages that came while nobody was connected.
    Gap,
    /// A message, and the task that shows that it has come.
    Message(Box<Message>, JoinHandle<()>),
}

impl Inner {
    /// Hands messages to the service, one after the other.
    pub(super) async fn hear(self: Arc<Self>, known: Known, ear: Ear, mut incoming: UnboundedReceiver<Incoming>) {
        let mut turns = JoinSet::new();
        let mut tidied = false;
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::Gap => {
                    if !tidied {
                        self.tidy(&known, &ear).await;
                        tidied = true;
                    }
                    self.catch_up(&known, &ear, &mut turns).await;
                }
                Incoming::Message(message, eyes) => self.hear_one(&known, &ear, *message, eyes, &mut turns).await,
            }
            while turns.try_join_next().is_some() {}
        }
    }

    /// Whether it is something that a person says to the bot.
    pub(super) fn is_said(message: &Message) -> bool {
        message.guild_id.is_none() && !message.author.bot && KINDS.contains(&message.kind)
    }

    /// Shows that a message has come.
    pub(super) fn look(self: &Arc<Self>, channel: Id<ChannelMarker>, message: Id<MessageMarker>) -> JoinHandle<()> {
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let path = reaction(channel, message);
            if let Err(failure) = inner.rest.send(Method::Put, path, &serde_json::Value::Null).await {
                tracing::debug!(%failure, "a message got no reaction");
            }
        })
    }

    async fn hear_one(
        self: &Arc<Self>,
        known: &Known,
        ear: &Ear,
        message: Message,
        eyes: JoinHandle<()>,
        turns: &mut JoinSet<()>,
    ) {
        let (id, channel, by) = (message.id, message.channel_id, message.author.id.to_string());
        let owner = known.owner.to_string();
        let heard = if by == owner { said(message).await } else { Said::default() };
        let response = ear.hear(&by, Some(&owner), Heard::Said(heard)).await;
        let (inner, ear, dm) = (Arc::clone(self), ear.clone(), known.dm);
        turns.spawn(async move {
            let mut over = None;
            let told = match response {
                Response::Turn(turn) => {
                    let progress = ear.follow(turn.clone());
                    inner.show(dm, turn.clone(), progress).await;
                    over = Some(turn);
                    Ok(())
                }
                Response::Text(text) | Response::Done(text) | Response::Refused(text) => {
                    inner.reply(channel, id.get(), &text).await
                }
                Response::Stranger { tell: true } => inner.reply(channel, id.get(), TO_STRANGERS).await,
                Response::Stranger { tell: false } => Ok(()),
            };
            if let Err(failure) = told {
                tracing::warn!(%failure, "a message was not answered");
            }
            if by == owner {
                inner.look_away(channel, id, eyes).await;
            }
            if let Some(turn) = over {
                inner.forget(&turn).await;
            }
        });
    }

    async fn look_away(&self, channel: Id<ChannelMarker>, message: Id<MessageMarker>, eyes: JoinHandle<()>) {
        // A panic of it is no reason to leave the reaction.
        let _looked = eyes.await;
        if let Err(failure) = self.rest.delete(reaction(channel, message)).await {
            tracing::debug!(%failure, "a reaction was not removed");
        }
    }

    /// Fetches what the owner has written while nobody was connected.
    async fn catch_up(self: &Arc<Self>, known: &Known, ear: &Ear, turns: &mut JoinSet<()>) {
        let last = ear.last_heard().await.and_then(|last| last.parse::<Id<MessageMarker>>().ok());
        let Some(mut last) = last else { return };
        loop {
            let fetched = self.messages(known.dm, &format!("after={last}&limit={PAGE}")).await;
            let mut messages = match fetched {
                Ok(messages) => messages,
                Err(failure) if failure.again => {
                    tracing::warn!(%failure, "what was written while nobody was connected cannot be fetched; it is tried again");
                    sleep(AGAIN).await;
                    continue;
                }
                Err(failure) => {
                    tracing::error!(%failure, "what was written while nobody was connected cannot be fetched");
                    return;
                }
            };
            let count = messages.len();
            messages.sort_by_key(|message| message.id);
            last = messages.last().map_or(last, |message| message.id);
            for message in messages.into_iter().filter(|one| Self::is_said(one) && one.author.id == known.owner) {
                let eyes = self.look(message.channel_id, message.id);
                self.hear_one(known, ear, message, eyes, turns).await;
            }
            if count < PAGE {
                return;
            }
        }
    }

    /// Removes the reactions that a service has left that was killed.
    async fn tidy(&self, known: &Known, ear: &Ear) {
        let last = ear.last_heard().await.and_then(|last| last.parse::<u64>().ok());
        let Some(next) = last.and_then(|last| last.checked_add(1)) else { return };
        let Ok(messages) = self.messages(known.dm, &format!("before={next}&limit=20")).await else { return };
        for message in messages {
            let ours = |one: &incoming::Reaction| one.me && one.emoji.name.as_deref() == Some(EYES);
            if message.reactions.iter().any(ours) {
                // It stays where that cannot be.
                let _removed = self.rest.delete(reaction(known.dm, message.id)).await;
            }
        }
    }

    async fn messages(&self, of: Id<ChannelMarker>, which: &str) -> Result<Vec<Message>, Failure> {
        incoming::read("messages", self.rest.get(format!("channels/{of}/messages?{which}")).await?)
    }
}

fn reaction(channel: Id<ChannelMarker>, message: Id<MessageMarker>) -> String {
    format!("channels/{channel}/messages/{message}/reactions/{EYES_IN_PATH}/@me")
}

/// A message as the service hears it.
async fn said(message: Message) -> Said {
    let mut text = message.content;
    for sticker in &message.sticker_items {
        text.push_str(&format!("\n(a sticker: {})", sticker.name));
    }
    let answered = message.message_reference.filter(|reference| reference.kind == 0);
    let forwarded = message.message_snapshots.into_iter().map(|snapshot| snapshot.message.content);
    let quoted = message.referenced_message.map(|quoted| quoted.content).or(forwarded.into_iter().next());
    Said {
        id: Some(message.id.to_string()),
        text: text.trim().to_owned(),
        reply_to: answered.and_then(|reference| reference.message_id).map(|id| id.to_string()),
        quoted: quoted.filter(|quoted| !quoted.is_empty()),
        files: attachments::fetch(message.attachments).await,
    }
}
