//! Descriptors that a stage inherits without wanting them: those that its parent's parent left open.
//!
//! The one place of this crate with `unsafe`: no safe interface closes a descriptor that no value owns.

#![allow(unsafe_code)]

use std::io;

/// Closes every descriptor but standard input, output and error. To be called first thing in a stage, when nothing that it opened
/// itself can be among them.
///
/// # Errors
/// When the kernel refuses; the stage must then not go on.
pub(crate) fn close_inherited() -> io::Result<()> {
    // SAFETY: a stage calls this before it opens anything, so no value in this process owns a descriptor from 3 up. The
    // arguments are plain numbers; the call reads and writes no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
