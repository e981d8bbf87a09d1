//! One client process behind its runner: starting it, its three streams, and its end.
//!
//! However it ends, and even if the value is just dropped, nothing of it survives: the runner kills what is left as
//! soon as our end of its socket is closed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::lines::Lines;
use agent_sandbox::runner::Started;
use agent_sandbox::{Judge, Launch, tree};

/// Messages that wait for the client to read them.
const QUEUE: usize = 1024;

/// The end of standard error that is kept.
const TAIL: usize = 4096;

/// How often it is looked whether a client has left something behind, and how long between two looks.
const LOOKS: usize = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// How long a runner may take to kill what is below it. It takes milliseconds; after that we do it ourselves.
const WRAPPER_ENDS: Duration = Duration::from_secs(10);

/// A running client.
pub(super) struct Process {
    pub lines: Lines<ChildStdout>,
    to_client: Sender,
    writer: JoinHandle<()>,
    stderr: JoinHandle<Vec<u8>>,
    /// Answers what the runner asks. Dropped, it closes the socket, which ends the runner.
    answers: AbortOnDropHandle<()>,
    /// The same socket, to close our half of it: the runner then ends, and what it said before is heard.
    control: OwnedFd,
    runner: Child,
    pid: u32,
    /// The run's own folder.
    folder: Option<PathBuf>,
}

/// The way to the client's standard input. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sender {
    queue: mpsc::Sender<Vec<u8>>,
    close: CancellationToken,
}

impl Sender {
    /// Sends one line. It is lost if the client reads nothing any more: what it asked is then not answered, and
    /// an unanswered question is a no.
    pub(super) fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        if self.queue.try_send(line).is_err() {
            tracing::debug!("the agent client does not read its input; a message was dropped");
        }
    }

    /// Closes the client's standard input, once all that was sent before is written.
    pub(super) fn close(&self) {
        self.close.cancel();
    }
}

/// How a client ended.
#[derive(Debug, Default)]
pub(super) struct Exit {
    /// Its exit code, or 128 and the signal; `None`: the runner was killed.
    pub code: Option<i32>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

/// A runner that waits to be told what to start. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Waiting(Started);

impl Waiting {
    /// # Errors
    /// Our own binary cannot be started.
    pub(super) fn start(shell_binary: &Path) -> io::Result<Self> {
        Started::new(shell_binary).map(Self)
    }

    /// `None`: it has ended.
    pub(super) fn pid(&self) -> Option<u32> {
        self.0.child.id()
    }

    /// Whether it is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.0.child.try_wait(), Ok(None))
    }
}

impl Process {
    /// # Errors
    /// The runner has ended. (A client that cannot be started shows by [`Exit::code`].)
    pub(super) async fn start(waiting: Waiting, launch: &Launch, judge: Arc<dyn Judge>) -> io::Result<Self> {
        let pid = waiting.pid().ok_or_else(|| io::Error::other("the runner has ended"))?;
        let Started { child: runner, mut socket, stdout, stderr } = waiting.0;
        let (read, write) = io::pipe()?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        let close = CancellationToken::new();
        rustix::io::ioctl_fionbio(&write, true)?;
        let writer = tokio::spawn(write_lines(pipe::Sender::from_owned_fd(write.into())?, waiting, close.clone()));
        agent_sandbox::send(&mut socket, launch, read.into()).await?;
        let control = socket.as_fd().try_clone_to_owned()?;
        Ok(Self {
            lines: Lines::new(stdout),
            to_client: Sender { queue, close },
            writer,
            stderr: tokio::spawn(tail(stderr)),
            answers: AbortOnDropHandle::new(tokio::spawn(answer(socket, judge))),
            control,
            runner,
            pid,
            folder: launch.run_folder().map(Path::to_owned),
        })
    }

    /// The runner's: everything that the client starts is below it.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.runner.try_wait(), Ok(None))
    }

    /// Whether nothing is left of what the client has started: below the runner there is the client alone, beside the runner's own
    /// processes. Looks for a moment, since a shell that has ended may be seen.
    pub(super) async fn is_client_alone(&self, shell_binary: &Path) -> bool {
        let shell_binary = agent_sandbox::resolved(shell_binary);
        for _ in 0..LOOKS {
            let (pid, shell_binary) = (self.pid, shell_binary.clone());
            let others = tokio::task::spawn_blocking(move || {
                Ok::<_, io::Error>(tree::programs_below(pid)?.into_iter().filter(|file| *file != shell_binary).count())
            });
            if matches!(others.await, Ok(Ok(..=1))) {
                return true;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        false
    }

    /// The way to the client.
    pub(super) fn sender(&self) -> Sender {
        self.to_client.clone()
    }

    /// Closes standard input, gives the client `grace` to leave by itself, then kills what is left. Returns when
    /// nothing is.
    pub(super) async fn end(mut self, grace: Duration) -> Exit {
        self.to_client.close();
        let left = timeout(grace, async {
            // Its last words are read, so that it does not block on them.
            while let Ok(Some(_)) = self.lines.next().await {}
            self.runner.wait().await
        })
        .await;
        // It fails where the runner has ended.
        let _ = shutdown(&self.control, Shutdown::Write);
        drop(self.lines);
        self.writer.abort();
        let status = match left {
            Ok(status) => status,
            Err(_) => match timeout(WRAPPER_ENDS, self.runner.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    tracing::warn!(
                        pid = self.pid,
                        "the runner of an agent client hangs; its processes are killed from here"
                    );
                    // Processes that follow each other quickly can be missed by one look.
                    let mut looks_in_vain = 0;
                    while looks_in_vain < 5 {
                        match tree::kill_below(self.pid) {
                            Ok(0) => looks_in_vain += 1,
                            Ok(_) => looks_in_vain = 0,
                            Err(error) => {
                                tracing::error!(%error, "the processes of an agent client cannot be found");
                                looks_in_vain += 1;
                            }
                        }
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    self.runner.kill().await.and(self.runner.wait().await)
                }
            },
        };
        if let Ok(status) = status {
            agent_sandbox::end_leftovers(status, self.folder.as_deref()).await;
        }
        // Its last words; the socket is closed with it.
        let _ = timeout(Duration::from_secs(1), &mut self.answers).await;
        let abort = self.stderr.abort_handle();
        let stderr = timeout(Duration::from_secs(1), self.stderr).await;
        abort.abort();
        let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
        Exit {
            code: status.ok().and_then(|status| status.code()),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }
}

/// Answers what the runner asks, and holds its socket for as long as the client is wanted.
async fn answer(socket: UnixStream, judge: Arc<dyn Judge>) {
    let (from, to) = socket.into_split();
    if let Err(error) = agent_sandbox::answer(from, to, judge).await {
        tracing::warn!(%error, "the runner of an agent client asks nothing any more: its programs are refused");
    }
}

async fn write_lines(mut pipe: pipe::Sender, mut waiting: mpsc::Receiver<Vec<u8>>, close: CancellationToken) {
    loop {
        let line = tokio::select! {
            biased;
            line = waiting.recv() => line,
            () = close.cancelled() => None,
        };
        let Some(line) = line else { return };
        // A client that has closed its input ends in its own way; what it did not hear was not allowed.
        if pipe.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Reads to the end and keeps the last [`TAIL`] bytes.
async fn tail(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(read) = stream.read(&mut chunk).await {
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..read]);
        kept.drain(..kept.len().saturating_sub(TAIL));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_long_complaint_is_kept() {
        let text = "x".repeat(100_000) + "the end";
        let kept = tail(text.as_bytes()).await;
        assert_eq!(kept.len(), TAIL);
        assert!(kept.ends_with(b"the end"));
    }
}
