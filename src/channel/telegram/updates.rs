//! Receives the person's messages and button presses by long polling.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::api::{Api, Failure, LARGEST_FILE, TOO_LARGE};
use super::{EYES, Inner, body, escaped, remove_buttons, reply_to, unimportant};
use crate::channel::backoff::{Backoff, MANY};
use crate::channel::commands::{COMMANDS, is_block};
use crate::channel::incoming::STRANGER_REPLY;
use crate::channel::split::{length, split};
use crate::channel::status::Turn;
use crate::channel::{Deaf, Inbound, IncomingEvent, IncomingMessage, ReceivedFile, Response};
use crate::definition::DefinitionId;

/// Maximum time for which the server holds an empty poll. A poll that takes 10 s more has stalled.
const POLL: Duration = Duration::from_secs(30);

/// Maximum number of updates in one answer. Update ids rise by one, and restart at a random number after a week without updates.
const MAX_AT_ONCE: i64 = 100;

/// Maximum length of a command's output in a message, in UTF-16 code units.
const LONGEST_OUTPUT: usize = 3500;

#[derive(Debug, Deserialize)]
struct Update {
    update_id: i64,
    message: Option<Message>,
    callback_query: Option<Pressed>,
}

#[derive(Debug, Deserialize)]
struct Message {
    message_id: i64,
    from: Option<User>,
    chat: Chat,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    reply_to_message: Option<Box<Message>>,
    /// Original sender of a forwarded message.
    #[serde(default)]
    forward_origin: Option<Value>,
    #[serde(default)]
    photo: Vec<File>,
    #[serde(default)]
    document: Option<File>,
    #[serde(default)]
    voice: Option<File>,
    #[serde(default)]
    audio: Option<File>,
    #[serde(default)]
    video: Option<File>,
    #[serde(default)]
    video_note: Option<File>,
    #[serde(default)]
    sticker: Option<Sticker>,
}

impl Message {
    fn has_files(&self) -> bool {
        let single = [&self.document, &self.voice, &self.audio, &self.video, &self.video_note];
        !self.photo.is_empty() || single.into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Deserialize)]
struct Pressed {
    id: String,
    from: User,
    #[serde(default)]
    data: String,
    message: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Sticker {
    #[serde(default)]
    emoji: String,
}

#[derive(Clone, Debug, Deserialize)]
struct File {
    file_id: String,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    file_size: Option<u64>,
}

/// Maximum length of the answer to a button, in characters. Telegram shows at most 200.
const LONGEST_TOAST: usize = 190;

/// A wait that Telegram asks for, from which on the person is told.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// Maximum wait that Telegram may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Handles updates in order until Telegram rejects the token. Returns the reason.
pub(super) async fn listen(api: &Api, inner: &Arc<Inner>, inbound: Inbound) -> String {
    let commands: Vec<Value> =
        COMMANDS.iter().map(|known| json!({ "command": known.name, "description": known.about })).collect();
    unimportant(api.call("setMyCommands", json!({ "commands": commands })).await);
    let (mut offset, mut backoff, mut is_heard) = (None, Backoff::default(), false);
    // Telegram repeats handled updates, also to the next process, until the next poll confirms them.
    let taken = inbound.cursor().await.and_then(|last| last.parse::<i64>().ok());
    let is_taken = |id: i64| taken.is_some_and(|last| (last - MAX_AT_ONCE + 1..=last).contains(&id));
    let mut tasks = resume(api, inner, &inbound).await;
    loop {
        match poll(api, offset).await {
            Ok(updates) => {
                if backoff.failures() > 0 {
                    tracing::info!("Telegram is heard again");
                }
                if !std::mem::replace(&mut is_heard, true) {
                    inbound.hears().await;
                }
                backoff.worked();
                for update in updates {
                    let Some(next) = update["update_id"].as_i64().and_then(|id| id.checked_add(1)) else {
                        tracing::warn!("an update of Telegram's has no number, and is left out");
                        continue;
                    };
                    offset = Some(next);
                    match Update::deserialize(&update) {
                        Ok(read) if is_taken(read.update_id) => {}
                        Ok(read) => take(read, &update, api, inner, &inbound, &mut tasks).await,
                        Err(error) => {
                            tracing::warn!(%error, "something that Telegram said was not understood, and is left out")
                        }
                    }
                }
                while tasks.try_join_next().is_some() {}
            }
            // 404: the text does not have the form of a token.
            Err(Failure { code: Some(code @ (401 | 404)), .. }) => {
                return format!(
                    "Telegram does not accept `TELEGRAM_TOKEN` ({code}): put the bot's token into .env, and start the service again"
                );
            }
            Err(failure) => {
                tracing::warn!(%failure, "Telegram is not heard now");
                is_heard = false;
                let asked = failure.retry_after.map(Duration::from_secs).unwrap_or_default().min(LONGEST_WAIT);
                let wait = backoff.failed().max(asked);
                if asked >= LONG_WAIT {
                    let why = format!("Telegram asks for {} without a question", humantime::format_duration(asked));
                    inbound.deaf(Deaf { why, delivers: true }).await;
                } else if backoff.failures() >= MANY
                    && let Some(why) = refusal(&failure)
                {
                    inbound.deaf(Deaf { why, delivers: true }).await;
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Returns the reason why Telegram hands out no updates although it takes messages; `None` if nothing of it can be reached.
fn refusal(failure: &Failure) -> Option<String> {
    match failure.code? {
        409 => {
            Some(format!("another program receives what you write to this bot ({failure}). End it, or use another bot"))
        }
        400..=499 if failure.retry_after.is_none() => Some(failure.to_string()),
        _ => None,
    }
}

/// Continues what an earlier process has begun: turns that are shown, and files that are fetched.
async fn resume(api: &Api, inner: &Arc<Inner>, inbound: &Inbound) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for turn in Turn::left(inbound).await {
        let (inner, inbound) = (Arc::clone(inner), inbound.clone());
        let progress = inbound.follow(turn.id.clone());
        tasks.spawn(async move { inner.show(turn, &inbound, progress).await });
    }
    for (name, update) in inbound.stored().await {
        if DefinitionId::new(&name).is_turn() {
            continue;
        }
        match serde_json::from_str(&update) {
            Ok(Update { message: Some(message), .. }) => {
                tasks.spawn(fetch(message, name, api.clone(), Arc::clone(inner), inbound.clone()));
            }
            _ => inbound.discard(&name).await,
        }
    }
    tasks
}

async fn poll(api: &Api, offset: Option<i64>) -> Result<Vec<Value>, Failure> {
    let mut body = json!({ "timeout": POLL.as_secs(), "allowed_updates": ["message", "callback_query"] });
    if let Some(offset) = offset {
        body["offset"] = offset.into();
    }
    let updates = api.poll("getUpdates", body, POLL).await?;
    Ok(updates.as_array().cloned().unwrap_or_default())
}

/// Handles one update. `raw` is its JSON.
async fn take(update: Update, raw: &Value, api: &Api, inner: &Arc<Inner>, inbound: &Inbound, tasks: &mut JoinSet<()>) {
    let mark = update.update_id;
    let owner = inner.owner.map(|owner| owner.to_string());
    if let Some(message) = update.message {
        let Some(from) = message.from.as_ref().filter(|from| !from.is_bot) else { return };
        let (by, chat, id) = (from.id.to_string(), message.chat.id, message.message_id);
        let is_owner = owner.as_deref() == Some(&*by);
        if message.chat.kind != "private" {
            // Whoever adds the bot to a group gets nothing there, not even the owner.
            if !is_owner {
                inbound.receive(&by, owner.as_deref(), IncomingEvent::Message(IncomingMessage::default())).await;
            }
            return;
        }
        let (api, inner, inbound) = (api.clone(), Arc::clone(inner), inbound.clone());
        if is_owner && message.has_files() {
            // The next poll confirms the update, so `keep` saves it from a crash. Downloads run concurrently, so they delay no message.
            let name = mark.to_string();
            if inbound.store(&name, raw.to_string()).await {
                inbound.set_cursor(mark).await;
                tasks.spawn(fetch(message, name, api, inner, inbound));
            } else {
                fetch(message, name, api, inner, inbound.clone()).await;
                inbound.set_cursor(mark).await;
            }
            return;
        }
        let heard = heard(message, &api, is_owner).await;
        match heard {
            // Messages stay in order. Commands run concurrently, so they delay no message.
            IncomingEvent::Message(_) => {
                let response = inbound.receive(&by, owner.as_deref(), heard).await;
                if is_owner {
                    inbound.set_cursor(mark).await;
                }
                tasks.spawn(async move { show(response, chat, Some(id), &api, inner, &inbound).await });
            }
            _ => {
                if is_owner {
                    inbound.set_cursor(mark).await;
                }
                tasks.spawn(async move {
                    let response = inbound.receive(&by, owner.as_deref(), heard).await;
                    show(response, chat, Some(id), &api, inner, &inbound).await;
                });
            }
        }
    } else if let Some(query) = update.callback_query {
        if owner.as_deref() == Some(&*query.from.id.to_string()) {
            inbound.set_cursor(mark).await;
        }
        let (api, inner, inbound) = (api.clone(), Arc::clone(inner), inbound.clone());
        tasks.spawn(async move { pressed(query, owner, &api, inner, &inbound).await });
    }
}

/// Downloads the files of the owner's message, then handles it. It stays stored under `name` until then. Handling it twice makes one turn.
async fn fetch(message: Message, name: String, api: Api, inner: Arc<Inner>, inbound: Inbound) {
    let (chat, id) = (message.chat.id, message.message_id);
    inner.react(Some(id), Some(EYES)).await;
    let slot = inner.fetches.acquire().await;
    let heard = heard(message, &api, true).await;
    drop(slot);
    let owner = inner.owner.map(|owner| owner.to_string()).unwrap_or_default();
    let response = inbound.receive(&owner, Some(&owner), heard).await;
    inbound.discard(&name).await;
    let is_turn = matches!(response, Response::Turn(_));
    show(response, chat, Some(id), &api, Arc::clone(&inner), &inbound).await;
    if !is_turn {
        inner.react(Some(id), None).await;
    }
}

async fn pressed(query: Pressed, owner: Option<String>, api: &Api, inner: Arc<Inner>, inbound: &Inbound) {
    let (by, button) = (query.from.id.to_string(), query.data);
    let response = inbound.receive(&by, owner.as_deref(), IncomingEvent::Pressed { button }).await;
    // Stop the button's progress indicator in any case.
    let toast: Option<String> = match &response {
        Response::Done(text) | Response::Refused(text) | Response::Gone(text) => {
            Some(text.chars().take(LONGEST_TOAST).collect())
        }
        Response::Stranger { tell: true } => Some(STRANGER_REPLY.to_owned()),
        _ => None,
    };
    unimportant(api.call("answerCallbackQuery", json!({ "callback_query_id": query.id, "text": toast })).await);
    let Some(message) = query.message else { return };
    match response {
        Response::Done(outcome) => {
            let sent = inbound.sent_message(&message.message_id.to_string()).await;
            unimportant(remove_buttons(api, message.chat.id, message.message_id, sent.as_ref(), &outcome).await);
            // The toast has shown only its beginning.
            if outcome.chars().count() > LONGEST_TOAST {
                show(Response::Text(outcome), message.chat.id, None, api, inner, inbound).await;
            }
        }
        Response::Gone(outcome) => {
            unimportant(remove_buttons(api, message.chat.id, message.message_id, None, &outcome).await);
        }
        // The toast has shown it.
        Response::Refused(_) | Response::Stranger { .. } => {}
        other => show(other, message.chat.id, None, api, inner, inbound).await,
    }
}

async fn heard(message: Message, api: &Api, is_owner: bool) -> IncomingEvent {
    let mut files = Vec::new();
    // Files of strangers are not downloaded.
    if is_owner {
        let photo = message.photo.last().map(|photo| (photo.clone(), "photo.jpg"));
        let others = [
            (message.document, "document"),
            (message.voice, "voice.ogg"),
            (message.audio, "audio.mp3"),
            (message.video, "video.mp4"),
            (message.video_note, "video.mp4"),
        ];
        let others = others.into_iter().filter_map(|(file, name)| Some((file?, name)));
        for (file, name) in photo.into_iter().chain(others) {
            let content = match file.file_size {
                Some(size) if size > LARGEST_FILE => Err(TOO_LARGE.to_owned()),
                _ => api.file(&file.file_id).await,
            };
            files.push(ReceivedFile { name: file.file_name.unwrap_or_else(|| name.to_owned()), content });
        }
    }
    let answered = message.reply_to_message;
    let mut text = message.text.or(message.caption).unwrap_or_default();
    if let Some(sticker) = message.sticker {
        text = format!("(a sticker: {})", sticker.emoji);
    }
    if message.forward_origin.is_some() {
        // The text is not the person's own, and no command.
        let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
        text = format!("A message that I hand on:\n{}", lines.join("\n"));
    }
    let heard = IncomingEvent::of_text(IncomingMessage {
        // Another bot numbers its messages from 1 again.
        id: Some(format!("{}x{}", api.bot(), message.message_id)),
        text,
        reply_to: answered.as_ref().map(|answered| answered.message_id.to_string()),
        quoted: answered.and_then(|answered| answered.text.or(answered.caption)),
        files,
    });
    match heard {
        // Telegram's app sends `/start` when the person opens the chat.
        IncomingEvent::Command { command, id, .. } if command == "start" => {
            IncomingEvent::Command { command: "help".into(), argument: None, id }
        }
        heard => heard,
    }
}

async fn show(response: Response, chat: i64, answered: Option<i64>, api: &Api, inner: Arc<Inner>, inbound: &Inbound) {
    let text = match response {
        Response::Turn(turn) => {
            let progress = inbound.follow(turn.clone());
            let turn = Turn::begin(turn, answered.map(|answered| answered.to_string()), inbound).await;
            return inner.show(turn, inbound, progress).await;
        }
        Response::Repeated | Response::Stranger { tell: false } => return,
        Response::Stranger { tell: true } if inner.owner.is_none() => format!(
            "Your number is {chat}. Put `owner: {chat}` into the channel's settings, and start the service again."
        ),
        Response::Stranger { tell: true } => STRANGER_REPLY.to_owned(),
        Response::Text(text) | Response::Done(text) | Response::Refused(text) | Response::Gone(text) => text,
    };
    let cut = match length(&text) > LONGEST_OUTPUT {
        true => split(&text, LONGEST_OUTPUT).first().map(|first| format!("{first}\n…")).unwrap_or_default(),
        false => text,
    };
    let shown = if is_block(&cut) { format!("<pre>{}</pre>", escaped(&cut)) } else { escaped(&cut) };
    let mut body = body(chat);
    body["text"] = shown.into();
    body["parse_mode"] = "HTML".into();
    // Commands run concurrently, so the answers of two may change places.
    if let Some(answered) = answered {
        body["reply_parameters"] = reply_to(answered);
    }
    if let Err(failure) = api.call("sendMessage", body).await {
        tracing::warn!(%failure, "what came of a command or a button was not shown");
    }
}
