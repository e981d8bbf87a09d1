//! Copies the journal while it is being written.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::JournalError;
use super::open::open_file_reader;

/// How long a writer may hold the file before it counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Copies the journal at `path` into a new file, as it is at one moment. Returns whether there was a journal.
///
/// # Errors
/// Fails when the journal cannot be read, or the copy cannot be written.
pub fn copy_journal(path: &Path, copy: &Path) -> Result<bool, JournalError> {
    let Some(from) = open_file_reader(path)? else { return Ok(false) };
    let mut to = Connection::open(copy)?;
    let backup = Backup::new(&from, &mut to)?;
    let start = Instant::now();
    // All pages in one step: a concurrent writer is not blocked, and does not restart the backup.
    loop {
        match backup.step(-1)? {
            StepResult::Done => break,
            _ if start.elapsed() < TIMEOUT => std::thread::sleep(Duration::from_millis(20)),
            _ => {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(code, None).into());
            }
        }
    }
    drop(backup);
    to.close().map_err(|(_, error)| error)?;
    Ok(true)
}
