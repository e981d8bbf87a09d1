//! Notices that the service's runtime files in `state/` (the lock, the control socket, the token) were deleted.
//!
//! Without the lock file another service could start on the same data folder, so this one ends. Without socket or token
//! nobody could ask it anything, so both are made again. A folder that was moved away still contains its files: the
//! journal waits until the folder is back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::watch::Receiver;

use super::lock::Lock;
use crate::home::Home;
use crate::journal::JournalError;
use crate::schedule::Schedule;

/// Interval between two checks of the files while the journal has no trouble.
const INTERVAL: Duration = Duration::from_secs(60);

/// How long a thread for blocking work stays without work. [`watch`] gives it some in time, so there is always such a thread. Without
/// one, the runtime panics when the machine has no process to spare, for example if the journal is to be written.
pub const THREAD_KEEP_ALIVE: Duration = INTERVAL.saturating_mul(2);

/// Ends the schedule when the lock file was deleted or replaced, and notifies `removed` when only the socket or the token
/// was deleted. Never returns.
pub(super) async fn watch(
    lock: Arc<Lock>,
    home: Home,
    schedule: Schedule,
    mut journal: Receiver<Option<JournalError>>,
    removed: Arc<Notify>,
) {
    loop {
        let (lock, folder) = (Arc::clone(&lock), home.clone());
        let looked =
            tokio::task::spawn_blocking(move || (lock.is_lost(&folder), cannot_be_asked(&lock, &folder))).await;
        let (is_lost, cannot_be_asked) = looked.unwrap_or_default();
        if is_lost {
            break;
        }
        if cannot_be_asked {
            removed.notify_one();
        }
        // A closed journal reports no trouble: the service is ending.
        let _elapsed = tokio::time::timeout(INTERVAL, journal.changed()).await;
    }
    tracing::error!(folder = %home.state().display(), "the runtime files were deleted or replaced; the service ends");
    schedule.end_now();
    std::future::pending().await
}

/// Whether the socket or the token was deleted beside the lock file. Where that is not, nothing may be made.
fn cannot_be_asked(lock: &Lock, home: &Home) -> bool {
    let is_absent = |path: &Path| path.try_exists().is_ok_and(|exists| !exists);
    lock.is_in_place(home) && (is_absent(&home.socket()) || is_absent(&home.user_token()))
}
