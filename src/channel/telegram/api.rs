//! The Bot API over HTTP: one method for each request, with JSON in both directions (<https://core.telegram.org/bots/api>).
//!
//! Every URL contains the token, so logs and errors contain no URL.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::channel::SendError;

/// Telegram's own server.
const SERVER: &str = "https://api.telegram.org";

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a poll after the server's wait.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of an answer, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Maximum size of a file that the server hands out, in bytes.
pub(super) const LARGEST_FILE: u64 = 20 * 1024 * 1024;

/// The reason why a larger file is not taken.
pub(super) const TOO_LARGE: &str = "it is over 20 MB, which is the most that Telegram hands out";

/// Maximum retry delay for which a call waits, in seconds. During a longer one, calls of this method fail without a request, since requests
/// would prolong it.
const LONGEST_WAIT: u64 = 60;

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct Failure {
    /// The server's description, or why it could not be reached.
    pub why: String,
    /// The server's error code. `None` if it could not be reached.
    pub code: Option<u64>,
    /// Number of seconds to wait before a retry.
    pub retry_after: Option<u64>,
}

impl From<Failure> for SendError {
    fn from(failure: Failure) -> Self {
        // 401 and 404: bad token; 403: the person has blocked the bot; other 4xx: bad message.
        let retryable = failure.code.is_none_or(|code| code == 429 || code >= 500);
        Self { why: failure.why, retryable }
    }
}

/// A bot on a server.
#[derive(Clone)]
pub(super) struct Api {
    agent: ureq::Agent,
    server: String,
    token: String,
    /// The ends of the delays that the server has requested, by method.
    delays: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Api {
    pub(super) fn new(server: Option<&str>, token: String) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("ollim-bot/", env!("CARGO_PKG_VERSION")))
            .build();
        let server = server.unwrap_or(SERVER).to_owned();
        Self { agent: config.into(), server, token, delays: Arc::default() }
    }

    /// Returns the bot's id, which is the first part of its token.
    pub(super) fn bot(&self) -> &str {
        self.token.split(':').next().unwrap_or_default()
    }

    /// Calls a method. Waits and retries once if the server requests it.
    pub(super) async fn call(&self, method: &str, body: Value) -> Result<Value, Failure> {
        match self.once(method, body.clone(), TIMEOUT).await {
            Err(Failure { retry_after: Some(seconds), .. }) if seconds <= LONGEST_WAIT => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                self.once(method, body, TIMEOUT).await
            }
            other => other,
        }
    }

    /// Calls a method once, for what is not worth a wait.
    pub(super) async fn call_once(&self, method: &str, body: Value) -> Result<Value, Failure> {
        self.once(method, body, TIMEOUT).await
    }

    /// Calls a method that the server may hold for `wait`.
    pub(super) async fn poll(&self, method: &str, body: Value, wait: Duration) -> Result<Value, Failure> {
        self.once(method, body, wait + POLL_TIMEOUT).await
    }

    /// Returns how many seconds of a requested delay are left for a method.
    fn delay_left(&self, method: &str) -> Option<u64> {
        let end = self.delays.lock().unwrap_or_else(PoisonError::into_inner).get(method).copied()?;
        let left = end.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left.as_secs() + 1)
    }

    async fn once(&self, method: &str, body: Value, patience: Duration) -> Result<Value, Failure> {
        if let Some(seconds) = self.delay_left(method) {
            let span = humantime::format_duration(Duration::from_secs(seconds));
            let why = format!("Telegram takes nothing more of this bot for {span}: it was sent too much");
            return Err(Failure { why, code: Some(429), retry_after: Some(seconds) });
        }
        let (agent, url) = (self.agent.clone(), format!("{}/bot{}/{method}", self.server, self.token));
        let answer = tokio::task::spawn_blocking(move || {
            let request = agent.post(&url).config().timeout_global(Some(patience)).build();
            let mut answer = request.header("Content-Type", "application/json").send(body.to_string())?;
            answer.body_mut().with_config().limit(LONGEST).read_to_string()
        });
        let text = answer.await.map_err(|error| self.unreached(&error.to_string()))?;
        let text = text.map_err(|error| self.unreached(&error.to_string()))?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|_| self.unreached("its answer is no JSON"))?;
        if answer["ok"] == true {
            return Ok(answer["result"].take());
        }
        let said = answer["description"].as_str().unwrap_or("it gave no reason");
        let retry_after = answer["parameters"]["retry_after"].as_u64();
        if let Some(seconds) = retry_after
            && let Some(end) = Instant::now().checked_add(Duration::from_secs(seconds))
        {
            self.delays.lock().unwrap_or_else(PoisonError::into_inner).insert(method.to_owned(), end);
        }
        Err(Failure {
            why: format!("Telegram refused it: {}", crate::channel::terminal::plain(said)),
            code: Some(answer["error_code"].as_u64().unwrap_or(500)),
            retry_after,
        })
    }

    /// Downloads a file from the server.
    pub(super) async fn file(&self, id: &str) -> Result<Vec<u8>, String> {
        let file = self.call("getFile", serde_json::json!({ "file_id": id })).await.map_err(|failure| failure.why)?;
        let path = file["file_path"].as_str().ok_or("Telegram does not say where it is")?;
        let url = format!("{}/file/bot{}/{path}", self.server, self.token);
        let agent = self.agent.clone();
        let content = tokio::task::spawn_blocking(move || {
            let mut answer = agent.get(&url).config().timeout_global(Some(TIMEOUT * 4)).build().call()?;
            let status = answer.status().as_u16();
            let content = answer.body_mut().with_config().limit(LARGEST_FILE).read_to_vec()?;
            Ok::<_, ureq::Error>((status, content))
        });
        let content = content.await.map_err(|error| error.to_string())?;
        match content {
            Ok((200, content)) => Ok(content),
            Ok((status, _)) => Err(format!("Telegram answered {status}")),
            Err(ureq::Error::BodyExceedsLimit(_)) => Err(TOO_LARGE.to_owned()),
            Err(error) => Err(self.without_token(&error.to_string())),
        }
    }

    fn unreached(&self, why: &str) -> Failure {
        let why = format!("Telegram cannot be reached: {}", self.without_token(why));
        Failure { why, code: None, retry_after: None }
    }

    fn without_token(&self, text: &str) -> String {
        text.replace(&self.token, "TOKEN")
    }
}
