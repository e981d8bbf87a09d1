//! A listener for a Unix socket that processes of jobs can reach.
//!
//! A process may send descriptors with its bytes. The kernel closes those that nobody receives, in the thread that reads the bytes or closes
//! the connection, and such a close can wait for as long as the sender likes (a TCP socket with `SO_LINGER`). So each connection has two
//! threads of its own, which carry its bytes to and from a pair of sockets. Nothing else touches the connection. The descriptors are
//! received, and closed apart like the connection itself, so that its threads end as well.

use std::io::{self, IoSliceMut, Write};
use std::mem::{self, MaybeUninit};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::descriptors::close_apart;
use crate::wire::MAX_DESCRIPTORS;

/// Maximum number of connections at a time. Further ones wait.
const CONNECTIONS: usize = 512;

/// Interval at which a write that waits looks whether our end is closed, and the number of looks before it gives up then.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 30;

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

    /// Accepts a connection, and returns our end of its relay. Waits while 512 are open. Safe to cancel.
    ///
    /// # Errors
    /// If the process has no descriptor or thread to spare.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        let listener = self.listener.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        if self.places.available_permits() == 0 {
            tracing::warn!("a socket of the service has {CONNECTIONS} connections; the next one waits");
        }
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        // Made first: with a connection in hand nothing may fail here, since the failure would close it.
        let (ours, inner) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let (theirs, _) = listener.accept().await?;
        on_thread((theirs, inner, place), |(theirs, inner, place)| {
            if let Ok(theirs) = theirs.into_std() {
                Relay { theirs, inner }.run();
            }
            drop(place);
        })?;
        Ok(ours)
    }
}

impl Drop for RelayedListener {
    fn drop(&mut self) {
        // Connections that were not accepted yet are closed with it. Without a thread it stays open.
        let _ = on_thread(self.listener.take(), drop);
    }
}

/// Has a thread of its own handle a value, and drop it. Forgets the value if there is no thread: the caller's must not drop it.
pub(crate) fn on_thread<T: Send + 'static>(value: T, handle: impl FnOnce(T) + Send + 'static) -> io::Result<()> {
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
}

impl Relay {
    fn run(self) {
        self.carry_both_ways();
        close_apart(vec![self.theirs.into()]);
    }

    fn carry_both_ways(&self) {
        let Self { theirs, inner } = self;
        if theirs.set_nonblocking(false).is_err() || theirs.set_write_timeout(Some(LOOK)).is_err() {
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
fn carry(from: &BlockingStream, to: &BlockingStream) {
    let mut bytes = vec![0; CHUNK];
    while let Ok(read @ 1..) = read_apart(from, &mut bytes)
        && write_all(from, to, &bytes[..read]).is_ok()
    {}
}

/// Reads bytes, and closes the descriptors that were sent with them.
fn read_apart(from: &BlockingStream, bytes: &mut [u8]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let read = loop {
        match recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    let sent = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    close_apart(sent.flatten().collect());
    Ok(read)
}

/// Writes bytes that came from `from`. Gives up when that has been closed for a while and nobody reads.
fn write_all(from: &BlockingStream, mut to: &BlockingStream, mut bytes: &[u8]) -> io::Result<()> {
    let mut looks = 0;
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && looks < LOOKS => {
                looks += u32::from(is_closed(from))
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether the other end of a pair is closed.
fn is_closed(inner: &BlockingStream) -> bool {
    let mut asked = [PollFd::new(inner, PollFlags::empty())];
    let found = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    found.is_ok_and(|found| found > 0) && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
