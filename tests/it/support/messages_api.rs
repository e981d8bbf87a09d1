//! A stub of the Messages API on loopback that answers by script and records every request.
//!
//! The real client runs against it with `ANTHROPIC_BASE_URL` and any key. The stub runs in its own thread, so that tests with
//! and without a runtime can use it. Shapes: <https://docs.anthropic.com/en/api/messages-streaming>.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The model's answer to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A text that ends the turn.
    Say(String),
    /// A text that ends the turn, sent character by character, with this pause before each.
    #[allow(dead_code, reason = "the benchmark's")]
    Letters(String, Duration),
    /// A text that ends the turn, whose first letter comes at once, and the others after the gate is open.
    #[allow(dead_code, reason = "the tests'")]
    Gated(String, Arc<AtomicBool>),
    /// Parallel tool calls: name and input of each.
    Call(Vec<(String, Value)>),
    /// A tool call after which the conversation fills the model's window.
    #[allow(dead_code, reason = "the tests'")]
    LastCall(String, Value),
    /// An HTTP error with the API's error type, e.g. `401, "authentication_error"`.
    Error(u16, &'static str),
    /// No answer while the connection is open.
    Silence,
}

impl Reply {
    pub fn say(text: &str) -> Self {
        Self::Say(text.into())
    }
    /// Creates a single call.
    pub fn call(tool: &str, input: Value) -> Self {
        Self::Call(vec![(tool.into(), input)])
    }
    /// Creates a single `Bash` call.
    pub fn bash(command: &str) -> Self {
        Self::call("Bash", json!({ "command": command, "description": "test" }))
    }
}

/// One request as received.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; `null` if it is not JSON.
    pub body: Value,
}

/// A tool result that the client sent back to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The tool that was called. `input` is the input of the call.
    pub tool: String,
    pub input: Value,
    /// The result's text blocks, joined by line feeds.
    pub text: String,
    pub is_error: bool,
}

impl Request {
    /// Returns the names of the tools that the agent sees, sorted.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> =
            tools.iter().map(|tool| tool["name"].as_str().unwrap_or("?").to_string()).collect();
        names.sort();
        names
    }

    /// Returns the number of the model's answers in the conversation.
    pub fn answers(&self) -> usize {
        self.body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "assistant").count()
    }

    /// Returns the tool results of the whole conversation, in order.
    pub fn results(&self) -> Vec<ToolResult> {
        let mut calls: BTreeMap<String, (String, Value)> = BTreeMap::new();
        let mut results = Vec::new();
        for message in self.body["messages"].as_array().into_iter().flatten() {
            for block in message["content"].as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("tool_use") => {
                        let name = block["name"].as_str().unwrap_or_default().to_string();
                        calls.insert(id(&block["id"]), (name, block["input"].clone()));
                    }
                    Some("tool_result") => {
                        let (tool, input) = calls.get(&id(&block["tool_use_id"])).cloned().unwrap_or_default();
                        let is_error = block["is_error"] == true;
                        results.push(ToolResult { tool, input, text: text_of(&block["content"]), is_error });
                    }
                    _ => {}
                }
            }
        }
        results
    }

    /// Returns the text of the last user message.
    pub fn last_text(&self) -> String {
        self.body["messages"]
            .as_array()
            // 2.1.330 adds system messages.
            .and_then(|all| all.iter().rfind(|message| message["role"] == "user"))
            .map(|last| text_of(&last["content"]))
            .unwrap_or_default()
    }

    /// Returns whether the body contains the text anywhere.
    pub fn mentions(&self, text: &str) -> bool {
        let quoted = Value::from(text).to_string();
        self.body.to_string().contains(quoted.trim_matches('"'))
    }
}

fn id(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

struct Shared {
    script: Box<Script>,
    requests: Mutex<Vec<Request>>,
    ids: AtomicU64,
}

/// The running stub, which ends when the value is dropped.
pub struct MessagesApi {
    url: String,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl MessagesApi {
    /// Starts a stub that says the last line of what it is told, in brackets.
    pub fn repeating() -> Self {
        Self::answering(|request| Reply::say(&format!("({})", request.last_text().lines().last().unwrap_or_default())))
    }

    /// Starts a stub that sends the replies in order, one for each answer of the model in a conversation, and then says `done`.
    /// The number of answers already in the conversation selects the reply. The client may therefore repeat requests, and several
    /// conversations may run concurrently.
    pub fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::answering(move |request| replies.get(request.answers()).cloned().unwrap_or_else(|| Reply::say("done")))
    }

    /// Starts a stub that replies as the function decides.
    pub fn answering(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared { script: Box::new(script), requests: Mutex::default(), ids: AtomicU64::new(1) });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let router = Router::new().fallback(answer).with_state(shared.clone());
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
        Self { url, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the URL for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns every request so far, to any path.
    pub fn all(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns the requests to the model so far.
    pub fn requests(&self) -> Vec<Request> {
        self.all().into_iter().filter(|request| is_for_the_model(&request.method, &request.path)).collect()
    }

    /// Returns the last request to the model. Panics if there was none.
    #[track_caller]
    pub fn last(&self) -> Request {
        self.requests().pop().expect("the client asked the model")
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        // The thread may have ended by a panic, which was already reported.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(|thread| thread.join());
    }
}

fn is_for_the_model(method: &str, path: &str) -> bool {
    method == "POST" && path.split('?').next() == Some("/v1/messages")
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = Request {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    shared.requests.lock().unwrap().push(request.clone());
    if !is_for_the_model(&request.method, &request.path) {
        return axum::Json(json!({})).into_response();
    }
    let number = shared.ids.fetch_add(1, Ordering::SeqCst);
    match (shared.script)(&request) {
        Reply::Say(text) => events(SHORT, &request, number, &[text_block(&text)], "end_turn", None),
        Reply::Letters(text, pause) => {
            events(SHORT, &request, number, &[text_block(&text)], "end_turn", Some(Pace::Pause(pause)))
        }
        Reply::Gated(text, gate) => {
            events(SHORT, &request, number, &[text_block(&text)], "end_turn", Some(Pace::Gate(gate)))
        }
        Reply::Call(calls) => {
            let block = |(at, (tool, input)): (usize, &(String, Value))| tool_block(number, at, tool, input);
            events(SHORT, &request, number, &calls.iter().enumerate().map(block).collect::<Vec<_>>(), "tool_use", None)
        }
        Reply::LastCall(tool, input) => {
            events(FULL, &request, number, &[tool_block(number, 0, &tool, &input)], "tool_use", None)
        }
        Reply::Error(status, kind) => {
            let body = json!({"type": "error", "error": {"type": kind, "message": format!("stub: {kind}")}});
            (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
        }
        Reply::Silence => std::future::pending().await,
    }
}

fn text_block(text: &str) -> (Value, Value) {
    (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
}

fn tool_block(number: u64, at: usize, tool: &str, input: &Value) -> (Value, Value) {
    let id = format!("toolu_{number:06}{at:06}");
    let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
    (json!({"type": "tool_use", "id": id, "name": tool, "input": {}}), delta)
}

/// When the letters of a text come.
enum Pace {
    /// Each after this time.
    Pause(Duration),
    /// The first one at once, the others when this is true.
    Gate(Arc<AtomicBool>),
}

impl Pace {
    async fn before_letter(&self, is_first: bool) {
        match self {
            Self::Pause(pause) => tokio::time::sleep(*pause).await,
            Self::Gate(gate) => {
                while !is_first && !gate.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }
}

/// Lengths of a conversation, in tokens. The second one fills the window of every model.
const SHORT: u64 = 100;
const FULL: u64 = 990_000;

/// Returns a whole message, streamed if the request asks for that: with a pace, each letter by itself.
fn events(
    tokens: u64,
    request: &Request,
    number: u64,
    blocks: &[(Value, Value)],
    stop_reason: &str,
    pace: Option<Pace>,
) -> Response {
    let usage = json!({"input_tokens": tokens, "output_tokens": 20});
    let message = |content: Value, stop_reason: Value| {
        json!({"id": format!("msg_{number:06}"), "type": "message", "role": "assistant",
            "model": request.body["model"], "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": usage})
    };
    if request.body["stream"] != true {
        let content = blocks.iter().map(|(start, delta)| whole(start, delta)).collect();
        return axum::Json(message(Value::Array(content), stop_reason.into())).into_response();
    }
    let mut stream = Vec::new();
    let mut event = |data: Value| stream.push(format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap()));
    event(json!({"type": "message_start", "message": message(json!([]), Value::Null)}));
    for (index, (start, delta)) in blocks.iter().enumerate() {
        event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let letters: Vec<Value> = match (&pace, delta["text"].as_str()) {
            (Some(_), Some(text)) => {
                text.chars().map(|letter| json!({"type": "text_delta", "text": letter.to_string()})).collect()
            }
            _ => vec![delta.clone()],
        };
        for delta in letters {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
    }
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": usage}),
    );
    event(json!({"type": "message_stop"}));
    let body = match pace {
        None => Body::from(stream.concat()),
        Some(pace) => {
            let letters = (stream.into_iter(), pace, true);
            Body::from_stream(futures::stream::unfold(letters, async |(mut rest, pace, mut is_first)| {
                let event = rest.next()?;
                if event.contains("text_delta") {
                    pace.before_letter(std::mem::take(&mut is_first)).await;
                }
                Some((Ok::<_, std::convert::Infallible>(event), (rest, pace, is_first)))
            }))
        }
    };
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn whole(start: &Value, delta: &Value) -> Value {
    let mut block = start.clone();
    match delta["type"].as_str() {
        Some("text_delta") => block["text"] = delta["text"].clone(),
        _ => block["input"] = serde_json::from_str(delta["partial_json"].as_str().unwrap()).unwrap(),
    }
    block
}
