//! One conversation with a server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    PaginatedRequestParams, PingRequest, Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use super::metered::{Metered, Unasked};
use super::tools::{Listed, MOST, listed};
use crate::agent::{ExternalAnswer, ExternalTool};
use crate::config::{McpServer, McpTransport};
use crate::home::Home;
use crate::program::{Network, Process, Program, Reads, Surroundings};

/// The longest message, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// So much of an answer is handed on, in bytes of JSON.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// So many pages of a list of tools are read.
const MOST_PAGES: usize = 32;

/// How long a server that did not answer a call may take to say that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// A server that is there. Dropped, it ends, with all that it started.
pub struct Connection {
    server: String,
    /// Whether it is one run's own.
    pub(super) per_run: bool,
    timeout: Duration,
    service: RunningService<RoleClient, Handler>,
    tools: Mutex<Vec<Listed>>,
    unasked: Unasked,
    /// It was given up: it did not even answer a ping.
    is_hung: AtomicBool,
    last_words: LastWords,
    /// Ends the process, where there is one.
    end: CancellationToken,
}

impl Connection {
    /// Starts a server, or reaches it, and reads its list of tools. `secrets`: those that its settings name.
    ///
    /// # Errors
    /// Why not, as a sentence without its full stop.
    pub(super) async fn start(
        settings: &McpServer,
        home: &Home,
        surroundings: &Surroundings,
        secrets: BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let last_words = LastWords::default();
        match Self::begin(settings, home, surroundings, secrets, last_words.clone()).await {
            Ok(connection) => Ok(connection),
            Err(why) => {
                let said = last_words.at_end().await;
                let said = if said.is_empty() { String::new() } else { format!("; its last words: {said}") };
                Err(format!("the MCP server `{}` does not start: {why}{said}", settings.name))
            }
        }
    }

    async fn begin(
        settings: &McpServer,
        home: &Home,
        surroundings: &Surroundings,
        secrets: BTreeMap<String, String>,
        last_words: LastWords,
    ) -> Result<Self, String> {
        let (unasked, handler) = (Unasked::default(), Handler::default());
        let changed = handler.changed.clone();
        let (service, process) = match &settings.transport {
            McpTransport::Command { command, env: _, reads, writes, network } => {
                let hidden = secrets.values().cloned().collect();
                let program = Program {
                    command: command.clone(),
                    own_folder: home.mcp_server(&settings.name),
                    reads: Reads::Only(reads.clone()),
                    writes: writes.clone(),
                    network: if *network { Network::Internet } else { Network::None },
                    env: secrets,
                };
                let process = Process::start(&program, surroundings).await.map_err(|error| error.to_string())?;
                let Process { stdin, stdout, stderr, runner, socket } = process;
                last_words.follow(stderr, hidden);
                let transport = AsyncRwTransport::new_client(Metered::new(stdout, unasked.clone()), stdin)
                    .with_max_line_length(LONGEST);
                let served = rmcp::serve_client(handler, transport).await;
                (served.map_err(|error| error.to_string())?, Some((runner, socket)))
            }
            McpTransport::Url { url, token_env } => {
                crate::tls::choose_provider();
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.clone()).max_sse_event_size(LONGEST);
                if let Some(name) = token_env {
                    config = config.auth_header(secrets.get(name).cloned().unwrap_or_default());
                }
                let served = rmcp::serve_client(handler, StreamableHttpClientTransport::from_config(config)).await;
                (served.map_err(|error| error.to_string())?, None)
            }
        };
        let end = held(process, unasked.clone());
        let tools = all_tools(&service).await.map_err(|error| error.to_string())?;
        changed.store(false, Ordering::Relaxed);
        unasked.forget();
        Ok(Self {
            server: settings.name.clone(),
            per_run: settings.per_run,
            timeout: settings.timeout,
            service,
            tools: Mutex::new(listed(&settings.name, tools)),
            unasked,
            is_hung: AtomicBool::default(),
            last_words,
            end,
        })
    }

    /// Whether it can be called no longer.
    pub(super) fn is_over(&self) -> bool {
        self.is_hung.load(Ordering::Relaxed) || self.service.is_transport_closed()
    }

    /// What it said last before it ended.
    pub(super) fn last_words(&self) -> String {
        if self.unasked.is_flood() {
            return "it wrote more than anybody had asked for".to_owned();
        }
        if self.is_hung.load(Ordering::Relaxed) {
            return "it did not answer any more".to_owned();
        }
        match self.last_words.get() {
            words if words.is_empty() => "it said nothing".to_owned(),
            words => words,
        }
    }

    /// What it calls itself.
    pub(super) fn says(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let own = info.server_info.as_ref()?;
        Some(cut(&format!("{} {}", own.name, own.version)))
    }

    /// The tools that it offered when they were last read.
    pub(super) fn listed(&self) -> Vec<ExternalTool> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|listed| listed.tool.clone()).collect()
    }

    /// The tools that it offers, read again where it said that they have changed.
    ///
    /// # Errors
    /// It does not answer, as a sentence without its full stop.
    pub async fn tools(&self) -> Result<Vec<ExternalTool>, String> {
        let changed = &self.service.service().changed;
        if changed.swap(false, Ordering::Relaxed) {
            self.unasked.forget();
            let read = tokio::time::timeout(self.timeout, all_tools(&self.service)).await;
            let now = match read {
                Ok(Ok(tools)) => listed(&self.server, tools),
                failed => {
                    // They are asked for again.
                    changed.store(true, Ordering::Relaxed);
                    let why = failed.ok().and_then(Result::err).map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(format!("the MCP server `{}` does not say its tools{why}", self.server));
                }
            };
            let names =
                |tools: &[Listed]| tools.iter().map(|tool| tool.tool.name.clone()).collect::<Vec<_>>().join(" ");
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tracing::warn!(
                server = self.server,
                before = names(&tools),
                now = names(&now),
                "an MCP server has changed its tools"
            );
            *tools = now;
        }
        Ok(self.listed())
    }

    /// Calls a tool by the name that runs know it by.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>) -> ExternalAnswer {
        let real_name = {
            let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.iter().find(|listed| listed.tool.name == name).map(|listed| listed.real_name.clone())
        };
        let Some(real_name) = real_name else {
            return ExternalAnswer::refused(format!("`{}` offers no tool `{name}` any more.", self.server));
        };
        self.unasked.forget();
        let params = CallToolRequestParams::new(real_name).with_arguments(arguments);
        let answered = tokio::time::timeout(self.timeout, self.service.call_tool(params)).await;
        self.unasked.forget();
        match answered {
            Ok(Ok(result)) => self.answer(name, result),
            Ok(Err(ServiceError::McpError(error))) => {
                ExternalAnswer::refused(format!("`{name}` failed: {}", cut(&error.message)))
            }
            Ok(Err(error)) => {
                let _said = self.last_words.at_end().await;
                ExternalAnswer::refused(format!(
                    "`{name}` was cut off: {} ({error}). Whether it did something is not known.",
                    self.last_words()
                ))
            }
            Err(_) => {
                self.look_for_life().await;
                let seconds = self.timeout.as_secs();
                ExternalAnswer::refused(format!(
                    "`{name}` did not answer within {seconds} s. Whether it did something is not known."
                ))
            }
        }
    }

    fn answer(&self, name: &str, result: CallToolResult) -> ExternalAnswer {
        let mut content: Vec<Value> =
            result.content.iter().filter_map(|block| serde_json::to_value(block).ok()).collect();
        if content.is_empty() {
            content.extend(result.structured_content.map(|value| json!({"type": "text", "text": value.to_string()})));
        }
        let size: usize = content.iter().map(|block| block.to_string().len()).sum();
        if size > LARGEST_ANSWER {
            let text = format!(
                "`{name}` answered {size} bytes, more than the {LARGEST_ANSWER} that are handed on. Ask for less at once."
            );
            return ExternalAnswer::refused(text);
        }
        ExternalAnswer { content, is_error: result.is_error.unwrap_or_default() }
    }

    /// Gives the server up where it does not even answer a ping: the next call starts another one.
    async fn look_for_life(&self) {
        let ping = self.service.send_request(ClientRequest::PingRequest(PingRequest::default()));
        let is_alive = tokio::time::timeout(SIGN_OF_LIFE, ping).await.is_ok_and(|answer| {
            // One that does not know pings is there all the same.
            !matches!(answer, Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)))
        });
        if !is_alive {
            tracing::warn!(server = self.server, "an MCP server hangs and is given up");
            self.is_hung.store(true, Ordering::Relaxed);
            self.service.cancellation_token().cancel();
            self.end.cancel();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Holds a process until the token is cancelled, or it floods. With its runner it ends, and with that all that it started.
fn held(process: Option<(Child, UnixStream)>, unasked: Unasked) -> CancellationToken {
    let end = CancellationToken::new();
    if let Some(process) = process {
        let end = end.clone();
        tokio::spawn(async move {
            let _runner_and_socket = process;
            tokio::select! {
                () = end.cancelled() => {}
                () = unasked.flooded() => {}
            }
        });
    }
    end
}

/// The tools that a server lists, page by page, as far as they can be offered.
async fn all_tools(server: &RunningService<RoleClient, Handler>) -> Result<Vec<Tool>, ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = server.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > MOST {
            break;
        }
    }
    Ok(tools)
}

/// What we say to a server. We offer it nothing.
#[derive(Clone, Default)]
struct Handler {
    /// It has said that its tools have changed.
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("ollim-bot", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

/// The last line that a server has written to standard error.
#[derive(Clone, Default)]
struct LastWords {
    line: Arc<Mutex<String>>,
    /// Held while there may be more.
    reading: Arc<tokio::sync::Mutex<()>>,
}

/// How long a server's last words are waited for when it has ended: they come by another pipe than its answers.
const END: Duration = Duration::from_secs(1);

/// A secret that is shorter would hide half of what is said.
const SHORTEST_SECRET: usize = 4;

impl LastWords {
    fn get(&self) -> String {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same when it has ended, as far as it ends soon.
    async fn at_end(&self) -> String {
        let _late = tokio::time::timeout(END, self.reading.lock()).await;
        self.get()
    }

    /// Keeps the last line, without the secrets that the server was given: what it says is told to agents and kept in the record.
    fn follow(&self, mut stderr: impl AsyncRead + Unpin + Send + 'static, secrets: Vec<String>) {
        let (line_kept, reading) = (self.line.clone(), self.reading.clone().try_lock_owned());
        let hidden = move |line: &str| {
            let long = secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET);
            long.fold(line.to_owned(), |line, secret| line.replace(secret.as_str(), "***"))
        };
        tokio::spawn(async move {
            let _reading = reading;
            let mut end = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
                end.extend_from_slice(&chunk[..read]);
                let surplus = end.len().saturating_sub(4096);
                end.drain(..surplus);
                let text = String::from_utf8_lossy(&end);
                if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    *line_kept.lock().unwrap_or_else(PoisonError::into_inner) = cut(&hidden(line));
                }
            }
        });
    }
}

/// One line without control characters.
fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(plain).take(500).collect()
}
