//! Messages from the owner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

use super::incoming::{self, Message};
use super::message::MessageHandler;
use super::rest::Failure;
use super::{CachedIds, Inner};
use crate::channel::Inbound;
use crate::channel::status::{self, Turn};

/// Reaction to a message that is being answered, as text and percent-encoded.
const EYES: &str = "👀";
const EYES_IN_PATH: &str = "%F0%9F%91%80";

/// Log text for data that cannot be read.
pub(super) const NOT_UNDERSTOOD: &str = "something that Discord said was not understood, and is left out";

/// A message id that is older than all others.
const FIRST: Id<MessageMarker> = Id::new(1);

/// Maximum number of messages per request. Discord's limit.
const PAGE: usize = 100;

/// Number of recent messages that are remembered, since the gateway may deliver messages that were also fetched.
const RECENT: usize = 1000;

/// Wait before failed requests for messages are repeated.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Types of a person's messages: ordinary and reply.
const KINDS: [u8; 2] = [0, 19];

/// Incoming events of the gateway, in order.
pub(super) enum Incoming {
    /// Messages may have been missed while no connection was open.
    Gap,
    /// A message, and the task that adds the reaction to it.
    Message(Box<Message>, JoinHandle<()>),
}

impl Inner {
    /// Passes messages to the service in order, except that a message with slow files may come later.
    pub(super) async fn forward_incoming(
        self: Arc<Self>,
        known: CachedIds,
        inbound: Inbound,
        mut incoming: UnboundedReceiver<Incoming>,
    ) {
        let handler = MessageHandler::new(Arc::clone(&self), known, inbound.clone());
        let (tasks, recent) = (JoinSet::new(), VecDeque::new());
        let mut hearing = Listener { inner: self, known, inbound, handler, tasks, recent };
        let mut is_first = true;
        while let Some(next) = incoming.recv().await {
            match next {
                Incoming::Gap => {
                    if std::mem::take(&mut is_first) {
                        hearing.tidy().await;
                        hearing.resume().await;
                    }
                    hearing.catch_up().await;
                }
                // A message that was also fetched is left out.
                Incoming::Message(message, eyes) if hearing.is_new(message.id) => hearing.handle(*message, eyes).await,
                Incoming::Message(..) => {}
            }
            while hearing.tasks.try_join_next().is_some() {}
        }
    }

    /// Whether the message is from a person to the bot.
    pub(super) fn is_from_person(message: &Message) -> bool {
        message.guild_id.is_none() && !message.author.bot && KINDS.contains(&message.kind)
    }

    /// Adds the reaction to a message.
    pub(super) fn add_reaction(
        self: &Arc<Self>,
        channel: Id<ChannelMarker>,
        message: Id<MessageMarker>,
    ) -> JoinHandle<()> {
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let path = reaction(channel, message);
            if let Err(failure) = inner.rest.send(Method::Put, path, &Value::Null).await {
                tracing::debug!(%failure, "a message got no reaction");
            }
        })
    }

    pub(super) async fn remove_reaction(
        &self,
        channel: Id<ChannelMarker>,
        message: Id<MessageMarker>,
        eyes: JoinHandle<()>,
    ) {
        // Remove the reaction even if that task panicked.
        let _looked = eyes.await;
        if let Err(failure) = self.rest.delete(reaction(channel, message)).await {
            tracing::debug!(%failure, "a reaction was not removed");
        }
    }

    /// Returns messages of a conversation, oldest first, and their number including unreadable ones.
    pub(super) async fn messages(&self, of: Id<ChannelMarker>, which: &str) -> Result<(Vec<Message>, usize), Failure> {
        let page = self.rest.get(format!("channels/{of}/messages?{which}")).await?;
        let page: Vec<Value> = incoming::read("messages", page)?;
        let count = page.len();
        let read =
            |value| serde_json::from_value(value).inspect_err(|error| tracing::warn!(%error, "{NOT_UNDERSTOOD}"));
        let mut messages: Vec<Message> = page.into_iter().filter_map(|value| read(value).ok()).collect();
        messages.sort_by_key(|message| message.id);
        Ok((messages, count))
    }
}

/// The task that passes messages to the service.
struct Listener {
    inner: Arc<Inner>,
    known: CachedIds,
    inbound: Inbound,
    handler: MessageHandler,
    /// Running turns, pending replies, and messages whose files are fetched.
    tasks: JoinSet<()>,
    /// Ids of recent messages.
    recent: VecDeque<Id<MessageMarker>>,
}

impl Listener {
    async fn handle(&mut self, message: Message, eyes: JoinHandle<()>) {
        let (id, is_owners) = (message.id, self.handler.is_owners(&message));
        if is_owners && !message.attachments.is_empty() && self.handler.store(&message).await {
            self.inbound.set_cursor(id).await;
            return self.fetch_aside(message, eyes).await;
        }
        let received = self.handler.receive(message).await;
        if is_owners {
            self.inbound.set_cursor(id).await;
        }
        self.tasks.spawn(self.handler.clone().respond(received, eyes));
    }

    /// Handles a stored message in a task, so that slow files delay no later message. If they are fast, the messages stay in order.
    async fn fetch_aside(&mut self, message: Message, eyes: JoinHandle<()>) {
        let (waiting, received) = oneshot::channel();
        self.tasks.spawn(self.handler.clone().handle_stored(message, eyes, waiting));
        let _in_time = timeout(self.inner.patience, received).await;
    }

    /// Remembers a message. Returns whether it is new to this process.
    fn is_new(&mut self, id: Id<MessageMarker>) -> bool {
        if self.recent.contains(&id) {
            return false;
        }
        self.recent.push_back(id);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        true
    }

    /// Continues what an earlier process has begun: turns that are shown, and messages whose files are fetched.
    async fn resume(&mut self) {
        let of = self.known.dm;
        for turn in Turn::left(&self.inbound).await {
            let (inner, inbound) = (Arc::clone(&self.inner), self.inbound.clone());
            let progress = inbound.follow(turn.id.clone());
            self.tasks.spawn(async move {
                let answered = turn.answers.as_deref().and_then(|answered| answered.parse().ok());
                let eyes = answered.map(|message| (message, inner.add_reaction(of, message)));
                let over = async {
                    if let Some((message, eyes)) = eyes {
                        inner.remove_reaction(of, message, eyes).await;
                    }
                };
                status::follow(&*inner, &inbound, turn, progress, over).await;
            });
        }
        for message in self.handler.stored().await {
            // A service that was killed before it moved the cursor fetches the message again.
            self.is_new(message.id);
            let message = self.handler.refreshed(message).await;
            let eyes = self.inner.add_reaction(message.channel_id, message.id);
            self.fetch_aside(message, eyes).await;
        }
    }

    /// Fetches the messages that the owner wrote while no connection was open.
    async fn catch_up(&mut self) {
        let last = self.inbound.cursor().await.and_then(|last| last.parse::<Id<MessageMarker>>().ok());
        let Some(mut last) = last else {
            // On the first start earlier messages are ignored. Only later ones are handled.
            let Some((messages, count)) = self.fetched("limit=20").await else { return };
            let newest = messages.last().map(|message| message.id).or((count == 0).then_some(FIRST));
            if let Some(newest) = newest {
                self.inbound.set_cursor(newest).await;
            }
            return;
        };
        loop {
            let Some((messages, count)) = self.fetched(&format!("after={last}&limit={PAGE}")).await else { return };
            last = messages.last().map_or(last, |message| message.id);
            let owner = self.known.owner;
            for message in messages.into_iter().filter(|one| Inner::is_from_person(one) && one.author.id == owner) {
                if !self.is_new(message.id) {
                    continue;
                }
                let eyes = self.inner.add_reaction(message.channel_id, message.id);
                self.handle(message, eyes).await;
            }
            if count < PAGE {
                return;
            }
        }
    }

    /// Fetches messages of the conversation. Retries until it succeeds. Returns `None` after a permanent failure.
    async fn fetched(&self, which: &str) -> Option<(Vec<Message>, usize)> {
        loop {
            match self.inner.messages(self.known.dm, which).await {
                Ok(fetched) => return Some(fetched),
                Err(failure) if failure.retryable => {
                    tracing::warn!(%failure, "what was written while nobody was connected cannot be fetched; it is tried again");
                    sleep(RETRY_DELAY).await;
                }
                Err(failure) => {
                    tracing::error!(%failure, "what was written while nobody was connected cannot be fetched");
                    return None;
                }
            }
        }
    }

    /// Removes reactions left over from a service that was killed.
    async fn tidy(&self) {
        let last = self.inbound.cursor().await.and_then(|last| last.parse::<u64>().ok());
        let Some(next) = last.and_then(|last| last.checked_add(1)) else { return };
        let fetched = self.inner.messages(self.known.dm, &format!("before={next}&limit=20")).await;
        let Ok((messages, _)) = fetched else { return };
        for message in messages {
            let ours = |one: &incoming::Reaction| one.me && one.emoji.name.as_deref() == Some(EYES);
            if message.reactions.iter().any(ours) {
                // A failure leaves the reaction.
                let _removed = self.inner.rest.delete(reaction(self.known.dm, message.id)).await;
            }
        }
    }
}

fn reaction(channel: Id<ChannelMarker>, message: Id<MessageMarker>) -> String {
    format!("channels/{channel}/messages/{message}/reactions/{EYES_IN_PATH}/@me")
}
