//! The service's side of the broker: answers a runner's questions.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::wire::{Answer, BEGIN, Question, QuestionBody, Reply, ReplyBody, Start};

/// Decides about programs.
#[async_trait]
pub trait Judge: Send + Sync + 'static {
    /// Decides whether a program may start, and its rights. The future is dropped if the program's caller ends first.
    async fn judge(&self, start: Start) -> Answer;

    /// Returns the subagent to which a script of the client's shell belongs, or `None` for the session itself. Called only if agents have
    /// shells of their own.
    ///
    /// # Errors
    /// If the script belongs to no allowed call, a sentence for standard error.
    async fn caller(&self, _script: String) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// Records that the runner ends the run because it exceeded a limit. The sentence names the limit.
    fn exceeded(&self, _what: String) {}
}

/// Answers a runner's questions until it ends. Questions are judged concurrently. A judge that panics denies.
///
/// # Errors
/// If reading from or writing to the runner fails.
pub async fn answer(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    judge: Arc<dyn Judge>,
) -> io::Result<()> {
    answer_and_begin(from, to, judge, std::future::pending()).await
}

/// Does the same, and lets the run's own shell begin once `begins` completes.
pub(crate) async fn answer_and_begin(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    judge: Arc<dyn Judge>,
    begins: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut begins = pin!(begins.fuse());
    let mut lines = BufReader::new(from).lines();
    let (answered, mut answers) = mpsc::unbounded_channel::<Reply>();
    let mut judging = PendingDecisions::default();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line? else { return Ok(()) };
                let (judge, answered) = (judge.clone(), answered.clone());
                let Question { id, what } = serde_json::from_str(&line)?;
                let what = match what {
                    // Handle this before the runner's end is seen.
                    QuestionBody::Exceeded(what) => {
                        judge.exceeded(what);
                        continue;
                    }
                    QuestionBody::Withdrawn(number) => {
                        if let Some(judge) = judging.0.remove(&number) {
                            judge.abort();
                        }
                        continue;
                    }
                    QuestionBody::Start(start) => {
                        tokio::spawn(async move { ReplyBody::Start(judge.judge(start).await) })
                    }
                    QuestionBody::Caller(script) => {
                        tokio::spawn(async move { ReplyBody::Caller(judge.caller(script).await) })
                    }
                };
                judging.0.retain(|_, judge| !judge.is_finished());
                judging.0.insert(id, what.abort_handle());
                tokio::spawn(async move {
                    // A judge that panics denies. A shell that asked for its caller does not expect this answer, and refuses too.
                    let failed = || Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
                    let what = what.await.unwrap_or_else(|_| ReplyBody::Start(failed()));
                    // The runner may have ended meanwhile.
                    let _ = answered.send(Reply { id, what });
                });
            }
            () = &mut begins => to.write_all(format!("{BEGIN}\n").as_bytes()).await?,
            Some(reply) = answers.recv() => {
                let mut line = serde_json::to_vec(&reply)?;
                line.push(b'\n');
                to.write_all(&line).await?;
            }
        }
    }
}

/// Pending decisions, aborted on drop.
#[derive(Default)]
struct PendingDecisions(HashMap<u64, AbortHandle>);

impl Drop for PendingDecisions {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}
