//! Closes descriptors that a stage inherits by accident, because its parent's parent left them open.
//!
//! This is the only module of the crate with `unsafe`: no safe interface closes a descriptor that no value owns.

#![allow(unsafe_code)]

use std::io;

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
