//! The service's side: answers what a runner asks.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::wire::{Answer, Asked, Question, Reply, Said, Start};

/// Decides about programs.
#[async_trait]
pub trait Judge: Send + Sync + 'static {
    /// May this program start, and what may it reach?
    async fn judge(&self, start: Start) -> Answer;

    /// The subagent that a script of the client's shell belongs to; `None`: the session itself. Asked only where agents have shells
    /// of their own.
    ///
    /// # Errors
    /// A sentence for standard error: the script belongs to no call that was allowed.
    async fn caller(&self, _script: String) -> Result<Option<String>, String> {
        Ok(None)
    }
}

/// Answers a runner's questions until it ends. Questions are judged side by side; a judge that panics denies.
///
/// # Errors
/// When the runner cannot be read from or written to any more.
pub async fn answer(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    judge: Arc<dyn Judge>,
) -> io::Result<()> {
    let mut lines = BufReader::new(from).lines();
    let (answered, mut answers) = mpsc::unbounded_channel::<Reply>();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line? else { return Ok(()) };
                let Question { id, what } = serde_json::from_str(&line)?;
                let (judge, answered) = (judge.clone(), answered.clone());
                tokio::spawn(async move {
                    let failed = "denied, since the decision failed";
                    let what = match what {
                        Asked::Start(start) => {
                            let judged = tokio::spawn(async move { judge.judge(start).await }).await;
                            let deny = |_| Answer::Deny { code: 126, message: failed.into() };
                            Said::Start(judged.unwrap_or_else(deny))
                        }
                        Asked::Caller(script) => {
                            let found = tokio::spawn(async move { judge.caller(script).await }).await;
                            Said::Caller(found.unwrap_or_else(|_| Err(failed.into())))
                        }
                    };
                    // The runner may have ended meanwhile.
                    let _ = answered.send(Reply { id, what });
                });
            }
            Some(reply) = answers.recv() => {
                let mut line = serde_json::to_vec(&reply)?;
                line.push(b'\n');
                to.write_all(&line).await?;
            }
        }
    }
}
