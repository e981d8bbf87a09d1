//! Writes a backup: a tar archive that any `tar` can read.

use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::{MANIFEST, Manifest, Part, part, shown};
use crate::app::App;
use crate::app::refusals::cannot;
use crate::home::Home;
use crate::journal::copy_journal;
use crate::refusal::Refusal;

/// A backup that was written.
#[derive(Debug, Serialize)]
pub struct BackedUp {
    /// The archive.
    pub file: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many files are in it.
    pub files: usize,
    /// What is not in it since it is, or may be, secret.
    pub left_out: Vec<String>,
}

/// Writes the data folder into `file`, which must not be there.
pub(in crate::app) fn backup(file: &Path, secrets: bool, app: &App) -> Result<BackedUp, Refusal> {
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
    // Whole or not at all, and private from the first byte on (`tempfile` makes it 0600).
    let fresh = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let scratch = tempfile::tempdir_in(folder).map_err(failed)?;
    let journal = scratch.path().join("journal.db");
    let mut writer = Writer {
        archive: Builder::new(io::BufWriter::new(fresh.as_file().try_clone().map_err(failed)?)),
        home: &app.home,
        secrets,
        files: 0,
        left_out: Vec::new(),
    };
    let manifest = Manifest { version: env!("CARGO_PKG_VERSION").into(), made: app.now().to_rfc3339(), secrets };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
    writer.bytes(Path::new(MANIFEST), &manifest).map_err(failed)?;
    if copy_journal(&app.home.journal(), &journal)? {
        writer.file(&journal, app.home.relative(&app.home.journal())).map_err(failed)?;
    }
    writer.folder(root).map_err(|(path, error)| cannot("back up", &path, &error))?;
    let Writer { archive, files, mut left_out, .. } = writer;
    let mut out = archive.into_inner().map_err(failed)?;
    out.flush().map_err(failed)?;
    fresh.as_file().sync_all().map_err(failed)?;
    let bytes = fresh.as_file().metadata().map_err(failed)?.len();
    fresh.persist_noclobber(file).map_err(|error| cannot("write", file, &error.error))?;
    left_out.sort();
    Ok(BackedUp { file: file.to_owned(), bytes, files, left_out })
}

struct Writer<'a, W: Write> {
    archive: Builder<W>,
    home: &'a Home,
    secrets: bool,
    files: usize,
    left_out: Vec<String>,
}

impl<W: Write> Writer<'_, W> {
    /// Everything below a folder that belongs into a backup. What vanishes meanwhile is passed over.
    fn folder(&mut self, folder: &Path) -> Result<(), (PathBuf, io::Error)> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| (path, error)
        };
        let mut entries: Vec<PathBuf> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err((folder.to_owned(), error)),
        };
        entries.sort();
        for path in entries {
            let name = self.home.relative(&path);
            let Ok(facts) = fs::symlink_metadata(&path) else { continue };
            match part(name) {
                Part::Passing | Part::Journal => continue,
                Part::Secret if !self.secrets => {
                    let is_empty = facts.is_dir() && fs::read_dir(&path).is_ok_and(|mut under| under.next().is_none());
                    if !is_empty {
                        self.left_out.push(shown(name, facts.is_dir()));
                    }
                    continue;
                }
                Part::Secret | Part::Kept => {}
            }
            if facts.is_dir() {
                let mut header = Header::new_gnu();
                header.set_metadata(&facts);
                self.archive.append_data(&mut header, name, io::empty()).map_err(at(&path))?;
                self.folder(&path)?;
            } else if facts.is_symlink() {
                let target = fs::read_link(&path).map_err(at(&path))?;
                let mut header = Header::new_gnu();
                header.set_metadata(&facts);
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                self.archive.append_link(&mut header, name, target).map_err(at(&path))?;
                self.files += 1;
            } else if facts.is_file() {
                match self.file(&path, name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    other => other.map_err(at(&path))?,
                }
            }
            // Sockets and pipes belong to who has made them.
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        let mut header = Header::new_gnu();
        header.set_metadata(&facts);
        // It may grow or shrink meanwhile; the archive has said how long it is.
        let body = file.chain(io::repeat(0)).take(facts.len());
        self.archive.append_data(&mut header, name, body)?;
        self.files += 1;
        Ok(())
    }

    fn bytes(&mut self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        self.archive.append_data(&mut header, name, bytes)
    }
}
