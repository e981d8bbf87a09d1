//! The main session's client between two turns: it stays, so that the next answer begins without its start.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Limits;
use super::live::Live;

/// Where it waits. Clones share it.
#[derive(Clone, Default)]
pub struct IdleClient(Arc<Mutex<Place>>);

#[derive(Default)]
struct Place {
    idle: Option<Idle>,
    /// Counts the calls of [`IdleClient::end`]: a client that was started before the last one does not stay.
    ended: u64,
}

struct Idle {
    live: Live,
    since: Instant,
}

impl IdleClient {
    /// What a client that is started now tells when it is to [stay](Self::put).
    pub(super) async fn now(&self) -> u64 {
        self.0.lock().await.ended
    }

    /// It stays, unless all were [ended](Self::end) since it was started.
    pub(super) async fn put(&self, live: Live, limits: &Limits) {
        let mut place = self.0.lock().await;
        if live.started_at == place.ended {
            place.idle = Some(Idle { live, since: Instant::now() });
            return;
        }
        drop(place);
        live.end(limits.leave, limits).await;
    }

    pub(super) async fn take(&self) -> Option<Live> {
        self.0.lock().await.idle.take().map(|idle| idle.live)
    }

    /// For how long one waits; `None`: none does.
    pub async fn waits(&self) -> Option<Duration> {
        let mut place = self.0.lock().await;
        if place.idle.as_mut().is_some_and(|idle| !idle.live.is_alive()) {
            place.idle = None;
        }
        place.idle.as_ref().map(|idle| idle.since.elapsed())
    }

    /// Ends the one that waits. One that answers ends after its turn.
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
