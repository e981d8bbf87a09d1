//! Reads the agents' files of one folder and its subfolders, as the client does.
//!
//! Nothing here blocks or reads without bound: it opens only regular files and stops after an agent's maximum size.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::agents::file::{self, AgentFile, Parsed};
use crate::agents::{Scope, Source};
use crate::definition::{LARGEST_FILE, Problem, Severity};

/// Maximum depth of subfolders.
const DEEPEST: usize = 8;

/// An entry of a folder.
pub(super) enum FolderEntry {
    /// A file that was read. Its agent may be broken.
    File(Parsed),
    /// An unreadable file or folder, which may hold any name.
    Unreadable(Problem),
}

/// Reads every agent's file below `path`, in the order of their paths. A symlink that leads out of `must_stay_in` is unreadable.
pub(super) fn read(scope: Scope, path: &Path, must_stay_in: Option<&Path>) -> Vec<FolderEntry> {
    let mut found = Vec::new();
    let mut files = Vec::new();
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => return found,
        _ => walk(path, DEEPEST, &mut files, &mut found),
    }
    files.sort();
    let inside = must_stay_in.and_then(|root| root.canonicalize().ok());
    found.extend(files.into_iter().map(|file| one(scope, file, inside.as_deref())));
    found
}

fn walk(folder: &Path, deeper: usize, files: &mut Vec<PathBuf>, found: &mut Vec<FolderEntry>) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return found.push(unreadable(folder, "the folder", &error)),
    };
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(['.', '#']) || name.ends_with('~') {
            continue;
        }
        // This is the entry's own type. A symlink to a folder is skipped, since it could form a loop.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && deeper > 0 => walk(&path, deeper - 1, files, found),
            Ok(kind) if kind.is_dir() => {
                let error = io::Error::other(format!("more than {DEEPEST} folders deep"));
                found.push(unreadable(&path, "the folder", &error));
            }
            Ok(_) if name.ends_with(".md") => files.push(path),
            Ok(_) => {}
            Err(error) => found.push(unreadable(&path, "the file", &error)),
        }
    }
}

fn one(scope: Scope, path: PathBuf, inside: Option<&Path>) -> FolderEntry {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) => return unreadable(&path, "the file", &error),
    };
    if inside.is_some_and(|root| !target.starts_with(root)) {
        let error = io::Error::other("it is a symlink that leads out of the data folder");
        return unreadable(&path, "the file", &error);
    }
    match content(&target) {
        Ok(bytes) => {
            let source = Source { scope, path };
            FolderEntry::File(file::parse(&AgentFile {
                source,
                bytes: &bytes,
                read_only: false,
                main_session_only: false,
            }))
        }
        Err(error) => unreadable(&path, "the file", &error),
    }
}

/// Reads at most one byte more than an agent's file may have.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, what: &str, error: &io::Error) -> FolderEntry {
    let hint = "make it readable or remove it: until then no agent of a lower source takes its place".to_owned();
    FolderEntry::Unreadable(Problem::of_file(
        path,
        Severity::Error,
        format!("{what} cannot be read: {error}"),
        Some(hint),
    ))
}
