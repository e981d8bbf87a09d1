//! Status messages on Discord: a status message shows a turn's progress and then becomes its answer.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use async_trait::async_trait;
use serde_json::Value;
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

use super::progress::{STYLE, is_status};
use super::rest::{Failure, UNKNOWN_MESSAGE};
use super::{Inner, body};
use crate::channel::SendError;
use crate::channel::progress::Style;
use crate::channel::status::{EditableChannel, Statuses, Turn};
use crate::definition::DefinitionId;

#[async_trait]
impl EditableChannel for Inner {
    fn style(&self) -> &'static Style {
        &STYLE
    }

    fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    async fn show_typing(&self) {
        if let Ok(known) = self.known().await {
            // The typing indicator is optional.
            let _typing = self.rest.send(Method::Post, format!("channels/{}/typing", known.dm), &Value::Null).await;
        }
    }

    async fn post(&self, turn: &Turn, text: &str) -> Result<String, SendError> {
        let answered = turn.answers.as_deref().and_then(|answered| answered.parse().ok());
        let body = body::replying(body::status(text, Some(&turn.id)), answered);
        let dm = self.known().await?.dm;
        Ok(self.create(dm, &body::once(body, &nonce(&turn.id))).await?.to_string())
    }

    async fn change(&self, message: &str, turn: Option<&DefinitionId>, text: &str) -> Result<bool, SendError> {
        let Ok(message) = message.parse() else { return Ok(false) };
        let (dm, body) = (self.known().await?.dm, body::edit(body::status(text, turn)));
        Ok(match turn {
            Some(_) => self.edit_meanwhile(dm, message, &body).await?,
            None => self.edit(dm, message, &body).await?,
        })
    }

    async fn remove(&self, message: &str) -> Result<(), SendError> {
        let Ok(message) = message.parse::<Id<MessageMarker>>() else { return Ok(()) };
        let dm = self.known().await?.dm;
        match self.rest.delete(format!("channels/{dm}/messages/{message}")).await {
            Err(failure) if failure.code != UNKNOWN_MESSAGE => Err(failure.into()),
            _ => Ok(()),
        }
    }
}

impl Inner {
    /// Sends the first part of an answer, in place of the turn's status message. `recorded` is that message's id in the journal.
    pub(super) async fn answer(
        &self,
        dm: Id<ChannelMarker>,
        turn: &DefinitionId,
        recorded: Option<&str>,
        body: Value,
    ) -> Result<Id<MessageMarker>, Failure> {
        let mut status = self.statuses.close(turn, recorded).await;
        let answered = match status.message.as_deref().map(str::parse) {
            Some(Ok(message)) if self.edit(dm, message, &body::edit(without_nonce(&body))).await? => message,
            None if !status.is_known => self.answer_unseen(dm, turn, body).await?,
            _ => self.create(dm, &body).await?,
        };
        self.statuses.closed(turn, &mut status);
        Ok(answered)
    }

    /// Answers a turn that has no known status message. A previous process may have been killed after it posted the status message or this
    /// answer. For the nonce of the status message Discord then returns that message instead of creating a new one.
    async fn answer_unseen(
        &self,
        dm: Id<ChannelMarker>,
        turn: &DefinitionId,
        body: Value,
    ) -> Result<Id<MessageMarker>, Failure> {
        let found = self.created(dm, &body::once(body.clone(), &nonce(turn))).await?;
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let wanted = body["content"].as_str().unwrap_or_default();
        if bare(&found.content) == bare(wanted) {
            return Ok(found.id);
        }
        if is_status(&found.content) && self.edit(dm, found.id, &body::edit(without_nonce(&body))).await? {
            return Ok(found.id);
        }
        self.create(dm, &body).await
    }
}

/// Returns the nonce of a turn's status message.
fn nonce(turn: &DefinitionId) -> String {
    let mut hasher = DefaultHasher::new();
    turn.hash(&mut hasher);
    format!("turn.{:x}", hasher.finish())
}

/// Removes the fields that an edit may not contain.
fn without_nonce(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|key, _| !["nonce", "enforce_nonce", "message_reference"].contains(&key.as_str()));
    }
    body
}
