//! What is delivered to the webhook: each delivery again and again, as services do that had no answer.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::jobs::{SECRET, WEBHOOK};

/// Delivers something. Whether the answer was that it is taken care of.
pub fn deliver(socket: &Path, key: &str) -> bool {
    send(socket, key).is_some_and(|answer| answer.starts_with("HTTP/1.1 202 "))
}

/// The answer; `None`: there is nobody, or who was there is gone.
fn send(socket: &Path, key: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let body = format!(r#"{{"key":"{key}"}}"#);
    let request = format!(
        "POST /hook/{WEBHOOK} HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {SECRET}\r\nIdempotency-Key: {key}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
