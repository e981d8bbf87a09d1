//! The HTTP client for remote servers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Minimum time between two requests that resume an answer, whatever the server asks for.
const RESUME_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 10;

/// Time after which an answer that its call no longer waits for is cut off.
const LATE: Duration = Duration::from_secs(1);

type Failed = StreamableHttpError<reqwest::Error>;

/// A client that receives only what one of its own requests asked for, for a limited time.
///
/// It does not open the stream by which a server may send at any time: nothing is offered to servers, and the tools are read again
/// at the start of each run.
#[derive(Clone)]
pub(super) struct PacedClient {
    inner: reqwest::Client,
    next_resume: Arc<Mutex<Instant>>,
}

impl PacedClient {
    /// Creates a client whose requests end [`LATE`] after `timeout`, together with their answers.
    ///
    /// # Errors
    /// If there is no TLS.
    pub(super) fn new(timeout: Duration) -> reqwest::Result<Self> {
        // A connection whose last answer was not read to its end is slow to use again.
        let builder = reqwest::Client::builder().pool_max_idle_per_host(0).timeout(timeout + LATE);
        let inner = builder.redirect(Policy::custom(redirected)).build()?;
        Ok(Self { inner, next_resume: Arc::new(Mutex::new(Instant::now())) })
    }

    async fn wait_to_resume(&self) {
        let mut next = self.next_resume.lock().await;
        sleep_until(*next).await;
        *next = Instant::now() + RESUME_PAUSE;
    }
}

/// Follows a redirect that keeps the method, the body and the server.
fn redirected(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_same_server = attempt.previous().last().is_some_and(|before| before.origin() == attempt.url().origin());
    match keeps_method && is_same_server && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.error("the server redirects elsewhere"),
    }
}

impl StreamableHttpClient for PacedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.inner.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let (inner, session) = (&self.inner, session_id);
        inner.post_message_with_max_sse_event_size(uri, message, session, auth_header, custom_headers, max).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        self.inner.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, Failed> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max: usize,
    ) -> Result<BoxedSseResponse, Failed> {
        if last_event_id.is_none() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        self.wait_to_resume().await;
        let (inner, session) = (&self.inner, session_id);
        inner.get_stream_with_max_sse_event_size(uri, session, last_event_id, auth_header, custom_headers, max).await
    }
}
