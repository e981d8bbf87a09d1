//! The service's side: answers what a runner asks.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::wire::{Answer, Asked, Question, Reply, Said, Start};

/// Decides about programs.
#[async_trait]
pub trait Judge: Send + Sync + 'static {
    /// May this program start, and what may it reach? Dropped before it answers when the program's caller has ended.
    async fn judge(&self, start: Start) -> Answer;

    /// The subagent that a script of the client's shell belongs to; `None`: the session itself. Asked only where agents have shells
    /// of their own.
    ///
    /// # Errors
    /// A sentence for standard error: the script belongs to no call that was allowed.
    async fn caller(&self, _script: String) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// The runner ends the run, since it took more than it may; the sentence says of what.
    fn exceeded(&self, _what: String) {}
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
    let mut judging = Judging::default();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line? else { return Ok(()) };
                let (judge, answered) = (judge.clone(), answered.clone());
                let Question { id, what } = serde_json::from_str(&line)?;
                let what = match what {
                    // Before the runner's end is seen.
                    Asked::Exceeded(what) => {
                        judge.exceeded(what);
                        continue;
                    }
                    Asked::Withdrawn(number) => {
                        if let Some(judge) = judging.0.remove(&number) {
                            judge.abort();
                        }
                        continue;
                    }
                    Asked::Start(start) => tokio::spawn(async move { Said::Start(judge.judge(start).await) }),
                    Asked::Caller(script) => tokio::spawn(async move { Said::Caller(judge.caller(script).await) }),
                };
                judging.0.retain(|_, judge| !judge.is_finished());
                judging.0.insert(id, what.abort_handle());
                tokio::spawn(async move {
                    // A judge that panics denies: the trampoline waits for an answer of its kind, and takes this for none.
                    let failed = || Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
                    let what = what.await.unwrap_or_else(|_| Said::Start(failed()));
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

/// Decisions that are being made. Dropped, nobody waits for them any more.
#[derive(Default)]
struct Judging(HashMap<u64, AbortHandle>);

impl Drop for Judging {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}
