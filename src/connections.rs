//! The open connections of a listener. At a limit the oldest one is closed whose caller has not shown who they are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Whether the caller of a connection has shown who they are.
#[derive(Clone, Debug, Default)]
pub struct KnownCaller(Arc<AtomicBool>);

impl KnownCaller {
    /// Notes that the caller has shown it.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The open connections, the oldest first.
#[derive(Debug, Default)]
pub struct OpenConnections(VecDeque<(AbortHandle, KnownCaller)>);

impl OpenConnections {
    /// Adds a connection that `task` serves.
    pub fn add(&mut self, task: AbortHandle, caller: KnownCaller) {
        self.0.push_back((task, caller));
    }

    /// Returns the number of connections that are open still.
    pub fn count(&mut self) -> usize {
        self.0.retain(|(task, _)| !task.is_finished());
        self.0.len()
    }

    /// Closes the oldest connection whose caller is not known. Returns whether there was one.
    pub fn close_oldest_unknown(&mut self) -> bool {
        let place = self.0.iter().position(|(_, caller)| !caller.is_noted());
        let closed = place.and_then(|place| self.0.remove(place));
        closed.inspect(|(task, _)| task.abort()).is_some()
    }

    /// Closes the oldest connection.
    pub fn close_oldest(&mut self) {
        if let Some((task, _)) = self.0.pop_front() {
            task.abort();
        }
    }
}
