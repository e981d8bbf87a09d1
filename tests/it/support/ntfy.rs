//! An ntfy server on loopback that follows ntfy's documentation. It accepts messages as JSON or as plain bodies, keeps them,
//! and streams them to those who follow a topic. It refuses what the real server would refuse. It also plays a phone's buttons.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use serde_json::{Value, json};

/// The allowed keys of a message.
const KEYS: &[&str] =
    &["topic", "message", "title", "tags", "priority", "click", "actions", "attach", "delay", "markdown"];

/// The allowed keys of a button that sends a request.
const ACTION_KEYS: &[&str] = &["action", "label", "url", "method", "headers", "body", "clear"];

#[derive(Default)]
struct Server {
    messages: Vec<Value>,
    /// Whether the server answers nobody and has cut every stream.
    is_down: bool,
    /// Number of further messages that are refused as too many, and the seconds to wait.
    limited: (usize, u64),
    /// Whether following a topic is forbidden.
    is_closed: bool,
    /// The topic and the id of each retracted message.
    deleted: Vec<(String, String)>,
    /// The `since` value of each request that follows a topic.
    followed: Vec<String>,
    /// The token of each request that follows a topic.
    tokens: Vec<Option<String>>,
}

type Shared = Arc<Mutex<Server>>;

/// The stub.
pub struct Ntfy {
    server: Shared,
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Ntfy {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = Shared::default();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new()
            .route("/", post(publish_json))
            .route("/v1/health", get(health))
            .route("/{topic}", post(publish_plain))
            .route("/{topic}/json", get(follow))
            .route("/{topic}/{id}", delete(take_back))
            .with_state(Arc::clone(&server));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { server, url, _runtime: runtime }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the messages published to a topic, oldest first.
    pub fn topic(&self, topic: &str) -> Vec<Value> {
        self.server.lock().unwrap().messages.iter().filter(|message| message["topic"] == topic).cloned().collect()
    }

    /// Returns the `since` value of each request that follows a topic.
    pub fn followed(&self) -> Vec<String> {
        self.server.lock().unwrap().followed.clone()
    }

    /// Returns the token of each request that follows a topic.
    pub fn tokens(&self) -> Vec<Option<String>> {
        self.server.lock().unwrap().tokens.clone()
    }

    /// Cuts every stream and answers nobody, or ends this outage.
    pub fn set_down(&self, is_down: bool) {
        self.server.lock().unwrap().is_down = is_down;
    }

    /// Refuses the next `count` messages as too many, with this number of seconds to wait.
    pub fn limit(&self, count: usize, seconds: u64) {
        self.server.lock().unwrap().limited = (count, seconds);
    }

    /// Forbids following a topic.
    pub fn close(&self) {
        self.server.lock().unwrap().is_closed = true;
    }

    /// Returns the topic and the id of each retracted message.
    pub fn deleted(&self) -> Vec<(String, String)> {
        self.server.lock().unwrap().deleted.clone()
    }

    /// Publishes to a topic, as anyone can.
    pub fn publish(&self, topic: &str, text: &str) {
        let sent = ureq::post(format!("{}/{topic}", self.url)).send(text).unwrap();
        assert_eq!(sent.status().as_u16(), 200);
    }

    /// Performs the action of a message's button, as the phone does.
    #[track_caller]
    pub fn press(&self, message: &Value, label: &str) {
        let mut actions = message["actions"].as_array().into_iter().flatten();
        let action = actions.find(|action| action["label"] == label).unwrap_or_else(|| panic!("{message:#}"));
        assert_eq!((&action["action"], &action["method"]), (&json!("http"), &json!("POST")), "{action:#}");
        let mut request = ureq::post(action["url"].as_str().unwrap());
        for (name, value) in action["headers"].as_object().unwrap() {
            request = request.header(name, value.as_str().unwrap());
        }
        request.send(action["body"].as_str().unwrap()).unwrap();
    }
}

async fn health(State(server): State<Shared>, headers: HeaderMap) -> Response {
    let server = server.lock().unwrap();
    if server.is_down {
        return refuse(502, "bad gateway");
    }
    // A wrong token is refused even for requests that need none.
    if headers.get("Authorization").is_some_and(|token| token != "Bearer tk_secret") {
        return refuse(401, "unauthorized");
    }
    axum::Json(json!({ "healthy": true })).into_response()
}

fn refuse(status: u16, error: &str) -> Response {
    let body = json!({ "code": u64::from(status) * 100, "http": status, "error": error });
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

fn publish(server: &Shared, mut message: Value) -> Response {
    let mut server = server.lock().unwrap();
    if server.is_down {
        return refuse(502, "bad gateway");
    }
    if server.limited.0 > 0 {
        server.limited.0 -= 1;
        let mut refused = refuse(429, "limit reached: too many requests");
        refused.headers_mut().insert("Retry-After", server.limited.1.into());
        return refused;
    }
    let id = format!("m{:011}", server.messages.len());
    message["id"] = json!(id);
    message["event"] = json!("message");
    message["time"] = json!(1_790_000_000);
    server.messages.push(message.clone());
    axum::Json(message).into_response()
}

/// Returns the reason why the server would refuse a message.
fn fault(message: &Value) -> Option<&'static str> {
    let is_known = |value: &Value, keys: &[&str]| {
        value.as_object().is_some_and(|fields| fields.keys().all(|key| keys.contains(&key.as_str())))
    };
    let is_topic = |topic: &str| (1..=64).contains(&topic.len()) && !topic.contains('/');
    if !is_known(message, KEYS) || !message["topic"].as_str().is_some_and(is_topic) {
        return Some("invalid request: request body must be message JSON");
    }
    if message["message"].as_str().is_none_or(|text| text.len() > 4096) {
        return Some("invalid request: message too large");
    }
    if !message["priority"].is_null() && !(1..=5).contains(&message["priority"].as_i64().unwrap_or(0)) {
        return Some("invalid priority parameter");
    }
    let actions: Vec<&Value> = message["actions"].as_array().into_iter().flatten().collect();
    if actions.len() > 3 {
        return Some("invalid request: actions invalid; only 3 actions allowed");
    }
    let is_whole = |action: &&Value| {
        is_known(action, ACTION_KEYS)
            && ["label", "url", "body"].iter().all(|key| action[key].as_str().is_some_and(|text| !text.is_empty()))
    };
    (!actions.iter().all(is_whole)).then_some("invalid request: actions invalid")
}

async fn publish_json(State(server): State<Shared>, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    match fault(&message) {
        Some(why) => refuse(400, why),
        None => publish(&server, message),
    }
}

async fn publish_plain(State(server): State<Shared>, Path(topic): Path<String>, body: Bytes) -> Response {
    let text = match body.is_empty() {
        true => "triggered".to_owned(),
        false => String::from_utf8_lossy(&body).into_owned(),
    };
    publish(&server, json!({ "topic": topic, "message": text }))
}

async fn take_back(State(server): State<Shared>, Path(message): Path<(String, String)>) -> Response {
    server.lock().unwrap().deleted.push(message.clone());
    axum::Json(json!({ "event": "message_delete", "topic": message.0, "sequence_id": message.1 })).into_response()
}

#[derive(serde::Deserialize)]
struct Since {
    since: Option<String>,
}

/// A position in the stream: the number of messages that it has passed.
struct Place {
    server: Shared,
    topic: String,
    passed: usize,
    waited: u32,
}

async fn follow(
    State(server): State<Shared>,
    Path(topic): Path<String>,
    Query(Since { since }): Query<Since>,
    headers: HeaderMap,
) -> Response {
    let passed = {
        let mut server = server.lock().unwrap();
        if server.is_down {
            return refuse(502, "bad gateway");
        }
        if server.is_closed {
            return refuse(403, "forbidden");
        }
        server.followed.push(since.clone().unwrap_or_default());
        server.tokens.push(headers.get("Authorization").map(|token| token.to_str().unwrap().to_owned()));
        let count = server.messages.len();
        match since.as_deref() {
            None | Some("none") => count,
            Some("all") => 0,
            // An id that is no longer kept counts as "all".
            Some(id) => server.messages.iter().position(|message| message["id"] == id).map_or(0, |at| at + 1),
        }
    };
    let open = json!({ "id": "o", "time": 1_790_000_000, "event": "open", "topic": topic });
    let first = futures::stream::once(async move { line(&open) });
    let place = Place { server, topic, passed, waited: 0 };
    let rest = futures::stream::unfold(place, |mut place| async move {
        loop {
            {
                let server = place.server.lock().unwrap();
                if server.is_down {
                    return None;
                }
                if let Some(message) = server.messages.get(place.passed).cloned() {
                    drop(server);
                    place.passed += 1;
                    if message["topic"] == place.topic.as_str() {
                        return Some((line(&message), place));
                    }
                    continue;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            place.waited += 1;
            if place.waited % 20 == 0 {
                let alive = json!({ "id": "k", "time": 1_790_000_000, "event": "keepalive", "topic": place.topic });
                return Some((line(&alive), place));
            }
        }
    });
    Body::from_stream(futures::StreamExt::chain(first, rest)).into_response()
}

fn line(value: &Value) -> Result<Bytes, Infallible> {
    Ok(Bytes::from(format!("{value}\n")))
}
