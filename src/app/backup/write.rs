//! Writes a backup: a tar archive that any `tar` can read.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::{BackupRule, MANIFEST, Manifest, part, shown};
use crate::app::App;
use crate::app::refusals::cannot;
use crate::definition::durable;
use crate::journal::{JournalLocation, copy_journal};
use crate::refusal::Refusal;

/// A finished backup.
#[derive(Debug, Serialize)]
pub struct BackupResult {
    /// The archive.
    pub file: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of files in it.
    pub files: usize,
    /// Paths left out because they are, or may be, secret.
    pub left_out: Vec<String>,
    /// The server with the journal, which is not in the backup; `None` if the journal is a file, which is.
    pub journal_on: Option<String>,
    /// Paths that should be in it, but could not be read.
    pub unread: Vec<UnreadablePath>,
}

/// A path that could not be backed up.
#[derive(Debug, Serialize)]
pub struct UnreadablePath {
    /// The path, relative to the data folder.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// Maximum number of bytes of holes, in all files together, that are written as zeros. A sparse file in `work/` takes
/// no space, and may be as long as the whole disk.
const MAX_HOLES: u64 = 1 << 30;

/// Maximum number of folders within each other. Each is open until it is written.
const MAX_LEVELS: usize = 512;

/// Maximum number of times that the data folder is gone through.
const MAX_ROUNDS: usize = 3;

/// Writes the data folder to `file`, which must not exist.
pub(in crate::app) fn backup(file: &Path, secrets: bool, app: &App) -> Result<BackupResult, Refusal> {
    app.require_home()?;
    let root = app.home.root();
    if file.exists() {
        return Err(Refusal::user(format!("{} is there already", file.display())).hint("name a new file, or remove it"));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.canonicalize().is_ok_and(|folder| folder.starts_with(root)) {
        return Err(Refusal::user(format!("{} would be in the data folder itself", file.display()))
            .hint("name a file elsewhere, best on another disk"));
    }
    let failed = |error: io::Error| cannot("write", file, &error);
    // Writes atomically. The file is private from the first byte on, since `tempfile` creates it with mode 0600.
    let fresh = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(durable::cause(&error)))?;
    let scratch = tempfile::tempdir_in(folder).map_err(|error| failed(durable::cause(&error)))?;
    let journal = scratch.path().join("journal.db");
    let out = io::BufWriter::new(fresh.as_file().try_clone().map_err(failed)?);
    let mut writer = Writer::new(out, secrets);
    let manifest = Manifest { version: env!("CARGO_PKG_VERSION").into(), made: app.now().to_rfc3339(), secrets };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
    writer.bytes(Path::new(MANIFEST), &manifest).map_err(failed)?;
    // A journal file from before the move to a server is out of date.
    let journal_on = match app.journal()? {
        JournalLocation::Server(server) => Some(server.to_string()),
        JournalLocation::File(_) => None,
    };
    if journal_on.is_none() && copy_journal(&app.home.journal(), &journal)? {
        let copy = File::open(&journal).map_err(failed)?;
        let facts = rustix::fs::fstat(&copy).map_err(|error| failed(error.into()))?;
        writer.file(copy, &facts, app.home.relative(&app.home.journal())).map_err(failed)?;
    }
    // What was moved to a folder behind the writer is found in the next round.
    for _ in 0..MAX_ROUNDS {
        let opened = rustix::fs::open(root, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
        let opened = opened.map_err(|error| cannot("read", root, &error))?;
        if !writer.tree(opened).map_err(failed)? {
            break;
        }
    }
    let Writer { archive, files, mut left_out, unread, .. } = writer;
    let mut out = archive.into_inner().map_err(failed)?;
    out.flush().map_err(failed)?;
    fresh.as_file().sync_all().map_err(failed)?;
    let bytes = fresh.as_file().metadata().map_err(failed)?.len();
    fresh.persist_noclobber(file).map_err(|error| cannot("write", file, &error.error))?;
    left_out.sort();
    Ok(BackupResult { file: file.to_owned(), bytes, files, left_out, journal_on, unread })
}

/// Flags for opening a file itself, even if a job replaces it by a link or a pipe, without blocking.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The same flags for a folder.
const FOLDER: OFlags = FILE.union(OFlags::DIRECTORY);

/// Why an entry is not in the backup, other than an error of writing.
enum OmitReason {
    /// The entry was removed.
    Vanished,
    Unread(String),
}

/// What became of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    /// It is a folder, whose entries are written.
    Folder,
    /// It is written, reported, or left out.
    Other,
}

impl From<Errno> for OmitReason {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            // The errors of `O_NOFOLLOW`, `O_DIRECTORY` and readlink(2) if an entry has changed its type.
            Errno::LOOP | Errno::NOTDIR | Errno::INVAL | Errno::NXIO => Self::changed(),
            error => Self::Unread(io::Error::from(error).to_string()),
        }
    }
}

impl OmitReason {
    fn changed() -> Self {
        Self::Unread("it was put in the place of another thing while it was read".to_owned())
    }
}

/// An entry of a folder that was read, and is ready to be written.
enum ReadEntry {
    Folder(OwnedFd),
    Link(PathBuf),
    File(File, Stat),
}

/// A folder that is being written.
struct OpenFolder {
    file: OwnedFd,
    /// Relative to the data folder.
    path: PathBuf,
    /// The names that are not written yet.
    names: std::vec::IntoIter<OsString>,
}

struct Writer<W: Write> {
    archive: Builder<W>,
    secrets: bool,
    files: usize,
    holes_left: u64,
    left_out: Vec<String>,
    unread: Vec<UnreadablePath>,
    done: HashMap<PathBuf, Done>,
}

impl<W: Write> Writer<W> {
    fn new(out: W, secrets: bool) -> Self {
        let (left_out, unread, done) = (Vec::new(), Vec::new(), HashMap::new());
        Self { archive: Builder::new(out), secrets, files: 0, holes_left: MAX_HOLES, left_out, unread, done }
    }

    /// Writes everything below a folder that belongs in a backup and is not in it yet. Returns whether there was any. A job may change
    /// `work/` at the same time, so each entry is opened in the open folder above, and never by a path: no link leads elsewhere. Skips
    /// entries that vanish, and reports those that are unreadable. Only an error of writing ends it.
    fn tree(&mut self, root: OwnedFd) -> io::Result<bool> {
        let before = self.done.len();
        // A job may make more levels of folders than calls fit on the stack.
        let mut open_folders: Vec<OpenFolder> = self.opened(root, PathBuf::new()).into_iter().collect();
        while let Some(folder) = open_folders.last_mut() {
            let Some(name) = folder.names.next() else {
                open_folders.pop();
                continue;
            };
            let path = folder.path.join(&name);
            let below = match self.done.get(&path) {
                Some(Done::Other) => None,
                // If it is another thing by now, its entries are written already.
                Some(Done::Folder) => open(folder.file.as_fd(), &name, FOLDER).ok(),
                None if path.components().count() > MAX_LEVELS => {
                    let why = format!("it is within too many folders; a backup has {MAX_LEVELS} levels at most");
                    self.pass(OmitReason::Unread(why), &path);
                    None
                }
                None => self.entry(&folder.file, &name, &path)?,
            };
            if let Some(below) = below {
                open_folders.extend(self.opened(below, path));
            }
        }
        Ok(self.done.len() > before)
    }

    /// Reads the names in a folder. Reports one that is unreadable.
    fn opened(&mut self, file: OwnedFd, path: PathBuf) -> Option<OpenFolder> {
        match names_in(&file) {
            Ok(names) => Some(OpenFolder { file, path, names: names.into_iter() }),
            Err(error) => {
                self.pass(error.into(), &path);
                None
            }
        }
    }

    /// Writes one entry of an open folder. Returns it if it is a folder itself, of which nothing is written but its header. `path` is
    /// relative to the data folder.
    fn entry(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<Option<OwnedFd>> {
        let facts = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(facts) => facts,
            Err(error) => {
                self.pass(error.into(), path);
                return Ok(None);
            }
        };
        let kind = FileType::from_raw_mode(facts.st_mode);
        let rule = part(path);
        if matches!(rule, BackupRule::Passing | BackupRule::Journal) {
            return Ok(None);
        }
        self.done.insert(path.to_owned(), Done::Other);
        match rule {
            BackupRule::Secret if !self.secrets => {
                let under = open(folder.as_fd(), name, FOLDER).ok().and_then(|under| names_in(&under).ok());
                if under.is_none_or(|under| !under.is_empty()) {
                    self.left_out.push(shown(path, kind == FileType::Directory));
                }
                return Ok(None);
            }
            _ => {}
        }
        match self.read(folder, name, kind) {
            Ok(None) => {}
            Ok(Some(ReadEntry::Folder(opened))) => {
                self.archive.append_data(&mut header(&facts, EntryType::Directory, 0), path, io::empty())?;
                self.done.insert(path.to_owned(), Done::Folder);
                return Ok(Some(opened));
            }
            Ok(Some(ReadEntry::Link(target))) => {
                self.archive.append_link(&mut header(&facts, EntryType::Symlink, 0), path, target)?;
                self.files += 1;
            }
            Ok(Some(ReadEntry::File(file, facts))) => self.file(file, &facts, path)?,
            Err(passed) => self.pass(passed, path),
        }
        Ok(None)
    }

    /// Opens an entry that was of this type. Returns `None` for sockets and pipes, which belong to their creators.
    fn read(&mut self, folder: &OwnedFd, name: &OsStr, kind: FileType) -> Result<Option<ReadEntry>, OmitReason> {
        Ok(match kind {
            FileType::Directory => Some(ReadEntry::Folder(open(folder.as_fd(), name, FOLDER)?)),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
                Some(ReadEntry::Link(OsString::from_vec(target.into_bytes()).into()))
            }
            FileType::RegularFile => {
                let opened = open(folder.as_fd(), name, FILE)?;
                let facts = rustix::fs::fstat(&opened)?;
                if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
                    return Err(OmitReason::changed());
                }
                self.take_holes(&opened, length(&facts))?;
                Some(ReadEntry::File(opened.into(), facts))
            }
            _ => None,
        })
    }

    /// Counts the holes of a file against [`MAX_HOLES`].
    fn take_holes(&mut self, file: &OwnedFd, length: u64) -> Result<(), OmitReason> {
        let (mut at, mut holes) = (0, 0);
        while at < length && holes <= self.holes_left {
            // After the last data, the kernel returns `ENXIO`.
            let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                Err(Errno::NXIO) => length,
                data => data?.min(length),
            };
            holes += data - at;
            at = if data < length { rustix::fs::seek(file, SeekFrom::Hole(data))? } else { length };
        }
        let left = self.holes_left.checked_sub(holes);
        self.holes_left = left.ok_or_else(|| {
            let most = bytesize::ByteSize(MAX_HOLES);
            OmitReason::Unread(format!(
                "it is {} long and mostly empty; a backup has {most} of nothing at most",
                bytesize::ByteSize(length)
            ))
        })?;
        rustix::fs::seek(file, SeekFrom::Start(0))?;
        Ok(())
    }

    fn pass(&mut self, passed: OmitReason, path: &Path) {
        match passed {
            // It is written if it comes back.
            OmitReason::Vanished => drop(self.done.remove(path)),
            OmitReason::Unread(why) => {
                self.done.insert(path.to_owned(), Done::Other);
                self.unread.push(UnreadablePath { path: shown(path, false), why });
            }
        }
    }

    fn file(&mut self, file: File, facts: &Stat, path: &Path) -> io::Result<()> {
        // The file may grow or shrink meanwhile, but the archive has its length already.
        let mut body = FileBody { file, failed: None };
        let whole = (&mut body).chain(io::repeat(0)).take(length(facts));
        self.archive.append_data(&mut header(facts, EntryType::Regular, length(facts)), path, whole)?;
        self.files += 1;
        if let Some(error) = body.failed {
            self.pass(
                OmitReason::Unread(format!("the rest of it is zeros, since it could not be read: {error}")),
                path,
            );
        }
        Ok(())
    }

    fn bytes(&mut self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        self.archive.append_data(&mut header, name, bytes)
    }
}

/// A file whose content ends at a read error, because its header is written already.
struct FileBody {
    file: File,
    failed: Option<io::Error>,
}

impl io::Read for FileBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                self.failed = Some(error);
                Ok(0)
            }
            read => read,
        }
    }
}

fn open(folder: BorrowedFd<'_>, name: &OsStr, how: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::io::retry_on_intr(|| rustix::fs::openat(folder, name, how, Mode::empty()))
}

/// Returns the names in a folder, sorted.
fn names_in(folder: &OwnedFd) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    names.sort();
    // The kernel may give a name twice that is moved meanwhile.
    names.dedup();
    Ok(names)
}

fn length(facts: &Stat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or_default()
}

fn header(facts: &Stat, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(facts.st_mode & 0o7777);
    header.set_uid(facts.st_uid.into());
    header.set_gid(facts.st_gid.into());
    header.set_mtime(u64::try_from(facts.st_mtime).unwrap_or_default());
    header.set_size(size);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes folders in each other, each by the one above, since the path of the last one is too long for the system.
    fn nested(root: &Path, levels: usize) {
        let mut folder = rustix::fs::open(root, FOLDER, Mode::empty()).unwrap();
        for _ in 0..levels {
            rustix::fs::mkdirat(&folder, "a", Mode::RWXU).unwrap();
            folder = rustix::fs::openat(&folder, "a", FOLDER, Mode::empty()).unwrap();
        }
    }

    /// Removes such folders from the outside to the inside.
    fn flatten(root: &Path) {
        let (first, next) = (root.join("a"), root.join("b"));
        while std::fs::rename(first.join("a"), &next).is_ok() {
            std::fs::remove_dir(&first).unwrap();
            std::fs::rename(&next, &first).unwrap();
        }
        std::fs::remove_dir(&first).unwrap();
    }

    /// A job can make such folders in `work/`.
    #[test]
    fn folders_within_folders_end_no_backup() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("last"), "x").unwrap();
        nested(folder.path(), 2000);
        let root = rustix::fs::open(folder.path(), FOLDER, Mode::empty()).unwrap();
        let written = std::thread::Builder::new()
            .stack_size(512 * 1024)
            .spawn(move || {
                let mut writer = Writer::new(io::sink(), true);
                writer.tree(root).unwrap();
                (writer.files, writer.unread)
            })
            .unwrap()
            .join();
        flatten(folder.path());
        let (files, unread) = written.unwrap();
        assert_eq!(files, 1, "what is beside them is in the backup");
        assert_eq!(unread.len(), 1, "{unread:?}");
        assert!(unread[0].why.contains("too many folders"), "{unread:?}");
    }

    /// Returns the names in an archive.
    fn names(archive: Vec<u8>) -> Vec<String> {
        let mut archive = tar::Archive::new(io::Cursor::new(archive));
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned()).collect()
    }

    /// A reminder moves to `failed/` when the writer has left that.
    #[test]
    fn a_file_that_moves_behind_the_writer_is_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("z"), "x").unwrap();
        let root = || rustix::fs::open(folder.path(), FOLDER, Mode::empty()).unwrap();
        let mut writer = Writer::new(Vec::new(), true);
        assert!(writer.tree(root()).unwrap());
        std::fs::rename(at("z"), at("a/b/z")).unwrap();
        assert!(writer.tree(root()).unwrap());
        assert!(!writer.tree(root()).unwrap());
        assert_eq!(names(writer.archive.into_inner().unwrap()), ["a", "a/b", "z", "a/b/z"]);
    }

    /// A folder that was read, and then replaced by something else, is left as it was.
    #[test]
    fn each_entry_is_written_and_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/x"), "x").unwrap();
        std::fs::write(at(".env"), "SECRET=x").unwrap();
        let root = || rustix::fs::open(folder.path(), FOLDER, Mode::empty()).unwrap();
        let mut writer = Writer::new(Vec::new(), false);
        writer.tree(root()).unwrap();
        std::fs::remove_dir_all(at("a")).unwrap();
        std::os::unix::fs::symlink("/etc", at("a")).unwrap();
        assert!(!writer.tree(root()).unwrap());
        assert_eq!(writer.left_out, [".env"]);
        assert!(writer.unread.is_empty());
        assert_eq!(names(writer.archive.into_inner().unwrap()), ["a", "a/x"]);
    }

    /// Opening one for reading must not wait for a writer, also if it has taken the place of a file.
    #[test]
    fn pipes_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("p"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let root = rustix::fs::open(folder.path(), FOLDER, Mode::empty()).unwrap();
        let mut writer = Writer::new(Vec::new(), true);
        let read = writer.read(&root, OsStr::new("p"), FileType::RegularFile);
        assert!(matches!(read, Err(OmitReason::Unread(why)) if why.contains("in the place of another thing")));
        writer.tree(root).unwrap();
        assert_eq!((names(writer.archive.into_inner().unwrap()), writer.unread.len()), (Vec::new(), 0));
    }
}
