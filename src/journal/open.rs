//! Opens the journal's file: pragmas, migrations, and damaged files.
//!
//! A damaged file is renamed with its companions. It is never overwritten or deleted.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::OpenFlags;

use super::database::{Connection, Link};
use super::{JournalError, JournalLocation, Server, schema};

/// How long a reader waits for a lock before it reports it.
const READER_WAITS: Duration = Duration::from_secs(2);

/// How long the writer waits for a lock before it reports it. It then retries by itself.
const BUSY_TIMEOUT: Duration = Duration::from_millis(200);

/// A file by device and inode. Shows whether the path still leads to the opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|meta| Self(meta.dev(), meta.ino()))
    }
}

/// An open journal.
#[derive(Debug)]
pub(super) struct OpenedJournal {
    pub(super) connection: Connection,
    /// The identity of the file, if the journal is one.
    pub(super) identity: Option<FileIdentity>,
    /// Where a damaged file was put.
    pub(super) kept_aside: Option<PathBuf>,
}

/// Opens or creates the journal at `place`, ready to write.
pub(super) fn open(place: &JournalLocation, now: DateTime<Utc>) -> Result<OpenedJournal, JournalError> {
    match place {
        JournalLocation::File(path) => open_file(path, now),
        JournalLocation::Server(server) => {
            let connection = Connection::Postgres(server.connect()?);
            server.migrate(&connection)?;
            Ok(OpenedJournal { connection, identity: None, kept_aside: None })
        }
    }
}

/// Opens the journal at `place` for reading only. Returns `None` if there is none yet.
pub(super) fn open_reader(place: &JournalLocation) -> Result<Option<Connection>, JournalError> {
    match place {
        JournalLocation::File(path) => Ok(open_file_reader(path)?.map(Connection::Sqlite)),
        JournalLocation::Server(server) => read_server(server),
    }
}

fn read_server(server: &Server) -> Result<Option<Connection>, JournalError> {
    let read = server.borrow().and_then(|link| match read_by(server, link) {
        // The borrowed connection may have broken since its last use. A new one shows whether the server answers.
        Err(error) if error.may_pass() => read_by(server, server.connect()?),
        read => read,
    });
    // Otherwise the reader gives it back.
    if !matches!(read, Ok(Some(_))) {
        server.give_back(None);
    }
    read
}

fn read_by(server: &Server, link: Link) -> Result<Option<Connection>, JournalError> {
    let connection = Connection::Postgres(link);
    let known = schema::MIGRATIONS.len();
    match server.version(&connection)? {
        None => Ok(None),
        Some(found) if found < known => Err(JournalError::OlderOnServer { server: server.to_string(), found, known }),
        Some(_) => Ok(Some(connection)),
    }
}

/// Opens or creates the file at `path`. `now` is used only in the name of a damaged file.
pub(super) fn open_file(path: &Path, now: DateTime<Utc>) -> Result<OpenedJournal, JournalError> {
    let io = |source: io::Error| JournalError::Open { path: path.to_owned(), source: Arc::new(source) };
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    }
    let (connection, kept_aside) = match prepare(path) {
        Err(JournalError::Damaged(_)) => {
            let kept = keep_aside(path, "damaged", now).map_err(io)?;
            (prepare(path)?, Some(kept))
        }
        other => (other?, None),
    };
    let identity = FileIdentity::of(path).map_err(io)?;
    Ok(OpenedJournal { connection: Connection::Sqlite(connection), identity: Some(identity), kept_aside })
}

/// Opens a file for reading only. Returns `None` if there is no journal yet.
pub(super) fn open_file_reader(path: &Path) -> Result<Option<rusqlite::Connection>, JournalError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(JournalError::Open { path: path.to_owned(), source: Arc::new(error) }),
        Ok(_) => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READER_WAITS)?;
    let version = match schema::refuse_newer(&connection, path) {
        // In WAL mode even a reader creates the companions. If it cannot, nobody else writes either. An immutable
        // open ignores the log, so there must be none.
        Err(JournalError::Io(_)) if is_alone(path) => {
            let uri = format!("file:{}?immutable=1", in_uri(path));
            connection = rusqlite::Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
            schema::refuse_newer(&connection, path)?
        }
        version => version?,
    };
    match version {
        // The file was created, but its first commit is still to come.
        0 => Ok(None),
        found if found < schema::MIGRATIONS.len() => {
            Err(JournalError::Older { path: path.to_owned(), found, known: schema::MIGRATIONS.len() })
        }
        _ => Ok(Some(connection)),
    }
}

/// Returns whether the journal has no log beside it, as after an orderly close.
fn is_alone(path: &Path) -> bool {
    let mut log = OsString::from(path);
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |log| log.len() == 0)
}

/// Escapes a path for a URI (sqlite.org/uri.html).
fn in_uri(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn prepare(path: &Path) -> Result<rusqlite::Connection, JournalError> {
    // Prompts and messages are private to the person. SQLite gives the companions the mode of the file.
    private(path).map_err(|source| JournalError::Open { path: path.to_owned(), source: Arc::new(source) })?;
    let mut connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    schema::refuse_newer(&connection, path)?;
    // WAL: readers never wait. FULL: a commit survives a power cut once it returns
    // (sqlite.org/pragma.html#pragma_synchronous).
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        return Err(rusqlite::Error::SqliteFailure(code, Some(found)).into());
    }
    fail_point!(JournalMade);
    schema::migrate(&mut connection)?;
    Ok(connection)
}

fn private(path: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Renames the file and its companions to `journal.db.damaged-20260301T120000Z…`, with `why` for `damaged`.
pub(super) fn keep_aside(path: &Path, why: &str, now: DateTime<Utc>) -> io::Result<PathBuf> {
    let stamp = now.format("%Y%m%dT%H%M%SZ");
    let named = |number: u32, suffix: &str| {
        let mut name = OsString::from(path);
        name.push(format!(".{why}-{stamp}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        name.push(suffix);
        PathBuf::from(name)
    };
    let number = (1..).find(|number| !named(*number, "").exists()).unwrap_or(1);
    // Rename the file first. After a crash here a log without a file is left, which SQLite discards. In the other
    // order, a file without its log could pass for a sound journal that lacks its last claims.
    for suffix in ["", "-wal", "-shm"] {
        let mut from = OsString::from(path);
        from.push(suffix);
        match fs::rename(PathBuf::from(from), named(number, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(named(number, ""))
}
