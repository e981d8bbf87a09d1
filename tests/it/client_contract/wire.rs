//! A client driven by hand: our command line and environment over a bare wire, so that every observed effect is the client's.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use ollim_bot::agent::claude::options::{ClientEnvironment, command_line, environment, variables};
use ollim_bot::agent::{ClientOptions, SessionMode};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::messages_api::{MessagesApi, Request};

/// The key that the client logs in with.
pub const KEY: &str = "sk-contract-key";

/// Maximum lifetime of a client. A client normally ends within two seconds.
const LONGEST: Duration = Duration::from_secs(100);

/// The hook's answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookReply {
    Allow,
    Deny,
    /// An answer with no decision.
    Nothing,
    /// An unknown decision.
    Strange,
    /// An error response.
    Error,
    /// No answer at all.
    Silence,
}

/// A client to start, in folders of its own.
pub struct Start {
    folder: TempDir,
    pub client: PathBuf,
    pub session: SessionMode,
    pub options: ClientOptions,
    pub tools: &'static [&'static str],
    pub deny_rules: &'static [&'static str],
    /// Variables that override ours; `None` removes the variable.
    pub env: Vec<(&'static str, Option<String>)>,
    /// The variable that names the login's descriptor.
    pub login: &'static str,
    /// Prompts, each sent when the turn before it has ended.
    pub prompts: Vec<String>,
    /// A command; the hook's question about it triggers an `interrupt`.
    pub interrupt_at: Option<&'static str>,
    /// The reason to continue that answers the first `Stop` question.
    pub go_on: Option<&'static str>,
}

/// The record of a client's session.
pub struct SessionRecord {
    pub api: MessagesApi,
    folder: TempDir,
    /// All messages of the client, in order.
    pub messages: Vec<Value>,
    pub code: Option<i32>,
    pub stderr: String,
}

impl Start {
    /// Creates an isolated fork with these tools.
    pub fn new(client: &Path, tools: &'static [&'static str]) -> Self {
        let start = Self {
            folder: TempDir::with_prefix("ollim-contract-").unwrap(),
            client: client.to_owned(),
            session: SessionMode::Isolated,
            options: ClientOptions::default(),
            tools,
            deny_rules: &[],
            env: Vec::new(),
            login: "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
            prompts: vec!["[contract] begin".into()],
            interrupt_at: None,
            go_on: None,
        };
        for folder in ["home", "run", "work"] {
            std::fs::create_dir(start.path(folder)).unwrap();
        }
        start
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self, api: &MessagesApi) -> BTreeMap<String, String> {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let own = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", text(self.path("home"))),
            ("LANG", "C.UTF-8".into()),
            ("IS_SANDBOX", "1".into()),
            ("ANTHROPIC_BASE_URL", api.url().into()),
            // The client's requests to any other host also reach our stub.
            ("HTTPS_PROXY", api.url().into()),
            ("NO_PROXY", "127.0.0.1".into()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value)).into();
        let client_environment =
            ClientEnvironment { own, data_folder: text(self.path("")), ..ClientEnvironment::default() };
        let mut env = environment(&client_environment, &self.path("config"), &self.path("run"), "token");
        env.extend(variables(&self.options));
        env.insert(self.login.into(), "3".into());
        for (name, value) in &self.env {
            match value {
                Some(value) => env.insert((*name).into(), value.clone()),
                None => env.remove(*name),
            };
        }
        env
    }

    /// Runs the session through all prompts; `say` answers the hook's inputs.
    pub fn live(mut self, api: MessagesApi, mut say: impl FnMut(&Value) -> HookReply) -> SessionRecord {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let line = command_line(&self.session, &self.options, &words(self.tools), &words(self.deny_rules));
        let mut child = Command::new("bash")
            .args(["-c", &format!("exec \"$0\" \"$@\" 3<<<'{KEY}'")])
            .arg(&self.client)
            .args(line)
            .env_clear()
            .envs(self.environment(&api))
            .current_dir(self.path("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The whole process group can be killed with the client.
            .process_group(0)
            .spawn()
            .unwrap();
        let (ended, watched) = mpsc::channel::<()>();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let watch = std::thread::spawn(move || {
            if watched.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                // The group may have ended meanwhile.
                let _ = kill_process_group(pid, Signal::KILL);
            }
        });
        let mut wire = Wire { stdin: child.stdin.take(), interrupt_at: self.interrupt_at, go_on: self.go_on.take() };
        let ask = [json!({"matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 4})];
        let stop = [json!({"matcher": null, "hookCallbackIds": ["hook_1"]})];
        let hooks = json!({"PreToolUse": ask, "Stop": stop});
        let mut request = json!({"subtype": "initialize", "hooks": hooks, "sdkMcpServers": ["discord"]});
        let ClientOptions { system_prompt, append_system_prompt, .. } = &self.options;
        for (field, text) in [("systemPrompt", system_prompt), ("appendSystemPrompt", append_system_prompt)] {
            if let Some(text) = text {
                request[field] = text.as_str().into();
            }
        }
        wire.send(&json!({"type": "control_request", "request_id": "first", "request": request}));
        let mut messages = Vec::new();
        let mut prompts = std::mem::take(&mut self.prompts).into_iter();
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            let initialized = message["type"] == "control_response" && message["response"]["request_id"] == "first";
            if initialized || message["type"] == "result" {
                match prompts.next() {
                    Some(prompt) => wire.say(&prompt),
                    None => wire.stdin = None,
                }
            }
            // The message is recorded first: the hook may look for it.
            messages.push(message.clone());
            wire.answer(&message, &mut say);
        }
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code();
        drop(ended);
        watch.join().unwrap();
        SessionRecord { api, folder: self.folder, messages, code, stderr }
    }
}

struct Wire {
    stdin: Option<ChildStdin>,
    interrupt_at: Option<&'static str>,
    go_on: Option<&'static str>,
}

impl Wire {
    /// Ignores a write error: the test sees that the client has ended.
    fn send(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{message}").and_then(|()| stdin.flush());
        }
    }

    fn say(&mut self, prompt: &str) {
        let message = json!({"role": "user", "content": prompt});
        self.send(&json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}));
    }

    fn answer(&mut self, message: &Value, say: &mut impl FnMut(&Value) -> HookReply) {
        let (id, request) = (&message["request_id"], &message["request"]);
        let answer = match request["subtype"].as_str() {
            _ if message["type"] != "control_request" => return,
            Some("mcp_message") => json!({ "mcp_response": mcp(&request["message"]) }),
            Some("can_use_tool") => json!({"behavior": "deny", "message": "denied by a person"}),
            Some("hook_callback") if request["callback_id"] == "hook_1" => match self.go_on.take() {
                Some(reason) => json!({"decision": "block", "reason": reason}),
                None => json!({}),
            },
            Some("hook_callback") => {
                let input = &request["input"];
                if self.interrupt_at.is_some_and(|command| input.to_string().contains(command)) {
                    let interrupt = json!({"subtype": "interrupt"});
                    self.send(&json!({"type": "control_request", "request_id": "break", "request": interrupt}));
                }
                let decision = match say(input) {
                    HookReply::Silence => return,
                    HookReply::Error => {
                        let error = json!({"subtype": "error", "request_id": id, "error": "the hook failed"});
                        return self.send(&json!({"type": "control_response", "response": error}));
                    }
                    HookReply::Nothing => None,
                    HookReply::Allow => Some("allow"),
                    HookReply::Deny => Some("deny"),
                    HookReply::Strange => Some("perhaps"),
                };
                decision.map_or_else(
                    || json!({}),
                    |word| {
                        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word,
                            "permissionDecisionReason": format!("the contract says {word}")}})
                    },
                )
            }
            _ => return,
        };
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        self.send(&json!({"type": "control_response", "response": response}));
    }
}

/// Answers as a server with one tool.
fn mcp(message: &Value) -> Value {
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let info = json!({"name": "discord", "version": "1"});
            let version = &message["params"]["protocolVersion"];
            json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        }
        Some("tools/list") => {
            let schema = json!({"type": "object", "properties": {"message": {"type": "string"}}});
            json!({"tools": [{"name": "ping_user", "description": "Pings.", "inputSchema": schema}]})
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "pinged"}]}),
        _ => json!({}),
    };
    match message.get("id") {
        Some(id) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        None => json!({"jsonrpc": "2.0", "result": {}}),
    }
}

impl SessionRecord {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the index of the first message that matches the pattern. An object pattern matches by its fields.
    pub fn at(&self, pattern: &Value) -> Option<usize> {
        self.messages.iter().position(|message| matches(message, pattern))
    }

    pub fn find(&self, pattern: &Value) -> Option<&Value> {
        self.at(pattern).map(|at| &self.messages[at])
    }

    pub fn count(&self, pattern: &Value) -> usize {
        self.messages.iter().filter(|message| matches(message, pattern)).count()
    }

    /// Returns the input of the first hook question whose input matches the pattern.
    pub fn asked(&self, input: Value) -> Option<&Value> {
        self.find(&question(input)).map(|message| &message["request"]["input"])
    }

    /// Returns the result of the call whose input contains `words`, and whether it is an error.
    pub fn result_of(&self, words: &str) -> Option<(String, bool)> {
        let requests = self.api.requests();
        let results = requests.iter().rev().flat_map(|request| request.results());
        results.filter(|result| result.input.to_string().contains(words)).map(|one| (one.text, one.is_error)).next()
    }

    /// Returns the first request to the model, or an empty request if there was none.
    pub fn first(&self) -> Request {
        self.api.requests().first().cloned().unwrap_or_default()
    }

    /// Returns the last request to the model, or an empty request if there was none.
    pub fn last(&self) -> Request {
        self.api.requests().last().cloned().unwrap_or_default()
    }

    /// Returns all `result` messages.
    pub fn ends(&self) -> Vec<&Value> {
        self.messages.iter().filter(|message| message["type"] == "result").collect()
    }
}

/// Returns a pattern for a hook question with this input.
pub fn question(input: Value) -> Value {
    json!({"type": "control_request", "request": {"subtype": "hook_callback", "callback_id": "hook_0", "input": input}})
}

fn matches(value: &Value, pattern: &Value) -> bool {
    match pattern {
        Value::Object(fields) => fields.iter().all(|(name, pattern)| matches(&value[name], pattern)),
        pattern => value == pattern,
    }
}
