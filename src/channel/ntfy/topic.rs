//! Follows a topic as the server streams it: one line of JSON for each message, and regular keepalives
//! (<https://docs.ntfy.sh/subscribe/api/>).

use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::{Body, Bytes, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use tokio::time::timeout;

use super::USER_AGENT;
use crate::channel::SendError;

/// Maximum wait for the start of the server's answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Silence after which a stream counts as dead. The server sends a keepalive every 45 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(150);

/// Maximum length of a line, in bytes. The server accepts messages of up to 4,096.
const LONGEST: usize = 64 * 1024;

/// A topic that can be followed.
pub(super) struct Topic {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    url: String,
    token: Option<String>,
}

/// An event on a topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A keepalive of the server.
    Alive,
    /// A message.
    Message {
        /// The server's id of the message.
        id: String,
        /// Text of the message.
        text: String,
    },
}

/// An open stream. It is closed on drop.
pub(super) struct Stream<B> {
    body: B,
    /// Bytes received after the last complete line.
    buffer: Vec<u8>,
    /// Whether the current line is too long and is being skipped.
    passes_over: bool,
}

impl Topic {
    /// Creates the topic. No request is sent before [`open`](Self::open).
    pub(super) fn new(server: &str, topic: &str, token: Option<String>) -> Result<Self, rustls::Error> {
        let provider = rustls::crypto::ring::default_provider();
        let connector = HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider)?;
        let connector = connector.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { client, url: format!("{server}/{topic}/json"), token })
    }

    /// Follows the topic from after the message with the id `since`. Without an id, or with one that the server no longer knows, follows
    /// it from the oldest message that the server keeps.
    ///
    /// # Errors
    /// Returns the reason of the failure, and whether a retry may succeed.
    pub(super) async fn open(&self, since: Option<&str>) -> Result<Stream<Incoming>, SendError> {
        let since = since.filter(|id| is_id(id)).unwrap_or("all");
        let mut request = Request::get(format!("{}?since={since}", self.url));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.header("User-Agent", USER_AGENT).body(Empty::new());
        let request = request.map_err(|error| SendError { why: error.to_string(), retryable: false })?;
        let answer = timeout(TIMEOUT, self.client.request(request)).await;
        let late = |_| SendError::temporary(format!("the ntfy server did not answer within {} s", TIMEOUT.as_secs()));
        let answer = answer.map_err(late)?.map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            SendError::temporary(format!("the ntfy server cannot be reached: {error}{cause}"))
        })?;
        match answer.status().as_u16() {
            200 => Ok(Stream::new(answer.into_body())),
            status => {
                let retryable = status == 429 || status >= 500;
                Err(SendError { why: format!("the ntfy server answered {status}"), retryable })
            }
        }
    }
}

/// Whether the text has the form of a server's message id.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl<B: Body<Data = Bytes> + Unpin> Stream<B> {
    fn new(body: B) -> Self {
        Self { body, buffer: Vec::new(), passes_over: false }
    }

    /// Returns the next event. Skips other lines.
    ///
    /// # Errors
    /// Returns the reason why the stream ended.
    pub(super) async fn next(&mut self) -> Result<Event, String> {
        loop {
            while let Some(line) = self.line() {
                if let Some(event) = event(&line) {
                    return Ok(event);
                }
            }
            let frame = timeout(IDLE_TIMEOUT, self.body.frame()).await;
            let frame = frame.map_err(|_| format!("the ntfy server was silent for {} s", IDLE_TIMEOUT.as_secs()))?;
            let frame = frame.ok_or("the ntfy server has ended the stream")?;
            let frame = frame.map_err(|_| "the connection to the ntfy server was cut")?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// Removes the first complete line from the buffer.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
                if self.buffer.len() > LONGEST {
                    self.buffer.clear();
                    self.passes_over = true;
                }
                return None;
            };
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            if !std::mem::take(&mut self.passes_over) {
                return Some(line);
            }
        }
    }
}

fn event(line: &[u8]) -> Option<Event> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        #[serde(default)]
        id: String,
        #[serde(default)]
        message: String,
    }
    let line: Line = serde_json::from_slice(line).ok()?;
    match line.event.as_str() {
        "keepalive" => Some(Event::Alive),
        "message" => Some(Event::Message { id: line.id, text: line.message }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::StreamExt as _;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    fn stream(parts: Vec<String>, stalls: bool) -> Stream<impl Body<Data = Bytes> + Unpin> {
        let parts = futures::stream::iter(parts).map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part))));
        let rest = futures::stream::once(async move {
            if stalls { std::future::pending().await } else { Ok(Frame::data(Bytes::new())) }
        });
        Stream::new(StreamBody::new(Box::pin(parts.chain(rest))))
    }

    fn message(id: &str, text: &str) -> Event {
        Event::Message { id: id.into(), text: text.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_events_however_they_are_cut() {
        let long = format!("{{\"event\":\"message\",\"id\":\"b\",\"message\":\"{}\"}}\n", "x".repeat(2 * LONGEST));
        let parts = [
            "{\"id\":\"o\",\"event\":\"open\",\"topic\":\"t\"}\n{\"event\":\"keep",
            "alive\"}\nno JSON\n\n",
            &long[..LONGEST + 10],
            &long[LONGEST + 10..],
            "{\"event\":\"message\",\"id\":\"c\"}\n{\"event\":\"message\",\"id\":\"d\",\"message\":\"é\"}\n{\"event\":\"mess",
        ];
        let mut stream = stream(parts.map(str::to_owned).into(), false);
        assert_eq!(stream.next().await, Ok(Event::Alive));
        assert_eq!(stream.next().await, Ok(message("c", "")), "a line that is too long is passed over");
        assert_eq!(stream.next().await, Ok(message("d", "é")));
        assert_eq!(stream.next().await, Err("the ntfy server has ended the stream".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stalls_is_given_up() {
        let mut stream = stream(vec!["{\"event\":\"message\",\"id\":\"a\",\"message\":\"x\"}\n".into()], true);
        assert_eq!(stream.next().await, Ok(message("a", "x")));
        assert_eq!(stream.next().await, Err("the ntfy server was silent for 150 s".into()));
    }
}
