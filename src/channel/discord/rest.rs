//! Requests to Discord's REST API, and the meaning of their failures.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use twilight_http::Client;
use twilight_http::client::ClientBuilder;
use twilight_http::error::{Error, ErrorType};
use twilight_http::request::{Method, Request, RequestBuilder};

use crate::channel::{SendError, terminal};

/// Timeout of a request, including waits for a rate limit.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of attempts of a rate-limited request. The library would retry without end, and without a pause if the answer gives no
/// delay.
const MAX_TRIES: u8 = 4;

/// Discord's error codes.
pub(super) const UNKNOWN_MESSAGE: u64 = 10008;
const CANNOT_WRITE: u64 = 50007;

/// A client of the REST API.
pub(super) struct Rest {
    client: Client,
}

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct Failure {
    /// Description of the failure.
    pub(super) why: String,
    /// Discord's error code, or 0.
    pub(super) code: u64,
    /// Whether a retry may succeed.
    pub(super) retryable: bool,
}

impl From<Failure> for SendError {
    fn from(failure: Failure) -> Self {
        Self { why: failure.why, retryable: failure.retryable }
    }
}

impl Rest {
    /// Creates a client. `api` is the address of a compatible server; `None` means Discord's.
    pub(super) fn new(token: &str, api: Option<&str>) -> Self {
        crate::tls::choose_provider();
        // A 401 may belong to the token of one interaction, so the library must not remember it for all requests.
        let builder = ClientBuilder::new().token(token.to_owned()).remember_invalid_token(false);
        let client = match api.map(|api| (api.strip_prefix("http://"), api.strip_prefix("https://"))) {
            Some((Some(host), _)) => builder.proxy(host.to_owned(), true),
            Some((_, Some(host))) => builder.proxy(host.to_owned(), false),
            _ => builder,
        };
        Self { client: client.build() }
    }

    pub(super) async fn get(&self, path: String) -> Result<Value, Failure> {
        self.call(RequestBuilder::raw(Method::Get, path).build()).await
    }

    pub(super) async fn delete(&self, path: String) -> Result<Value, Failure> {
        self.call(RequestBuilder::raw(Method::Delete, path).build()).await
    }

    /// Sends a request with a body. `Value::Null` means no body.
    pub(super) async fn send(&self, method: Method, path: String, body: &Value) -> Result<Value, Failure> {
        let request = RequestBuilder::raw(method, path);
        self.call(if body.is_null() { request } else { request.json(body) }.build()).await
    }

    /// Sends a request with a body once, for what is not worth a wait.
    pub(super) async fn send_once(&self, method: Method, path: String, body: &Value) -> Result<Value, Failure> {
        self.call_at_most(1, RequestBuilder::raw(method, path).json(body).build()).await
    }

    async fn call(&self, request: Result<Request, Error>) -> Result<Value, Failure> {
        self.call_at_most(MAX_TRIES, request).await
    }

    async fn call_at_most(&self, tries: u8, request: Result<Request, Error>) -> Result<Value, Failure> {
        let late = |_| temporary(format!("Discord did not answer within {} s", TIMEOUT.as_secs()));
        timeout(TIMEOUT, self.called(tries, request)).await.map_err(late)?
    }

    async fn called(&self, most: u8, request: Result<Request, Error>) -> Result<Value, Failure> {
        let mut answer = self.client.request::<()>(request.map_err(failure)?);
        let tries = AtomicU8::new(0);
        answer.set_pre_flight(move || tries.fetch_add(1, Ordering::Relaxed) < most);
        let answer = answer.await.map_err(failure)?;
        let bytes = answer.bytes().await.map_err(|error| temporary(format!("Discord's answer broke off: {error}")))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| temporary("Discord's answer is not JSON".into()))
    }
}

pub(super) fn temporary(why: String) -> Failure {
    Failure { why, code: 0, retryable: true }
}

pub(super) fn permanent(why: impl Into<String>) -> Failure {
    Failure { why: why.into(), code: 0, retryable: false }
}

fn failure(error: Error) -> Failure {
    let (kind, source) = error.into_parts();
    let source = source.map(|source| format!(": {source}")).unwrap_or_default();
    match kind {
        ErrorType::Response { body, status, .. } => refused(status.get(), &body),
        ErrorType::RequestTimedOut => temporary("Discord did not answer".into()),
        ErrorType::RequestError => temporary(format!("Discord cannot be reached{source}")),
        ErrorType::RequestCanceled => temporary("Discord limits how often the bot may ask".into()),
        // An error answer that is not JSON comes from a proxy between us and Discord.
        ErrorType::Parsing { .. } => temporary("Discord answered with an error that is not JSON".into()),
        ErrorType::CreatingHeader { .. } => permanent("`DISCORD_TOKEN` has characters that no token has"),
        _ => permanent(format!("the request cannot be made{source}")),
    }
}

/// Converts an error answer to a failure.
fn refused(status: u16, body: &[u8]) -> Failure {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Answer {
        code: u64,
        message: String,
    }
    let Answer { code, message } = serde_json::from_slice(body).unwrap_or_default();
    let retryable = status == 429 || status >= 500;
    let why = match (status, code) {
        (401, 0) => "Discord does not accept `DISCORD_TOKEN` (401): put the application's token into .env, and start the service again".into(),
        (_, CANNOT_WRITE) => {
            "Discord does not let the bot write to you (50007): add the application to your account (docs/channels.md)".into()
        }
        (_, 0) => format!("Discord answered {status}"),
        _ => format!("Discord answered {status}: {} ({code})", terminal::plain(&message)),
    };
    Failure { why, code, retryable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        for (status, body, why, retryable) in [
            (401, r#"{"code":0,"message":"401: Unauthorized"}"#, "`DISCORD_TOKEN` (401)", false),
            (401, r#"{"code":50027,"message":"Invalid Webhook Token"}"#, "401: Invalid Webhook Token (50027)", false),
            (403, r#"{"code":50007,"message":"Cannot send messages to this user"}"#, "add the application", false),
            (
                400,
                r#"{"code":50035,"message":"Invalid \u001b[1mForm Body"}"#,
                "400: Invalid  [1mForm Body (50035)",
                false,
            ),
            (500, "<html>", "Discord answered 500", true),
            (429, "{}", "Discord answered 429", true),
        ] {
            let failure = refused(status, body.as_bytes());
            assert!(failure.why.contains(why), "{failure:?}");
            assert_eq!(failure.retryable, retryable, "{failure:?}");
        }
    }
}
