//! Handles a message of a person: its files are fetched, the service receives it, and its turn or a reply is shown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

use super::incoming::Message;
use super::{CachedIds, Inner, attachments};
use crate::channel::incoming::STRANGER_REPLY;
use crate::channel::status::{self, Turn};
use crate::channel::{Inbound, IncomingEvent, IncomingMessage, Progress, Response};
use crate::definition::DefinitionId;

/// Time for which later messages wait for the files of a message.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of messages whose files are fetched at the same time.
const MAX_FETCHES: usize = 4;

/// Handles messages. Each message with files has a clone in a task of its own.
#[derive(Clone)]
pub(super) struct MessageHandler {
    pub(super) inner: Arc<Inner>,
    pub(super) known: CachedIds,
    pub(super) inbound: Inbound,
    fetches: Arc<Semaphore>,
}

/// A message that the service has received.
pub(super) struct Received {
    id: Id<MessageMarker>,
    channel: Id<ChannelMarker>,
    is_owners: bool,
    response: Response,
    turn: Option<(Turn, UnboundedReceiver<Progress>)>,
}

impl MessageHandler {
    pub(super) fn new(inner: Arc<Inner>, known: CachedIds, inbound: Inbound) -> Self {
        Self { inner, known, inbound, fetches: Arc::new(Semaphore::new(MAX_FETCHES)) }
    }

    pub(super) fn is_owners(&self, message: &Message) -> bool {
        message.author.id == self.known.owner
    }

    /// Passes a message to the service. Files of strangers are not fetched.
    pub(super) async fn receive(&self, message: Message) -> Received {
        let (id, channel, is_owners) = (message.id, message.channel_id, self.is_owners(&message));
        let (by, owner) = (message.author.id.to_string(), self.known.owner.to_string());
        let heard = if is_owners { to_incoming(message).await } else { IncomingMessage::default() };
        let response = self.inbound.receive(&by, Some(&owner), IncomingEvent::Message(heard)).await;
        let turn = match &response {
            Response::Turn(turn) => {
                let progress = self.inbound.follow(turn.clone());
                Some((Turn::begin(turn.clone(), Some(id.to_string()), &self.inbound).await, progress))
            }
            _ => None,
        };
        Received { id, channel, is_owners, response, turn }
    }

    /// Shows the turn of a message until its end, or replies to it. Then removes the reaction.
    pub(super) async fn respond(self, received: Received, eyes: JoinHandle<()>) {
        let Self { inner, inbound, .. } = self;
        let Received { id, channel, is_owners, response, turn } = received;
        if let Some((turn, progress)) = turn {
            return status::follow(&*inner, &inbound, turn, progress, inner.remove_reaction(channel, id, eyes)).await;
        }
        let told = match response {
            Response::Turn(_) | Response::Repeated | Response::Stranger { tell: false } => Ok(()),
            Response::Text(text) | Response::Done(text) | Response::Refused(text) | Response::Gone(text) => {
                inner.reply(channel, id.get(), &text).await
            }
            Response::Stranger { tell: true } => inner.reply(channel, id.get(), STRANGER_REPLY).await,
        };
        if let Err(failure) = told {
            tracing::warn!(%failure, "a message was not answered");
        }
        if is_owners {
            inner.remove_reaction(channel, id, eyes).await;
        }
    }

    /// Stores a message until the service has received it. Returns whether it was stored.
    pub(super) async fn store(&self, message: &Message) -> bool {
        match serde_json::to_string(message) {
            Ok(stored) => self.inbound.store(&message.id.to_string(), stored).await,
            Err(_) => false,
        }
    }

    /// Returns the stored messages of an earlier process, oldest first.
    pub(super) async fn stored(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for (name, stored) in self.inbound.stored().await {
            if DefinitionId::new(&name).is_turn() {
                continue;
            }
            match serde_json::from_str(&stored) {
                Ok(message) => messages.push(message),
                Err(_) => self.inbound.discard(&name).await,
            }
        }
        messages.sort_by_key(|message| message.id);
        messages
    }

    /// Handles a stored message. Handling it twice makes one turn. Drops `waiting` once the service has received it.
    pub(super) async fn handle_stored(self, message: Message, eyes: JoinHandle<()>, waiting: oneshot::Sender<()>) {
        let name = message.id.to_string();
        let slot = self.fetches.acquire().await;
        let received = self.receive(message).await;
        drop(slot);
        self.inbound.discard(&name).await;
        drop(waiting);
        self.respond(received, eyes).await;
    }

    /// Returns a stored message as it is now. The addresses of files work for a day only.
    pub(super) async fn refreshed(&self, message: Message) -> Message {
        let which = format!("after={}&limit=1", message.id.get() - 1);
        match self.inner.messages(self.known.dm, &which).await {
            Ok((now, _)) => now.into_iter().find(|one| one.id == message.id).unwrap_or(message),
            Err(_) => message,
        }
    }
}

/// Converts a message for the service.
async fn to_incoming(message: Message) -> IncomingMessage {
    let mut text = message.content;
    for sticker in &message.sticker_items {
        text.push_str(&format!("\n(a sticker: {})", sticker.name));
    }
    let answered = message.message_reference.filter(|reference| reference.kind == 0);
    let forwarded = message.message_snapshots.into_iter().map(|snapshot| snapshot.message.content);
    let quoted = message.referenced_message.map(|quoted| quoted.content).or(forwarded.into_iter().next());
    IncomingMessage {
        id: Some(message.id.to_string()),
        text: text.trim().to_owned(),
        reply_to: answered.and_then(|reference| reference.message_id).map(|id| id.to_string()),
        quoted: quoted.filter(|quoted| !quoted.is_empty()),
        files: attachments::fetch(message.attachments).await,
    }
}
