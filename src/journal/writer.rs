//! The one writer: everything queued is committed together (group commit), in the order it was asked for.
//!
//! Work runs on tokio's blocking threads, one at a time: a queue that is being drained takes more work along.
//! So a thousand callers cost one commit, an idle journal costs no thread, and under a test's paused time the
//! clock stands still while the journal works (tokio holds it for blocking tasks).
//!
//! A fault that may pass (disk full, read-only, locked, gone) is said once and tried again until it has passed
//! or the journal is closed; the callers simply wait. Every other fault is its callers' answer.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::database::Connection;
use super::open::{FileIdentity, Opened, open};
use super::{JournalError, JournalPlace, events};
use crate::clock::Clock;

/// How many operations one commit takes at most: bounds how long the first of them waits for the last.
const BATCH: usize = 4096;

/// The first pause between two tries of a fault that may pass.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest one.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The queue and the open file behind it.
#[derive(Debug)]
pub(super) struct Writer {
    place: JournalPlace,
    clock: Clock,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// `None` once closed.
    file: Mutex<Option<Opened>>,
    trouble: watch::Sender<Option<JournalError>>,
    /// The newest event's number.
    newest_event: watch::Sender<i64>,
    /// How many commits were made.
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

/// One caller's work within a commit.
trait Operation: Send {
    /// Does it. May be called again if the commit could not be made.
    fn run(&mut self, connection: &Connection) -> Result<(), JournalError>;
    /// Tells the caller, once the commit is on the disk or has failed for good.
    fn settle(self: Box<Self>, commit: Result<(), JournalError>);
}

struct Asked<T, F> {
    work: F,
    outcome: Option<Result<T, JournalError>>,
    reply: oneshot::Sender<Result<T, JournalError>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, JournalError> + Send> Operation for Asked<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<(), JournalError> {
        let outcome = (self.work)(connection);
        let told = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        told
    }

    fn settle(self: Box<Self>, commit: Result<(), JournalError>) {
        let answer = match (commit, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(JournalError::Closed),
            (Err(error), _) => Err(error),
        };
        // A caller that has gone away does not want the answer; its work is done all the same.
        let _gone = self.reply.send(answer);
    }
}

impl Writer {
    pub(super) fn new(place: JournalPlace, clock: Clock, file: Opened) -> Result<Self, JournalError> {
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

    /// From now on nothing is committed unless the lease of this host, with this epoch, holds.
    pub(super) fn fence(&self, host: &str, epoch: i64) -> Result<(), JournalError> {
        let mut file = lock(&self.file);
        let Some(Opened { connection: Connection::Postgres(link), .. }) = file.as_mut() else {
            return Err(JournalError::Closed);
        };
        link.fence(host.to_owned(), epoch);
        Ok(())
    }

    /// Another host may have recorded events up to this one.
    pub(super) fn saw_event(&self, newest: i64) {
        self.newest_event.send_if_modified(|known| std::mem::replace(known, newest.max(*known)) < newest);
    }

    /// The newest event's number, and each newer one when it is on the disk.
    pub(super) fn newest_event(&self) -> watch::Receiver<i64> {
        self.newest_event.subscribe()
    }

    /// The fault that holds the journal up, while there is one.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<JournalError>> {
        self.trouble.subscribe()
    }

    /// Whether new work is refused.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.queue).closed
    }

    /// Refuses new work, and gives up on a fault instead of waiting for it to pass.
    pub(super) fn refuse(&self) {
        lock(&self.queue).closed = true;
        self.wake.notify_all();
    }

    /// Refuses new work, gives up on a fault instead of waiting for it to pass, does what is queued, and closes
    /// the file.
    pub(super) async fn close(self: &Arc<Self>) {
        self.refuse();
        let writer = Arc::clone(self);
        // The lock is free when the drain that may be going has done its work.
        let closing = tokio::task::spawn_blocking(move || drop(lock(&writer.file).take()));
        // Fails only when the runtime is going away, and the file with it.
        let _ended = closing.await;
    }

    /// Does `work` in the next commit and returns when that is on the disk. `work` may be called more than once.
    pub(super) async fn commit<T, F>(self: &Arc<Self>, work: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        self.enqueue(work).await.unwrap_or(Err(JournalError::Closed))
    }

    /// Does `work` in the next commit, whether its answer is waited for or not.
    pub(super) fn enqueue<T, F>(self: &Arc<Self>, work: F) -> oneshot::Receiver<Result<T, JournalError>>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, JournalError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let mut queue = lock(&self.queue);
        // Dropped, the reply says that the journal is closed.
        if !queue.closed {
            queue.waiting.push_back(Box::new(Asked { work, outcome: None, reply }));
            if !queue.draining {
                queue.draining = true;
                let writer = Arc::clone(self);
                tokio::task::spawn_blocking(move || writer.drain());
            }
        }
        answer
    }

    fn drain(&self) {
        let _lowered = Draining(self);
        let mut file = lock(&self.file);
        loop {
            let batch: Vec<_> = {
                let mut queue = lock(&self.queue);
                let count = queue.waiting.len().min(BATCH);
                queue.waiting.drain(..count).collect()
            };
            if batch.is_empty() {
                // Under one lock with the look: who queues after it starts a drain of their own.
                let mut queue = lock(&self.queue);
                if queue.waiting.is_empty() {
                    queue.draining = false;
                    return;
                }
                continue;
            }
            self.settle(&mut file, batch);
        }
    }

    /// Commits one batch, however long it takes for a passing fault to pass.
    fn settle(&self, file: &mut Option<Opened>, mut batch: Vec<Box<dyn Operation>>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = file.as_mut().ok_or(JournalError::Closed).and_then(|file| self.attempt(file, &mut batch));
            let fault = match tried {
                Ok(()) => {
                    if self.trouble.send_replace(None).is_some() {
                        tracing::info!("the journal can be written again");
                    }
                    batch.into_iter().for_each(|operation| operation.settle(Ok(())));
                    return;
                }
                Err(fault) => fault,
            };
            let queue = lock(&self.queue);
            if !fault.may_pass() || queue.closed {
                drop(queue);
                tracing::error!(error = %fault, cause = fault.cause(), "the journal failed");
                if let Some(file) = file {
                    file.connection.forget_doubt();
                }
                batch.into_iter().for_each(|operation| operation.settle(Err(fault.clone())));
                return;
            }
            if self.trouble.borrow().is_none() {
                tracing::error!(error = %fault, cause = fault.cause(), "the journal cannot be written; trying again");
            }
            self.trouble.send_replace(Some(fault));
            let _woken = self.wake.wait_timeout(queue, pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One try. An operation that fails takes nothing else with it.
    fn attempt(&self, file: &mut Opened, batch: &mut [Box<dyn Operation>]) -> Result<(), JournalError> {
        self.still_ours(file)?;
        if file.connection.was_committed()? {
            self.saw_event(events::newest(&file.connection)?);
            return Ok(());
        }
        // On a server a savepoint is a journey, so there is one only where something has failed.
        let apart = matches!(file.connection, Connection::Sqlite(_));
        let newest = match self.commit_all(file, batch, apart)? {
            Some(newest) => newest,
            None => self.commit_all(file, batch, true)?.unwrap_or_default(),
        };
        self.saw_event(newest);
        #[cfg(test)]
        self.commits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Commits the batch; returns the newest event's number. `apart`: each operation within a savepoint. Without, an operation that
    /// fails fails all: then nothing is committed, and `None` returned.
    fn commit_all(
        &self,
        file: &Opened,
        batch: &mut [Box<dyn Operation>],
        apart: bool,
    ) -> Result<Option<i64>, JournalError> {
        let transaction = file.connection.transaction()?;
        for operation in batch {
            if apart {
                transaction.savepoint()?;
            }
            match operation.run(&file.connection) {
                Ok(()) if apart => transaction.end_savepoint(true)?,
                Ok(()) => {}
                Err(error) if error.may_pass() || matches!(error, JournalError::Damaged(_)) => return Err(error),
                // The operation keeps its own error for its caller.
                Err(_) if apart => transaction.end_savepoint(false)?,
                Err(_) => return Ok(None),
            }
        }
        let newest = events::newest(&file.connection)?;
        transaction.commit()?;
        Ok(Some(newest))
    }

    /// Writes into a deleted file would be lost without a word: see that the path still leads to ours, and if
    /// it does not, put back what we have, or take what stands there now.
    fn still_ours(&self, file: &mut Opened) -> Result<(), JournalError> {
        let path = match &self.place {
            JournalPlace::File(path) => path,
            JournalPlace::Server(server) => return file.connection.mend(server),
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
                // The open connection still reads the deleted file: nothing in it is lost.
                file.connection.execute("VACUUM INTO ?1", [path.to_string_lossy()])?;
                *file = open(&self.place, self.clock.now())?;
                tracing::warn!(path = %path.display(), "the journal was deleted; it was written back");
                // Told though it is over: more than this file may be gone.
                self.trouble.send_replace(Some(JournalError::Gone(path.clone())));
                Ok(())
            }
        }
    }
}

/// Lowers the flag however a drain ends: after a panic the next caller starts another.
struct Draining<'a>(&'a Writer);

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.queue).draining = false;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here is left half-changed by a panic: a transaction that is dropped is rolled back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
