//! Receives from a server with a limited rate.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

/// Time in which a [`Rate`] admits its maximum.
const WINDOW: Duration = Duration::from_secs(1);

/// Maximum number of bytes read in one [`WINDOW`]. The rest waits in the pipe.
const MAX_BYTES_PER_WINDOW: u64 = 8 * 1024 * 1024;

/// Maximum number of unrequested bytes. After that, the output is not read any more.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum number of messages received in one [`WINDOW`].
const MAX_MESSAGES_PER_WINDOW: u64 = 1000;

/// Maximum number of unrequested messages. After that, no more are received.
const MAX_MESSAGES: u64 = 100_000;

/// Maximum number of requests of a server whose answers it has not read.
const MAX_UNANSWERED: u64 = 100;

/// What a server has sent since one of its calls last began or ended.
#[derive(Clone, Default)]
pub(super) struct Unrequested(Arc<Counts>);

#[derive(Default)]
struct Counts {
    bytes: AtomicU64,
    messages: AtomicU64,
    /// Whether it was a flood once. No later call resets this.
    is_flood: AtomicBool,
    flooded: Notify,
}

impl Unrequested {
    /// Resets the counts, because a call begins or ends.
    pub(super) fn forget(&self) {
        self.0.bytes.store(0, Ordering::Relaxed);
        self.0.messages.store(0, Ordering::Relaxed);
    }

    /// Whether it sent so much that nothing is received any more.
    pub(super) fn is_flood(&self) -> bool {
        self.0.is_flood.load(Ordering::Relaxed)
    }

    /// Waits for a flood.
    pub(super) async fn flooded(&self) {
        self.0.flooded.notified().await;
    }

    fn add_bytes(&self, bytes: u64) {
        if self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_BYTES {
            self.flood();
        }
    }

    fn add_message(&self) {
        if self.0.messages.fetch_add(1, Ordering::Relaxed) >= MAX_MESSAGES {
            self.flood();
        }
    }

    fn flood(&self) {
        self.0.is_flood.store(true, Ordering::Relaxed);
        self.0.flooded.notify_one();
    }
}

/// Admits a maximum in each [`WINDOW`].
struct Rate {
    max: u64,
    used: u64,
    window: Pin<Box<Sleep>>,
}

impl Rate {
    fn new(max: u64) -> Self {
        Self { max, used: 0, window: Box::pin(sleep_until(Instant::now() + WINDOW)) }
    }

    /// Waits for the next window if this one is used up.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.used >= self.max {
            ready!(self.window.as_mut().poll(cx));
        }
        if self.window.is_elapsed() {
            self.window.as_mut().reset(Instant::now() + WINDOW);
            self.used = 0;
        }
        Poll::Ready(())
    }
}

/// A reader that delays large output, and ends when there is more than any call can have requested.
pub(super) struct MeteredReader<R> {
    inner: R,
    unrequested: Unrequested,
    rate: Rate,
}

impl<R> MeteredReader<R> {
    pub(super) fn new(inner: R, unrequested: Unrequested) -> Self {
        Self { inner, unrequested, rate: Rate::new(MAX_BYTES_PER_WINDOW) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MeteredReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.unrequested.is_flood() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.rate.poll_ready(cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        self.rate.used += read;
        self.unrequested.add_bytes(read);
        Poll::Ready(Ok(()))
    }
}

/// A transport that delays many messages, and ends when there are more than any call can have requested, or when the server does
/// not read the answers to its own requests.
pub(super) struct MeteredTransport<T> {
    inner: T,
    unrequested: Unrequested,
    unanswered: Arc<AtomicU64>,
    rate: Rate,
}

impl<T> MeteredTransport<T> {
    pub(super) fn new(inner: T, unrequested: Unrequested) -> Self {
        Self { inner, unrequested, unanswered: Arc::default(), rate: Rate::new(MAX_MESSAGES_PER_WINDOW) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for MeteredTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, unanswered) = (self.inner.send(item), self.unanswered.clone());
        async move {
            let sent = sending.await;
            if is_answer {
                let _less = unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        poll_fn(|cx| self.rate.poll_ready(cx)).await;
        if self.unrequested.is_flood() {
            return None;
        }
        let message = self.inner.receive().await?;
        self.rate.used += 1;
        self.unrequested.add_message();
        if matches!(message, JsonRpcMessage::Request(_))
            && self.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED
        {
            self.unrequested.flood();
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn much_at_once_waits_and_a_flood_ends() {
        let unrequested = Unrequested::default();
        let mut metered = MeteredReader::new(tokio::io::repeat(b'x'), unrequested.clone());
        let began = Instant::now();
        let mut buffer = vec![0; 1024 * 1024];
        for _ in 0..16 {
            metered.read_exact(&mut buffer).await.unwrap();
        }
        assert!(began.elapsed() >= WINDOW, "{:?}", began.elapsed());
        unrequested.forget();
        let mut total = 0;
        loop {
            match metered.read(&mut buffer).await.unwrap() {
                0 => break,
                read => total += read as u64,
            }
        }
        assert!((MAX_BYTES..MAX_BYTES + MAX_BYTES_PER_WINDOW).contains(&total), "{total}");
    }
}
