//! One client process behind its runner: its start, its three streams, and its end.
//!
//! No descendant survives, however the process ends and even if the value is just dropped: the runner kills all of them
//! as soon as our end of its socket is closed.

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
use agent_sandbox::runner::{PrespawnedRunner, wait_or_kill};
use agent_sandbox::{Judge, Launch, tree};

/// Maximum number of messages that wait for the client to read them.
const QUEUE: usize = 1024;

/// Number of bytes kept from the end of standard error.
const TAIL: usize = 4096;

/// Number of checks for processes that a client left behind, and the pause between two checks.
const POLLS: usize = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// A running client.
pub(super) struct Process {
    pub lines: Lines<ChildStdout>,
    to_client: Sender,
    writer: JoinHandle<()>,
    stderr: JoinHandle<Vec<u8>>,
    /// The task that answers the runner's questions. Dropping it closes the socket, which ends the runner.
    answers: AbortOnDropHandle<()>,
    /// The same socket, to shut down only our half. The runner then ends, and its last messages can still be read.
    control: OwnedFd,
    runner: Child,
    pid: u32,
    /// The run's own folder.
    folder: PathBuf,
}

/// A handle that writes to the client's standard input. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sender {
    queue: mpsc::Sender<Vec<u8>>,
    close: CancellationToken,
}

impl Sender {
    /// Sends one line. The line is dropped if the client no longer reads its input. Its question then stays unanswered,
    /// which is a denial.
    pub(super) fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        if self.queue.try_send(line).is_err() {
            tracing::debug!("the agent client does not read its input; a message was dropped");
        }
    }

    /// Closes the client's standard input after all earlier messages are written.
    pub(super) fn close(&self) {
        self.close.cancel();
    }
}

/// The end of a client.
#[derive(Debug, Default)]
pub(super) struct Exit {
    /// The exit code, or 128 plus the signal; `None` if the runner was killed.
    pub code: Option<i32>,
    /// The last part of its standard error.
    pub stderr: String,
}

impl Process {
    /// # Errors
    /// An error if the runner has ended. (A client that cannot be started is reported by [`Exit::code`].)
    pub(super) async fn start(waiting: PrespawnedRunner, launch: &Launch, judge: Arc<dyn Judge>) -> io::Result<Self> {
        let pid = waiting.child.id().ok_or_else(|| io::Error::other("the runner has ended"))?;
        let PrespawnedRunner { child: runner, mut socket, stdout, stderr } = waiting;
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
            folder: launch.folder.clone(),
        })
    }

    /// Returns the runner's process id. Everything that the client starts is a descendant of it.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the runner is alive.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.runner.try_wait(), Ok(None))
    }

    /// Returns whether the client is the only program below the runner, apart from the runner's own processes. Checks several times,
    /// since a shell that has just ended may still be visible.
    pub(super) async fn is_client_alone(&self, shell_binary: &Path) -> bool {
        let shell_binary = agent_sandbox::resolved(shell_binary);
        for _ in 0..POLLS {
            let (pid, shell_binary) = (self.pid, shell_binary.clone());
            let others = tokio::task::spawn_blocking(move || {
                Ok::<_, io::Error>(tree::programs_below(pid)?.into_iter().filter(|file| *file != shell_binary).count())
            });
            if matches!(others.await, Ok(Ok(..=1))) {
                return true;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        false
    }

    /// Returns a handle that writes to the client.
    pub(super) fn sender(&self) -> Sender {
        self.to_client.clone()
    }

    /// Closes standard input, gives the client `grace` to exit by itself, then kills the remaining processes.
    /// Returns when none is left.
    pub(super) async fn end(mut self, grace: Duration) -> Exit {
        self.to_client.close();
        let left = timeout(grace, async {
            // Reads the client's last output, so that it does not block on writing it.
            while let Ok(Some(_)) = self.lines.next().await {}
            self.runner.wait().await
        })
        .await;
        // This fails if the runner has already ended.
        let _ = shutdown(&self.control, Shutdown::Write);
        drop(self.lines);
        self.writer.abort();
        let status = match left {
            Ok(status) => status,
            Err(_) => wait_or_kill(&mut self.runner).await,
        };
        if let Ok(status) = status
            && let Err(error) = agent_sandbox::end_leftovers(status, &self.folder).await
        {
            tracing::error!(%error, "what an agent client has left cannot be ended");
        }
        // Waits for the runner's last messages. The end of the task closes the socket.
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

/// Answers the runner's questions, and keeps its socket open as long as the client is needed.
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
        // A client that has closed its input ends by itself. A verdict that it did not read is no approval.
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
