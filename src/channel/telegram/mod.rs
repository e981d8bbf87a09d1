//! Telegram: a private chat of one person with a bot of theirs.
//!
//! Messages go out by the Bot API, and what the person says comes in by long polling, so that no port is open. Telegram has no
//! mark by which a message that is sent twice is known: one that was sent when the service was killed may come again.

mod api;
mod html;
mod pairing;
mod updates;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval, sleep_until};

use super::lost::Lost;
use super::progress::{Seen, Style, interrupt};
use super::terminal::plain;
use super::{Channel, Ear, NotSent, Outgoing, OutgoingButton, Progress, last_part, name_of_parts};
use crate::config::TelegramChannel;
use crate::definition::DefinitionId;
use api::{Api, Failure};
use html::{escaped, html};
pub use pairing::Pairing;

/// The longest text of a message, in units of UTF-16. A little is left for what HTML adds nothing to, such as a note.
const LONGEST: usize = 4000;

/// The reaction to a message that was seen.
const EYES: &str = "👀";

/// "is typing" is shown for five seconds.
const TYPING: Duration = Duration::from_secs(4);

/// How a turn is shown while it goes: as plain text.
const STYLE: Style = Style {
    longest: LONGEST,
    first: Duration::from_millis(300),
    pause: Duration::from_secs(1),
    literal: str::to_owned,
    call: |label| format!("· {label}"),
    refused: |label, reason| format!("✗ {label}: {reason}"),
    status: |doing, seconds| format!("… {doing}, {seconds} s"),
};

/// The channel.
pub struct Telegram {
    inner: Arc<Inner>,
}

struct Inner {
    api: Option<Api>,
    /// The person, whose private chat with the bot has the same number.
    owner: Option<i64>,
    /// Messages that show turns that go.
    shown: Mutex<HashMap<DefinitionId, i64>>,
    /// Parts of messages that were sent, where a later part failed: by the message's number.
    sent: Mutex<HashMap<i64, Vec<i64>>>,
    /// Why the channel will not work again, once that is so.
    lost: Lost,
}

impl Telegram {
    /// Nothing is sent before the first message.
    #[must_use]
    pub fn new(settings: &TelegramChannel, token: Option<String>) -> Self {
        let api = token.map(|token| Api::new(settings.api.as_deref(), token));
        let lost = api.is_none().then(|| "`TELEGRAM_TOKEN` is not set: put the bot's token into .env".to_owned());
        let (shown, sent, lost) = (Mutex::default(), Mutex::default(), Lost::new(lost));
        Self { inner: Arc::new(Inner { api, owner: settings.owner, shown, sent, lost }) }
    }

    /// Asks Telegram whose the token is.
    pub(super) async fn probe(&self) -> Result<String, NotSent> {
        let (api, _) = self.inner.chat()?;
        let bot = api.call("getMe", json!({})).await?;
        let name = bot["username"].as_str().map(|name| format!(" for @{}", plain(name))).unwrap_or_default();
        Ok(format!("Telegram takes the token{name}"))
    }
}

#[async_trait]
impl Channel for Telegram {
    async fn send(&self, message: &Outgoing) -> Result<Option<String>, NotSent> {
        self.inner.lost.check()?;
        let (api, chat) = self.inner.chat()?;
        let parts = super::split::split(&message.text, LONGEST);
        let mut sent = lock(&self.inner.sent).remove(&message.number).unwrap_or_default();
        for (place, part) in parts.iter().enumerate().skip(sent.len()) {
            let is_last = place + 1 == parts.len();
            let mut body = body(chat);
            if is_last && !message.buttons.is_empty() {
                body["reply_markup"] = keyboard(&message.buttons);
            }
            if let Some(answered) = message.reply_to.as_deref().filter(|_| place == 0).and_then(number_of) {
                body["reply_parameters"] = reply_to(answered);
            }
            let created = match message.job.as_ref().filter(|_| place == 0) {
                Some(job) => self.inner.answer(api, job, part, body).await,
                None => create(api, part, body).await,
            };
            match created.map_err(NotSent::from) {
                Ok(id) => sent.push(id),
                Err(failure) => {
                    if failure.again {
                        lock(&self.inner.sent).insert(message.number, sent);
                    }
                    return Err(failure);
                }
            }
        }
        Ok((!sent.is_empty()).then(|| name_of_parts(&sent)))
    }

    async fn listen(&self, ear: Ear) {
        if let Some(api) = &self.inner.api {
            let why = updates::listen(api, &self.inner, ear).await;
            tracing::error!(%why, "Telegram is not listened to any more");
            self.inner.lost.set(why);
        }
        std::future::pending().await
    }

    async fn lost(&self) -> String {
        self.inner.lost.until().await
    }

    async fn settle(&self, external: &str, message: &Outgoing, outcome: &str) -> Result<(), NotSent> {
        // The id of a message of another channel's.
        let Some(id) = last_part::<i64>(external) else { return Ok(()) };
        let (api, chat) = self.inner.chat()?;
        settle(api, chat, id, &message.text, outcome).await.map_err(NotSent::from)
    }
}

impl Inner {
    fn chat(&self) -> Result<(&Api, i64), NotSent> {
        let missing = |why: &str| NotSent { why: why.to_owned(), again: false };
        let api = self.api.as_ref().ok_or_else(|| missing("`TELEGRAM_TOKEN` is not set"))?;
        let owner = self.owner.ok_or_else(|| {
            missing("the channel has no `owner`: write `/start` to the bot, which answers with your number")
        })?;
        Ok((api, owner))
    }

    /// Sends the first part of a message: in the place of what showed its turn, if something did.
    async fn answer(&self, api: &Api, job: &DefinitionId, part: &str, body: Value) -> Result<i64, Failure> {
        let Some(shown) = lock(&self.shown).remove(job) else { return create(api, part, body).await };
        if let Some(id) = edit_to(api, shown, part, body.clone()).await {
            return Ok(id);
        }
        let chat = body["chat_id"].clone();
        let created = create(api, part, body).await;
        match &created {
            Ok(_) => unimportant(api.call("deleteMessage", json!({ "chat_id": chat, "message_id": shown })).await),
            Err(_) => _ = lock(&self.shown).insert(job.clone(), shown),
        }
        created
    }

    /// Shows on a message of the person's that it was seen, or no more.
    async fn react(&self, message: Option<i64>, emoji: Option<&str>) {
        let (Ok((api, chat)), Some(message)) = (self.chat(), message) else { return };
        let reaction: Vec<Value> = emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect();
        let body = json!({ "chat_id": chat, "message_id": message, "reaction": reaction });
        unimportant(api.call("setMessageReaction", body).await);
    }

    /// Shows a turn until it is over, and that the message which it answers was seen.
    async fn show(
        self: Arc<Self>,
        answered: Option<i64>,
        turn: DefinitionId,
        mut progress: UnboundedReceiver<Progress>,
    ) {
        let Ok((api, chat)) = self.chat() else { return };
        self.react(answered, Some(EYES)).await;
        let began = Instant::now();
        let (mut seen, mut last) = (Seen::new(&STYLE), String::new());
        let mut typing = interval(TYPING);
        loop {
            tokio::select! {
                heard = progress.recv() => if !heard.is_some_and(|progress| seen.take(progress)) { break },
                _ = typing.tick() => {
                    unimportant(api.call("sendChatAction", json!({ "chat_id": chat, "action": "typing" })).await);
                }
                () = sleep_until(seen.next()) => {
                    let text = seen.rendered(began.elapsed());
                    if text != last {
                        self.update(api, answered, &turn, &text).await;
                        last = text;
                    }
                    seen.shown();
                }
            }
        }
        self.react(answered, None).await;
        // An answer that goes elsewhere leaves nothing behind.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let left = lock(&self.shown).remove(&turn);
        if let Some(message) = left {
            unimportant(api.call("deleteMessage", json!({ "chat_id": chat, "message_id": message })).await);
        }
    }

    async fn update(&self, api: &Api, answered: Option<i64>, turn: &DefinitionId, text: &str) {
        let Ok((_, chat)) = self.chat() else { return };
        let shown = lock(&self.shown).get(turn).copied();
        let mut body = body(chat);
        body["text"] = text.into();
        body["reply_markup"] = keyboard(&[interrupt(turn)]);
        match shown {
            Some(message) => {
                body["message_id"] = message.into();
                unimportant(api.call("editMessageText", body).await);
            }
            None => {
                body["disable_notification"] = true.into();
                if let Some(answered) = answered {
                    body["reply_parameters"] = reply_to(answered);
                }
                if let Ok(sent) = api.call("sendMessage", body).await
                    && let Some(id) = sent["message_id"].as_i64()
                {
                    lock(&self.shown).insert(turn.clone(), id);
                }
            }
        }
    }
}

/// What every message and every edit has: no address that somebody else has written is fetched.
fn body(chat: i64) -> Value {
    json!({ "chat_id": chat, "link_preview_options": { "is_disabled": true } })
}

/// A message that answers one of the person's, which they may have removed.
fn reply_to(answered: i64) -> Value {
    json!({ "message_id": answered, "allow_sending_without_reply": true })
}

/// The number of a message, where the bot's own stands before it.
fn number_of(name: &str) -> Option<i64> {
    name.rsplit('x').next()?.parse().ok()
}

fn format_as_html(body: &mut Value, text: &str) {
    body["text"] = html(text).into();
    body["parse_mode"] = "HTML".into();
}

/// Sends a new message: as HTML, and as it is written where Telegram does not read that.
async fn create(api: &Api, text: &str, mut body: Value) -> Result<i64, Failure> {
    format_as_html(&mut body, text);
    let sent = match api.call("sendMessage", body.clone()).await {
        Err(Failure { code: Some(400), .. }) => {
            body["text"] = text.into();
            body.as_object_mut().map(|body| body.remove("parse_mode"));
            api.call("sendMessage", body).await?
        }
        other => other?,
    };
    sent["message_id"].as_i64().ok_or_else(|| Failure {
        why: "Telegram does not say which message it is".into(),
        code: None,
        retry_after: None,
    })
}

/// Makes a message that shows a turn the answer. `None`: it cannot be, and a new one is to be sent.
async fn edit_to(api: &Api, message: i64, text: &str, mut body: Value) -> Option<i64> {
    body["message_id"] = message.into();
    // What it answers stays as it is.
    body.as_object_mut().map(|body| body.remove("reply_parameters"));
    format_as_html(&mut body, text);
    match api.call("editMessageText", body).await {
        Ok(_) => Some(message),
        Err(failure) => {
            tracing::debug!(%failure, "the message that showed a turn could not become its answer");
            None
        }
    }
}

/// Shows what came of a message's buttons in their place.
async fn settle(api: &Api, chat: i64, message: i64, text: &str, outcome: &str) -> Result<(), Failure> {
    let text = super::split::split(text, LONGEST / 2).pop().unwrap_or_default();
    let outcome: String = outcome.chars().take(LONGEST / 4).collect();
    let mut body = body(chat);
    body["message_id"] = message.into();
    body["text"] = format!("{}\n\n<i>{}</i>", html(&text), escaped(&outcome)).into();
    body["parse_mode"] = "HTML".into();
    match api.call("editMessageText", body).await {
        // It says so already.
        Err(failure) if failure.why.contains("message is not modified") => Ok(()),
        other => other.map(drop),
    }
}

fn keyboard(buttons: &[OutgoingButton]) -> Value {
    let rows: Vec<Value> =
        buttons.iter().map(|button| json!({ "text": button.label, "callback_data": button.id })).collect();
    // Two a row: their labels are short, and a phone is narrow.
    let rows: Vec<&[Value]> = rows.chunks(2).collect();
    json!({ "inline_keyboard": rows })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What only decorates.
fn unimportant<T>(done: Result<T, Failure>) {
    if let Err(failure) = done {
        tracing::debug!(%failure, "something that decorates was not shown on Telegram");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_seen_while_it_goes() {
        let mut seen = Seen::new(&STYLE);
        assert_eq!(seen.rendered(Duration::ZERO), "… Thinking, 0 s");
        for progress in [
            Progress::Text("Let me look.".into()),
            Progress::Call { label: "Read notes/a.md".into() },
            Progress::Call { label: "Bash git push".into() },
            Progress::Refused { label: "Bash git push".into(), reason: "no rule allows it".into() },
            Progress::Text("It is green.".into()),
        ] {
            assert!(seen.take(progress));
        }
        assert_eq!(
            seen.rendered(Duration::from_secs(2)),
            "· Read notes/a.md\n✗ Bash git push: no rule allows it\nIt is green.\n… Writing, 2 s"
        );
        assert!(!seen.take(Progress::Ended));
    }
}
