//! The two folders on disk: which files count, and how one is read without being led astray.
//!
//! A file is opened without following a symlink; a symlink is followed only if what it leads to lies in the data
//! folder. Only regular files are read, and never more than the limit, so that no pipe, device or huge file can
//! hold the program up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::problem::kind_of;
use super::{Defaults, DefinitionError, Kind, LARGEST_FILE, Parsed, Problem, Severity, agent, parse, skill};
use crate::home::Home;

/// What one folder holds.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Relative to the data folder, sorted.
    pub files: Vec<PathBuf>,
    /// The folder itself is not usable.
    pub problem: Option<Problem>,
}

/// Why a file's text could not be had.
enum Unreadable {
    /// There is no such file (any more).
    Gone,
    Because {
        message: String,
        hint: String,
    },
}

/// `routines` or `reminders`, relative to the data folder.
pub(super) fn folder_of(kind: Kind) -> &'static Path {
    Path::new(match kind {
        Kind::Routine => "routines",
        Kind::Reminder => "reminders",
        // Never read: what was spawned stands in the journal.
        Kind::Session => "sessions",
    })
}

/// Whether a file of this name is a definition. Hidden files are not, nor what editors and writers leave beside a
/// file for a while (`.tea.md.swp`, `tea.md~`, `#tea.md#`).
pub(super) fn is_definition(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}

/// `path` (absolute, or relative to the data folder) as the relative path of a definition file, if it is one.
pub(super) fn relative(home: &Home, path: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix(home.root()).unwrap_or(path);
    let mut parts = path.components();
    let (folder, name) = (parts.next()?, parts.next()?);
    kind_of(Path::new(&folder))?;
    // A name that is not UTF-8 is kept: it is a problem to be shown.
    let is_file =
        name.as_os_str().to_str().map_or_else(|| name.as_os_str().to_string_lossy().ends_with(".md"), is_definition);
    (parts.next().is_none() && is_file).then(|| path.to_owned())
}

/// The definition files of one kind. A folder that is not there is empty.
pub(super) fn list(home: &Home, kind: Kind) -> Listing {
    let folder = folder_of(kind);
    let refuse = |message: String, hint: &str| Listing {
        files: Vec::new(),
        problem: Some(Problem::of_file(folder, Severity::Error, message, Some(hint.into()))),
    };
    match leaves(home, &home.root().join(folder)) {
        Ok(false) => {}
        Ok(true) => {
            return refuse("the folder is a symlink that leaves the data folder".into(), "use a real folder here");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Listing::default(),
        Err(error) => return refuse(format!("the folder cannot be read: {error}"), "check its owner and permissions"),
    }
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(home.root().join(folder))? {
            let entry = entry?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Some(path) = relative(home, &folder.join(entry.file_name())).filter(|_| !is_folder) {
                files.push(path);
            }
        }
        files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Ok(files)
    };
    match read() {
        Ok(files) => Listing { files, problem: None },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Listing::default(),
        Err(error) => refuse(format!("the folder cannot be read: {error}"), "check its owner and permissions"),
    }
}

/// Whether a folder is to be read at all: it is no symlink that leaves the data folder.
pub(super) fn is_inside(home: &Home, kind: Kind) -> bool {
    !leaves(home, &home.root().join(folder_of(kind))).unwrap_or(false)
}

/// Reads and parses one file (relative path). `None`: it is not there.
pub(super) fn read(home: &Home, file: &Path, defaults: &Defaults) -> Option<Parsed> {
    read_whole(home, file, defaults).map(|(parsed, _)| parsed)
}

/// The same, with the text that was parsed, where it is text.
pub(super) fn read_whole(home: &Home, file: &Path, defaults: &Defaults) -> Option<(Parsed, Option<Arc<str>>)> {
    let kind = kind_of(file)?;
    let mut whole = None;
    let parsed = match bytes(home, file) {
        // A defect of a parser in one file must not take the others along.
        Ok(text) => {
            let parsed = catch_unwind(AssertUnwindSafe(|| parsed(home, kind, file, &text, defaults))).map_err(|_| {
                (
                    "the file could not be read because of a defect of ollim-bot".into(),
                    "please report it with the file".into(),
                )
            });
            whole = String::from_utf8(text).ok().map(Arc::from);
            parsed
        }
        Err(Unreadable::Gone) => return None,
        Err(Unreadable::Because { message, hint }) => Err((message, hint)),
    };
    let parsed = parsed.unwrap_or_else(|(message, hint): (String, String)| {
        let mut problem = Problem::of_file(file, Severity::Error, message, Some(hint));
        problem.id = file.file_stem().map(|stem| super::DefinitionId::new(stem.to_string_lossy()));
        Parsed { definition: None, problems: vec![problem] }
    });
    Some((parsed, whole))
}

/// What a file's text says, held against the skills and the agents that are there.
pub(super) fn parsed(home: &Home, kind: Kind, file: &Path, text: &[u8], defaults: &Defaults) -> Parsed {
    let mut parsed = parse(kind, file, text, defaults);
    skill::check(home, file, text, &mut parsed);
    agent::check(file, text, defaults, &mut parsed);
    parsed
}

/// The text of a file, by the same rules as for reading a definition. `None`: it is not there.
pub(super) fn text(home: &Home, file: &Path) -> Result<Option<String>, DefinitionError> {
    let failed = |message: String| DefinitionError::io("read", &home.root().join(file))(io::Error::other(message));
    match bytes(home, file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| failed("it is not UTF-8 text".into())),
        Err(Unreadable::Gone) => Ok(None),
        Err(Unreadable::Because { message, .. }) => Err(failed(message)),
    }
}

/// Where a field stands in a file now.
pub(super) fn position(home: &Home, file: &Path, field: &str) -> (u32, u32) {
    bytes(home, file).map_or((1, 1), |text| super::parse::position(&text, field))
}

/// The bytes of a file, at most one more than the limit.
fn bytes(home: &Home, file: &Path) -> Result<Vec<u8>, Unreadable> {
    let because = |message: String, hint: &str| Unreadable::Because { message, hint: hint.into() };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unreadable::Gone,
        _ => because(format!("the file cannot be read: {error}"), "check its owner and permissions"),
    };
    let path = home.root().join(file);
    let opened = match open(&path) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            match leaves(home, &path) {
                Ok(false) => fs::canonicalize(&path).and_then(|target| open(&target)).map_err(failed)?,
                Ok(true) => {
                    return Err(because(
                        "the file is a symlink that leaves the data folder, and is not followed".into(),
                        "copy the file here",
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_ok() => {
                    return Err(because("the file is a symlink to nothing".into(), "remove it, or restore its target"));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        opened => opened.map_err(failed)?,
    };
    let about = opened.metadata().map_err(failed)?;
    if about.is_dir() {
        return Err(Unreadable::Gone);
    }
    if !about.is_file() {
        return Err(because("it is not a regular file".into(), "a definition is a plain text file"));
    }
    let most = LARGEST_FILE as u64 + 1;
    let mut text = Vec::with_capacity(usize::try_from(about.len().min(most)).unwrap_or_default() + 1);
    opened.take(most).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

/// Opens without following a symlink in the last place, and without waiting (for a pipe's writer).
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Whether `path` leads out of the data folder.
fn leaves(home: &Home, path: &Path) -> io::Result<bool> {
    if !path.symlink_metadata()?.is_symlink() {
        return Ok(false);
    }
    Ok(!fs::canonicalize(path)?.starts_with(fs::canonicalize(home.root())?))
}
