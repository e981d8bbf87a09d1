//! The files of a data folder that hosts can keep equal: the persona and the `.md` files in `routines/`, `reminders/`,
//! `webhooks/`, `agents/` and `skills/`.
//!
//! Symlinks are neither read nor followed, and nothing is written through a symlink.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use super::durable::RemovedUnchanged;
use super::{LARGEST_FILE, durable};
use crate::home::Home;

/// The folders, and whether files in their subfolders are shared.
const FOLDERS: [(&str, bool); 5] =
    [("routines", false), ("reminders", false), ("webhooks", false), ("agents", true), ("skills", true)];

/// The shared file outside of these folders.
const PERSONA: &str = "persona.md";

/// Maximum depth of a subfolder.
const DEEPEST: usize = 4;

/// Minimum age of a change; a file that changed more recently may be incomplete.
const MIN_AGE: Duration = Duration::from_millis(500);

/// Metadata that shows whether a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    size: u64,
    /// `None` if the file system has no modification time.
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self { inode: about.ino(), size: about.size(), modified: about.modified().ok() }
    }

    /// Whether the file's writer has had time to finish.
    #[must_use]
    pub fn is_settled(&self, now: SystemTime) -> bool {
        // A time in the future counts as settled.
        let age = self.modified.and_then(|modified| now.duration_since(modified).ok());
        age.is_none_or(|age| age >= MIN_AGE)
    }
}

/// Whether hosts keep the file at this path equal. `path` is relative to the data folder.
#[must_use]
pub fn is_shared(path: &str) -> bool {
    if path == PERSONA {
        return true;
    }
    let parts: Vec<_> = Path::new(path).components().collect();
    let names: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str().filter(|name| !name.starts_with('.')),
            _ => None,
        })
        .collect();
    let [folder, .., name] = names[..] else { return false };
    let below = FOLDERS.iter().find(|(known, _)| *known == folder).map(|(_, below)| *below);
    names.len() == parts.len()
        && names.join("/") == path
        && !path.contains('\0')
        && name.ends_with(".md")
        && below.is_some_and(|below| names.len() == 2 || (below && names.len() <= DEEPEST + 2))
}

/// Returns the top-level folder of a shared file; empty for the data folder itself.
#[must_use]
pub fn folder_of(path: &str) -> &str {
    path.split_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the folders of shared files; empty for the data folder itself.
pub fn folders() -> impl Iterator<Item = &'static str> {
    FOLDERS.iter().map(|(folder, _)| *folder).chain([""])
}

/// Returns the device and inode of a folder; `None` for a symlink. They change if another folder, such as a mount point, replaces it.
#[must_use]
pub fn identity_of(home: &Home, folder: &str) -> Option<(u64, u64)> {
    let about = fs::symlink_metadata(home.root().join(folder)).ok().filter(Metadata::is_dir)?;
    Some((about.dev(), about.ino()))
}

/// Whether nothing exists at this path. A path that cannot be examined may exist.
#[must_use]
pub fn is_gone(home: &Home, path: &str) -> bool {
    fs::symlink_metadata(home.root().join(path)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns the shared files by path, and the unreadable folders and files with their errors.
#[must_use]
pub fn list(home: &Home) -> (BTreeMap<String, Stamp>, Vec<(String, io::Error)>) {
    let (mut found, mut unreadable) = (BTreeMap::new(), Vec::new());
    let persona = home.root().join(PERSONA);
    match regular(&persona) {
        Ok(about) => found.extend(about.map(|about| (PERSONA.to_owned(), Stamp::of(&about)))),
        Err(error) => unreadable.push((PERSONA.to_owned(), error)),
    }
    for (folder, below) in FOLDERS {
        list_folder(home, folder, if below { DEEPEST } else { 0 }, &mut found, &mut unreadable);
    }
    (found, unreadable)
}

fn list_folder(
    home: &Home,
    folder: &str,
    deeper: usize,
    found: &mut BTreeMap<String, Stamp>,
    unreadable: &mut Vec<(String, io::Error)>,
) {
    if let Err(error) = list_in(home, folder, deeper, found, unreadable) {
        unreadable.push((folder.to_owned(), error));
    }
}

fn list_in(
    home: &Home,
    folder: &str,
    deeper: usize,
    found: &mut BTreeMap<String, Stamp>,
    unreadable: &mut Vec<(String, io::Error)>,
) -> io::Result<()> {
    let path = home.root().join(folder);
    match fs::symlink_metadata(&path) {
        Ok(about) if about.is_dir() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(()),
    }
    for entry in fs::read_dir(&path)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let inside = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() && deeper > 0 && !name.starts_with('.') {
            list_folder(home, &inside, deeper - 1, found, unreadable);
        } else if is_shared(&inside)
            && let Some(about) = regular(&entry.path())?
        {
            found.insert(inside, Stamp::of(&about));
        }
    }
    Ok(())
}

fn regular(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(about) => Ok((about.is_file() && about.len() <= LARGEST_FILE as u64).then_some(about)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the text of a shared file; `None` if it does not exist or is not text.
///
/// # Errors
/// If the file cannot be read.
pub fn read(home: &Home, path: &str) -> io::Result<Option<String>> {
    let whole = home.root().join(path);
    if !is_shared(path) || regular(&whole)?.is_none() {
        return Ok(None);
    }
    match fs::read_to_string(whole) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file that still has the text `old`, or creates it for `None`. Returns `false` if its text is another by now.
///
/// # Errors
/// If the file cannot be written, or a folder on its path is not a real folder in the data folder.
pub fn put(home: &Home, path: &str, old: Option<&str>, text: &str) -> io::Result<bool> {
    let whole = made_place(home, path)?;
    if fs::symlink_metadata(&whole).is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("something else than a file is in its place"));
    }
    if read(home, path)?.as_deref() != old {
        return Ok(false);
    }
    match old {
        Some(old) => durable::replace_unchanged(&whole, old.as_bytes(), text.as_bytes()),
        None => match durable::write_new(&whole, text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            written => written.map(|()| true),
        },
    }
}

/// Removes a file that still has the text `old`. Returns `false` if its text is another by now.
///
/// # Errors
/// If the file cannot be removed.
pub fn take_away(home: &Home, path: &str, old: &str) -> io::Result<bool> {
    if read(home, path)?.as_deref() != Some(old) {
        return Ok(false);
    }
    let removed = durable::remove_unchanged(&home.root().join(path), old.as_bytes())?;
    Ok(removed != RemovedUnchanged::Changed)
}

/// Keeps a text in a file beside `path` that nothing reads. Returns its path in the data folder; `None` if it is kept already.
///
/// # Errors
/// If the file cannot be written.
pub fn keep_beside(home: &Home, path: &str, host: &str, text: &str) -> io::Result<Option<String>> {
    for number in 1.. {
        let kept = match number {
            1 => format!("{path}.kept-{host}"),
            number => format!("{path}.kept-{host}-{number}"),
        };
        match durable::write_new(&home.root().join(&kept), text.as_bytes()) {
            Ok(()) => return Ok(Some(kept)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if fs::read(home.root().join(&kept)).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(None);
        }
    }
    Err(io::Error::other("there is no name left"))
}

/// Returns the absolute path of a file, after creating the folders above it.
fn made_place(home: &Home, path: &str) -> io::Result<std::path::PathBuf> {
    if !is_shared(path) {
        return Err(io::Error::other("no file of that name is kept equal"));
    }
    let mut place = home.root().to_owned();
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        place.push(name);
        if names.peek().is_none() {
            break;
        }
        match fs::create_dir(&place) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(&place)?.is_dir() {
                    return Err(io::Error::other(format!("{} is no folder", home.relative(&place).display())));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_is_not_shared() {
        for path in ["persona.md", "routines/tea.md", "agents/deep/er/x.md", "skills/mail/SKILL.md"] {
            assert!(is_shared(path), "{path}");
        }
        for path in [
            "",
            "config.yaml",
            ".env",
            "/routines/tea.md",
            "routines/../config.md",
            "routines/./tea.md",
            "routines//tea.md",
            "../routines/tea.md",
            "routines/tea.md/",
            "routines/.tea.md",
            "routines/below/tea.md",
            "reminders/failed/tea.md",
            "routines/tea.txt",
            "routines/tea.md\0",
            "routines",
            "state/routines/tea.md",
            "work/notes.md",
            "agents/.git/x.md",
            "agents/1/2/3/4/5/x.md",
        ] {
            assert!(!is_shared(path), "{path:?}");
        }
    }

    #[test]
    fn nothing_is_written_or_read_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        std::os::unix::fs::symlink(outside.path(), dir.path().join("agents")).unwrap();
        fs::create_dir(dir.path().join("routines")).unwrap();
        fs::write(outside.path().join("x.md"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path().join("x.md"), dir.path().join("routines/tea.md")).unwrap();
        assert!(list(&home).0.is_empty());
        assert!(!is_gone(&home, "routines/tea.md") && is_gone(&home, "routines/other.md"));
        assert!(identity_of(&home, "routines").is_some() && identity_of(&home, "agents").is_none());
        assert!(put(&home, "agents/tea.md", None, "new").is_err());
        assert!(put(&home, "agents/deep/tea.md", None, "new").is_err());
        assert!(put(&home, "routines/tea.md", None, "new").is_err());
        assert!(put(&home, "config.yaml", None, "new").is_err());
        assert_eq!(read(&home, "routines/tea.md").unwrap(), None);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(outside.path().join("x.md")).unwrap(), "x");
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        assert!(put(&home, "agents/deep/tea.md", None, "one").unwrap());
        assert!(!put(&home, "agents/deep/tea.md", None, "two").unwrap());
        assert!(!put(&home, "agents/deep/tea.md", Some("other"), "two").unwrap());
        assert!(put(&home, "agents/deep/tea.md", Some("one"), "two").unwrap());
        assert!(!take_away(&home, "agents/deep/tea.md", "one").unwrap());
        assert_eq!(read(&home, "agents/deep/tea.md").unwrap().unwrap(), "two");
        assert!(take_away(&home, "agents/deep/tea.md", "two").unwrap());
        let kept = |text| keep_beside(&home, "agents/deep/tea.md", "attic", text).unwrap();
        assert_eq!(kept("x").as_deref(), Some("agents/deep/tea.md.kept-attic"));
        assert_eq!(kept("y").as_deref(), Some("agents/deep/tea.md.kept-attic-2"));
        assert_eq!((kept("x"), kept("y")), (None, None));
        assert!(list(&home).0.is_empty());
    }
}
