//! Notices that the service's runtime files in `state/` (the lock, the control socket, the token) were deleted.
//!
//! The lock file stands for all of them. Without it another service could start on the same data folder, so this one
//! ends. A folder that was moved away still contains its files: the journal waits until the folder is back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::Receiver;

use super::lock::Lock;
use crate::home::Home;
use crate::journal::JournalError;
use crate::schedule::Schedule;

/// Interval between two checks of the lock file while the journal has no trouble.
const INTERVAL: Duration = Duration::from_secs(60);

/// How long a thread for blocking work stays without work. [`watch`] gives it some in time, so there is always such a thread. Without
/// one, the runtime panics when the machine has no process to spare, for example if the journal is to be written.
pub const THREAD_KEEP_ALIVE: Duration = INTERVAL.saturating_mul(2);

/// Ends the schedule when the lock file was deleted or replaced. Never returns.
pub(super) async fn watch(
    lock: Arc<Lock>,
    home: Home,
    schedule: Schedule,
    mut journal: Receiver<Option<JournalError>>,
) {
    loop {
        let (lock, folder) = (Arc::clone(&lock), home.clone());
        let looked = tokio::task::spawn_blocking(move || lock.is_lost(&folder)).await;
        if looked.is_ok_and(|is_lost| is_lost) {
            break;
        }
        // A closed journal reports no trouble: the service is ending.
        let _elapsed = tokio::time::timeout(INTERVAL, journal.changed()).await;
    }
    tracing::error!(folder = %home.state().display(), "the runtime files were deleted or replaced; the service ends");
    schedule.end_now();
    std::future::pending().await
}
