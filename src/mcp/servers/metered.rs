//! Reads a server's output with a limited rate.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum number of bytes read in one [`WINDOW`]. The rest waits in the pipe.
const MAX_PER_WINDOW: u64 = 8 * 1024 * 1024;

/// See [`MAX_PER_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);

/// Maximum number of unrequested bytes. After that, the output is not read any more.
const MAX_UNREQUESTED: u64 = 64 * 1024 * 1024;

/// Number of bytes that a server has written since one of its calls last began or ended.
#[derive(Clone, Default)]
pub(super) struct UnrequestedBytes(Arc<ByteCounts>);

#[derive(Default)]
struct ByteCounts {
    bytes: AtomicU64,
    /// Whether it was a flood once. No later call resets this.
    is_flood: AtomicBool,
    flooded: Notify,
}

impl UnrequestedBytes {
    /// Resets the count, because a call begins or ends.
    pub(super) fn forget(&self) {
        self.0.bytes.store(0, Ordering::Relaxed);
    }

    /// Whether it wrote so much that it is not read any more.
    pub(super) fn is_flood(&self) -> bool {
        self.0.is_flood.load(Ordering::Relaxed)
    }

    /// Waits for a flood.
    pub(super) async fn flooded(&self) {
        self.0.flooded.notified().await;
    }

    fn add(&self, bytes: u64) {
        if self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_UNREQUESTED {
            self.0.is_flood.store(true, Ordering::Relaxed);
            self.0.flooded.notify_one();
        }
    }
}

/// A reader that delays large output, and ends when there is more than any call can have requested.
pub(super) struct MeteredReader<R> {
    inner: R,
    unasked: UnrequestedBytes,
    window: Pin<Box<Sleep>>,
    read: u64,
}

impl<R> MeteredReader<R> {
    pub(super) fn new(inner: R, unasked: UnrequestedBytes) -> Self {
        Self { inner, unasked, window: Box::pin(sleep_until(Instant::now() + WINDOW)), read: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MeteredReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.unasked.is_flood() {
            return Poll::Ready(Ok(()));
        }
        if self.read >= MAX_PER_WINDOW {
            ready!(self.window.as_mut().poll(cx));
        }
        if self.window.is_elapsed() {
            self.window.as_mut().reset(Instant::now() + WINDOW);
            self.read = 0;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        self.read += read;
        self.unasked.add(read);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn much_at_once_waits_and_a_flood_ends() {
        let unasked = UnrequestedBytes::default();
        let mut metered = MeteredReader::new(tokio::io::repeat(b'x'), unasked.clone());
        let began = Instant::now();
        let mut buffer = vec![0; 1024 * 1024];
        for _ in 0..16 {
            metered.read_exact(&mut buffer).await.unwrap();
        }
        assert!(began.elapsed() >= WINDOW, "{:?}", began.elapsed());
        unasked.forget();
        let mut total = 0;
        loop {
            match metered.read(&mut buffer).await.unwrap() {
                0 => break,
                read => total += read as u64,
            }
        }
        assert!((MAX_UNREQUESTED..MAX_UNREQUESTED + MAX_PER_WINDOW).contains(&total), "{total}");
    }
}
