//! The main session's client between two turns. It stays alive, so that the next turn needs no start of a client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Limits;
use super::live::LiveClient;

/// The storage for the idle client. Clones share it.
#[derive(Clone, Default)]
pub struct IdleClient(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    idle: Option<Idle>,
    /// Number of calls of [`IdleClient::end`]. A client that was started before the last call is not kept.
    ended: u64,
}

struct Idle {
    live: LiveClient,
    since: Instant,
}

impl IdleClient {
    /// Returns the count of ends. A client started now records it, and [`put`](Self::put) compares it.
    pub(super) async fn now(&self) -> u64 {
        self.0.lock().await.ended
    }

    /// Keeps the client. Ends it instead if [`end`](Self::end) was called since it was started.
    pub(super) async fn put(&self, live: LiveClient, limits: &Limits) {
        let mut place = self.0.lock().await;
        if live.started_at == place.ended {
            place.idle = Some(Idle { live, since: Instant::now() });
            return;
        }
        drop(place);
        live.end(limits.leave, limits).await;
    }

    pub(super) async fn take(&self) -> Option<LiveClient> {
        self.0.lock().await.idle.take().map(|idle| idle.live)
    }

    /// Returns for how long a client has been idle; `None` if there is no idle client.
    pub async fn waits(&self) -> Option<Duration> {
        let mut place = self.0.lock().await;
        if place.idle.as_mut().is_some_and(|idle| !idle.live.is_alive()) {
            place.idle = None;
        }
        place.idle.as_ref().map(|idle| idle.since.elapsed())
    }

    /// Ends the idle client. A client in a turn ends after that turn.
    pub async fn end(&self) {
        let idle = {
            let mut place = self.0.lock().await;
            place.ended += 1;
            place.idle.take()
        };
        if let Some(Idle { live, .. }) = idle {
            let limits = Limits::default();
            live.end(limits.leave, &limits).await;
        }
    }
}

impl std::fmt::Debug for IdleClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdleClient").finish_non_exhaustive()
    }
}
