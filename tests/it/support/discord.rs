//! Discord as a stub on loopback: the gateway (hello, identify, heartbeat, resume, reconnect, invalid session, close codes) and
//! the part of REST that a bot for one person needs. It has one person, the owner, one stranger, and one conversation.
//!
//! The stub checks a bot's requests against Discord's rules. It answers faults as Discord does; [`Discord::problems`] returns them.
#![allow(dead_code, reason = "unit tests and tests of the whole program need different parts")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

pub const TOKEN: &str = "token-of-the-bot";
pub const OWNER: &str = "80351110224678912";
pub const STRANGER: &str = "80351110224678913";
const APPLICATION: &str = "90351110224678900";
const BOT: &str = "90351110224678901";
const DM: &str = "70351110224678900";

/// A fault that a planned request meets.
#[derive(Clone, Debug)]
pub enum Fault {
    /// "Too many requests", with this number of seconds to wait.
    Limited(f64),
    /// This status, without having done what was requested.
    Before(u16),
    /// This status, after having done what was requested.
    After(u16),
    /// No answer.
    Silence,
}

/// One request to REST.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The path after `/api/v10/`.
    pub path: String,
    pub body: Value,
    pub status: u16,
}

enum Order {
    Send(String),
    Close(u16),
    Cut,
}

#[derive(Default)]
struct World {
    url: String,
    requests: Vec<Request>,
    problems: Vec<String>,
    faults: Vec<Planned>,
    /// All messages of the conversation, oldest first.
    messages: Vec<Value>,
    nonces: HashMap<String, String>,
    commands: Value,
    interactions: HashMap<String, Asked>,
    files: HashMap<String, Vec<u8>>,
    /// Files whose downloads hang until their sender is dropped.
    held: HashMap<String, watch::Sender<()>>,
    last_id: u64,
    is_revoked: bool,
    /// The code that closes the connection of a bot that identifies.
    refuses: Option<u16>,
    refuses_resume: bool,
    session: Option<Session>,
    identified: usize,
    resumed: usize,
    connections: usize,
}

struct Planned {
    method: String,
    path: String,
    /// Number of matching requests that succeed before the fault.
    well: usize,
    fault: Fault,
}

struct Session {
    id: String,
    log: Vec<String>,
    live: Option<mpsc::UnboundedSender<Order>>,
}

/// An interaction as the person sees it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub id: String,
    /// The kind of the first response.
    pub first: Option<u64>,
    /// The responses shown, edits included.
    pub answers: Vec<Value>,
}

pub struct Discord {
    world: Arc<Mutex<World>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

type Shared = State<Arc<Mutex<World>>>;

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Discord {
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let world = World {
            url: listener.local_addr().unwrap().to_string(),
            last_id: 1_100_000_000_000_000_000,
            ..World::default()
        };
        let world = Arc::new(Mutex::new(world));
        let router = Router::new()
            .route("/", get(connect))
            .route("/files/{name}", get(file))
            .fallback(rest)
            .with_state(Arc::clone(&world));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { world, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the URL for `api:`.
    pub fn url(&self) -> String {
        format!("http://{}", self.world().url)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Makes the next request with this method and with `path` in its path fail with this fault.
    pub fn fail(&self, method: &str, path: &str, fault: Fault) {
        self.fail_after(0, method, path, fault);
    }

    /// Makes such a request fail after `well` others that succeed.
    pub fn fail_after(&self, well: usize, method: &str, path: &str, fault: Fault) {
        self.world().faults.push(Planned { method: method.into(), path: path.into(), well, fault });
    }

    /// Forgets all nonces, as Discord does after some minutes.
    pub fn forget_nonces(&self) {
        self.world().nonces.clear();
    }

    /// Returns the bot's violations of Discord's rules.
    pub fn problems(&self) -> Vec<String> {
        self.world().problems.clone()
    }

    pub fn requests(&self, method: &str, path: &str) -> Vec<Request> {
        let world = self.world();
        world.requests.iter().filter(|one| one.method.contains(method) && one.path.contains(path)).cloned().collect()
    }

    /// Returns the bot's messages in their present state, oldest first.
    pub fn messages(&self) -> Vec<Value> {
        self.world().messages.iter().filter(|message| message["author"]["id"] == BOT).cloned().collect()
    }

    /// Returns the texts of the bot's messages.
    pub fn texts(&self) -> Vec<String> {
        self.messages().iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    pub fn commands(&self) -> Value {
        self.world().commands.clone()
    }

    /// Returns how often a bot has identified, resumed, and connected.
    pub fn connections(&self) -> (usize, usize, usize) {
        let world = self.world();
        (world.identified, world.resumed, world.connections)
    }

    pub fn is_connected(&self) -> bool {
        self.world().session.as_ref().is_some_and(|session| session.live.as_ref().is_some_and(|live| !live.is_closed()))
    }

    /// Returns the bot's reactions to a message.
    pub fn reactions(&self, message: &str) -> Vec<Value> {
        let world = self.world();
        let found = world.messages.iter().find(|one| one["id"] == message).unwrap();
        found["reactions"].as_array().unwrap().clone()
    }

    /// Sends a message of the person. Returns the message's id.
    pub fn say(&self, text: &str) -> String {
        self.write(OWNER, json!({ "content": text }))
    }

    /// Sends a message by anyone, with these fields.
    pub fn write(&self, by: &str, fields: Value) -> String {
        let mut world = self.world();
        let mut message = world.message(by);
        for (key, value) in fields.as_object().unwrap() {
            message[key] = value.clone();
        }
        world.messages.push(message.clone());
        world.dispatch("MESSAGE_CREATE", message.clone());
        message["id"].as_str().unwrap().to_owned()
    }

    /// Stores a file for an attachment. Returns the attachment.
    pub fn file(&self, name: &str, bytes: Vec<u8>, size: u64) -> Value {
        let mut world = self.world();
        world.files.insert(name.into(), bytes);
        let (id, url) = (world.id(), format!("http://{}/files/{name}", world.url));
        json!({ "id": id, "filename": name, "size": size, "url": url, "proxy_url": url })
    }

    /// Makes the downloads of a file hang until it is [released](Self::release).
    pub fn hold(&self, name: &str) {
        self.world().held.insert(name.into(), watch::Sender::new(()));
    }

    /// Returns whether a download of a held file hangs.
    pub fn hangs(&self, name: &str) -> bool {
        self.world().held[name].receiver_count() > 0
    }

    pub fn release(&self, name: &str) {
        self.world().held.remove(name);
    }

    /// Presses a button of a message. Returns the interaction's token.
    pub fn press(&self, by: &str, message: &str, button: &str) -> String {
        let message = self.world().messages.iter().find(|one| one["id"] == message).unwrap().clone();
        let data = json!({ "component_type": 2, "custom_id": button, "id": 2 });
        self.interact(by, 3, data, Some(message))
    }

    /// Sends a command of the person. Returns the interaction's token.
    pub fn ask(&self, command: &str, argument: Option<(&str, &str)>) -> String {
        let option = |(name, value): (&str, &str)| json!({ "name": name, "type": 3, "value": value });
        let options: Vec<Value> = argument.into_iter().map(option).collect();
        self.interact(OWNER, 2, json!({ "id": "1", "name": command, "type": 1, "options": options }), None)
    }

    fn interact(&self, by: &str, kind: u8, data: Value, message: Option<Value>) -> String {
        let mut world = self.world();
        let id = world.id();
        let token = format!("interaction-{id}");
        let asked = Asked { id: id.clone(), ..Asked::default() };
        world.interactions.insert(token.clone(), asked);
        let mut event = json!({
            "id": id, "application_id": APPLICATION, "type": kind, "token": token, "version": 1, "data": data,
            "channel_id": DM, "channel": { "id": DM, "type": 1 }, "user": user(by), "locale": "en-GB", "entitlements": [],
            "authorizing_integration_owners": { "1": OWNER }, "context": 1, "attachment_size_limit": 10_485_760,
        });
        if let Some(message) = message {
            event["message"] = message;
        }
        world.dispatch("INTERACTION_CREATE", event);
        token
    }

    /// Returns an interaction as the person sees it.
    pub fn asked(&self, token: &str) -> Asked {
        self.world().interactions[token].clone()
    }

    /// Cuts the connection without a close frame.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    pub fn close(&self, code: u16) {
        self.order(Order::Close(code));
    }

    /// Asks the bot to reconnect.
    pub fn reconnect(&self) {
        self.order(Order::Send(json!({ "op": 7, "d": null }).to_string()));
    }

    /// Ends the session, so that resuming it fails.
    pub fn forget_session(&self) {
        self.world().session = None;
    }

    /// Removes all messages, as the person can.
    pub fn remove_all(&self) {
        let mut world = self.world();
        world.messages.clear();
        world.nonces.clear();
    }

    fn order(&self, order: Order) {
        let world = self.world();
        let live = world.session.as_ref().and_then(|session| session.live.as_ref()).unwrap();
        live.send(order).ok().unwrap();
    }

    /// Revokes the token for requests and connections.
    pub fn revoke(&self) {
        let mut world = self.world();
        world.is_revoked = true;
        world.refuses = Some(4004);
    }

    /// Sets the code that closes the connection of each bot that identifies; `None` accepts it.
    pub fn refuse(&self, code: Option<u16>) {
        self.world().refuses = code;
    }

    pub fn refuse_resume(&self) {
        self.world().refuses_resume = true;
    }
}

impl Drop for Discord {
    fn drop(&mut self) {
        // The thread may have ended by a panic, which was already reported.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(|thread| thread.join());
    }
}

impl World {
    fn id(&mut self) -> String {
        self.last_id += 1 << 22;
        self.last_id.to_string()
    }

    fn message(&mut self, by: &str) -> Value {
        let id = self.id();
        json!({
            "id": id, "channel_id": DM, "author": user(by), "content": "", "timestamp": "2026-11-23T12:00:00.000000+00:00",
            "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
            "attachments": [], "embeds": [], "components": [], "pinned": false, "type": 0, "flags": 0, "reactions": [],
        })
    }

    fn dispatch(&mut self, name: &str, data: Value) {
        let Some(session) = &mut self.session else { return };
        let frame = json!({ "op": 0, "t": name, "s": session.log.len() + 1, "d": data }).to_string();
        session.log.push(frame.clone());
        if let Some(live) = &session.live {
            // The connection may have been cut.
            let _ = live.send(Order::Send(frame));
        }
    }

    fn take_fault(&mut self, method: &str, path: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|one| one.method == method && path.contains(&one.path))?;
        match self.faults[at].well.checked_sub(1) {
            Some(left) => {
                self.faults[at].well = left;
                None
            }
            None => Some(self.faults.remove(at).fault),
        }
    }
}

fn user(id: &str) -> Value {
    let name = match id {
        OWNER => "owner",
        BOT => "bot",
        _ => "stranger",
    };
    let mut user = json!({ "id": id, "username": name, "discriminator": "0", "global_name": null, "avatar": null });
    if id == BOT {
        user["bot"] = json!(true);
    }
    user
}

// ---- The gateway.

async fn connect(State(world): Shared, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|socket| talk(world, socket))
}

async fn talk(world: Arc<Mutex<World>>, mut socket: WebSocket) {
    lock(&world).connections += 1;
    let (orders, mut ordered) = mpsc::unbounded_channel();
    let hello = json!({ "op": 10, "d": { "heartbeat_interval": 2000 } });
    if socket.send(Frame::text(hello.to_string())).await.is_err() {
        return;
    }
    loop {
        let answers = tokio::select! {
            frame = socket.recv() => match frame {
                Some(Ok(Frame::Text(text))) => take(&world, &orders, &text),
                Some(Ok(Frame::Close(frame))) => {
                    // These two codes end a session.
                    if frame.is_some_and(|frame| [1000, 1001].contains(&frame.code)) {
                        lock(&world).session = None;
                    }
                    return;
                }
                Some(Ok(_)) => Vec::new(),
                None | Some(Err(_)) => return,
            },
            Some(order) = ordered.recv() => vec![order],
        };
        for answer in answers {
            let sent = match answer {
                Order::Cut => return,
                Order::Send(text) => socket.send(Frame::text(text)).await,
                Order::Close(code) => {
                    let frame = CloseFrame { code, reason: "stub".into() };
                    let sent = socket.send(Frame::Close(Some(frame))).await;
                    // The other side answers the close frame.
                    while let Some(Ok(_)) = socket.recv().await {}
                    let _ = sent;
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

fn take(world: &Mutex<World>, orders: &mpsc::UnboundedSender<Order>, text: &str) -> Vec<Order> {
    let frame: Value = serde_json::from_str(text).unwrap();
    let mut world = lock(world);
    match frame["op"].as_u64() {
        Some(1) => vec![Order::Send(json!({ "op": 11 }).to_string())],
        Some(2) => {
            world.identified += 1;
            if frame["d"]["token"] != format!("Bot {TOKEN}") && frame["d"]["token"] != TOKEN {
                return vec![Order::Close(4004)];
            }
            if let Some(code) = world.refuses {
                return vec![Order::Close(code)];
            }
            // The intent for direct messages, and no privileged intent.
            if frame["d"]["intents"] != 1 << 12 {
                world.problems.push(format!("intents {}", frame["d"]["intents"]));
            }
            let id = world.id();
            world.session = Some(Session { id: id.clone(), log: Vec::new(), live: Some(orders.clone()) });
            let ready = json!({
                "v": 10, "user": user(BOT), "guilds": [], "session_id": id, "shard": [0, 1],
                "resume_gateway_url": format!("ws://{}", world.url), "application": { "id": APPLICATION, "flags": 0 },
            });
            world.dispatch("READY", ready);
            Vec::new()
        }
        Some(6) => {
            let asked = frame["d"]["session_id"].clone();
            let is_known = world.session.as_ref().is_some_and(|session| asked == session.id);
            if !is_known || world.refuses_resume {
                world.session = None;
                return vec![Order::Send(json!({ "op": 9, "d": false }).to_string())];
            }
            world.resumed += 1;
            let seen = usize::try_from(frame["d"]["seq"].as_u64().unwrap()).unwrap();
            let session = world.session.as_mut().unwrap();
            session.live = Some(orders.clone());
            let missed: Vec<Order> = session.log.iter().skip(seen).cloned().map(Order::Send).collect();
            world.dispatch("RESUMED", json!({}));
            missed
        }
        other => {
            world.problems.push(format!("the opcode {other:?}"));
            Vec::new()
        }
    }
}

// ---- REST.

async fn file(State(world): Shared, Path(name): Path<String>) -> Response {
    let held = lock(&world).held.get(&name).map(watch::Sender::subscribe);
    if let Some(mut held) = held {
        let _released = held.changed().await;
    }
    lock(&world).files[&name].clone().into_response()
}

async fn rest(State(world): Shared, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let Some(path) = uri.to_string().strip_prefix("/api/v10/").map(str::to_owned) else {
        lock(&world).problems.push(format!("no such address: {uri}"));
        return StatusCode::NOT_FOUND.into_response();
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let fault = lock(&world).take_fault(method.as_str(), &path);
    let (status, answer) = match &fault {
        Some(Fault::Limited(_)) => (429, Value::Null),
        Some(Fault::Before(status)) => (*status, Value::Null),
        _ => {
            let mut world = lock(&world);
            let token = headers.get("authorization").and_then(|value| value.to_str().ok());
            match token == Some(&format!("Bot {TOKEN}")) && !world.is_revoked {
                true => world.answer(method.as_str(), &path, &body),
                false => (401, json!({ "code": 0, "message": "401: Unauthorized" })),
            }
        }
    };
    let (status, answer) = match fault {
        Some(Fault::After(status)) => (status, json!({ "code": 0, "message": "stub" })),
        _ => (status, answer),
    };
    if status == 400 {
        lock(&world).problems.push(format!("{method} {path}: {answer} {body}"));
    }
    lock(&world).requests.push(Request { method: method.to_string(), path, body, status });
    match fault {
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Limited(seconds)) => limited(seconds),
        _ if status == 204 => StatusCode::NO_CONTENT.into_response(),
        _ => (StatusCode::from_u16(status).unwrap(), axum::Json(answer)).into_response(),
    }
}

fn limited(seconds: f64) -> Response {
    let headers = [
        ("x-ratelimit-scope", "user".to_owned()),
        ("x-ratelimit-bucket", "abcd1234".to_owned()),
        ("x-ratelimit-limit", "5".to_owned()),
        ("x-ratelimit-remaining", "0".to_owned()),
        ("x-ratelimit-reset-after", seconds.to_string()),
        ("retry-after", seconds.ceil().to_string()),
    ];
    let body = json!({ "message": "You are being rate limited.", "retry_after": seconds, "global": false });
    (StatusCode::TOO_MANY_REQUESTS, headers, axum::Json(body)).into_response()
}

type Answer = (u16, Value);

fn invalid(why: impl Into<String>) -> Answer {
    (400, json!({ "code": 50035, "message": format!("Invalid Form Body: {}", why.into()) }))
}

impl World {
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> Answer {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", ["applications", "@me"]) => {
                (200, json!({ "id": APPLICATION, "name": "bot", "owner": user(OWNER), "team": null }))
            }
            ("GET", ["users", "@me"]) => (200, user(BOT)),
            ("PUT", ["applications", APPLICATION, "commands"]) => match commands(body) {
                Ok(()) => {
                    self.commands = body.clone();
                    (200, body.clone())
                }
                Err(why) => invalid(why),
            },
            ("GET", ["gateway", "bot"]) => (
                200,
                json!({ "url": format!("ws://{}", self.url), "shards": 1,
                    "session_start_limit": { "total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1 } }),
            ),
            ("POST", ["users", "@me", "channels"]) => match body["recipient_id"].as_str() {
                Some(OWNER | STRANGER) => (200, json!({ "id": DM, "type": 1, "recipients": [user(OWNER)] })),
                _ => invalid("recipient_id"),
            },
            ("GET", ["channels", DM, "messages"]) => (200, self.page(query)),
            ("POST", ["channels", DM, "messages"]) => self.create(body),
            ("PATCH", ["channels", DM, "messages", id]) => self.edit(id, body),
            ("DELETE", ["channels", DM, "messages", id]) => self.remove(id),
            ("POST", ["channels", DM, "typing"]) => (204, Value::Null),
            ("PUT" | "DELETE", ["channels", DM, "messages", id, "reactions", emoji, "@me"]) => {
                let Some(message) = self.messages.iter_mut().find(|one| one["id"] == *id) else { return unknown() };
                let reactions = message["reactions"].as_array_mut().unwrap();
                reactions.clear();
                if method == "PUT" {
                    assert_eq!(*emoji, "%F0%9F%91%80");
                    reactions.push(json!({ "count": 1, "me": true, "emoji": { "id": null, "name": "👀" } }));
                }
                (204, Value::Null)
            }
            ("POST", ["interactions", id, token, "callback"]) => self.call_back(id, token, body),
            ("POST", ["webhooks", APPLICATION, token]) => self.follow_up(token, body, false),
            ("PATCH", ["webhooks", APPLICATION, token, "messages", "@original"]) => self.follow_up(token, body, true),
            ("DELETE", ["webhooks", APPLICATION, token, "messages", "@original"]) => {
                self.interactions.get_mut(*token).unwrap().answers.clear();
                (204, Value::Null)
            }
            _ => {
                self.problems.push(format!("no such request: {method} {path}"));
                (404, json!({ "code": 0, "message": "404: Not Found" }))
            }
        }
    }

    /// Returns messages, newest first.
    fn page(&self, query: &str) -> Value {
        let query: HashMap<&str, u64> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, n)| (key, n.parse().unwrap()))
            .collect();
        let id = |message: &Value| message["id"].as_str().unwrap().parse::<u64>().unwrap();
        let limit = usize::try_from(query.get("limit").copied().unwrap_or(50)).unwrap();
        let fits = |message: &&Value| {
            query.get("after").is_none_or(|after| id(message) > *after)
                && query.get("before").is_none_or(|before| id(message) < *before)
        };
        let found: Vec<Value> = self.messages.iter().filter(fits).cloned().collect();
        // `after` selects the oldest messages behind it.
        let page: Vec<Value> = match query.contains_key("after") {
            true => found.into_iter().take(limit).collect(),
            false => found.into_iter().rev().take(limit).rev().collect(),
        };
        page.into_iter().rev().collect()
    }

    fn create(&mut self, body: &Value) -> Answer {
        if let Err(why) = message(body, false) {
            return invalid(why);
        }
        if body["enforce_nonce"] == true {
            let nonce = body["nonce"].as_str().unwrap().to_owned();
            if let Some(known) = self.nonces.get(&nonce) {
                let found = self.messages.iter().find(|one| one["id"] == **known).unwrap();
                return (200, found.clone());
            }
            let next = (self.last_id + (1 << 22)).to_string();
            self.nonces.insert(nonce, next);
        }
        let mut message = self.message(BOT);
        merge(&mut message, body);
        self.messages.push(message.clone());
        // The bot also receives its own message.
        self.dispatch("MESSAGE_CREATE", message.clone());
        (200, message)
    }

    fn edit(&mut self, id: &str, body: &Value) -> Answer {
        if let Err(why) = message(body, true) {
            return invalid(why);
        }
        let Some(message) = self.messages.iter_mut().find(|one| one["id"] == id) else { return unknown() };
        if message["author"]["id"] != BOT {
            return (403, json!({ "code": 50005, "message": "Cannot edit a message authored by another user" }));
        }
        merge(message, body);
        let message = message.clone();
        if message["content"] == "" && message["embeds"] == json!([]) {
            return invalid("an empty message");
        }
        self.dispatch("MESSAGE_UPDATE", message.clone());
        (200, message)
    }

    fn remove(&mut self, id: &str) -> Answer {
        let Some(at) = self.messages.iter().position(|one| one["id"] == id) else { return unknown() };
        self.messages.remove(at);
        self.nonces.retain(|_, known| known != id);
        self.dispatch("MESSAGE_DELETE", json!({ "id": id, "channel_id": DM }));
        (204, Value::Null)
    }

    fn call_back(&mut self, id: &str, token: &str, body: &Value) -> Answer {
        let Some(asked) = self.interactions.get_mut(token).filter(|asked| asked.id == id) else {
            return (404, json!({ "code": 10062, "message": "Unknown interaction" }));
        };
        if asked.first.is_some() {
            return (400, json!({ "code": 40060, "message": "Interaction has already been acknowledged." }));
        }
        asked.first = body["type"].as_u64();
        match body["type"].as_u64() {
            Some(4) => asked.answers.push(body["data"].clone()),
            Some(5) if body["data"]["flags"] == 64 => {}
            Some(6) => {}
            _ => return invalid("type"),
        }
        (204, Value::Null)
    }

    fn follow_up(&mut self, token: &str, body: &Value, is_first: bool) -> Answer {
        if let Err(why) = message(body, is_first) {
            return invalid(why);
        }
        let Some(asked) = self.interactions.get_mut(token).filter(|asked| asked.first.is_some()) else {
            return (404, json!({ "code": 10015, "message": "Unknown Webhook" }));
        };
        asked.answers.push(body.clone());
        (200, json!({ "id": "1", "channel_id": DM, "author": user(BOT), "content": body["content"] }))
    }
}

fn unknown() -> Answer {
    (404, json!({ "code": 10008, "message": "Unknown Message" }))
}

fn merge(message: &mut Value, body: &Value) {
    for key in ["content", "embeds", "components", "flags", "message_reference"] {
        if !body[key].is_null() {
            message[key] = body[key].clone();
        }
    }
}

// ---- Discord's rules.

type Checked = Result<(), String>;

fn ensure(is_so: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if is_so { Ok(()) } else { Err(otherwise()) }
}

fn keys(value: &Value, known: &[&str]) -> Checked {
    let fields = value.as_object().ok_or("not an object")?;
    let other = fields.keys().find(|key| !known.contains(&key.as_str()));
    ensure(other.is_none(), || format!("the key {other:?}"))
}

/// Checks that a text has an allowed number of characters, counted in UTF-16 units.
fn text(value: &Value, least: usize, most: usize) -> Result<usize, String> {
    let text = value.as_str().ok_or_else(|| format!("no text: {value}"))?;
    let length = text.encode_utf16().count();
    ensure((least..=most).contains(&length), || format!("{length} characters, not {least} to {most}"))?;
    Ok(length)
}

fn message(body: &Value, is_edit: bool) -> Checked {
    let known = ["content", "embeds", "components", "flags", "allowed_mentions", "nonce", "enforce_nonce"];
    keys(body, &[&known[..], if is_edit { &[] } else { &["message_reference"] }].concat())?;
    if !body["content"].is_null() {
        text(&body["content"], 0, 2000)?;
    }
    let content = body["content"].as_str().unwrap_or_default();
    let none = Vec::new();
    let embeds = body["embeds"].as_array().unwrap_or(&none);
    let is_empty = content.trim().is_empty() && embeds.is_empty();
    ensure(is_edit || !is_empty, || "an empty message".into())?;
    if !is_empty {
        ensure(body["allowed_mentions"] == json!({ "parse": [] }), || "it may ping somebody".into())?;
    }
    ensure(content.is_empty() || body["flags"].as_u64().unwrap_or(0) & 4 == 4, || "it shows previews".into())?;
    if body["enforce_nonce"] == true {
        text(&body["nonce"], 1, 25)?;
    }
    ensure(!is_edit || body["nonce"].is_null(), || "an edit has no nonce".into())?;
    ensure(embeds.len() <= 10, || "too many embeds".into())?;
    let mut sum = 0;
    for embed in embeds {
        keys(embed, &["title", "description", "color", "fields", "footer", "url", "timestamp"])?;
        sum += if embed["title"].is_null() { 0 } else { text(&embed["title"], 1, 256)? };
        sum += if embed["description"].is_null() { 0 } else { text(&embed["description"], 1, 4096)? };
        sum += if embed["footer"].is_null() { 0 } else { text(&embed["footer"]["text"], 1, 2048)? };
        let fields = embed["fields"].as_array().unwrap_or(&none);
        ensure(fields.len() <= 25, || "too many fields".into())?;
        for field in fields {
            keys(field, &["name", "value", "inline"])?;
            sum += text(&field["name"], 1, 256)? + text(&field["value"], 1, 1024)?;
        }
        ensure(embed["color"].is_null() || embed["color"].as_u64().is_some_and(|color| color <= 0xff_ffff), || {
            "color".into()
        })?;
    }
    ensure(sum <= 6000, || format!("embeds of {sum} characters"))?;
    let rows = body["components"].as_array().unwrap_or(&none);
    ensure(rows.len() <= 5, || "too many rows".into())?;
    let mut ids = Vec::new();
    for row in rows {
        keys(row, &["type", "components"])?;
        let buttons = row["components"].as_array().ok_or("a row without components")?;
        ensure(row["type"] == 1 && (1..=5).contains(&buttons.len()), || "a row".into())?;
        for button in buttons {
            keys(button, &["type", "style", "label", "custom_id", "disabled", "emoji"])?;
            ensure(button["type"] == 2 && (1..=4).contains(&button["style"].as_u64().unwrap_or(0)), || {
                "a button".into()
            })?;
            text(&button["label"], 1, 80)?;
            text(&button["custom_id"], 1, 100)?;
            ensure(!ids.contains(&&button["custom_id"]), || "two buttons with one id".into())?;
            ids.push(&button["custom_id"]);
        }
    }
    Ok(())
}

fn commands(body: &Value) -> Checked {
    let all = body.as_array().ok_or("not a list")?;
    ensure(all.len() <= 100, || "too many commands".into())?;
    let name = |value: &Value| {
        text(value, 1, 32)?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        ensure(value.as_str().unwrap_or_default().chars().all(fits), || format!("the name {value}"))
    };
    for command in all {
        keys(command, &["type", "name", "description", "options", "integration_types", "contexts"])?;
        name(&command["name"])?;
        text(&command["description"], 1, 100)?;
        ensure(command["integration_types"] == json!([1]) && command["contexts"] == json!([1]), || {
            "where it is".into()
        })?;
        for option in command["options"].as_array().ok_or("options")? {
            keys(option, &["type", "name", "description", "required"])?;
            name(&option["name"])?;
            text(&option["description"], 1, 100)?;
            ensure(option["type"] == 3 && option["required"].is_boolean(), || "an option".into())?;
        }
    }
    Ok(())
}
