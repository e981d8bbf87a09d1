//! Runs one command line in a job's shell without a client, and keeps what it prints.

use std::io;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::judge::{Judge, answer};
use crate::launch::{self, Launch};
use crate::runner::Started;

/// So many bytes of each stream are kept; what comes after is read and dropped.
const MOST_KEPT: u64 = 1024 * 1024;

/// How long a runner may take to kill what is below it. It takes milliseconds.
const RUNNER_ENDS: Duration = Duration::from_secs(10);

/// Runs `launch` to its end under a runner of its own. `runner` is the program that [`crate::stage`] enters. Its standard input is
/// empty. Dropped before its end, it ends with all that it started.
///
/// # Errors
/// When the runner cannot be started, or what it prints cannot be read.
pub async fn capture(runner: &Path, launch: &Launch, judge: Arc<dyn Judge>) -> io::Result<Output> {
    let output = capture_until(runner, launch, judge, std::future::pending()).await?;
    output.ok_or_else(|| io::ErrorKind::Interrupted.into())
}

/// The same, ended at the latest when `until` is there. `None`: it was ended, and nothing of it is left.
///
/// # Errors
/// As [`capture`]; and when the runner does not end.
pub async fn capture_until(
    runner: &Path,
    launch: &Launch,
    judge: Arc<dyn Judge>,
    until: impl Future<Output = ()>,
) -> io::Result<Option<Output>> {
    let Started { mut child, mut socket, stdout, stderr } = Started::new(runner)?;
    let empty = std::fs::File::open("/dev/null")?;
    launch::send(&mut socket, launch, empty.into()).await?;
    let (from, to) = socket.into_split();
    let mut answers = Box::pin(answer(from, to, judge));
    let read = async { tokio::try_join!(beginning(stdout), beginning(stderr)) };
    let ended = async {
        let (stdout, stderr) = read.await?;
        Ok::<_, io::Error>(Output { status: child.wait().await?, stdout, stderr })
    };
    let mut ended = Box::pin(ended);
    tokio::pin!(until);
    let mut asks = true;
    loop {
        tokio::select! {
            output = &mut ended => return output.map(Some),
            _ = &mut answers, if asks => asks = false,
            () = &mut until => break,
        }
    }
    // Its socket closes, and it ends all that is below it.
    drop(answers);
    match tokio::time::timeout(RUNNER_ENDS, ended).await {
        Ok(ended) => ended.map(|_| None),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the runner does not end")),
    }
}

/// Reads a stream to its end and keeps its beginning.
async fn beginning(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    (&mut stream).take(MOST_KEPT).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_printed_without_end_takes_no_memory() {
        let long = vec![b'x'; 5 << 20];
        assert_eq!(beginning(&long[..]).await.unwrap().len() as u64, MOST_KEPT);
        assert_eq!(beginning(&b"short"[..]).await.unwrap(), b"short");
    }
}
