//! The wire format: one JSON object a line, both ways, following the client's stream-json and control protocol.
//!
//! Parsing is tolerant: unknown types, subtypes and fields are not errors, and a missing field is empty. Only a line that is
//! not a JSON object with a `type` is malformed. The session decides what a field means.
//! Source: the client's own Agent SDKs; every shape here was seen with 2.1.197 (`tests/fixtures/wire.jsonl`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tasks::{self, TaskEvent};
use crate::agent::{ClientOptions, Tokens};

/// The id of the hook callback before each tool call.
pub(super) const BEFORE_TOOL: &str = "hook_0";
/// The id of the hook callback before the end of a turn.
pub(super) const BEFORE_STOP: &str = "hook_1";
/// Id of our hook that is called before a conversation is compacted.
pub(super) const BEFORE_COMPACTION: &str = "hook_2";

/// A message of the client.
#[derive(Debug)]
pub(super) enum Incoming {
    /// `system/init`: the session as the client has set it up.
    Init(Init),
    /// `system/api_retry`: a request failed, and the client will retry by itself.
    ApiRetry { status: Option<u16> },
    /// A task has begun or ended.
    Tasks(TaskEvent),
    /// A part of the model's text, streamed.
    Letters(String),
    /// A message of the model.
    Assistant(Vec<Block>),
    /// A message to the model, mostly tool results.
    User(Vec<Block>),
    /// The client has just given the model one of our messages. `id` is the one that we gave the message.
    TakenUp { id: String },
    /// The client has compacted the conversation.
    Compacted(Compaction),
    /// The end of a turn.
    Result(Box<TurnResult>),
    /// A question of the client. It waits for an answer with this id.
    Request { id: String, request: Request },
    /// The client withdraws a question.
    Cancel { id: String },
    /// The answer to one of our own requests.
    Response { id: String, error: Option<String> },
    /// Any other message: its type and subtype.
    Other(String),
}

/// `system/init`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    pub session_id: String,
    /// The existing tools. `Agent` is called `Task` here.
    pub tools: Vec<String>,
    pub claude_code_version: String,
    pub model: String,
}

/// The metadata of `system/compact_boundary`, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Compaction {
    pub pre_tokens: Option<u64>,
    /// Reported by 2.1.330, not by 2.1.197.
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
    /// Whether the turn failed. This decides, whatever the subtype.
    pub is_error: bool,
    pub api_error_status: Option<u16>,
    pub result: Option<String>,
    pub errors: Vec<Value>,
    pub session_id: String,
    pub num_turns: Option<u32>,
    pub total_cost_usd: Option<f64>,
    pub permission_denials: Vec<Denial>,
    /// Usage by the model's name, summed over the whole session like the cost.
    #[serde(rename = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
}

/// A session's usage of one model, in tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

impl TurnResult {
    /// Returns the usage summed over all models; `None` if the client reports none.
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

/// A question of the client.
#[derive(Debug)]
pub(super) enum Request {
    /// Whether this call may run.
    BeforeTool(Call),
    /// Whether the turn may end. `is_repeated` says that this hook has continued the turn before.
    BeforeStop { is_repeated: bool },
    /// Whether the conversation may be compacted.
    BeforeCompaction,
    /// A JSON-RPC message for one of our servers.
    Mcp { server: String, message: Value },
    /// A permission for a call, asked where the client would ask a person.
    Permission(Call),
    /// A question about a call that cannot be parsed. It is denied in the given form.
    UnreadableCall(AnswerForm),
    /// Any other question: its subtype and details.
    Unknown(String),
}

/// The form of the answer about a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerForm {
    /// The answer to [`BEFORE_TOOL`].
    Hook,
    /// The answer to `can_use_tool`.
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

/// The reason why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum MalformedLine {
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The line is JSON, but not an object with a `type`.
    #[error("not an object with a `type`")]
    NoType,
}

/// Parses one line.
///
/// # Errors
/// [`MalformedLine`]. A message of a known type with fields of the wrong types is [`Incoming::Other`]. Exceptions are a result, which
/// becomes an error, and a question, which becomes [`Request::Unknown`] or [`Request::UnreadableCall`] and so is answered.
pub(super) fn read(line: &[u8]) -> Result<Incoming, MalformedLine> {
    let mut message: Value = serde_json::from_slice(line)?;
    let kind = message.get("type").and_then(Value::as_str).ok_or(MalformedLine::NoType)?.to_string();
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

/// Returns the text that the session's own model says in a `stream_event`. The text of its agents is not part of the answer.
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
                    typed(input).map_or(Request::UnreadableCall(AnswerForm::Hook), Request::BeforeTool)
                }
                // This still asks about a call, and the client might take an error as an approval.
                (_, "PreToolUse") | (BEFORE_TOOL, _) => Request::UnreadableCall(AnswerForm::Hook),
                (BEFORE_STOP, "Stop") => {
                    Request::BeforeStop { is_repeated: input.get("stop_hook_active") == Some(&Value::Bool(true)) }
                }
                (BEFORE_COMPACTION, "PreCompact") => Request::BeforeCompaction,
                (callback, event) => unknown(&format!(" {callback} for {event}")),
            }
        }
        "mcp_message" => Request::Mcp {
            server: text(&request, "server_name"),
            message: request.get_mut("message").map(Value::take).unwrap_or_default(),
        },
        "can_use_tool" => typed(request).map_or(Request::UnreadableCall(AnswerForm::Permission), Request::Permission),
        _ => unknown(""),
    }
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Takes the content of a message. A string becomes one text block; blocks that cannot be parsed are left out.
fn blocks(message: &mut Value) -> Vec<Block> {
    match message.pointer_mut("/message/content").map(Value::take) {
        Some(Value::String(text)) => vec![Block::Text { text }],
        Some(Value::Array(blocks)) => blocks.into_iter().filter_map(typed).collect(),
        _ => Vec::new(),
    }
}

/// Returns the text of a tool result, without the tags that the client puts around an error for the model.
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

/// Removes the tags around an error from a tool result's text.
pub(crate) fn without_error_tags(text: &str) -> String {
    text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")
}

/// Returns whether the text of a tool result says, in the client's words, that the call was denied.
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

/// Builds our first message. After `timeout` seconds without a verdict the client denies a call. `servers` are the client's
/// MCP servers. `ask_to_stop` makes the client ask before it ends its turn. `options` contains the system prompts, and whether the client
/// asks before it compacts the conversation.
///
/// Each server and hook costs the client time, so the message contains only needed ones. A server named here is initialized
/// once; a server in `--mcp-config` is initialized at the client's start and again after this message.
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
    if options.never_compact {
        hooks["PreCompact"] = json!([{"matcher": null, "hookCallbackIds": [BEFORE_COMPACTION]}]);
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

/// Builds the request to interrupt the turn.
pub(super) fn interrupt(id: &str) -> Value {
    ours(id, json!({"subtype": "interrupt"}))
}

fn ours(id: &str, request: Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// Builds a person's message. With `id`, a UUID, the client reports when it gives the message to the model ([`Incoming::TakenUp`]).
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

/// Builds the verdict on a call, in the requested form. `input` is the call's own.
pub(super) fn verdict(id: &str, form: AnswerForm, allow: bool, reason: &str, input: &Value) -> Value {
    let output = json!({
        "hookEventName": "PreToolUse",
        "permissionDecision": if allow { "allow" } else { "deny" },
        "permissionDecisionReason": reason,
    });
    answer(
        id,
        match form {
            AnswerForm::Hook => json!({"hookSpecificOutput": output}),
            AnswerForm::Permission if allow => json!({"behavior": "allow", "updatedInput": input}),
            AnswerForm::Permission => json!({"behavior": "deny", "message": reason}),
        },
    )
}

/// Builds the answer whether the turn may end. With a reason in `go_on` the turn continues.
pub(super) fn stop(id: &str, go_on: Option<&str>) -> Value {
    go_on.map_or_else(|| answer(id, json!({})), |reason| block(id, reason))
}

/// Builds the answer that stops what the client is about to do.
pub(super) fn block(id: &str, reason: &str) -> Value {
    answer(id, json!({"decision": "block", "reason": reason}))
}

/// Builds the answer that carries a JSON-RPC message of our server.
pub(super) fn mcp(id: &str, message: Value) -> Value {
    answer(id, json!({"mcp_response": message}))
}

/// Builds the acknowledgement of a notification to our server. Without it the client never begins its turn.
pub(super) fn mcp_taken(id: &str) -> Value {
    mcp(id, json!({"jsonrpc": "2.0", "result": {}}))
}

/// Builds the answer to a question that is not understood.
pub(super) fn refusal(id: &str, error: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}})
}

#[cfg(test)]
mod tests;
