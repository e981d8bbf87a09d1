//! The only writer. It commits all queued operations together (group commit), in the order of the requests.
//!
//! Operations run on tokio's blocking threads, one at a time. New ones join while the queue is drained. So a
//! thousand callers cost one commit, and an idle journal costs no thread. Under a test's paused time the clock
//! stands still while the journal works, because tokio waits for blocking tasks.
//!
//! A fault that may pass (disk full, read-only, locked, gone) is reported once. The writer retries until it has
//! passed or the journal is closed, and callers wait. Every other fault is returned to the callers.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::database::Connection;
use super::open::{FileIdentity, OpenedJournal, open};
use super::{JournalError, JournalLocation, events};
use crate::clock::Clock;

/// Maximum number of operations in one commit. Bounds how long the first waits for the last.
const BATCH: usize = 4096;

/// The same on a server. Each operation is at least one round trip, and all other hosts wait for the commit.
const BATCH_ON_SERVER: usize = 256;

/// Pause before the first retry after a fault that may pass.
pub(super) const MIN_BACKOFF: Duration = Duration::from_millis(50);

/// Maximum pause between two retries.
pub(super) const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The queue and the open file behind it.
#[derive(Debug)]
pub(super) struct Writer {
    place: JournalLocation,
    clock: Clock,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// The open journal; `None` once closed.
    file: Mutex<Option<OpenedJournal>>,
    trouble: watch::Sender<Option<JournalError>>,
    /// The number of the newest event.
    newest_event: watch::Sender<i64>,
    /// Number of commits made.
    #[cfg(test)]
    pub(super) commits: std::sync::atomic::AtomicU32,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Operation>>,
    draining: bool,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

/// The work of one caller within a commit.
trait Operation: Send {
    /// Returns whether the work only reads.
    fn reads(&self) -> bool;
    /// Does the work. May be called again if the commit could not be made.
    fn run(&mut self, connection: &Connection) -> Result<(), JournalError>;
    /// Answers the caller, once the commit is on the disk or has failed for good.
    fn complete(self: Box<Self>, commit: Result<(), JournalError>);
}

struct QueuedOperation<T, F> {
    work: F,
    reads: bool,
    outcome: Option<Result<T, JournalError>>,
    reply: oneshot::Sender<Result<T, JournalError>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, JournalError> + Send> Operation for QueuedOperation<T, F> {
    fn reads(&self) -> bool {
        self.reads
    }

    fn run(&mut self, connection: &Connection) -> Result<(), JournalError> {
        let outcome = (self.work)(connection);
        let told = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        told
    }

    fn complete(self: Box<Self>, commit: Result<(), JournalError>) {
        let answer = match (commit, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(JournalError::Closed),
            (Err(error), _) => Err(error),
        };
        // A caller that is gone needs no answer. Its work is done all the same.
        let _gone = self.reply.send(answer);
    }
}

impl Writer {
    pub(super) fn new(place: JournalLocation, clock: Clock, file: OpenedJournal) -> Result<Self, JournalError> {
        Ok(Self {
            newest_event: watch::Sender::new(events::newest(&file.connection)?),
            place,
            clock,
            queue: Mutex::default(),
            wake: Condvar::new(),
            file: Mutex::new(Some(file)),
            trouble: watch::Sender::new(None),
            #[cfg(test)]
            commits: std::sync::atomic::AtomicU32::new(0),
        })
    }

    /// From now on, commits only while this host holds its lease with this epoch.
    pub(super) fn fence(&self, host: &str, epoch: i64) -> Result<(), JournalError> {
        let mut file = lock(&self.file);
        let Some(OpenedJournal { connection: Connection::Postgres(link), .. }) = file.as_mut() else {
            return Err(JournalError::Closed);
        };
        link.fence(host.to_owned(), epoch);
        Ok(())
    }

    /// Notes that events up to this number exist. Another host may have recorded them.
    pub(super) fn note_newest_event(&self, newest: i64) {
        self.newest_event.send_if_modified(|known| std::mem::replace(known, newest.max(*known)) < newest);
    }

    /// Returns the number of the newest event, updated once a newer one is on the disk.
    pub(super) fn newest_event(&self) -> watch::Receiver<i64> {
        self.newest_event.subscribe()
    }

    /// Returns the current fault of the journal, if there is one.
    pub(super) fn fault(&self) -> watch::Receiver<Option<JournalError>> {
        self.trouble.subscribe()
    }

    /// Returns whether new work is refused.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.queue).closed
    }

    /// Refuses new work. From now on, a fault fails the waiting work instead of being retried.
    pub(super) fn refuse(&self) {
        lock(&self.queue).closed = true;
        self.wake.notify_all();
    }

    /// Refuses new work, fails work that waits for a fault to pass, completes the queue, and closes the file.
    pub(super) async fn close(self: &Arc<Self>) {
        self.refuse();
        let writer = Arc::clone(self);
        // A running drain holds the lock until its work is done.
        let closing = tokio::task::spawn_blocking(move || drop(lock(&writer.file).take()));
        // Fails only when the runtime shuts down, and the file with it.
        let _ended = closing.await;
    }

    /// Runs `work` in the next commit and returns once it is on the disk. `work` may be called more than once.
    pub(super) async fn commit<T, F>(self: &Arc<Self>, work: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        self.enqueue(work).await.unwrap_or(Err(JournalError::Closed))
    }

    /// Runs `work`, which only reads, after all earlier work. On a server it then holds up no other host.
    pub(super) async fn read<T, F>(self: &Arc<Self>, work: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        self.queue(work, true).await.unwrap_or(Err(JournalError::Closed))
    }

    /// Runs `work` in the next commit, whether or not the caller waits for the answer.
    pub(super) fn enqueue<T, F>(self: &Arc<Self>, work: F) -> oneshot::Receiver<Result<T, JournalError>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        self.queue(work, false)
    }

    fn queue<T, F>(self: &Arc<Self>, work: F, reads: bool) -> oneshot::Receiver<Result<T, JournalError>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let mut queue = lock(&self.queue);
        // A dropped reply means that the journal is closed.
        if !queue.closed {
            queue.waiting.push_back(Box::new(QueuedOperation { work, reads, outcome: None, reply }));
            if !queue.draining {
                queue.draining = true;
                let writer = Arc::clone(self);
                tokio::task::spawn_blocking(move || writer.drain());
            }
        }
        answer
    }

    fn drain(&self) {
        let _lowered = DrainGuard(self);
        let most = match self.place {
            JournalLocation::File(_) => BATCH,
            JournalLocation::Server(_) => BATCH_ON_SERVER,
        };
        let mut file = lock(&self.file);
        loop {
            let batch: Vec<_> = {
                let mut queue = lock(&self.queue);
                let count = queue.waiting.len().min(most);
                queue.waiting.drain(..count).collect()
            };
            if batch.is_empty() {
                // The check and the flag share one lock. A later caller starts a drain of its own.
                let mut queue = lock(&self.queue);
                if queue.waiting.is_empty() {
                    queue.draining = false;
                    return;
                }
                continue;
            }
            self.commit_batch(&mut file, batch);
        }
    }

    /// Commits one batch. Waits for faults that may pass.
    fn commit_batch(&self, file: &mut Option<OpenedJournal>, mut batch: Vec<Box<dyn Operation>>) {
        let mut pause = MIN_BACKOFF;
        loop {
            let tried = file.as_mut().ok_or(JournalError::Closed).and_then(|file| self.attempt(file, &mut batch));
            let fault = match tried {
                Ok(()) => {
                    if self.trouble.send_replace(None).is_some() {
                        tracing::info!("the journal can be written again");
                    }
                    batch.into_iter().for_each(|operation| operation.complete(Ok(())));
                    return;
                }
                Err(fault) => fault,
            };
            let queue = lock(&self.queue);
            if !fault.may_pass() || queue.closed {
                drop(queue);
                tracing::error!(error = %fault, cause = fault.cause(), "the journal failed");
                if let Some(file) = file {
                    file.connection.discard_lost_commit();
                }
                batch.into_iter().for_each(|operation| operation.complete(Err(fault.clone())));
                return;
            }
            if self.trouble.borrow().is_none() {
                tracing::error!(error = %fault, cause = fault.cause(), "the journal cannot be written; trying again");
            }
            self.trouble.send_replace(Some(fault));
            let _woken = self.wake.wait_timeout(queue, pause);
            pause = (pause * 2).min(MAX_BACKOFF);
        }
    }

    /// Tries to commit once. A failed operation does not affect the others.
    fn attempt(&self, file: &mut OpenedJournal, batch: &mut [Box<dyn Operation>]) -> Result<(), JournalError> {
        self.ensure_same_file(file)?;
        if file.connection.was_committed()? {
            self.note_newest_event(events::newest(&file.connection)?);
            return Ok(());
        }
        // A savepoint on a server is a round trip, so there is one only after an operation has failed.
        let apart = matches!(file.connection, Connection::Sqlite(_));
        let newest = match self.commit_all(file, batch, apart)? {
            Some(newest) => newest,
            None => self.commit_all(file, batch, true)?.unwrap_or_default(),
        };
        self.note_newest_event(newest);
        #[cfg(test)]
        self.commits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Commits the batch and returns the number of the newest event. `apart`: each operation has its own
    /// savepoint. Without it, one failed operation fails the batch: nothing is committed, and `None` is returned.
    /// A batch that only reads has the number 0.
    fn commit_all(
        &self,
        file: &OpenedJournal,
        batch: &mut [Box<dyn Operation>],
        apart: bool,
    ) -> Result<Option<i64>, JournalError> {
        let reads = batch.iter().all(|operation| operation.reads());
        let transaction = if reads { file.connection.reading()? } else { file.connection.transaction()? };
        for operation in batch {
            if apart {
                transaction.savepoint()?;
            }
            match operation.run(&file.connection) {
                Ok(()) if apart => transaction.end_savepoint(true)?,
                Ok(()) => {}
                Err(error) if error.may_pass() || matches!(error, JournalError::Damaged(_)) => return Err(error),
                // The operation keeps the error for its caller.
                Err(_) if apart => transaction.end_savepoint(false)?,
                Err(_) => return Ok(None),
            }
        }
        if reads {
            return Ok(Some(0));
        }
        transaction.commit_and_last_number(events::TABLE).map(Some)
    }

    /// Writes to a deleted file would be lost silently. Checks that the path leads to the open file. If not,
    /// writes the file back, or opens the one that is there now.
    fn ensure_same_file(&self, file: &mut OpenedJournal) -> Result<(), JournalError> {
        let path = match &self.place {
            JournalLocation::File(path) => path,
            JournalLocation::Server(server) => return file.connection.reconnect(server),
        };
        match FileIdentity::of(path) {
            Ok(identity) if Some(identity) == file.identity => Ok(()),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "the journal was replaced by another file; going on with that");
                *file = open(&self.place, self.clock.now())?;
                Ok(())
            }
            Err(_) => {
                if !path.parent().is_some_and(Path::is_dir) {
                    return Err(JournalError::Gone(path.clone()));
                }
                // The open connection still reads the deleted file, so nothing in it is lost.
                file.connection.execute("VACUUM INTO ?1", [path.to_string_lossy()])?;
                *file = open(&self.place, self.clock.now())?;
                tracing::warn!(path = %path.display(), "the journal was deleted; it was written back");
                // Reported although it has passed, since more than this file may be gone.
                self.trouble.send_replace(Some(JournalError::Gone(path.clone())));
                Ok(())
            }
        }
    }
}

/// Clears the flag when a drain panics, so that the next caller starts another.
struct DrainGuard<'a>(&'a Writer);

impl Drop for DrainGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.queue).draining = false;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing half-changed: a dropped transaction is rolled back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
