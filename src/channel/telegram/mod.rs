//! Telegram: a private chat between one person and their bot.
//!
//! Messages are sent by the Bot API and received by long polling, so that no port is open. Telegram does not recognise a message that is
//! sent twice. So if the service is killed, the last message or part may be sent again. An answer that replaces a status message is safe,
//! since an edit can be repeated. Neither a status message nor an edit notifies the phone. So an answer that took long is a new message.

mod api;
mod html;
mod pairing;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

use super::permanent_failure::PermanentFailure;
use super::progress::{Style, interrupt};
use super::sent::last_part;
use super::split::{length, split};
use super::status::{self, EditableChannel, Statuses, Turn};
use super::terminal::plain;
use super::{Channel, Inbound, Outgoing, OutgoingButton, Progress, SendError, SentParts};
use crate::config::TelegramChannel;
use crate::definition::{DefinitionId, Urgency};
use api::{Api, Failure};
use html::{escaped, html};
pub use pairing::Pairing;

/// Maximum length of a message's text, in UTF-16 code units. The rest is for additions, such as the outcome of a button.
const LONGEST: usize = 4000;

/// Telegram's limit.
const MOST: usize = 4096;

/// Reaction to a received message.
const EYES: &str = "👀";

/// The method that changes the text of a message.
const EDIT: &str = "editMessageText";

/// Style of status messages: plain text.
const STYLE: Style = Style {
    longest: LONGEST,
    first: Duration::from_millis(200),
    // Telegram takes about one edit a second.
    pause: Duration::from_secs(1),
    // Telegram shows "is typing" for five seconds.
    typing: Duration::from_secs(4),
    literal: str::to_owned,
    call: |label| format!("· {label}"),
    refused: |label, reason| format!("✗ {label}: {reason}"),
    status: |doing| format!("… {doing}"),
};

/// The Telegram channel.
pub struct Telegram {
    inner: Arc<Inner>,
}

struct Inner {
    api: Option<Api>,
    /// Id of the person. The private chat with the bot has the same id.
    owner: Option<i64>,
    statuses: Statuses,
    /// The reason why the channel cannot work again, if so.
    lost: PermanentFailure,
    /// Slots for messages whose files are fetched.
    fetches: Semaphore,
}

/// The reason why a channel without a token delivers nothing.
pub(super) const NO_TOKEN: &str = "`TELEGRAM_TOKEN` is not set: put the bot's token into .env";

/// The reason why a channel without an owner delivers nothing.
pub(super) const NO_OWNER: &str =
    "the channel has no `owner`: write `/start` to the bot, which answers with your number";

/// Maximum number of messages whose files are fetched at once.
const MAX_FETCHES: usize = 4;

impl Telegram {
    /// Creates the channel. Nothing is sent before the first message.
    #[must_use]
    pub fn new(settings: &TelegramChannel, token: Option<String>) -> Self {
        let api = token.map(|token| Api::new(settings.api.as_deref(), token));
        let lost = api.is_none().then(|| NO_TOKEN.to_owned());
        let (statuses, lost) = (Statuses::default(), PermanentFailure::new(lost));
        let fetches = Semaphore::new(MAX_FETCHES);
        Self { inner: Arc::new(Inner { api, owner: settings.owner, statuses, lost, fetches }) }
    }

    /// Checks the token. Returns the name of its bot.
    pub(super) async fn probe(&self) -> Result<String, SendError> {
        let (api, _) = self.inner.chat()?;
        let bot = api.call("getMe", json!({})).await?;
        let name = bot["username"].as_str().map(|name| format!(" for @{}", plain(name))).unwrap_or_default();
        Ok(format!("Telegram takes the token{name}"))
    }
}

#[async_trait]
impl Channel for Telegram {
    async fn send(&self, message: &Outgoing, sent: &mut SentParts) -> Result<Option<String>, SendError> {
        self.inner.lost.check()?;
        let (api, chat) = self.inner.chat()?;
        let parts = split(&text(message), LONGEST);
        for (place, part) in parts.iter().enumerate().skip(sent.count()) {
            let is_last = place + 1 == parts.len();
            let mut body = body(chat);
            if is_last && !message.buttons.is_empty() {
                body["reply_markup"] = keyboard(&message.buttons);
            }
            if let Some(answered) = message.reply_to.as_deref().filter(|_| place == 0).and_then(number_of) {
                body["reply_parameters"] = reply_to(answered);
            }
            if message.urgency == Urgency::Low {
                body["disable_notification"] = true.into();
            }
            let id = match message.answers.as_ref().filter(|_| place == 0) {
                Some(turn) => self.inner.answer(api, turn, sent.status(), part, body).await?,
                None => create(api, part, body).await?,
            };
            sent.add(id.to_string(), is_last).await?;
        }
        Ok((sent.count() > 0).then(|| sent.name()))
    }

    async fn listen(&self, inbound: Inbound) {
        if let Some(api) = &self.inner.api {
            let why = updates::listen(api, &self.inner, inbound).await;
            tracing::error!(%why, "Telegram is not listened to any more");
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

    async fn remove_buttons(&self, external: &str, message: &Outgoing, outcome: &str) -> Result<(), SendError> {
        // The id belongs to a message of another channel.
        let Some(id) = last_part::<i64>(external) else { return Ok(()) };
        let (api, chat) = self.inner.chat()?;
        remove_buttons(api, chat, id, Some(message), outcome).await.map_err(SendError::from)
    }

    async fn remove_status(&self, turn: &DefinitionId, external: &str) -> Result<(), SendError> {
        self.inner.lost.check()?;
        status::remove_status(&*self.inner, turn, external).await
    }
}

impl Inner {
    fn chat(&self) -> Result<(&Api, i64), SendError> {
        let missing = |why: &str| SendError { why: why.to_owned(), retryable: false };
        let api = self.api.as_ref().ok_or_else(|| missing(NO_TOKEN))?;
        let owner = self.owner.ok_or_else(|| missing(NO_OWNER))?;
        Ok((api, owner))
    }

    /// Sends the first part of an answer, in place of the turn's status message. `recorded` is that message's id in the journal.
    async fn answer(
        &self,
        api: &Api,
        turn: &DefinitionId,
        recorded: Option<&str>,
        part: &str,
        body: Value,
    ) -> Result<i64, Failure> {
        let mut status = self.statuses.close(turn, recorded).await;
        let shown = status.message.as_deref().and_then(number_of);
        let answered = match shown {
            // An edit does not notify the phone.
            Some(shown) if status.is_recent() && edit_to(api, shown, part, body.clone()).await? => shown,
            _ => create(api, part, body).await?,
        };
        self.statuses.closed(turn, &mut status);
        if let Some(shown) = shown.filter(|shown| *shown != answered) {
            unimportant(self.remove(&shown.to_string()).await);
        }
        Ok(answered)
    }

    /// Sets or removes the bot's reaction to a message of the person.
    async fn react(&self, message: Option<i64>, emoji: Option<&str>) {
        let (Ok((api, chat)), Some(message)) = (self.chat(), message) else { return };
        let reaction: Vec<Value> = emoji.iter().map(|emoji| json!({ "type": "emoji", "emoji": emoji })).collect();
        let body = json!({ "chat_id": chat, "message_id": message, "reaction": reaction });
        unimportant(api.call("setMessageReaction", body).await);
    }

    /// Shows a turn until it ends. Marks the message that it answers until then.
    async fn show(&self, turn: Turn, inbound: &Inbound, progress: UnboundedReceiver<Progress>) {
        let answered = turn.answers.as_deref().and_then(number_of);
        self.react(answered, Some(EYES)).await;
        status::follow(self, inbound, turn, progress, self.react(answered, None)).await;
    }
}

#[async_trait]
impl EditableChannel for Inner {
    fn style(&self) -> &'static Style {
        &STYLE
    }

    fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    async fn show_typing(&self) {
        if let Ok((api, chat)) = self.chat() {
            unimportant(api.call("sendChatAction", json!({ "chat_id": chat, "action": "typing" })).await);
        }
    }

    async fn post(&self, turn: &Turn, text: &str) -> Result<String, SendError> {
        let (api, chat) = self.chat()?;
        let mut body = body(chat);
        body["text"] = text.into();
        body["reply_markup"] = keyboard(&[interrupt(&turn.id)]);
        body["disable_notification"] = true.into();
        if let Some(answered) = turn.answers.as_deref().and_then(number_of) {
            body["reply_parameters"] = reply_to(answered);
        }
        Ok(message_id(&api.call("sendMessage", body).await?)?.to_string())
    }

    async fn change(&self, message: &str, turn: Option<&DefinitionId>, text: &str) -> Result<bool, SendError> {
        let (api, chat) = self.chat()?;
        let mut body = body(chat);
        body["message_id"] = number_of(message).into();
        body["text"] = text.into();
        let edited = match turn {
            // A newer edit follows, and the answer waits for this one.
            Some(turn) => {
                body["reply_markup"] = keyboard(&[interrupt(turn)]);
                api.call_once(EDIT, body).await
            }
            None => api.call(EDIT, body).await,
        };
        Ok(is_edited(edited)?)
    }

    async fn remove(&self, message: &str) -> Result<(), SendError> {
        let (api, chat) = self.chat()?;
        let body = json!({ "chat_id": chat, "message_id": number_of(message) });
        api.call("deleteMessage", body).await.map(drop).map_err(SendError::from)
    }
}

/// Fields of every message and edit. Link previews are off, so that Telegram fetches no address from a text.
fn body(chat: i64) -> Value {
    json!({ "chat_id": chat, "link_preview_options": { "is_disabled": true } })
}

/// Reply reference. The person may have deleted the message.
pub(super) fn reply_to(answered: i64) -> Value {
    json!({ "message_id": answered, "allow_sending_without_reply": true })
}

/// Parses the id of a message, with or without the bot's id before it.
fn number_of(name: &str) -> Option<i64> {
    name.rsplit('x').next()?.parse().ok()
}

fn format_as_html(body: &mut Value, text: &str) {
    body["text"] = html(text).into();
    body["parse_mode"] = "HTML".into();
}

/// Sends a new message as HTML, or as plain text if Telegram rejects the HTML.
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
    message_id(&sent)
}

fn message_id(sent: &Value) -> Result<i64, Failure> {
    sent["message_id"].as_i64().ok_or_else(|| Failure {
        why: "Telegram does not say which message it is".into(),
        code: None,
        retry_after: None,
    })
}

/// Edits a message. Returns `false` if the message is gone or Telegram rejects its new content.
async fn edit(api: &Api, body: Value) -> Result<bool, Failure> {
    is_edited(api.call(EDIT, body).await)
}

fn is_edited(answer: Result<Value, Failure>) -> Result<bool, Failure> {
    match answer {
        Ok(_) => Ok(true),
        // The message has this content already.
        Err(failure) if failure.why.contains("message is not modified") => Ok(true),
        Err(failure @ Failure { code: Some(400), .. }) => {
            tracing::debug!(%failure, "a message could not be changed");
            Ok(false)
        }
        Err(failure) => Err(failure),
    }
}

/// Replaces a status message by the answer. Returns `false` if a new message must be sent instead, because the message is gone, Telegram
/// rejects its new content, or too many edits were made.
async fn edit_to(api: &Api, message: i64, text: &str, mut body: Value) -> Result<bool, Failure> {
    body["message_id"] = message.into();
    // An edit cannot change the reply reference.
    body.as_object_mut().map(|body| body.remove("reply_parameters"));
    format_as_html(&mut body, text);
    match is_edited(api.call_once(EDIT, body).await) {
        Err(Failure { code: Some(429), .. }) => Ok(false),
        edited => edited,
    }
}

/// Replaces a message's buttons by their outcome. `sent` is the message as it was sent. Telegram's copy has lost its formatting marks, so
/// its data would be parsed as formatting.
async fn remove_buttons(
    api: &Api,
    chat: i64,
    message: i64,
    sent: Option<&Outgoing>,
    outcome: &str,
) -> Result<(), Failure> {
    if let Some(last) = sent.and_then(|sent| split(&text(sent), LONGEST).pop()) {
        let room = MOST.saturating_sub(length(&last) + 2);
        let outcome: String = outcome.chars().take(room / 2).collect();
        let mut body = body(chat);
        body["message_id"] = message.into();
        body["text"] = format!("{}\n\n<i>{}</i>", html(&last), escaped(&outcome)).into();
        body["parse_mode"] = "HTML".into();
        if edit(api, body).await? {
            return Ok(());
        }
    }
    // Remove at least the buttons.
    let body = json!({ "chat_id": chat, "message_id": message });
    is_edited(api.call("editMessageReplyMarkup", body).await).map(drop)
}

/// Returns the text of a message without the labels of its buttons, which are shown as buttons.
fn text(message: &Outgoing) -> String {
    let labels: Vec<String> = message.buttons.iter().map(|button| format!("[{}]", button.label)).collect();
    // The text does not name a button that the service has added.
    let named = |count| message.text.rsplit_once(&format!("\n{}\n", labels[..count].join(" ")));
    match (1..=labels.len()).rev().find_map(named) {
        Some((before, after)) => format!("{before}\n{after}"),
        None => message.text.clone(),
    }
}

fn keyboard(buttons: &[OutgoingButton]) -> Value {
    let rows: Vec<Value> =
        buttons.iter().map(|button| json!({ "text": button.label, "callback_data": button.id })).collect();
    // Two in a row: the labels are short, and a phone is narrow.
    let rows: Vec<&[Value]> = rows.chunks(2).collect();
    json!({ "inline_keyboard": rows })
}

/// Logs the failure of a decoration.
fn unimportant<T, E: std::fmt::Display>(done: Result<T, E>) {
    if let Err(failure) = done {
        tracing::debug!(%failure, "something that decorates was not shown on Telegram");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::progress::Seen;

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
        assert!(!seen.take(Progress::Ended { completed: true }));
    }
}
