//! What a process presents to show that it belongs to a run.

use std::io;

/// 128 random bits in hex.
///
/// # Errors
/// When the system gives no random numbers.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two are equal, in a time that does not tell how much of one was right.
#[must_use]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
