//! The errors of the journal, and which of them pass by themselves.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::RunId;

/// An error of the journal. Cheap to clone, since one fault may be the answer to many requests.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk is full.
    #[error("the disk is full, so the journal cannot be written; nothing new starts until there is room")]
    DiskFull(#[source] Arc<rusqlite::Error>),
    /// The disk or the file is read-only.
    #[error("the journal cannot be written (read-only disk or file); nothing new starts until it can")]
    ReadOnly(#[source] Arc<rusqlite::Error>),
    /// Another process holds the lock.
    #[error("the journal is locked by another process; waiting for it")]
    Locked(#[source] Arc<rusqlite::Error>),
    /// The disk refuses to read or write.
    #[error("the disk refuses to read or write the journal; trying again")]
    Io(#[source] Arc<rusqlite::Error>),
    /// The file was removed while it was open.
    #[error("the journal {0} is gone; bring its folder back, or stop the service")]
    Gone(PathBuf),
    /// SQLite cannot make sense of the content.
    #[error("the journal is damaged; start the service again, which keeps the damaged file aside")]
    Damaged(#[source] Arc<rusqlite::Error>),
    /// A later version of this program wrote it.
    #[error(
        "the journal {path} was written by a newer version (schema {found}, known up to {known}); update ollim-bot"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: usize,
        /// The newest schema known here.
        known: usize,
    },
    /// A later version of this program wrote the journal on the server.
    #[error(
        "the journal on {server} was written by a newer version (schema {found}, known up to {known}); update ollim-bot on this host"
    )]
    NewerOnServer {
        /// The server.
        server: String,
        /// The schema on the server.
        found: usize,
        /// The newest schema known here.
        known: usize,
    },
    /// A copy into this journal was cut off.
    #[error("the journal at {place} is a copy of {from} that was cut off; copy again: `ollim-bot journal copy`")]
    HalfCopied {
        /// Location of the half copy.
        place: String,
        /// Location of the whole journal.
        from: String,
    },
    /// The journal was moved, as recorded by a host that shared it.
    #[error(
        "the journal at {place} was moved to {to}, and what fires is recorded there; set `journal` in config.yaml to where it is now, or \
         move it from there, on the host that uses it: `ollim-bot journal copy --use`"
    )]
    Moved {
        /// The old location.
        place: String,
        /// The new location.
        to: String,
    },
    /// Another data folder uses this host's name.
    #[error("another host is called `{0}` and is running; give one of them another name: `host` in config.yaml")]
    HostTaken(String),
    /// The schema is older. Only the service migrates a journal.
    #[error(
        "the journal {path} was written by an earlier version (schema {found}, now {known}); `ollim-bot run` brings it up to date"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: usize,
        /// The schema that this version reads.
        known: usize,
    },
    /// The schema on the server is older. Only the service migrates a journal.
    #[error(
        "the journal on {server} was written by an earlier version (schema {found}, now {known}); `ollim-bot run` brings it up to date"
    )]
    OlderOnServer {
        /// The server.
        server: String,
        /// The schema on the server.
        found: usize,
        /// The schema that this version reads.
        known: usize,
    },
    /// Creating the folder, opening the file, or keeping a damaged file aside failed.
    #[error("the journal {path} cannot be opened")]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The run is not in the journal, or is not running any more.
    #[error("run {0} is not going")]
    NotGoing(RunId),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// This version does not understand a row.
    #[error("the journal holds {0}, which this version does not understand")]
    Unreadable(String),
    /// The server of a shared journal does not answer, or cannot serve the request now.
    #[error("the journal's database does not answer; nothing new starts until it does")]
    Away(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// Another host may have taken over the work of this one.
    #[error("this host has lost its lease on the journal, so it records nothing more")]
    Fenced,
    /// The server of a shared journal refuses requests for now: it has no space or no connection left, or only reads.
    #[error("the journal's database refuses for now")]
    Unable(#[source] Arc<tokio_postgres::Error>),
    /// The server of a shared journal does not let this host in, or lets it do too little: a password, a role or a privilege is wrong.
    #[error("the journal's database denies access")]
    Denied(#[source] Arc<tokio_postgres::Error>),
    /// The server of a shared journal refuses the request.
    #[error("the journal's database refuses")]
    Database(#[source] Arc<tokio_postgres::Error>),
    /// The address of a shared journal cannot be used.
    #[error("`journal`: {0}")]
    Address(String),
    /// A bug in this program.
    #[error("the journal failed")]
    Sql(#[source] Arc<rusqlite::Error>),
}

impl JournalError {
    /// Returns the messages of its sources, the nearest first. Empty if it has none.
    #[must_use]
    pub fn cause(&self) -> String {
        let sources = std::iter::successors(std::error::Error::source(self), |error| error.source());
        sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    /// Returns whether the fault may pass by itself. The writer retries after such a fault.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::DiskFull(_)
                | Self::ReadOnly(_)
                | Self::Locked(_)
                | Self::Io(_)
                | Self::Gone(_)
                | Self::Away(_)
                | Self::Unable(_)
                | Self::Denied(_)
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
