//! Backs the data folder up to one file while the service is running, and restores it elsewhere.

mod read;
mod write;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use read::restore;
pub use read::{Differences, RestoreResult};
pub(super) use write::backup;
pub use write::{BackupResult, UnreadablePath};

/// The first entry of a backup, which identifies it.
const MANIFEST: &str = "ollim-bot-backup.json";

/// See [`MANIFEST`].
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The version of ollim-bot that wrote the backup.
    version: String,
    /// Time of the backup, RFC 3339.
    made: String,
    /// Whether the backup contains secrets.
    secrets: bool,
}

/// How a backup treats a path of the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackupRule {
    /// The path is included.
    Kept,
    /// The path is, or may be, a secret.
    Secret,
    /// The path belongs to the running service, or accompanies the journal. It is left out.
    Passing,
    /// The journal, which is copied separately.
    Journal,
}

/// Paths relative to the data folder, and how a backup treats each.
const PARTS: &[(&str, BackupRule)] = &[
    (".env", BackupRule::Secret),
    ("tools", BackupRule::Secret),
    ("state/journal.db", BackupRule::Journal),
    ("state/journal.db-wal", BackupRule::Passing),
    ("state/journal.db-shm", BackupRule::Passing),
    ("state/lock", BackupRule::Passing),
    ("state/control.sock", BackupRule::Passing),
    ("state/user.token", BackupRule::Passing),
    ("state/edits", BackupRule::Passing),
    // A copy and links, which the service creates again.
    ("state/ollim-shell", BackupRule::Passing),
    ("state/program-farm", BackupRule::Passing),
    ("state/program-farm-judged", BackupRule::Passing),
    // Two hosts with one identity would take each other's lease.
    ("state/host", BackupRule::Passing),
];

/// The file in which the agent client stores a login, in any folder.
const CREDENTIALS: &str = ".credentials.json";

/// Returns how a backup treats a path, which is relative to the data folder.
fn part(path: &Path) -> BackupRule {
    if path.file_name().is_some_and(|name| name == CREDENTIALS) {
        return BackupRule::Secret;
    }
    PARTS.iter().find(|(known, _)| path == Path::new(known)).map_or(BackupRule::Kept, |(_, part)| *part)
}

/// Normalizes a path in an archive: `./a` is `a`, and `.` is empty. Returns `None` if it leads out of the folder.
fn inside(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| if let Component::Normal(name) = part { Some(name) } else { None }).collect()
}

/// Formats a path for a person, with a slash after a folder.
fn shown(path: &Path, folder: bool) -> String {
    let slash = if folder { "/" } else { "" };
    format!("{}{slash}", path.display())
}
