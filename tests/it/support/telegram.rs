//! Telegram's Bot API on loopback, as its documentation describes it: long polling with confirmation by `offset`, messages,
//! edits, buttons, reactions, files. It refuses requests that a bot must not send, with Telegram's errors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

pub const TOKEN: &str = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw";

/// The parameters of each method.
const METHODS: &[(&str, &[&str])] = &[
    ("getUpdates", &["offset", "timeout", "allowed_updates"]),
    (
        "sendMessage",
        &[
            "chat_id",
            "text",
            "parse_mode",
            "reply_markup",
            "link_preview_options",
            "disable_notification",
            "reply_parameters",
        ],
    ),
    ("editMessageText", &["chat_id", "message_id", "text", "parse_mode", "reply_markup", "link_preview_options"]),
    ("editMessageReplyMarkup", &["chat_id", "message_id", "reply_markup"]),
    ("deleteMessage", &["chat_id", "message_id"]),
    ("answerCallbackQuery", &["callback_query_id", "text"]),
    ("setMessageReaction", &["chat_id", "message_id", "reaction"]),
    ("sendChatAction", &["chat_id", "action"]),
    ("setMyCommands", &["commands"]),
    ("getFile", &["file_id"]),
    ("getMe", &[]),
];

#[derive(Default)]
struct Server {
    /// Every request: its method and its body.
    requests: Vec<(String, Value)>,
    /// Messages as the person sees them.
    messages: HashMap<i64, Value>,
    updates: Vec<Value>,
    next_message: i64,
    next_update: i64,
    /// Planned errors.
    failures: Vec<Failure>,
    /// Whether the token is revoked.
    is_revoked: bool,
    /// Number of further polls that are taken and never answered.
    stalls: usize,
    /// Whether requests for files are held.
    holds_files: bool,
    /// The content of every file, or `None` for a small photo.
    file: Option<Vec<u8>>,
}

/// An error for a call of this method that satisfies `holds`, after `skip` others that satisfy it.
struct Failure {
    method: &'static str,
    holds: fn(&Value) -> bool,
    skip: usize,
    code: u16,
    retry_after: Option<u64>,
}

/// The stub.
#[derive(Clone)]
pub struct Telegram {
    server: Arc<Mutex<Server>>,
    url: String,
    _runtime: Arc<tokio::runtime::Runtime>,
}

impl Telegram {
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts the stub at this port, or at any free port for 0.
    pub fn start_at(port: u16) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = Arc::new(Mutex::new(Server { next_message: 100, next_update: 1, ..Server::default() }));
        let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", port))).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/{bot}/{method}", post(called))
            .route("/file/{bot}/{*path}", get(file))
            .with_state(Arc::clone(&server));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { server, url, _runtime: Arc::new(runtime) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn update(&self, kind: &str, content: Value) {
        let mut server = self.server.lock().unwrap();
        let id = server.next_update;
        server.next_update += 1;
        server.updates.push(json!({ "update_id": id, kind: content }));
    }

    /// Sends a message to the bot. Returns the message's number.
    pub fn write(&self, by: i64, extra: Value) -> i64 {
        let id = {
            let mut server = self.server.lock().unwrap();
            server.next_message += 1;
            server.next_message
        };
        let mut message = json!({
            "message_id": id, "date": 1_790_000_000, "from": { "id": by, "is_bot": false, "first_name": "Ada" },
            "chat": { "id": by, "type": "private", "first_name": "Ada" },
        });
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        self.update("message", message);
        id
    }

    pub fn say(&self, by: i64, text: &str) -> i64 {
        self.write(by, json!({ "text": text }))
    }

    /// Presses a button of a message.
    #[track_caller]
    pub fn press(&self, by: i64, message: &Value, label: &str) {
        let rows = message["reply_markup"]["inline_keyboard"].as_array().unwrap();
        let mut buttons = rows.iter().flat_map(|row| row.as_array().unwrap());
        let button = buttons.find(|button| button["text"] == label).unwrap_or_else(|| panic!("{message:#}"));
        self.update(
            "callback_query",
            json!({
                "id": "4382bfdwdsb323b2d9", "from": { "id": by, "is_bot": false, "first_name": "Ada" },
                "message": message, "chat_instance": "1", "data": button["callback_data"],
            }),
        );
    }

    /// Makes the next call of this method fail.
    pub fn fail(&self, method: &'static str, code: u16, retry_after: Option<u64>) {
        self.push(Failure { method, holds: |_| true, skip: 0, code, retry_after });
    }

    /// Makes a call of this method fail after `skip` others.
    pub fn fail_after(&self, skip: usize, method: &'static str, code: u16) {
        self.push(Failure { method, holds: |_| true, skip, code, retry_after: None });
    }

    /// Makes the next call of this method fail whose body satisfies `holds`.
    pub fn fail_where(&self, holds: fn(&Value) -> bool, method: &'static str, code: u16) {
        self.push(Failure { method, holds, skip: 0, code, retry_after: None });
    }

    fn push(&self, failure: Failure) {
        self.server.lock().unwrap().failures.push(failure);
    }

    /// Sets whether requests for files wait.
    pub fn hold_files(&self, holds: bool) {
        self.server.lock().unwrap().holds_files = holds;
    }

    /// Gives every file this content.
    pub fn set_file(&self, content: Vec<u8>) {
        self.server.lock().unwrap().file = Some(content);
    }

    /// Numbers the next messages from this number on.
    pub fn number_from(&self, number: i64) {
        self.server.lock().unwrap().next_message = number;
    }

    /// Takes the next polls without ever answering them.
    pub fn stall(&self, polls: usize) {
        self.server.lock().unwrap().stalls = polls;
    }

    /// Returns the number of unconfirmed updates.
    pub fn waiting(&self) -> usize {
        self.server.lock().unwrap().updates.len()
    }

    /// Revokes the token.
    pub fn revoke(&self) {
        self.server.lock().unwrap().is_revoked = true;
    }

    /// Returns the chat as the person sees it, oldest message first.
    pub fn chat(&self) -> Vec<Value> {
        let server = self.server.lock().unwrap();
        let mut messages: Vec<Value> = server.messages.values().cloned().collect();
        messages.sort_by_key(|message| message["message_id"].as_i64());
        messages
    }

    /// Returns the methods that were called, in order.
    pub fn methods(&self) -> Vec<String> {
        self.server.lock().unwrap().requests.iter().map(|(method, _)| method.clone()).collect()
    }

    /// Returns the bodies of the calls of a method.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        let server = self.server.lock().unwrap();
        server.requests.iter().filter(|(called, _)| called == method).map(|(_, body)| body.clone()).collect()
    }
}

async fn file(State(server): State<Arc<Mutex<Server>>>) -> Vec<u8> {
    while server.lock().unwrap().holds_files {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.lock().unwrap().file.clone().unwrap_or_else(|| b"a photo".to_vec())
}

fn refuse(code: u16, description: &str, retry_after: Option<u64>) -> Response {
    let mut body = json!({ "ok": false, "error_code": code, "description": description });
    if let Some(seconds) = retry_after {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

/// Returns the reason why Telegram would refuse the request.
fn fault(method: &str, body: &Value) -> Option<String> {
    let Some((_, known)) = METHODS.iter().find(|(name, _)| *name == method) else {
        return Some("Not Found: method not found".into());
    };
    // Telegram ignores unknown keys. A bot that sends one has made a mistake.
    if let Some(key) = body.as_object()?.keys().find(|key| !known.contains(&key.as_str())) {
        return Some(format!("Bad Request: unknown key {key}"));
    }
    if let Some(text) = body["text"].as_str().filter(|_| method.ends_with("Message") || method.ends_with("Text")) {
        let plain = text_of(text, body["parse_mode"] == "HTML").err();
        if plain.is_some() {
            return plain;
        }
        let text = text_of(text, body["parse_mode"] == "HTML").unwrap();
        if text.trim().is_empty() {
            return Some("Bad Request: message text is empty".into());
        }
        if text.encode_utf16().count() > 4096 {
            return Some("Bad Request: message is too long".into());
        }
    }
    // Telegram would accept this and fetch the addresses in the text.
    if ["sendMessage", "editMessageText"].contains(&method) && body["link_preview_options"]["is_disabled"] != true {
        return Some("Bad Request: a preview of a link would be fetched".into());
    }
    for row in body["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten() {
        for button in row.as_array().unwrap() {
            if button["callback_data"].as_str().is_none_or(|data| data.is_empty() || data.len() > 64) {
                return Some("Bad Request: BUTTON_DATA_INVALID".into());
            }
        }
    }
    for command in body["commands"].as_array().into_iter().flatten() {
        let name = command["command"].as_str().unwrap();
        let fits = (1..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if !fits || !(1..=256).contains(&command["description"].as_str().unwrap().len()) {
            return Some("Bad Request: BOT_COMMAND_INVALID".into());
        }
    }
    (method == "answerCallbackQuery" && body["text"].as_str().is_some_and(|text| text.chars().count() > 200))
        .then(|| "Bad Request: MESSAGE_TOO_LONG".into())
}

/// Returns the visible part of a text.
fn text_of(text: &str, is_html: bool) -> Result<String, String> {
    if !is_html {
        return Ok(text.to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    let mut seen = String::new();
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once('<') {
        seen.push_str(before);
        let (tag, after) = tag.split_once('>').ok_or("Bad Request: can't parse entities: unclosed tag")?;
        match tag.strip_prefix('/') {
            Some(name) if open.pop() == Some(name) => {}
            Some(_) => return Err("Bad Request: can't parse entities: unexpected end tag".into()),
            None => {
                let name = tag.split(' ').next().unwrap();
                if !["b", "i", "code", "pre", "a"].contains(&name) {
                    return Err(format!("Bad Request: can't parse entities: unsupported start tag \"{name}\""));
                }
                open.push(name);
            }
        }
        rest = after;
    }
    seen.push_str(rest);
    match open.is_empty() {
        true => Ok(seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")),
        false => Err("Bad Request: can't parse entities: can't find end tag".into()),
    }
}

async fn called(
    State(server): State<Arc<Mutex<Server>>>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    if bot != format!("bot{TOKEN}") || server.lock().unwrap().is_revoked {
        return refuse(401, "Unauthorized", None);
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    {
        let mut server = server.lock().unwrap();
        server.requests.push((method.clone(), body.clone()));
        let failing = server.failures.iter().position(|one| one.method == method && (one.holds)(&body));
        match failing.map(|at| (at, server.failures[at].skip)) {
            Some((at, 0)) => {
                let Failure { code, retry_after, .. } = server.failures.remove(at);
                return refuse(code, "it fails as the test wants it", retry_after);
            }
            Some((at, _)) => server.failures[at].skip -= 1,
            None => {}
        }
    }
    if let Some(fault) = fault(&method, &body) {
        return refuse(400, &fault, None);
    }
    let result = match method.as_str() {
        "getUpdates" => return updates(&server, &body).await,
        "sendMessage" => {
            let mut server = server.lock().unwrap();
            server.next_message += 1;
            let id = server.next_message;
            let message = sent(id, &body);
            server.messages.insert(id, message.clone());
            message
        }
        "editMessageText" => {
            let mut server = server.lock().unwrap();
            let id = body["message_id"].as_i64().unwrap();
            if !server.messages.contains_key(&id) {
                return refuse(400, "Bad Request: message to edit not found", None);
            }
            let message = sent(id, &body);
            if server.messages[&id] == message {
                return refuse(400, "Bad Request: message is not modified", None);
            }
            server.messages.insert(id, message.clone());
            message
        }
        "editMessageReplyMarkup" => return take_buttons(&server, &body),
        "deleteMessage" => {
            server.lock().unwrap().messages.remove(&body["message_id"].as_i64().unwrap());
            json!(true)
        }
        "getMe" => json!({ "id": 110_201_543, "is_bot": true, "first_name": "Mine", "username": "my_bot" }),
        "getFile" => json!({ "file_id": body["file_id"], "file_path": "photos/file_0.jpg" }),
        _ => json!(true),
    };
    axum::Json(json!({ "ok": true, "result": result })).into_response()
}

fn take_buttons(server: &Mutex<Server>, body: &Value) -> Response {
    let mut server = server.lock().unwrap();
    let Some(message) = server.messages.get_mut(&body["message_id"].as_i64().unwrap()) else {
        return refuse(400, "Bad Request: message to edit not found", None);
    };
    message["reply_markup"] = body["reply_markup"].clone();
    axum::Json(json!({ "ok": true, "result": message })).into_response()
}

fn sent(id: i64, body: &Value) -> Value {
    let text = text_of(body["text"].as_str().unwrap(), body["parse_mode"] == "HTML").unwrap();
    let mut message = json!({
        "message_id": id, "date": 1_790_000_000, "text": text, "html": body["text"],
        "from": { "id": 1, "is_bot": true, "first_name": "bot" }, "chat": { "id": body["chat_id"], "type": "private" },
    });
    // A phone rings only for a new message that is not silenced.
    message["rings"] = json!(body["message_id"].is_null() && body["disable_notification"] != true);
    if body["reply_markup"].is_object() {
        message["reply_markup"] = body["reply_markup"].clone();
    }
    message
}

async fn updates(server: &Mutex<Server>, body: &Value) -> Response {
    if let Some(offset) = body["offset"].as_i64() {
        server.lock().unwrap().updates.retain(|update| update["update_id"].as_i64() >= Some(offset));
    }
    let stalls = std::mem::take(&mut server.lock().unwrap().stalls);
    server.lock().unwrap().stalls = stalls.saturating_sub(1);
    if stalls > 0 {
        return std::future::pending().await;
    }
    for _ in 0..body["timeout"].as_u64().unwrap_or(0) * 20 {
        let (waiting, is_revoked) = {
            let server = server.lock().unwrap();
            (server.updates.clone(), server.is_revoked)
        };
        if is_revoked {
            return refuse(401, "Unauthorized", None);
        }
        if !waiting.is_empty() {
            return axum::Json(json!({ "ok": true, "result": waiting })).into_response();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    axum::Json(json!({ "ok": true, "result": [] })).into_response()
}
