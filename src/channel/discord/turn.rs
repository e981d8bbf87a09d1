//! The message that shows how a turn goes, and becomes its answer.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval, sleep, sleep_until};
use twilight_http::request::Method;
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, MessageMarker};

use super::progress::{STYLE, is_status};
use super::rest::Failure;
use super::{Inner, body};
use crate::channel::Progress;
use crate::channel::progress::Seen;
use crate::definition::DefinitionId;

/// "is typing" is shown for ten seconds.
const TYPING: Duration = Duration::from_secs(8);

/// How long the answer of a turn that is over may take to come here. It may have gone to another channel.
const ANSWER: Duration = Duration::from_secs(600);

/// A turn that is to be shown.
pub(super) struct Turn {
    pub(super) id: DefinitionId,
    /// The message that it answers.
    pub(super) answers: Option<Id<MessageMarker>>,
}

/// The turns that are shown now, and those whose answer came before they were.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<DefinitionId, Arc<Shown>>>);

/// How one is shown. Locked while the message is changed.
#[derive(Default)]
struct Shown(tokio::sync::Mutex<State>);

#[derive(Default)]
struct State {
    message: Option<Id<MessageMarker>>,
    /// The answer has come: the message is changed no more.
    answered: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashMap<DefinitionId, Arc<Shown>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Shows a turn until it is over.
    pub(super) async fn show(&self, dm: Id<ChannelMarker>, turn: Turn, progress: UnboundedReceiver<Progress>) {
        let shown = Arc::clone(self.turns.lock().entry(turn.id.clone()).or_default());
        self.follow(dm, &turn, &shown, progress).await;
    }

    /// Forgets a turn that is over, if its answer does not come here.
    pub(super) async fn forget(&self, turn: &DefinitionId) {
        sleep(ANSWER).await;
        self.turns.lock().remove(turn);
    }

    async fn follow(
        &self,
        dm: Id<ChannelMarker>,
        turn: &Turn,
        shown: &Shown,
        mut progress: UnboundedReceiver<Progress>,
    ) {
        let began = Instant::now();
        let (mut seen, mut last) = (Seen::new(&STYLE), String::new());
        let mut typing = interval(TYPING);
        loop {
            tokio::select! {
                heard = progress.recv() => {
                    if !heard.is_some_and(|progress| seen.take(progress)) {
                        return;
                    }
                }
                _ = typing.tick() => {
                    // Whether it is seen to type is of no consequence.
                    let _typing = self.rest.send(Method::Post, format!("channels/{dm}/typing"), &Value::Null).await;
                }
                () = sleep_until(seen.next()) => {
                    let text = seen.rendered(began.elapsed());
                    if text != last {
                        match self.update(dm, turn, shown, &text).await {
                            Ok(true) => return,
                            Ok(false) => {}
                            Err(failure) => tracing::debug!(%failure, turn = %turn.id, "how a turn goes was not shown"),
                        }
                        last = text;
                    }
                    seen.shown();
                }
            }
        }
    }

    /// Shows a turn as it is now. Returns whether its answer has come: then there is nothing more to show.
    async fn update(&self, dm: Id<ChannelMarker>, turn: &Turn, shown: &Shown, text: &str) -> Result<bool, Failure> {
        let mut state = shown.0.lock().await;
        let body = body::status(text, &turn.id);
        match state.message {
            _ if state.answered => {}
            Some(message) => {
                if !self.edit(dm, message, &body).await? {
                    state.message = None;
                }
            }
            None => {
                let body = body::once(body::replying(body, turn.answers), &nonce(&turn.id));
                state.message = Some(self.create(dm, &body).await?);
            }
        }
        Ok(state.answered)
    }

    /// Sends the first part of a turn's answer: in the place of what showed the turn.
    pub(super) async fn answer(
        &self,
        dm: Id<ChannelMarker>,
        turn: &DefinitionId,
        body: Value,
    ) -> Result<Id<MessageMarker>, Failure> {
        let shown = self.turns.lock().get(turn).cloned();
        let Some(shown) = shown else {
            let answered = self.answer_unseen(dm, turn, body).await?;
            // Should it be shown only now, its answer has come already.
            self.turns.lock().insert(turn.clone(), Arc::new(Shown(State { message: None, answered: true }.into())));
            return Ok(answered);
        };
        let mut state = shown.0.lock().await;
        state.answered = true;
        if let Some(message) = state.message
            && self.edit(dm, message, &body::edit(without_nonce(&body))).await?
        {
            // What else the turn says is a message of its own.
            state.message = None;
            return Ok(message);
        }
        self.create(dm, &body).await
    }

    /// Nobody has shown the turn. The service may have been killed after it did, or after it sent this answer. Discord knows that by the nonce
    /// of the message that showed the turn, and gives it back instead of a new one.
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

/// The nonce of the message that shows a turn.
fn nonce(turn: &DefinitionId) -> String {
    let mut hasher = DefaultHasher::new();
    turn.hash(&mut hasher);
    format!("turn.{:x}", hasher.finish())
}

/// What an edit can say of it.
fn without_nonce(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|key, _| !["nonce", "enforce_nonce", "message_reference"].contains(&key.as_str()));
    }
    body
}
