//! The wire: one JSON object a line, both ways, as the client's stream-json and control protocol have it.
//!
//! Tolerant: unknown types, subtypes and fields are not errors, and a missing field is its empty value. Only a line
//! that is no JSON object is malformed. What a field means is for the session to judge.
//! Source: the client's own Agent SDKs; every shape here was seen with 2.1.197 (`tests/fixtures/wire.jsonl`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tasks::{self, News};
use crate::agent::{ClientOptions, Tokens};

/// The callback that is asked before each call of a tool.
pub(super) const BEFORE_TOOL: &str = "hook_0";
/// The callback that is asked before a turn ends.
pub(super) const BEFORE_STOP: &str = "hook_1";

/// One message of the client.
#[derive(Debug)]
pub(super) enum Incoming {
    /// `system/init`: the session as the client has set it up.
    Init(Init),
    /// `system/api_retry`: a request failed; the client will try again by itself.
    ApiRetry { status: Option<u16> },
    /// A task has begun or ended.
    Tasks(News),
    /// A part of what the model says, while it says it.
    Letters(String),
    /// What the model said.
    Assistant(Vec<Block>),
    /// What was said to the model: tool results, mostly.
    User(Vec<Block>),
    /// One of our own messages, which the client has given the model just now: the id that we gave it.
    TakenUp { id: String },
    /// The client has made the conversation shorter.
    Compacted(Compaction),
    /// The end of a turn.
    Result(Box<TurnResult>),
    /// The client asks us. It waits for an answer with this id.
    Request { id: String, request: Request },
    /// The client takes a question back.
    Cancel { id: String },
    /// The answer to one of our own requests.
    Response { id: String, error: Option<String> },
    /// Anything else: its type and subtype.
    Other(String),
}

/// `system/init`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    pub session_id: String,
    /// The tools that exist. `Agent` is called `Task` here.
    pub tools: Vec<String>,
    pub claude_code_version: String,
    pub model: String,
}

/// What `system/compact_boundary` tells, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Compaction {
    pub pre_tokens: Option<u64>,
    /// Said by 2.1.330, not by 2.1.197.
    pub post_tokens: Option<u64>,
}

/// A block of a message's content.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        #[serde(default)]
        tool_use_id: String,
        /// A string, or blocks.
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

/// `result`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnResult {
    pub subtype: String,
    /// Counts, whatever the subtype is called.
    pub is_error: bool,
    pub api_error_status: Option<u16>,
    pub result: Option<String>,
    pub errors: Vec<Value>,
    pub session_id: String,
    pub num_turns: Option<u32>,
    pub total_cost_usd: Option<f64>,
    pub permission_denials: Vec<Denial>,
    /// By the model's name; over the whole session, as the cost is.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
}

/// What a session took of one model, in tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

impl TurnResult {
    /// What was taken of all models; `None`: the client does not say.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        let of_model = |of: &ModelUsage| Tokens {
            input: of.input_tokens,
            cache_read: of.cache_read_input_tokens,
            cache_write: of.cache_creation_input_tokens,
            output: of.output_tokens,
        };
        self.model_usage.values().map(of_model).reduce(|sum, of| sum + of)
    }
}

/// An entry of `permission_denials`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Denial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Value,
}

/// What the client asks.
#[derive(Debug)]
pub(super) enum Request {
    /// May this call run?
    BeforeTool(Call),
    /// May the turn end? `again`: it was kept going before.
    BeforeStop { again: bool },
    /// A JSON-RPC message for one of our servers.
    Mcp { server: String, message: Value },
    /// A permission, where the client would ask a person.
    Permission(Call),
    /// A question about a call that cannot be read: it is denied, in the form of a hook or of a permission.
    UnreadableCall(Form),
    /// Anything else: its subtype, and what for.
    Unknown(String),
}

/// The form that the answer about a call has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// [`BEFORE_TOOL`]'s.
    Hook,
    /// `can_use_tool`'s.
    Permission,
}

/// A call of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    pub tool_name: String,
    #[serde(alias = "input")]
    pub tool_input: Value,
    pub tool_use_id: String,
    pub cwd: PathBuf,
    pub agent_type: Option<String>,
}

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// JSON, but no object with a `type`.
    #[error("not an object with a `type`")]
    NoType,
}

/// Reads one line.
///
/// # Errors
/// [`Malformed`]. A message of a known type whose fields have other types than they should is [`Incoming::Other`],
/// save for a result, which is then an error, and for a question: that is [`Request::Unknown`] or [`Request::UnreadableCall`], so that it is answered.
pub(super) fn read(line: &[u8]) -> Result<Incoming, Malformed> {
    let mut message: Value = serde_json::from_slice(line)?;
    let kind = message.get("type").and_then(Value::as_str).ok_or(Malformed::NoType)?.to_string();
    let subtype = text(&message, "subtype");
    let other = || Incoming::Other(format!("{kind}/{subtype}"));
    Ok(match (kind.as_str(), subtype.as_str()) {
        ("system", "init") => typed(message).map_or_else(other, Incoming::Init),
        ("system", "api_retry") => {
            let status = ["error_status", "status"].iter().find_map(|name| message.get(name)?.as_u64());
            Incoming::ApiRetry { status: status.and_then(|status| u16::try_from(status).ok()) }
        }
        ("system", "compact_boundary") => {
            let read = message.get_mut("compact_metadata").map(Value::take).and_then(typed);
            Incoming::Compacted(read.unwrap_or_default())
        }
        ("system", subtype) => tasks::read(subtype, &mut message).map_or_else(other, Incoming::Tasks),
        ("stream_event", _) => letters(&message).map_or_else(other, Incoming::Letters),
        ("assistant", _) => Incoming::Assistant(blocks(&mut message)),
        ("user", _) if message.get("isReplay") == Some(&Value::Bool(true)) => {
            Incoming::TakenUp { id: text(&message, "uuid") }
        }
        ("user", _) => Incoming::User(blocks(&mut message)),
        ("result", _) => Incoming::Result(Box::new(typed(message).unwrap_or_else(|| TurnResult {
            is_error: true,
            errors: vec!["its result cannot be read".into()],
            ..TurnResult::default()
        }))),
        ("control_request", _) => {
            let id = text(&message, "request_id");
            Incoming::Request { id, request: request(message.get_mut("request").map(Value::take).unwrap_or_default()) }
        }
        ("control_cancel_request", _) => Incoming::Cancel { id: text(&message, "request_id") },
        ("control_response", _) => {
            let response = message.get("response").cloned().unwrap_or_default();
            let failed = response.get("subtype").and_then(Value::as_str) == Some("error");
            Incoming::Response { id: text(&response, "request_id"), error: failed.then(|| text(&response, "error")) }
        }
        _ => other(),
    })
}

/// What the session's own model says in a `stream_event`; what its agents say is none of the answer.
fn letters(message: &Value) -> Option<String> {
    let is_own = message.get("parent_tool_use_id").is_none_or(Value::is_null);
    let delta = message.pointer("/event/delta").filter(|_| is_own)?;
    (delta.get("type")? == "text_delta").then(|| text(delta, "text"))
}

fn request(mut request: Value) -> Request {
    let subtype = text(&request, "subtype");
    let unknown = |what: &str| Request::Unknown(format!("{subtype}{what}"));
    match subtype.as_str() {
        "hook_callback" => {
            let callback = text(&request, "callback_id");
            let input = request.get_mut("input").map(Value::take).unwrap_or_default();
            match (callback.as_str(), text(&input, "hook_event_name").as_str()) {
                (BEFORE_TOOL, "PreToolUse") => {
                    typed(input).map_or(Request::UnreadableCall(Form::Hook), Request::BeforeTool)
                }
                // A call all the same. An error as the answer might be taken for a yes.
                (_, "PreToolUse") | (BEFORE_TOOL, _) => Request::UnreadableCall(Form::Hook),
                (BEFORE_STOP, "Stop") => {
                    Request::BeforeStop { again: input.get("stop_hook_active") == Some(&Value::Bool(true)) }
                }
                (callback, event) => unknown(&format!(" {callback} for {event}")),
            }
        }
        "mcp_message" => Request::Mcp {
            server: text(&request, "server_name"),
            message: request.get_mut("message").map(Value::take).unwrap_or_default(),
        },
        "can_use_tool" => typed(request).map_or(Request::UnreadableCall(Form::Permission), Request::Permission),
        _ => unknown(""),
    }
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// The content of a message: a string is one text; a block that is not understood is left out.
fn blocks(message: &mut Value) -> Vec<Block> {
    match message.pointer_mut("/message/content").map(Value::take) {
        Some(Value::String(text)) => vec![Block::Text { text }],
        Some(Value::Array(blocks)) => blocks.into_iter().filter_map(typed).collect(),
        _ => Vec::new(),
    }
}

/// The text of a tool result, without the tags that the client puts around an error for the model.
pub(super) fn text_of(content: &Value) -> String {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    without_error_tags(&text)
}

/// A tool result's text without the tags around an error.
pub(crate) fn without_error_tags(text: &str) -> String {
    text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")
}

/// Whether the text of a tool result says that the call was denied, in the client's words.
pub(super) fn reads_as_denial(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "permission to use",
        "requested permissions to",
        "was denied",
        "been denied",
        "is not allowed",
        "no such tool available",
        "doesn't want to proceed",
    ];
    let beginning: String = text.chars().take(400).collect::<String>().to_lowercase();
    WORDS.iter().any(|words| beginning.contains(words))
}

/// Our first message. `timeout`: seconds after which the client gives up waiting for a verdict, and denies. `servers`: the
/// MCP servers that the client is to have. `ask_to_stop`: whether it asks before it ends its turn. `options`: its system prompts
/// are told here.
///
/// Each costs the client time, so none is there for nothing. A server that is named here is greeted once; one in
/// `--mcp-config` is greeted when the client starts and again after this message.
pub(super) fn initialize(
    id: &str,
    timeout: u64,
    servers: &[&str],
    ask_to_stop: bool,
    options: &ClientOptions,
) -> Value {
    let mut hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": [BEFORE_TOOL], "timeout": timeout}]});
    if ask_to_stop {
        hooks["Stop"] = json!([{"matcher": null, "hookCallbackIds": [BEFORE_STOP]}]);
    }
    let mut request = json!({"subtype": "initialize", "hooks": hooks});
    if !servers.is_empty() {
        request["sdkMcpServers"] = json!(servers);
    }
    let prompts = [("systemPrompt", &options.system_prompt), ("appendSystemPrompt", &options.append_system_prompt)];
    for (field, text) in prompts {
        if let Some(text) = text {
            request[field] = text.as_str().into();
        }
    }
    ours(id, request)
}

/// Asks the client to break off its turn.
pub(super) fn interrupt(id: &str) -> Value {
    ours(id, json!({"subtype": "interrupt"}))
}

fn ours(id: &str, request: Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// What a person says. `id`, a UUID: the client tells when it gives the message to the model ([`Incoming::TakenUp`]).
pub(super) fn user(prompt: &str, id: Option<&str>) -> Value {
    let message = json!({"role": "user", "content": prompt});
    let mut line = json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""});
    if let Some(id) = id {
        line["uuid"] = id.into();
    }
    line
}

fn answer(id: &str, response: Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})
}

/// The verdict on a call, in the form that was asked for. `input`: the call's own.
pub(super) fn verdict(id: &str, form: Form, allow: bool, reason: &str, input: &Value) -> Value {
    let output = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": if allow { "allow" } else { "deny" },
        "permissionDecisionReason": reason,
    });
    answer(
        id,
        match form {
            Form::Hook => json!({"hookSpecificOutput": output}),
            Form::Permission if allow => json!({"behavior": "allow", "updatedInput": input}),
            Form::Permission => json!({"behavior": "deny", "message": reason}),
        },
    )
}

/// Whether the turn may end; with a reason it goes on.
pub(super) fn stop(id: &str, go_on: Option<&str>) -> Value {
    answer(id, go_on.map_or_else(|| json!({}), |reason| json!({"decision": "block", "reason": reason})))
}

/// A JSON-RPC message of our server.
pub(super) fn mcp(id: &str, message: Value) -> Value {
    answer(id, json!({"mcp_response": message}))
}

/// A notification to our server was taken. Without it the client never begins its turn.
pub(super) fn mcp_taken(id: &str) -> Value {
    mcp(id, json!({"jsonrpc": "2.0", "result": {}}))
}

/// The answer to what we do not understand.
pub(super) fn refusal(id: &str, error: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}})
}

#[cfg(test)]
mod tests;
