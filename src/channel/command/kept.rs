//! One process for all messages: a line of JSON for each, and lines of JSON back.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinHandle;

use super::process::Process;
use super::{id, last_line};
use crate::channel::NotSent;

/// The longest line that it may write.
const LONGEST: u64 = 64 * 1024;

/// How long its last words are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What it writes, a line each.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    /// It has sent a message.
    Delivered {
        /// The message's number.
        delivered: i64,
        /// What the service calls it.
        #[serde(default)]
        message: Value,
    },
    /// It has not.
    Failed {
        /// The message's number.
        failed: i64,
        /// Why not.
        #[serde(default)]
        why: String,
        /// Whether the same may work later.
        #[serde(default)]
        again: bool,
    },
}

/// A running process.
pub(super) struct Kept {
    stdin: pipe::Sender,
    lines: BufReader<ChildStdout>,
    stderr: JoinHandle<Vec<u8>>,
    _runner: Child,
    _socket: UnixStream,
}

impl Kept {
    pub(super) fn new(process: Process) -> Self {
        let Process { stdin, stdout, mut stderr, runner, socket } = process;
        let stderr = tokio::spawn(async move {
            let mut end = Vec::new();
            let mut chunk = [0; 4096];
            while let Ok(1..) = stderr.read(&mut chunk).await.inspect(|read| end.extend_from_slice(&chunk[..*read])) {
                let surplus = end.len().saturating_sub(4096);
                end.drain(..surplus);
            }
            end
        });
        Self { stdin, lines: BufReader::new(stdout), stderr, _runner: runner, _socket: socket }
    }

    /// Sends a message and waits for its answer.
    ///
    /// # Errors
    /// Why the process can be used no longer.
    pub(super) async fn send(&mut self, number: i64, line: Vec<u8>) -> Result<Result<Option<String>, NotSent>, String> {
        if self.stdin.write_all(&line).await.is_err() {
            return Err(self.why_ended().await);
        }
        loop {
            let mut line = Vec::new();
            match (&mut self.lines).take(LONGEST).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return Err(self.why_ended().await),
                Ok(_) => {}
            }
            match serde_json::from_slice(&line) {
                Ok(Line::Delivered { delivered, message }) if delivered == number => return Ok(Ok(id(&message))),
                Ok(Line::Failed { failed, why, again }) if failed == number => {
                    let why = if why.is_empty() { "it gave no reason".to_owned() } else { why };
                    return Ok(Err(NotSent { why, again }));
                }
                // An answer that came too late, or to nothing.
                Ok(_) => {}
                Err(_) => {
                    let line = String::from_utf8_lossy(&line);
                    tracing::warn!(line = %crate::channel::terminal::plain(line.trim()), "a channel wrote a line that is not known");
                }
            }
        }
    }

    async fn why_ended(&mut self) -> String {
        let stderr = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
        let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
        last_line(&stderr).unwrap_or_else(|| "it ended".to_owned())
    }
}
