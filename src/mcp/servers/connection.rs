//! A connection to one server.

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
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use super::http::PacedClient;
use super::last_words::LastWords;
use super::metered::{MeteredReader, MeteredTransport, Unrequested};
use super::tools::{ListedTool, MOST, listed};
use crate::agent::{ExternalAnswer, ExternalTool};
use crate::config::{McpServer, McpTransport};
use crate::home::Home;
use crate::program::{Network, Process, Program, ProgramEnv, ReadScope};

/// Maximum size of a message, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// Maximum size of an answer that is passed on, in bytes of JSON.
const LARGEST_ANSWER: usize = 1024 * 1024;

/// Maximum number of pages of a tool list.
const MAX_PAGES: usize = 32;

/// Why a server that floods is given up.
const FLOOD: &str = "it wrote more than anybody had asked for";

/// Time for a server that did not answer a call to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server. Dropping it ends the server and its descendants.
pub struct Connection {
    server: String,
    /// Whether it belongs to one run.
    pub(super) per_run: bool,
    /// Whether it is reached at a URL. Such a server cannot report a change of its tools.
    is_remote: bool,
    timeout: Duration,
    service: RunningService<RoleClient, Handler>,
    tools: Mutex<Vec<ListedTool>>,
    unrequested: Unrequested,
    /// Whether it was given up because it did not even answer a ping.
    is_hung: AtomicBool,
    /// Held while a server that has missed a call's timeout is asked for a ping.
    pinging: Arc<tokio::sync::Mutex<()>>,
    last_words: LastWords,
    /// Ends the process, if there is one.
    end: CancellationToken,
}

/// Returns the words of an error without the types by which a library names its transport: `Transport [A<B>] error: the cause`.
fn without_types(error: &str) -> &str {
    const END: &str = "] error: ";
    match (error.contains("Transport ["), error.find(END)) {
        (true, Some(end)) => &error[end + END.len()..],
        _ => error,
    }
}

impl Connection {
    /// Starts or reaches a server, and reads its list of tools. `secrets`: those that its settings name.
    ///
    /// # Errors
    /// The reason, as a sentence without its full stop.
    pub(super) async fn start(
        settings: &McpServer,
        home: &Home,
        program_env: &ProgramEnv,
        secrets: BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let last_words = LastWords::default();
        match Self::begin(settings, home, program_env, secrets, last_words.clone()).await {
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
        program_env: &ProgramEnv,
        secrets: BTreeMap<String, String>,
        last_words: LastWords,
    ) -> Result<Self, String> {
        let (unrequested, handler) = (Unrequested::default(), Handler::default());
        let changed = handler.changed.clone();
        let (service, process) = match &settings.transport {
            McpTransport::Command { command, env: _, reads, writes, network } => {
                let hidden = secrets.values().cloned().collect();
                let program = Program {
                    command: command.clone(),
                    own_folder: home.mcp_server(&settings.name),
                    reads: ReadScope::Only(reads.clone()),
                    writes: writes.clone(),
                    network: if *network { Network::Internet } else { Network::None },
                    env: secrets,
                };
                let process = Process::start(&program, program_env).await.map_err(|error| error.to_string())?;
                let Process { stdin, stdout, stderr, runner, socket } = process;
                last_words.follow(stderr, hidden);
                let transport = AsyncRwTransport::new_client(MeteredReader::new(stdout, unrequested.clone()), stdin)
                    .with_max_line_length(LONGEST);
                let served = rmcp::serve_client(handler, MeteredTransport::new(transport, unrequested.clone())).await;
                (served.map_err(|error| error.to_string())?, Some((runner, socket)))
            }
            McpTransport::Url { url, token_env } => {
                crate::tls::choose_provider();
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.clone()).max_sse_event_size(LONGEST);
                if let Some(name) = token_env {
                    config = config.auth_header(secrets.get(name).cloned().unwrap_or_default());
                }
                let client = PacedClient::new(settings.timeout).map_err(|error| error.to_string())?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let served = rmcp::serve_client(handler, MeteredTransport::new(transport, unrequested.clone())).await;
                (served.map_err(|error| without_types(&error.to_string()).to_owned())?, None)
            }
        };
        let end = held(settings.name.clone(), process, unrequested.clone());
        let tools = all_tools(&service).await.map_err(|error| error.to_string())?;
        changed.store(false, Ordering::Relaxed);
        unrequested.forget();
        Ok(Self {
            server: settings.name.clone(),
            per_run: settings.per_run,
            is_remote: matches!(settings.transport, McpTransport::Url { .. }),
            timeout: settings.timeout,
            service,
            tools: Mutex::new(listed(&settings.name, tools)),
            unrequested,
            is_hung: AtomicBool::default(),
            pinging: Arc::default(),
            last_words,
            end,
        })
    }

    /// Waits until it is known whether the server still answers, if a call has just missed its timeout.
    pub(super) async fn settled(&self) {
        drop(self.pinging.lock().await);
    }

    /// Whether it can no longer be called.
    pub(super) fn is_over(&self) -> bool {
        self.is_hung.load(Ordering::Relaxed) || self.service.is_transport_closed()
    }

    /// Returns why it ended, or its last words.
    pub(super) fn last_words(&self) -> String {
        if self.unrequested.is_flood() {
            return FLOOD.to_owned();
        }
        if self.is_hung.load(Ordering::Relaxed) {
            return "it did not answer any more".to_owned();
        }
        match self.last_words.get() {
            words if words.is_empty() => "it said nothing".to_owned(),
            words => words,
        }
    }

    /// Returns its name and version, as the server reports them.
    pub(super) fn says(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let own = info.server_info.as_ref()?;
        Some(cut(&format!("{} {}", own.name, own.version)))
    }

    /// Returns the tools as of the last reading.
    pub(super) fn listed(&self) -> Vec<ExternalTool> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|listed| listed.tool.clone()).collect()
    }

    /// Returns its tools. Reads them again if the server has reported a change, or cannot report one.
    ///
    /// # Errors
    /// If it does not answer, as a sentence without its full stop.
    pub async fn tools(&self) -> Result<Vec<ExternalTool>, String> {
        let changed = &self.service.service().changed;
        if changed.swap(false, Ordering::Relaxed) || self.is_remote {
            self.unrequested.forget();
            let read = tokio::time::timeout(self.timeout, all_tools(&self.service)).await;
            let now = match read {
                Ok(Ok(tools)) => listed(&self.server, tools),
                failed => {
                    // The next call reads them again.
                    changed.store(true, Ordering::Relaxed);
                    let why = failed.ok().and_then(Result::err).map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(format!("the MCP server `{}` does not say its tools{why}", self.server));
                }
            };
            let names =
                |tools: &[ListedTool]| tools.iter().map(|tool| tool.tool.name.clone()).collect::<Vec<_>>().join(" ");
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            let (before, after) = (names(&tools), names(&now));
            if before != after {
                tracing::warn!(server = self.server, before, now = after, "an MCP server has changed its tools");
            }
            *tools = now;
        }
        Ok(self.listed())
    }

    /// Calls a tool by the name that runs use.
    pub async fn call(self: &Arc<Self>, name: &str, arguments: Map<String, Value>) -> ExternalAnswer {
        let real_name = {
            let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.iter().find(|listed| listed.tool.name == name).map(|listed| listed.real_name.clone())
        };
        let Some(real_name) = real_name else {
            return ExternalAnswer::refused(format!("`{}` offers no tool `{name}`.", self.server));
        };
        self.unrequested.forget();
        let params = CallToolRequestParams::new(real_name).with_arguments(arguments);
        let answered = tokio::time::timeout(self.timeout, self.service.call_tool(params)).await;
        self.unrequested.forget();
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
                // The next caller waits for the answer, and not this one.
                let (connection, pinging) = (Arc::clone(self), Arc::clone(&self.pinging).lock_owned().await);
                tokio::spawn(async move {
                    connection.ping().await;
                    drop(pinging);
                });
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

    /// Gives the server up if it does not even answer a ping. The next call starts another one, except for one run's own.
    async fn ping(&self) {
        let ping = self.service.send_request(ClientRequest::PingRequest(PingRequest::default()));
        let is_alive = tokio::time::timeout(PING_TIMEOUT, ping).await.is_ok_and(|answer| {
            // A server that answers with an error, since it does not know pings, is alive.
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

/// Holds the process of a server, if it has one, until the token is cancelled, or the server floods. Its runner ends with it, and so
/// do all descendants.
fn held(server: String, process: Option<(Child, UnixStream)>, unrequested: Unrequested) -> CancellationToken {
    let end = CancellationToken::new();
    let cancelled = end.clone().cancelled_owned();
    tokio::spawn(async move {
        let _runner_and_socket = process;
        tokio::select! {
            () = cancelled => {}
            () = unrequested.flooded() => tracing::warn!(server, "an MCP server is given up: {FLOOD}"),
        }
    });
    end
}

/// Reads the tools that a server lists, page by page, up to the maximum.
async fn all_tools(server: &RunningService<RoleClient, Handler>) -> Result<Vec<Tool>, ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = server.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > MOST {
            break;
        }
    }
    Ok(tools)
}

/// Our side of the protocol. It offers nothing to the server.
#[derive(Clone, Default)]
struct Handler {
    /// Whether the server has reported that its tools have changed.
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

/// Returns one line without control characters, cut to 500 characters.
pub(super) fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(plain).take(500).collect()
}
