//! Reads the folders on disk: selects definition files, and reads each of them safely.
//!
//! A symlink is followed only if its target is in the data folder, and not where jobs write. Only regular files are read, and hardly more than the
//! limit, so that no pipe, device or huge file can block the program.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::problem::kind_of;
use super::{Defaults, DefinitionError, Kind, LARGEST_FILE, Parsed, Problem, Severity, agent, maker_in, parse, skill};
use crate::home::Home;
use crate::links::leads_through;

/// The contents of one folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Paths relative to the data folder, sorted.
    pub files: Vec<PathBuf>,
    /// The reason why the folder is unusable.
    pub problem: Option<Problem>,
}

/// The reason why a file has no text.
enum Unreadable {
    /// The file does not exist (any more).
    Gone,
    Because {
        message: String,
        hint: String,
    },
}

/// `routines`, `reminders` or `webhooks`, relative to the data folder.
pub(super) fn folder_of(kind: Kind) -> &'static Path {
    Path::new(match kind {
        Kind::Routine => "routines",
        Kind::Reminder => "reminders",
        Kind::Webhook => "webhooks",
        // Never read: the journal holds sessions.
        Kind::Session => "sessions",
    })
}

/// Whether a name is that of a definition file. Hidden files and the temporary files of editors (`.tea.md.swp`,
/// `tea.md~`, `#tea.md#`) are not.
pub(super) fn is_definition(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}

/// Returns the relative path of a definition file; `None` for any other path. `path` is absolute, or relative to the data folder.
pub(super) fn relative(home: &Home, path: &Path) -> Option<PathBuf> {
    let path = home.relative(path);
    let mut parts = path.components();
    let (folder, name) = (parts.next()?, parts.next()?);
    kind_of(Path::new(&folder))?;
    (parts.next().is_none() && is_definition_name(name.as_os_str())).then(|| path.to_owned())
}

/// Like [`is_definition`], for a name in a folder. A name that is not UTF-8 counts, so that it is shown as a problem.
pub(crate) fn is_definition_name(name: &OsStr) -> bool {
    name.to_str().map_or_else(|| name.as_encoded_bytes().ends_with(b".md"), is_definition)
}

/// Whether the folder of one kind is missing from a data folder that has had it: `state/runs/` is made after the folders of
/// definitions. A symlink to nothing counts as missing. The folder of webhooks never does: older versions made none.
pub(crate) fn is_missing(home: &Home, kind: Kind) -> bool {
    let found = fs::metadata(home.root().join(folder_of(kind)));
    kind != Kind::Webhook && found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && home.runs().is_dir()
}

/// Lists the definition files of one kind. A folder that has never been made is empty; one that has gone is a problem.
pub(super) fn list(home: &Home, kind: Kind) -> Listing {
    let folder = folder_of(kind);
    let refuse = |message: String, hint: &str| Listing {
        files: Vec::new(),
        problem: Some(Problem::of_file(folder, Severity::Error, message, Some(hint.into()))),
    };
    let not_found = || match is_missing(home, kind) {
        true => refuse(
            "the folder is missing, so none of its jobs fires".into(),
            "put it back; if it is to stay away, `ollim-bot doctor --fix` makes an empty one",
        ),
        false => Listing::default(),
    };
    match leads_away(home, &home.root().join(folder)) {
        Ok(None) => {}
        Ok(Some(how)) => return refuse(format!("the folder is a symlink that {how}"), "use a real folder here"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return not_found(),
        Err(error) => return refuse(format!("the folder cannot be read: {error}"), "check its owner and permissions"),
    }
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(home.root().join(folder))? {
            let entry = entry?;
            let name = entry.file_name();
            if is_definition_name(&name) && !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // One allocation; `join` would take two.
                let mut file = OsString::with_capacity(folder.as_os_str().len() + 1 + name.len());
                file.extend([folder.as_os_str(), OsStr::new("/"), &name]);
                files.push(file.into());
            }
        }
        files.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        Ok(files)
    };
    match read() {
        Ok(files) => Listing { files, problem: None },
        Err(error) if error.kind() == io::ErrorKind::NotFound => not_found(),
        Err(error) => refuse(format!("the folder cannot be read: {error}"), "check its owner and permissions"),
    }
}

/// Maximum number of other entries of a folder that are named.
const MAX_OTHERS: usize = 20;

/// Warns of the entries of the folders of definitions that are no definitions by their names. Hidden files and what editors and version
/// control leave are not meant to be any.
pub(crate) fn other_entries(home: &Home) -> Vec<Problem> {
    Kind::WITH_FILES.into_iter().flat_map(|kind| others_in(home, kind)).collect()
}

/// Returns the same for one folder.
fn others_in(home: &Home, kind: Kind) -> Vec<Problem> {
    let folder = folder_of(kind);
    let path = home.root().join(folder);
    if !is_inside(home, kind) {
        return Vec::new();
    }
    let mut found: Vec<(PathBuf, bool)> = Vec::new();
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        let (name, is_folder) = (entry.file_name(), entry.path().is_dir());
        let is_ours = is_folder && entry.path() == home.failed_reminders();
        if !(is_ours || is_left_over(&name) || (is_definition_name(&name) && !is_folder)) {
            found.push((folder.join(name), is_folder));
        }
    }
    found.sort();
    let more = found.len().saturating_sub(MAX_OTHERS);
    let warning =
        |file: &Path, message: String, hint: String| Problem::of_file(file, Severity::Warning, message, Some(hint));
    let named = found.iter().take(MAX_OTHERS).map(|(file, is_folder)| {
        let place = folder.display();
        match is_folder {
            true => warning(
                file,
                format!("it is a folder, and nothing in it fires: {place}/ is read without the folders in it"),
                format!("move its definitions into {place}/ itself, and all else out of it"),
            ),
            false => warning(
                file,
                "it is no definition, and never fires: its name does not end with `.md`".to_owned(),
                format!("rename it if it is to fire, or move it out of {place}/"),
            ),
        }
    });
    let mut problems: Vec<Problem> = named.collect();
    if more > 0 {
        let message = format!("{more} more of its entries are no definitions, and never fire");
        problems.push(warning(folder, message, "names of definitions end with `.md`".to_owned()));
    }
    problems
}

/// Whether a name is hidden, or that of a backup, a lock or a temporary file.
fn is_left_over(name: &OsStr) -> bool {
    const SUFFIXES: [&str; 12] =
        ["~", "#", ".bak", ".lock", ".new", ".old", ".orig", ".part", ".rej", ".swo", ".swp", ".tmp"];
    let name = name.to_string_lossy().to_ascii_lowercase();
    // vim tries with `4913` whether it can write a folder.
    name.starts_with('.') || name == "4913" || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a folder may be read: it is not a symlink that leaves the data folder, or leads to where jobs write.
pub(super) fn is_inside(home: &Home, kind: Kind) -> bool {
    leads_away(home, &home.root().join(folder_of(kind))).unwrap_or(None).is_none()
}

/// Reads and parses one file (relative path). Returns `None` if it does not exist.
pub(super) fn read(home: &Home, file: &Path, defaults: &Defaults) -> Option<Parsed> {
    Reader::new(home, defaults).read(file).map(|(parsed, _)| parsed)
}

/// Reads files one after the other.
pub(super) struct Reader<'a> {
    home: &'a Home,
    defaults: &'a Defaults,
    /// Open folders. A file in one of them is opened by its name alone.
    folders: Vec<(Kind, OwnedFd)>,
    /// The text of the current file.
    text: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for a few files of any folder.
    pub(super) fn new(home: &'a Home, defaults: &'a Defaults) -> Self {
        Self { home, defaults, folders: Vec::new(), text: Vec::new() }
    }

    /// Creates a reader for many files, and opens their folders.
    pub(super) fn of_many(home: &'a Home, defaults: &'a Defaults) -> Self {
        let open = |kind| {
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::PATH;
            // If a folder cannot be opened, reading each of its files reports the error.
            Some((kind, rustix::fs::open(home.root().join(folder_of(kind)), flags, Mode::empty()).ok()?))
        };
        let folders = Kind::WITH_FILES.into_iter().filter_map(open).collect();
        Self { folders, ..Self::new(home, defaults) }
    }

    /// Reads and parses one file (relative path). Returns its definition and problems, and the text if the definition
    /// is valid; `None` if the file does not exist.
    pub(super) fn read(&mut self, file: &Path) -> Option<(Parsed, Option<Arc<str>>)> {
        let kind = kind_of(file)?;
        let (home, defaults, text) = (self.home, self.defaults, &mut self.text);
        let folder = self.folders.iter().find(|(of, _)| *of == kind).map(|(_, folder)| folder.as_fd());
        let parsed = match bytes(home, folder, file, text) {
            // A parser's defect in one file must not affect the other files.
            Ok(()) => catch_unwind(AssertUnwindSafe(|| parsed(home, kind, file, text, defaults))).map_err(|_| {
                (
                    "the file could not be read because of a defect of ollim-bot".into(),
                    "please report it with the file".into(),
                )
            }),
            Err(Unreadable::Gone) => return None,
            Err(Unreadable::Because { message, hint }) => Err((message, hint)),
        };
        let parsed = parsed.unwrap_or_else(|(message, hint): (String, String)| {
            let mut problem = Problem::of_file(file, Severity::Error, message, Some(hint));
            problem.id = file.file_stem().map(|stem| super::DefinitionId::new(stem.to_string_lossy()));
            Parsed { definition: None, problems: vec![problem] }
        });
        let whole = parsed.definition.is_some().then(|| str::from_utf8(&self.text).ok().map(Arc::from)).flatten();
        Some((parsed, whole))
    }
}

/// Parses a file's text, and checks it against the existing skills and agents.
pub(crate) fn parsed(home: &Home, kind: Kind, file: &Path, text: &[u8], defaults: &Defaults) -> Parsed {
    let mut parsed = parse(kind, file, text, defaults);
    skill::check(home, file, text, &mut parsed);
    agent::check(file, text, defaults, &mut parsed);
    if !parsed.problems.is_empty() {
        let made_by = maker_in(&String::from_utf8_lossy(text));
        parsed.problems.iter_mut().for_each(|problem| problem.made_by.clone_from(&made_by));
    }
    parsed
}

/// Returns the text of a file, by the same rules as for a definition. Returns `None` if it does not exist.
pub(super) fn text(home: &Home, file: &Path) -> Result<Option<String>, DefinitionError> {
    let failed = |message: String| DefinitionError::io("read", &home.root().join(file))(io::Error::other(message));
    let mut text = Vec::new();
    match bytes(home, None, file, &mut text) {
        Ok(()) => String::from_utf8(text).map(Some).map_err(|_| failed("it is not UTF-8 text".into())),
        Err(Unreadable::Gone) => Ok(None),
        Err(Unreadable::Because { message, .. }) => Err(failed(message)),
    }
}

/// Returns the current line and column of a field in a file.
pub(super) fn position(home: &Home, file: &Path, field: &str) -> (u32, u32) {
    let mut text = Vec::new();
    bytes(home, None, file, &mut text).map_or((1, 1), |()| super::parse::position(&text, field))
}

/// Reads the bytes of a file (relative path) into `text`, few more than [`LARGEST_FILE`]. `folder` is the file's
/// folder, if that is open.
fn bytes(home: &Home, folder: Option<BorrowedFd<'_>>, file: &Path, text: &mut Vec<u8>) -> Result<(), Unreadable> {
    let because = |message: String, hint: &str| Unreadable::Because { message, hint: hint.into() };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unreadable::Gone,
        _ => because(format!("the file cannot be read: {error}"), "check its owner and permissions"),
    };
    let away =
        |how: &str| because(format!("the file is a symlink that {how}, and is not followed"), "copy the file here");
    if folder.is_none() {
        // A folder of a skill may be a link as well.
        for folder in file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            if let Ok(Some(how)) = leads_away(home, &home.root().join(folder)) {
                return Err(away(how));
            }
        }
    }
    let opened = match (folder, file.file_name()) {
        (Some(folder), Some(name)) => open(folder, Path::new(name)),
        _ => open(CWD, &home.root().join(file)),
    };
    let opened = match opened {
        Err(Errno::LOOP) => {
            let path = home.root().join(file);
            match leads_away(home, &path) {
                Ok(None) => fs::canonicalize(&path).and_then(|target| Ok(open(CWD, &target)?)).map_err(failed)?,
                Ok(Some(how)) => return Err(away(how)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_ok() => {
                    return Err(because("the file is a symlink to nothing".into(), "remove it, or restore its target"));
                }
                Err(error) => return Err(failed(error)),
            }
        }
        opened => opened.map_err(|error| failed(error.into()))?,
    };
    let about = rustix::fs::fstat(&opened).map_err(|error| failed(error.into()))?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Unreadable::Gone),
        _ => return Err(because("it is not a regular file".into(), "a definition is a plain text file")),
    }
    let size = usize::try_from(about.st_size).unwrap_or_default();
    text.clear();
    // Room for one byte more than the file has: a read that leaves room has read all.
    text.reserve(size.min(LARGEST_FILE) + 1);
    loop {
        let room = text.capacity() - text.len();
        let read = retry_on_intr(|| rustix::io::read(&opened, spare_capacity(text)));
        let read = read.map_err(|error| failed(error.into()))?;
        if read == 0 || text.len() > LARGEST_FILE || (read < room && text.len() >= size) {
            return Ok(());
        }
        text.reserve(1);
    }
}

/// Opens a file without following a symlink at the end of the path, and without waiting for the writer of a pipe.
fn open(folder: BorrowedFd<'_>, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::openat(folder, name, flags, Mode::empty()))
}

/// Returns how a symlink leads away from the person's own files; `None` for a link among them, and for what is no link.
fn leads_away(home: &Home, path: &Path) -> io::Result<Option<&'static str>> {
    if !path.symlink_metadata()?.is_symlink() {
        return Ok(None);
    }
    let root = fs::canonicalize(home.root())?;
    if !fs::canonicalize(path)?.starts_with(&root) {
        return Ok(Some("leaves the data folder"));
    }
    // A job could change what is there, and links on the way.
    let of_jobs = leads_through(path, &home.folders_of_jobs())?;
    Ok(of_jobs.then_some("leads to where jobs write"))
}
