//! What can go wrong with the journal, and which of it passes by itself.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::RunId;

/// A fault of the journal. Cheap to clone: one fault may be the answer to many.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// No room.
    #[error("the disk is full, so the journal cannot be written; nothing new starts until there is room")]
    DiskFull(#[source] Arc<rusqlite::Error>),
    /// The disk or the file cannot be written.
    #[error("the journal cannot be written (read-only disk or file); nothing new starts until it can")]
    ReadOnly(#[source] Arc<rusqlite::Error>),
    /// Another process holds it.
    #[error("the journal is locked by another process; waiting for it")]
    Locked(#[source] Arc<rusqlite::Error>),
    /// The disk refuses.
    #[error("the disk refuses to read or write the journal; trying again")]
    Io(#[source] Arc<rusqlite::Error>),
    /// The file has gone from under us.
    #[error("the journal {0} is gone; bring its folder back, or stop the service")]
    Gone(PathBuf),
    /// Its content makes no sense to SQLite.
    #[error("the journal is damaged; start the service again, which keeps the damaged file aside")]
    Damaged(#[source] Arc<rusqlite::Error>),
    /// A later version of this program wrote it.
    #[error(
        "the journal {path} was written by a newer version (schema {found}, known up to {known}); update ollim-bot"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: usize,
        /// The newest schema known here.
        known: usize,
    },
    /// The same of a journal on a server.
    #[error(
        "the journal on {server} was written by a newer version (schema {found}, known up to {known}); update ollim-bot on this host"
    )]
    NewerOnServer {
        /// Where.
        server: String,
        /// Its schema.
        found: usize,
        /// The newest schema known here.
        known: usize,
    },
    /// A copy into it was cut off.
    #[error("the journal at {place} is a copy of {from} that was cut off; copy again: `ollim-bot journal copy`")]
    HalfCopied {
        /// Where it is.
        place: String,
        /// Where the whole one is.
        from: String,
    },
    /// Another journal is used in its place, as a host has said that shared it.
    #[error(
        "the journal at {place} was moved to {to}, and what fires is recorded there; set `journal` in config.yaml to where it is now, or \
         move it back from there: `ollim-bot journal copy --use`"
    )]
    Moved {
        /// Where it was.
        place: String,
        /// Where it is.
        to: String,
    },
    /// Another data folder has this host's name.
    #[error("another host is called `{0}` and is running; give one of them another name: `host` in config.yaml")]
    HostTaken(String),
    /// Only the service brings a journal to a newer schema.
    #[error(
        "the journal {path} was written by an earlier version (schema {found}, now {known}); `ollim-bot run` brings it up to date"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: usize,
        /// The schema that is read here.
        known: usize,
    },
    /// The same of a journal on a server.
    #[error(
        "the journal on {server} was written by an earlier version (schema {found}, now {known}); `ollim-bot run` brings it up to date"
    )]
    OlderOnServer {
        /// Where.
        server: String,
        /// Its schema.
        found: usize,
        /// The schema that is read here.
        known: usize,
    },
    /// Making its folder, or keeping a damaged file aside, failed.
    #[error("the journal {path} cannot be opened")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The run is not in the journal, or is not going any more.
    #[error("run {0} is not going")]
    NotGoing(RunId),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// A row that this version does not understand.
    #[error("the journal holds {0}, which this version does not understand")]
    Unreadable(String),
    /// The server of a shared journal does not answer, or cannot do it now.
    #[error("the journal's database does not answer; nothing new starts until it does")]
    Away(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// Another host may have taken over what this one had.
    #[error("this host has lost its lease on the journal, so it records nothing more")]
    Fenced,
    /// The server of a shared journal refuses.
    #[error("the journal's database refuses")]
    Database(#[source] Arc<tokio_postgres::Error>),
    /// The address of a shared journal cannot be used.
    #[error("`journal`: {0}")]
    Address(String),
    /// A fault of our own.
    #[error("the journal failed")]
    Sql(#[source] Arc<rusqlite::Error>),
}

impl JournalError {
    /// What it does not say itself: its sources, the nearest first. Empty where it has none.
    #[must_use]
    pub fn cause(&self) -> String {
        let sources = std::iter::successors(std::error::Error::source(self), |error| error.source());
        sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// Whether waiting helps: the writer tries these again by itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::DiskFull(_) | Self::ReadOnly(_) | Self::Locked(_) | Self::Io(_) | Self::Gone(_) | Self::Away(_)
        )
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let error = Arc::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::DiskFull(error),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(error),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
                Self::Locked(error)
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => Self::Io(error),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Sql(error),
        }
    }
}
