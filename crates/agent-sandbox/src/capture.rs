//! Runs one command line in a job's shell without a client, and keeps what it prints.

use std::io;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::judge::{Judge, answer};
use crate::launch::{self, Launch};
use crate::runner::Started;

/// So many bytes of each stream are kept; what comes after is read and dropped.
const MOST_KEPT: u64 = 1024 * 1024;

/// Runs `launch` to its end under a runner of its own. `runner` is the program that [`crate::stage`] enters. Its standard input is
/// empty. Dropped before its end, it ends with all that it started.
///
/// # Errors
/// When the runner cannot be started, or what it prints cannot be read.
pub async fn capture(runner: &Path, launch: &Launch, judge: Arc<dyn Judge>) -> io::Result<Output> {
    let Started { mut child, mut socket, stdout, stderr } = Started::new(runner)?;
    let empty = std::fs::File::open("/dev/null")?;
    launch::send(&mut socket, launch, empty.into()).await?;
    let (from, to) = socket.into_split();
    let answers = answer(from, to, judge);
    let ended = async move {
        let (stdout, stderr) = tokio::try_join!(beginning(stdout), beginning(stderr))?;
        Ok(Output { status: child.wait().await?, stdout, stderr })
    };
    tokio::pin!(ended);
    tokio::select! {
        output = &mut ended => output,
        // The runner asks nothing any more.
        _ = answers => ended.await,
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
