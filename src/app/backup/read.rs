//! Reads a backup: restores it to an empty folder, or compares it with a folder that is not empty.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use tar::{Archive, Entry, EntryType};

use super::{BackupRule, MANIFEST, Manifest, inside, part, shown};
use crate::app::refusals::cannot;
use crate::app::{App, make_folders};
use crate::home::Home;
use crate::journal::JournalReader;
use crate::refusal::Refusal;

/// The result of restoring a backup.
#[derive(Debug)]
pub enum RestoreResult {
    /// The data folder was restored.
    Done {
        /// Number of files in the backup.
        files: usize,
        /// Time of the backup, RFC 3339.
        made: String,
        /// What is wrong with the restored journal, if anything.
        journal: Option<String>,
        /// Whether the backup contains secrets.
        secrets: bool,
    },
    /// The data folder is not empty. Nothing was written.
    Differs(Differences),
}

/// How a data folder differs from a backup. Paths are relative to the data folder, sorted.
#[derive(Debug, Default, Serialize)]
pub struct Differences {
    /// Time of the backup, RFC 3339.
    pub made: String,
    /// Number of files with the same content.
    pub same: usize,
    /// Files with another content than in the backup.
    pub changed: Vec<String>,
    /// Files only in the backup.
    pub missing: Vec<String>,
    /// Files only in the data folder.
    pub added: Vec<String>,
}

/// Restores the data folder of a backup, if there is none or an empty one.
pub(in crate::app) fn restore(file: &Path, app: &App) -> Result<RestoreResult, Refusal> {
    let root = app.home.root();
    let taken = match fs::read_dir(root) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(cannot("read", root, &error)),
    };
    let open = || match File::open(file) {
        Ok(opened) => Ok(BufReader::new(opened)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Refusal::user(format!("there is no file {}", file.display()))
                .hint("name the backup that `ollim-bot backup FILE` has made"))
        }
        Err(error) => Err(cannot("read", file, &error)),
    };
    if taken {
        return compare(open()?, file, &app.home).map(RestoreResult::Differs);
    }
    // Checks the whole backup before anything is written.
    check(open()?, file)?;
    make_folders(&app.home)?;
    let (files, manifest) = unpack(open()?, file, root)?;
    let journal = match JournalReader::open(&app.home.journal()).and_then(|journal| journal.damage()) {
        Ok(damage) => damage.into_iter().next(),
        Err(error) => Some(error.to_string()),
    };
    Ok(RestoreResult::Done { files, made: manifest.made, journal, secrets: manifest.secrets })
}

/// Calls `act` for each entry of a backup, with a normalized path. The first entry identifies a backup.
fn each(
    archive: impl Read,
    file: &Path,
    mut act: impl FnMut(&Path, &mut Entry<'_, &mut dyn Read>) -> Result<(), Refusal>,
) -> Result<Manifest, Refusal> {
    let broken = |error: io::Error| {
        Refusal::user(format!("{} is no whole backup: {error}", file.display())).hint("take another one")
    };
    let no_backup = || {
        Refusal::user(format!("{} is no backup of ollim-bot", file.display())).hint("`ollim-bot backup FILE` makes one")
    };
    let mut archive = archive;
    let mut archive = Archive::new(&mut archive as &mut dyn Read);
    let mut entries = archive.entries().map_err(broken)?;
    let mut first = entries.next().ok_or_else(no_backup)?.map_err(|_| no_backup())?;
    if first.path().ok().and_then(|path| inside(&path)).as_deref() != Some(Path::new(MANIFEST)) {
        return Err(no_backup());
    }
    let manifest: Manifest = serde_json::from_reader(&mut first).map_err(|_| no_backup())?;
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let spelled = entry.path().map_err(broken)?.into_owned();
        let kind = entry.header().entry_type();
        let known = matches!(kind, EntryType::Regular | EntryType::Directory | EntryType::Symlink);
        match inside(&spelled) {
            // `tar -cf FILE ollim-bot-backup.json .` adds an entry for the folder itself, and the manifest a second time.
            Some(path) if path == Path::new(MANIFEST) => {}
            Some(path) if path.as_os_str().is_empty() && kind == EntryType::Directory => {}
            Some(path) if known && !path.as_os_str().is_empty() => act(&path, &mut entry)?,
            _ => return Err(changed(file, "an entry that is none of a backup's", &spelled)),
        }
    }
    Ok(manifest)
}

fn changed(file: &Path, what: &str, path: &Path) -> Refusal {
    Refusal::user(format!("{} has {what}: {}", file.display(), path.display()))
        .hint("somebody has changed it: do not use it")
}

fn check(archive: impl Read, file: &Path) -> Result<(), Refusal> {
    let broken = |error: io::Error| Refusal::user(format!("{} is no whole backup: {error}", file.display()));
    // For each path, whether it is a folder.
    let mut seen: BTreeMap<PathBuf, bool> = BTreeMap::new();
    each(archive, file, |path, entry| {
        // An entry below a link would be written to the link's target.
        for above in path.ancestors().skip(1) {
            if !*seen.entry(above.to_owned()).or_insert(true) {
                return Err(changed(file, "an entry below a link or a file", path));
            }
        }
        let folder = entry.header().entry_type() == EntryType::Directory;
        if seen.insert(path.to_owned(), folder).is_some_and(|before| !(before && folder)) {
            return Err(changed(file, "two entries of one name", path));
        }
        let length = entry.header().entry_size().map_err(broken)?;
        let read = io::copy(entry, &mut io::sink()).map_err(broken)?;
        if read == length { Ok(()) } else { Err(broken(io::ErrorKind::UnexpectedEof.into())) }
    })
    .map(drop)
}

/// Writes a backup's entries. Follows no path: opens each folder in the one above, and refuses a link there.
fn unpack(archive: impl Read, file: &Path, root: &Path) -> Result<(usize, Manifest), Refusal> {
    let opened = rustix::fs::open(root, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty());
    let opened = opened.map_err(|error| cannot("read", root, &error))?;
    let mut files = 0;
    // Folders get their own permissions at the end, inner ones first, because a read-only folder has to be filled first.
    let mut folders: BTreeMap<PathBuf, Mode> = BTreeMap::new();
    let manifest = each(archive, file, |path, entry| {
        let failed = |error: io::Error| cannot("write", &root.join(path), &error);
        // These paths are for the person alone, whatever the backup says.
        let private = path.starts_with("state") || path == Path::new(".env");
        let mode = entry.header().mode().map_err(failed)? & if private { 0o700 } else { 0o777 };
        let mode = Mode::from_raw_mode(mode);
        match entry.header().entry_type() {
            EntryType::Directory => {
                folder(&opened, path).map_err(failed)?;
                folders.insert(path.to_owned(), mode);
                return Ok(());
            }
            EntryType::Symlink => {
                let target = entry.link_name().map_err(failed)?;
                let target = target.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
                let (above, name) = place(&opened, path).map_err(failed)?;
                rustix::fs::symlinkat(&*target, above, name).map_err(|error| failed(error.into()))?;
            }
            _ => write(entry, &opened, path, mode).map_err(failed)?,
        }
        files += 1;
        Ok(())
    })?;
    for (path, mode) in folders.iter().rev() {
        let set = folder(&opened, path).and_then(|folder| Ok(rustix::fs::fchmod(folder, *mode)?));
        set.map_err(|error| cannot("set the permissions of", &root.join(path), &error))?;
    }
    Ok((files, manifest))
}

/// Flags for opening a folder, never through a link.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder below another one. Creates what is missing of it.
fn folder(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut at = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for name in path {
        match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = rustix::fs::openat(&at, name, FOLDER, Mode::empty())?;
    }
    Ok(at)
}

/// Returns the folder of a path, and the name in it.
fn place<'a>(root: &OwnedFd, path: &'a Path) -> io::Result<(OwnedFd, &'a std::ffi::OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((folder(root, path.parent().unwrap_or(Path::new("")))?, name))
}

/// Writes a new file.
fn write(entry: &mut Entry<'_, &mut dyn Read>, root: &OwnedFd, path: &Path, mode: Mode) -> io::Result<()> {
    let (above, name) = place(root, path)?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut new = File::from(rustix::fs::openat(above, name, how, Mode::RUSR | Mode::WUSR)?);
    io::copy(entry, &mut new)?;
    rustix::fs::fchmod(&new, mode)?;
    // The modification time of a definition decides whether it should have run by now.
    if let Some(written) = UNIX_EPOCH.checked_add(Duration::from_secs(entry.header().mtime()?)) {
        let _old = new.set_modified(written);
    }
    Ok(())
}

fn compare(archive: impl Read, file: &Path, home: &Home) -> Result<Differences, Refusal> {
    let mut found = Differences::default();
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let manifest = each(archive, file, |path, entry| {
        let here = home.root().join(path);
        let name = shown(path, entry.header().entry_type() == EntryType::Directory);
        known.insert(path.to_owned());
        let list = match fs::symlink_metadata(&here) {
            Err(_) => &mut found.missing,
            Ok(facts) if facts.is_dir() && name.ends_with('/') => return Ok(()),
            Ok(_) if is_same(entry, &here) => {
                found.same += 1;
                return Ok(());
            }
            Ok(_) => &mut found.changed,
        };
        list.push(name);
        Ok(())
    })?;
    added(home.root(), home, &known, &mut found.added);
    for list in [&mut found.changed, &mut found.missing, &mut found.added] {
        list.sort();
    }
    found.made = manifest.made;
    Ok(found)
}

fn is_same(entry: &mut Entry<'_, &mut dyn Read>, here: &Path) -> bool {
    if entry.header().entry_type() == EntryType::Symlink {
        return fs::read_link(here).ok() == entry.link_name().ok().flatten().map(std::borrow::Cow::into_owned);
    }
    let same_length = fs::symlink_metadata(here).is_ok_and(|facts| facts.is_file() && facts.len() == entry.size());
    if !same_length {
        return false;
    }
    // A job may replace the file by a link or a pipe in the meantime.
    let how = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(how.bits().cast_signed()).open(here);
    let Ok(there) = opened else { return false };
    let mut there = BufReader::new(there);
    let (mut a, mut b) = ([0; 8192], [0; 8192]);
    loop {
        let Ok(length) = entry.read(&mut a) else { return false };
        if length == 0 {
            return true;
        }
        if there.read_exact(&mut b[..length]).is_err() || a[..length] != b[..length] {
            return false;
        }
    }
}

/// Adds the paths of a folder that are not in the backup, but would be in a new one.
fn added(folder: &Path, home: &Home, known: &BTreeSet<PathBuf>, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = home.relative(&path);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match (part(name), known.contains(name)) {
            (BackupRule::Passing | BackupRule::Journal, _) => {}
            (_, true) if is_folder => added(&path, home, known, found),
            (_, true) => {}
            (_, false) => found.push(shown(name, is_folder)),
        }
    }
}
