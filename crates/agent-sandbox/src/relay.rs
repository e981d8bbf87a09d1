//! A listener for a Unix socket that processes of jobs can reach.
//!
//! A process may send descriptors with its bytes. The kernel closes those that nobody receives, in the thread that reads the bytes or closes
//! the connection, and such a close can wait for as long as the sender likes (a TCP socket with `SO_LINGER`). So each connection has two
//! threads of its own, which carry its bytes to and from a pair of sockets. Nothing else touches the connection.

use std::io::{self, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of connections at a time. Further ones wait.
const CONNECTIONS: usize = 256;

/// Number of bytes carried at once.
const CHUNK: usize = 16 * 1024;

/// A listener whose connections cannot hold up the thread that uses them.
#[derive(Debug)]
pub struct RelayedListener {
    /// `None` only while it is dropped.
    listener: Option<UnixListener>,
    places: Arc<Semaphore>,
}

impl RelayedListener {
    /// Binds a socket at `path`.
    ///
    /// # Errors
    /// As [`UnixListener::bind`].
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let listener = Some(UnixListener::bind(path)?);
        Ok(Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS)) })
    }

    /// Accepts a connection, and returns our end of its relay. Waits while 256 are open. Safe to cancel.
    ///
    /// # Errors
    /// If the process has no descriptor or thread to spare.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        let listener = self.listener.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        if self.places.available_permits() == 0 {
            tracing::warn!("a socket of the service has {CONNECTIONS} connections; the next one waits");
        }
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let (theirs, _) = listener.accept().await?;
        Relay::start(theirs.into_std()?, place)
    }
}

impl Drop for RelayedListener {
    fn drop(&mut self) {
        // Connections that were not accepted yet are closed with it. Without a thread it stays open.
        let _ = on_thread(self.listener.take(), drop);
    }
}

/// Has a thread of its own handle a value, and drop it. Forgets the value if there is no thread: the caller's must not drop it.
fn on_thread<T: Send + 'static>(value: T, handle: impl FnOnce(T) + Send + 'static) -> io::Result<()> {
    let value = Arc::new(Mutex::new(Some(value)));
    let taken = Arc::clone(&value);
    let started = thread::Builder::new().spawn(move || {
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(handle)
    });
    match started {
        Ok(_) => Ok(()),
        Err(error) => {
            mem::forget(value);
            Err(error)
        }
    }
}

/// A connection, and the other end of the pair that stands for it.
struct Relay {
    theirs: BlockingStream,
    inner: BlockingStream,
    /// Held until the connection is closed.
    _place: OwnedSemaphorePermit,
}

impl Relay {
    /// Starts the threads, and returns our end.
    fn start(theirs: BlockingStream, place: OwnedSemaphorePermit) -> io::Result<UnixStream> {
        let (ours, inner) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        on_thread(Self { theirs, inner, _place: place }, Self::run)?;
        Ok(ours)
    }

    fn run(self) {
        let Self { theirs, inner, .. } = &self;
        if theirs.set_nonblocking(false).is_err() {
            return;
        }
        thread::scope(|scope| {
            let answers = || {
                carry(inner, theirs);
                // Our end is closed, or theirs reads nothing more. Either may be closed already.
                let _ = (theirs.shutdown(Shutdown::Both), inner.shutdown(Shutdown::Both));
            };
            if thread::Builder::new().spawn_scoped(scope, answers).is_ok() {
                carry(theirs, inner);
                // They send nothing more, and may still read.
                let _ = inner.shutdown(Shutdown::Write);
            }
        });
    }
}

/// Carries bytes until one of the two ends.
fn carry(mut from: &BlockingStream, mut to: &BlockingStream) {
    let mut bytes = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut bytes)
        && to.write_all(&bytes[..read]).is_ok()
    {}
}
