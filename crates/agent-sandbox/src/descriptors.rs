//! Closes descriptors: those that a stage inherits by accident, because its parent's parent left them open, and those that a job may
//! share.
//!
//! This is the only module of the crate with `unsafe`: no safe interface closes a descriptor that no value owns, or gives a thread a
//! table of descriptors of its own.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, Once, PoisonError, mpsc};
use std::thread;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::relay::on_thread;

/// Closes every descriptor except standard input, output and error. A stage must call this first, before it opens descriptors
/// itself.
///
/// # Errors
/// If the kernel refuses. The stage must then end.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: a stage calls this before it opens anything, so no value in this process owns a descriptor from 3 up. The
    // arguments are plain numbers; the call reads and writes no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes descriptors of a job without waiting. A close can wait for as long as the job likes: for data of a TCP socket with
/// `SO_LINGER`, which may itself be in the queue of another socket. The kernel waits for nothing when a thread ends, so the last close is
/// left to the end of a thread with a table of its own.
pub(crate) fn close_apart(descriptors: Vec<OwnedFd>) {
    if descriptors.is_empty() {
        return;
    }
    let ((copied, has_copied), (closed, has_closed)) = (mpsc::channel(), mpsc::channel::<()>());
    let started = thread::Builder::new().spawn(move || {
        // SAFETY: the thread uses no descriptor from here to its end, and hands none on.
        let own_table = unsafe { unshare_unsafe(UnshareFlags::FILES) };
        let _ = copied.send(own_table.is_ok());
        // Ends with the sender.
        let _ = has_closed.recv();
    });
    if started.is_ok() && has_copied.recv() == Ok(true) {
        drop(descriptors);
        drop(closed);
        return;
    }
    close_on_thread(descriptors);
}

/// Number of threads that close descriptors and may wait.
static CLOSING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Maximum number of these threads.
const MAX_CLOSING: usize = 64;

/// A count of one thread that closes descriptors.
struct Closing;

impl Closing {
    /// Waits until there is room for a further thread.
    fn begin() -> Self {
        let (count, room) = &CLOSING;
        let count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = room.wait_while(count, |count| *count >= MAX_CLOSING);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let (count, room) = &CLOSING;
        *count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        room.notify_one();
    }
}

/// Closes descriptors on a thread that may wait, where threads cannot have tables of their own (a container without the right to call
/// `unshare`). Waits while there are 64 such threads. Without a thread the descriptors stay open.
fn close_on_thread(descriptors: Vec<OwnedFd>) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!("`unshare` is refused here, so descriptors that jobs send are closed by threads that may wait")
    });
    let closing = Closing::begin();
    let _ = on_thread(descriptors, move |descriptors| {
        let _counted = closing;
        drop(descriptors);
    });
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};

    use super::*;

    /// Returns a TCP socket whose close waits for as long as the other one, which reads nothing, is open.
    fn lingering() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut full = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        full.set_nonblocking(true).unwrap();
        while full.write(&[0; 65536]).is_ok() {}
        sockopt::set_socket_linger(&full, Some(Duration::from_secs(30))).unwrap();
        (full, other)
    }

    fn queued(what: &TcpStream) -> UnixStream {
        let (from, to) = UnixStream::pair().unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [what.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&from, &[io::IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        to
    }

    /// Returns whether a close waits: of the socket itself, and of one whose queue holds it.
    fn waits(close: fn(OwnedFd)) -> [bool; 2] {
        [false, true].map(|in_queue| {
            let (full, other) = lingering();
            let last = if in_queue { OwnedFd::from(queued(&full)) } else { full.try_clone().unwrap().into() };
            drop(full);
            let (done, is_done) = mpsc::channel();
            thread::spawn(move || {
                close(last);
                done.send(())
            });
            let waited = is_done.recv_timeout(Duration::from_secs(5)).is_err();
            drop(other);
            waited
        })
    }

    #[test]
    fn a_close_that_a_job_holds_up_makes_nobody_wait() {
        assert_eq!(waits(|descriptor| close_apart(vec![descriptor])), [false, false]);
        assert_eq!(waits(|descriptor| close_on_thread(vec![descriptor])), [false, false]);
        assert_eq!(waits(drop), [true, true], "the sockets of this test make a plain close wait");
    }
}
