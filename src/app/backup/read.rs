//! Reads a backup: into an empty folder, or beside one that is not, to say what differs.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tar::{Archive, Entry, EntryType};

use super::{MANIFEST, Manifest, Part, is_inside, part, shown};
use crate::app::refusals::cannot;
use crate::app::{App, make_folders};
use crate::home::Home;
use crate::journal::JournalReader;
use crate::refusal::Refusal;

/// What came of a backup.
#[derive(Debug)]
pub enum Restored {
    /// The data folder is there again.
    Done {
        /// How many files were in it.
        files: usize,
        /// When the backup was made, RFC 3339.
        made: String,
        /// What is wrong with the journal that was in it, if anything is.
        journal: Option<String>,
        /// Whether secrets were in it.
        secrets: bool,
    },
    /// Something is there already: nothing was written.
    Differs(Differences),
}

/// How a data folder differs from a backup. Paths are relative to the data folder, sorted.
#[derive(Debug, Default, Serialize)]
pub struct Differences {
    /// When the backup was made, RFC 3339.
    pub made: String,
    /// How many files are the same.
    pub same: usize,
    /// Another content than in the backup.
    pub changed: Vec<String>,
    /// In the backup alone.
    pub missing: Vec<String>,
    /// In the data folder alone.
    pub added: Vec<String>,
}

/// Makes the data folder of a backup, where there is none or an empty one.
pub(in crate::app) fn restore(file: &Path, app: &App) -> Result<Restored, Refusal> {
    let root = app.home.root();
    let taken = match fs::read_dir(root) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(cannot("read", root, &error)),
    };
    let open = || File::open(file).map(BufReader::new).map_err(|error| cannot("read", file, &error));
    if taken {
        return compare(open()?, file, &app.home).map(Restored::Differs);
    }
    // Looked at as a whole before anything is written.
    check(open()?, file)?;
    make_folders(&app.home)?;
    let (files, manifest) = unpack(open()?, file, root)?;
    let journal = match JournalReader::open(&app.home.journal()).and_then(|journal| journal.damage()) {
        Ok(damage) => damage.into_iter().next(),
        Err(error) => Some(error.to_string()),
    };
    Ok(Restored::Done { files, made: manifest.made, journal, secrets: manifest.secrets })
}

/// Goes through a backup's entries; the first says that it is one.
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
    if first.path().ok().as_deref() != Some(Path::new(MANIFEST)) {
        return Err(no_backup());
    }
    let manifest: Manifest = serde_json::from_reader(&mut first).map_err(|_| no_backup())?;
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let known =
            matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Directory | EntryType::Symlink);
        if !is_inside(&path) || !known {
            return Err(Refusal::user(format!(
                "{} has an entry that is none of a backup's: {}",
                file.display(),
                path.display()
            ))
            .hint("somebody has changed it: do not use it"));
        }
        act(&path, &mut entry)?;
    }
    Ok(manifest)
}

fn check(archive: impl Read, file: &Path) -> Result<(), Refusal> {
    let broken = |error: io::Error| Refusal::user(format!("{} is no whole backup: {error}", file.display()));
    let mut links: BTreeSet<PathBuf> = BTreeSet::new();
    each(archive, file, |path, entry| {
        // What stands below a link would be written to wherever it leads.
        if path.ancestors().skip(1).any(|above| links.contains(above)) {
            return Err(Refusal::user(format!("{} has an entry below a link: {}", file.display(), path.display()))
                .hint("somebody has changed it: do not use it"));
        }
        if entry.header().entry_type() == EntryType::Symlink {
            links.insert(path.to_owned());
        }
        let length = entry.header().entry_size().map_err(broken)?;
        let read = io::copy(entry, &mut io::sink()).map_err(broken)?;
        if read == length { Ok(()) } else { Err(broken(io::ErrorKind::UnexpectedEof.into())) }
    })
    .map(drop)
}

fn unpack(archive: impl Read, file: &Path, root: &Path) -> Result<(usize, Manifest), Refusal> {
    let mut files = 0;
    // Folders get their own permissions at the end: one that may not be written has to be filled first.
    let mut folders: Vec<(PathBuf, u32)> = Vec::new();
    let manifest = each(archive, file, |path, entry| {
        let to = root.join(path);
        let failed = |error: io::Error| cannot("write", &to, &error);
        // Whatever it was: these are the person's alone.
        let private = path.starts_with("state") || path == Path::new(".env");
        let mode = entry.header().mode().map_err(failed)? & if private { 0o700 } else { 0o777 };
        match entry.header().entry_type() {
            EntryType::Directory => {
                DirBuilder::new().recursive(true).mode(0o700).create(&to).map_err(failed)?;
                folders.push((to.clone(), mode));
                return Ok(());
            }
            EntryType::Symlink => {
                let target =
                    entry.link_name().map_err(failed)?.ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
                std::os::unix::fs::symlink(target, &to).map_err(failed)?;
            }
            _ => {
                let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to).map_err(failed)?;
                io::copy(entry, &mut new).map_err(failed)?;
                new.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
                let written = entry.header().mtime().map_err(failed)?;
                // Whether a definition ever ran is judged by when its file was written.
                let _old = new.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(written));
            }
        }
        files += 1;
        Ok(())
    })?;
    for (folder, mode) in folders.into_iter().rev() {
        let set = fs::set_permissions(&folder, Permissions::from_mode(mode));
        set.map_err(|error| cannot("set the permissions of", &folder, &error))?;
    }
    Ok((files, manifest))
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
    let Ok(there) = File::open(here) else { return false };
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

/// What is in a folder and not in the backup, as far as it would be in one.
fn added(folder: &Path, home: &Home, known: &BTreeSet<PathBuf>, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = home.relative(&path);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match (part(name), known.contains(name)) {
            (Part::Passing | Part::Journal, _) => {}
            (_, true) if is_folder => added(&path, home, known, found),
            (_, true) => {}
            (_, false) => found.push(shown(name, is_folder)),
        }
    }
}
