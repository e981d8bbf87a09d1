//! Listens to a channel, whatever happens to the code that does so.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;

use super::backoff::Backoff;
use super::{Channel, Deaf, Inbound};

/// The wait before a channel listens again. Each further failure doubles it.
const AGAIN: Duration = Duration::from_secs(5);

/// Passes incoming messages to `inbound` until the future is dropped. If a panic ends that, the person is told, and it begins again.
pub async fn listen(channel: &dyn Channel, inbound: Inbound) {
    let tell = |deaf| {
        let inbound = inbound.clone();
        async move { inbound.deaf(deaf).await }
    };
    repeated(|| channel.listen(inbound.clone()), tell).await;
}

/// Awaits what `listen` returns, again after each panic. `tell` records that the channel hears nothing.
async fn repeated<L, T>(mut listen: impl FnMut() -> L, mut tell: impl FnMut(Deaf) -> T)
where
    L: Future<Output = ()>,
    T: Future<Output = ()>,
{
    let mut backoff = Backoff::from(AGAIN);
    while AssertUnwindSafe(listen()).catch_unwind().await.is_err() {
        // The panic itself is in the log.
        let why = "an error of this program ended that, which the log has".to_owned();
        tell(Deaf { why, delivers: true }).await;
        tokio::time::sleep(backoff.failed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_told_and_does_not_end_it() {
        let (mut begun, mut told) = (0, Vec::new());
        let listen = || {
            begun += 1;
            let is_broken = begun <= 2;
            async move { assert!(!is_broken, "what a server said cannot be true") }
        };
        let tell = |deaf: Deaf| {
            told.push(deaf.delivers);
            std::future::ready(())
        };
        repeated(listen, tell).await;
        assert_eq!((begun, told), (3, vec![true, true]));
    }
}
