//! Runs one command line in a job's shell without a client, and collects or streams its output.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::judge::{Judge, answer_and_begin};
use crate::launch::{self, Launch};
use crate::runner::{PrespawnedRunner, wait_or_kill};
use crate::tree;

/// Maximum number of bytes kept per stream. Further output is read and dropped.
const MAX_KEPT: usize = 1024 * 1024;

/// Maximum time to read what a command has written, after its end.
const REST: Duration = Duration::from_secs(1);

/// Number of bytes read at once.
const CHUNK: usize = 16 * 1024;

/// Runs `launch` to its end under a new runner. `runner` is the program that [`crate::stage`] enters. Standard input is
/// empty. Dropping the future ends the command and all its descendants.
///
/// # Errors
/// If the runner cannot be started, or its output cannot be read.
pub async fn capture(runner: &Path, launch: &Launch, judge: Arc<dyn Judge>) -> io::Result<Output> {
    let output = capture_until(runner, launch, judge, std::future::pending()).await?;
    output.ok_or_else(|| io::ErrorKind::Interrupted.into())
}

/// Runs `launch` as [`capture`] does, but at most until `until` completes. Returns `None` if it was ended; no process is left then.
///
/// # Errors
/// As [`capture`].
pub async fn capture_until(
    runner: &Path,
    launch: &Launch,
    judge: Arc<dyn Judge>,
    until: impl Future<Output = ()>,
) -> io::Result<Option<Output>> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut keep = |stream, bytes: &[u8]| {
        let kept = match stream {
            Stream::Stdout => &mut stdout,
            Stream::Stderr => &mut stderr,
        };
        kept.extend_from_slice(&bytes[..bytes.len().min(MAX_KEPT - kept.len())]);
    };
    let sent = SentLaunch::send(PrespawnedRunner::start(runner).await?, launch).await?;
    let status = listen_until(sent, judge, std::future::ready(Ok(())), until, &mut keep).await?;
    Ok(status.map(|status| Output { status, stdout, stderr }))
}

/// The stream of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error, which includes the runner's messages.
    Stderr,
}

/// A launch that a runner has received. A line in the run's own shell does not begin before [`listen_until`]: until then the shell only
/// prepares itself. Any other program begins at once. If this is dropped, its processes end.
#[derive(Debug)]
pub struct SentLaunch {
    runner: PrespawnedRunner,
    /// The run's own folder.
    folder: PathBuf,
}

impl SentLaunch {
    /// Sends a launch to a started runner. Standard input is empty.
    ///
    /// # Errors
    /// If the runner has ended, or the system refuses.
    pub async fn send(mut runner: PrespawnedRunner, launch: &Launch) -> io::Result<Self> {
        let empty = std::fs::File::open("/dev/null")?;
        launch::send(&mut runner.socket, launch, empty.into()).await?;
        Ok(Self { runner, folder: launch.folder.clone() })
    }

    /// Ends it, and waits until none of its processes is left.
    ///
    /// # Errors
    /// If its processes do not end.
    pub async fn discard(self) -> io::Result<()> {
        let PrespawnedRunner { mut child, socket, stdout, stderr } = self.runner;
        drop((socket, stdout, stderr));
        end_leftovers(wait_or_kill(&mut child).await?, &self.folder).await
    }
}

/// Runs what was sent as [`capture_until`] does, and passes the output to `heard` as it arrives. A line in the run's own
/// shell begins once `ready` completes, and never if that fails. Returns `None` if the command was ended.
///
/// # Errors
/// As [`capture_until`], and the error of `ready`.
pub async fn listen_until(
    sent: SentLaunch,
    judge: Arc<dyn Judge>,
    ready: impl Future<Output = io::Result<()>>,
    until: impl Future<Output = ()>,
    heard: &mut (dyn FnMut(Stream, &[u8]) + Send),
) -> io::Result<Option<ExitStatus>> {
    let SentLaunch { runner: PrespawnedRunner { mut child, socket, stdout, stderr }, folder } = sent;
    let (from, to) = socket.into_split();
    let (begin, begins) = oneshot::channel();
    let mut begin = Some(begin);
    let mut answers = Box::pin(answer_and_begin(from, to, judge, async {
        if begins.await.is_err() {
            std::future::pending().await
        }
    }));
    let closed = Notify::new();
    let waited = async {
        let status = tokio::select! {
            status = child.wait() => status?,
            () = closed.notified() => wait_or_kill(&mut child).await?,
        };
        end_leftovers(status, &folder).await?;
        Ok(status)
    };
    let mut ended = Box::pin(with_output(waited, listen(stdout, stderr, heard)));
    tokio::pin!(ready, until);
    let (mut asks, mut failed) = (true, None);
    loop {
        tokio::select! {
            status = &mut ended => return status.map(Some),
            _ = &mut answers, if asks => asks = false,
            recorded = &mut ready, if begin.is_some() => match (recorded, begin.take()) {
                // The runner may have ended meanwhile.
                (Ok(()), Some(begin)) => drop(begin.send(())),
                (Ok(()), None) => {}
                (Err(error), _) => {
                    failed = Some(error);
                    break;
                }
            },
            () = &mut until => break,
        }
    }
    // Closing the runner's socket makes it end all its descendants.
    drop(answers);
    closed.notify_one();
    ended.await?;
    failed.map_or(Ok(None), Err)
}

/// Waits for the end of a command, and for the end of its output. A command may have passed its streams to a process of another run, so
/// once it has ended, only what it has written by then is read.
async fn with_output(
    waited: impl Future<Output = io::Result<ExitStatus>>,
    listening: impl Future<Output = io::Result<()>>,
) -> io::Result<ExitStatus> {
    tokio::pin!(waited, listening);
    tokio::select! {
        heard = &mut listening => {
            heard?;
            waited.await
        }
        status = &mut waited => {
            let status = status?;
            match timeout(REST, listening).await {
                Ok(heard) => heard?,
                Err(_) => tracing::debug!("somebody else holds the streams of a command that has ended"),
            }
            Ok(status)
        }
    }
}

/// Ends leftover processes of the run with this folder. Does so only if the runner and its parent were killed by a signal: no other
/// process then ends its descendants, which may hold its pipes open.
///
/// # Errors
/// If `/proc` cannot be read, or processes do not end. The next start of the service tries again.
pub async fn end_leftovers(status: ExitStatus, folder: &Path) -> io::Result<()> {
    if status.signal().is_none() {
        return Ok(());
    }
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || tree::end_run(&folder)).await?.map(drop)
}

/// Reads both streams to their ends.
async fn listen(
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    heard: &mut (dyn FnMut(Stream, &[u8]) + Send),
) -> io::Result<()> {
    let (mut of_stdout, mut of_stderr) = (vec![0; CHUNK], vec![0; CHUNK]);
    let (mut stdout_goes, mut stderr_goes) = (true, true);
    while stdout_goes || stderr_goes {
        tokio::select! {
            read = stdout.read(&mut of_stdout), if stdout_goes => {
                let read = read?;
                heard(Stream::Stdout, &of_stdout[..read]);
                stdout_goes = read > 0;
            }
            read = stderr.read(&mut of_stderr), if stderr_goes => {
                let read = read?;
                heard(Stream::Stderr, &of_stderr[..read]);
                stderr_goes = read > 0;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_streams_are_read_to_their_ends() {
        let (long, short) = (vec![b'x'; 5 << 20], b"short");
        let (mut from_stdout, mut from_stderr) = (0, Vec::new());
        let mut heard = |stream, bytes: &[u8]| match stream {
            Stream::Stdout => from_stdout += bytes.len(),
            Stream::Stderr => from_stderr.extend_from_slice(bytes),
        };
        listen(&long[..], &short[..], &mut heard).await.unwrap();
        assert_eq!((from_stdout, from_stderr.as_slice()), (5 << 20, &short[..]));
    }
}
