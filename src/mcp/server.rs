//! The server of one run's tools.

use std::iter;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::tools;
use super::transport::Channel;
use crate::agent::tools::SERVER;
use crate::agent::{CurrentHost, ExternalAnswer, ExternalServer, ExternalTool, JsonObject, ToolAnswer, ToolPipe};

/// Capacity of each message queue.
const QUEUE: usize = 256;

/// Serves the named tools of ours, and those of other servers under their servers' names, until the pipe is dropped.
/// Does not offer names that [`tools::find`] does not know. Refuses a call without asking the host if the tool is not
/// offered, or if the arguments do not match the schema of a tool of ours.
#[must_use]
pub fn serve(names: &[String], external: &[ExternalServer], host: Arc<CurrentHost>) -> ToolPipe {
    let (to_client, from_server) = mpsc::channel(QUEUE);
    let calls = TaskTracker::new();
    let ours = Tools::Ours(names.iter().filter_map(|name| tools::find(name)).collect());
    let external = external.iter().map(|server| (server.name.clone(), Tools::Of(server.clone())));
    let served = iter::once((SERVER.to_owned(), ours)).chain(external);
    let to_servers = served.map(|(name, tools)| {
        let (to_server, from_client) = mpsc::channel(QUEUE);
        let server = Server { tools, host: host.clone(), calls: calls.clone() };
        let channel = Channel { from_client, to_client: to_client.clone() };
        tokio::spawn(async move {
            // The server ends with the pipe, at any stage.
            match rmcp::serve_server(server, channel).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::debug!(%error, "a tool server ended before its client had greeted it"),
            }
        });
        (name, to_server)
    });
    ToolPipe { to_servers: to_servers.collect(), from_server, calls }
}

struct Server {
    tools: Tools,
    host: Arc<CurrentHost>,
    calls: TaskTracker,
}

/// The tools of a server.
enum Tools {
    /// Our own tools.
    Ours(Vec<tools::OfferedTool>),
    /// Tools of another server, which the host calls.
    Of(ExternalServer),
}

impl Server {
    async fn call_external(&self, server: &ExternalServer, name: &str, arguments: JsonObject) -> ExternalAnswer {
        let refused = ExternalAnswer::refused;
        if !server.tools.iter().any(|tool| tool.name == name) {
            return refused(format!("there is no tool `{name}` here"));
        }
        let (host, server, tool) = (self.host.clone(), server.name.clone(), name.to_owned());
        let called =
            async move { AssertUnwindSafe(host.call_external(&server, &tool, arguments)).catch_unwind().await };
        // Uses its own task, so that a call that has begun is not cut off when the client ends.
        match self.calls.spawn(called).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => refused(format!("`{name}` failed by a fault of ollim-bot; do not call it again")),
        }
    }

    async fn call(&self, offered: &[tools::OfferedTool], name: &str, arguments: Value) -> ToolAnswer {
        let refused = |text: String| ToolAnswer { text, is_error: true };
        let Some(tool) = offered.iter().find(|tool| tool.name == name) else {
            return refused(format!("there is no tool `{name}` here"));
        };
        if let Err(error) = (tool.check)(&arguments) {
            return refused(format!("`{name}` was not called: {error}"));
        }
        let (host, name) = (self.host.clone(), tool.name);
        // Uses its own task, so that a call that has begun is not cut off when the client ends.
        let served =
            self.calls.spawn(async move { AssertUnwindSafe(host.call_tool(name, arguments)).catch_unwind().await });
        match served.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => refused(format!("`{name}` failed by a fault of ollim-bot; do not call it again")),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("ollim-bot", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let ours = |tool: &tools::OfferedTool| Tool::new(tool.name, tool.description, (tool.schema)());
        let others = |tool: &ExternalTool| Tool::new(tool.name.clone(), tool.description.clone(), tool.schema.clone());
        Ok(ListToolsResult::with_all_items(match &self.tools {
            Tools::Ours(offered) => offered.iter().map(ours).collect(),
            Tools::Of(server) => server.tools.iter().map(others).collect(),
        }))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let (content, is_error) = match &self.tools {
            Tools::Ours(offered) => {
                let answer = self.call(offered, &call.name, Value::Object(arguments)).await;
                (vec![ContentBlock::text(answer.text)], answer.is_error)
            }
            Tools::Of(server) => {
                let answer = self.call_external(server, &call.name, arguments).await;
                let block =
                    |value| serde_json::from_value(value).unwrap_or_else(|_| ContentBlock::text("(unreadable)"));
                (answer.content.into_iter().map(block).collect(), answer.is_error)
            }
        };
        let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::agent::{RunHost, SessionId};
    use crate::policy::{Decision, Layer, ToolCall, Verdict};

    #[derive(Default)]
    struct Host(Mutex<Vec<(String, Value)>>);

    #[async_trait]
    impl RunHost for Host {
        async fn decide(&self, _call: ToolCall) -> Decision {
            let reason = "unasked".to_string();
            Decision {
                verdict: Verdict::Deny,
                layer: Layer::System,
                rule: None,
                reason,
                commands: vec![],
                read_only: false,
            }
        }
        fn may_continue(&self) -> bool {
            false
        }
        async fn stop(&self, _is_repeated: bool) -> Option<String> {
            None
        }
        async fn call_tool(&self, name: &str, arguments: Value) -> ToolAnswer {
            assert_ne!(arguments["message"], "panic", "on purpose");
            self.0.lock().unwrap().push((name.to_string(), arguments));
            ToolAnswer { text: "told".into(), is_error: false }
        }
        async fn started(&self, _pid: u32, _session: Option<SessionId>) {}
        async fn client_denied(&self, _tool: String, _input: Value, _reason: String) {}
        async fn deliver(&self, _text: String) -> Result<(), String> {
            Ok(())
        }
    }

    async fn ask(pipe: &mut ToolPipe, id: u32, method: &str, params: Value) -> Value {
        pipe.to_servers[SERVER]
            .send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await
            .unwrap();
        let answer = pipe.from_server.recv().await.unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Returns a pipe whose client has greeted the server, as the real one does.
    async fn greeted(names: &[&str], host: Arc<Host>) -> ToolPipe {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut pipe = serve(&names, &[], Arc::new(CurrentHost::new(host)));
        let client = json!({"name": "claude-code", "title": "Claude Code", "version": "2.1.197"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let answer = ask(&mut pipe, 0, "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        pipe.to_servers[SERVER].send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await.unwrap();
        pipe
    }

    #[tokio::test]
    async fn exactly_the_granted_tools_are_offered() {
        let mut pipe = greeted(&["ping_user", "report_updates", "no_such_tool"], Arc::default()).await;
        let answer = ask(&mut pipe, 1, "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ping_user", "report_updates"]);
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["message"]));
    }

    #[tokio::test]
    async fn a_call_goes_to_the_host_or_is_refused() {
        let host = Arc::new(Host::default());
        let mut pipe = greeted(&["ping_user"], host.clone()).await;
        for (id, name, arguments, expect, error) in [
            (1, "ping_user", json!({"message": "hey"}), "told", false),
            (2, "ping_user", json!({"message": 7}), "expected a string", true),
            (3, "ping_user", json!({}), "missing field `message`", true),
            (4, "report_updates", json!({"message": "hey"}), "there is no tool", true),
            (5, "ping_user", json!({"message": "panic"}), "a fault of ollim-bot", true),
            (6, "ping_user", json!({"message": "again", "critical": true}), "told", false),
        ] {
            let answer = ask(&mut pipe, id, "tools/call", json!({"name": name, "arguments": arguments})).await;
            let result = &answer["result"];
            assert!(result["content"][0]["text"].as_str().unwrap().contains(expect), "{answer}");
            assert_eq!(result["isError"], error, "{answer}");
        }
        let calls = host.0.lock().unwrap();
        let told: Vec<&Value> = calls.iter().map(|(_, arguments)| &arguments["message"]).collect();
        assert_eq!(told, ["hey", "again"]);
    }

    #[tokio::test]
    async fn what_is_not_understood_is_answered() {
        let mut pipe = greeted(&[], Arc::default()).await;
        for (id, method, params) in
            [(1, "no/such", json!({})), (2, "tools/call", json!([1])), (3, "tools/call", json!({"name": 7}))]
        {
            let answer = ask(&mut pipe, id, method, params).await;
            assert!(answer["error"]["message"].is_string(), "{answer}");
        }
        let answer = ask(&mut pipe, 4, "tools/list", json!({})).await;
        assert_eq!(answer["result"]["tools"], json!([]));
    }
}
