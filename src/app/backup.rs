//! The data folder as one file, taken while the service runs, and made a folder again elsewhere.

mod read;
mod write;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(super) use read::restore;
pub use read::{Differences, Restored};
pub(super) use write::backup;
pub use write::{BackedUp, Unread};

/// The first entry of a backup: what it is.
const MANIFEST: &str = "ollim-bot-backup.json";

/// See [`MANIFEST`].
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The version of ollim-bot that wrote it.
    version: String,
    /// When, RFC 3339.
    made: String,
    /// Whether secrets are in it.
    secrets: bool,
}

/// What a path of the data folder is for a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It belongs in.
    Kept,
    /// It is, or may be, a secret.
    Secret,
    /// It belongs to the running service, or is a companion of the journal.
    Passing,
    /// The journal, which is copied by itself.
    Journal,
}

/// Paths relative to the data folder, and what they and all below them are.
const PARTS: &[(&str, Part)] = &[
    (".env", Part::Secret),
    ("tools", Part::Secret),
    ("state/journal.db", Part::Journal),
    ("state/journal.db-wal", Part::Passing),
    ("state/journal.db-shm", Part::Passing),
    ("state/lock", Part::Passing),
    ("state/control.sock", Part::Passing),
    ("state/user.token", Part::Passing),
    ("state/edits", Part::Passing),
    // Links, which the service makes anew.
    ("state/program-farm", Part::Passing),
    ("state/program-farm-judged", Part::Passing),
    // Two hosts of one identity would take each other's lease.
    ("state/host", Part::Passing),
];

/// Where the agent client keeps a login, in whatever folder.
const CREDENTIALS: &str = ".credentials.json";

/// What a path, relative to the data folder, is.
fn part(path: &Path) -> Part {
    if path.file_name().is_some_and(|name| name == CREDENTIALS) {
        return Part::Secret;
    }
    PARTS.iter().find(|(known, _)| path == Path::new(known)).map_or(Part::Kept, |(_, part)| *part)
}

/// The one spelling of a path in an archive (`./a` is `a`, and `.` is empty). `None`: it leaves the folder that it is unpacked to.
fn inside(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| if let Component::Normal(name) = part { Some(name) } else { None }).collect()
}

/// A path for a person: relative ones with their folder's slash.
fn shown(path: &Path, folder: bool) -> String {
    let slash = if folder { "/" } else { "" };
    format!("{}{slash}", path.display())
}
