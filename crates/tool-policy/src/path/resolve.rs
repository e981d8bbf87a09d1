//! Resolves the paths in calls: lexically, and through symlinks.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::ReadLink;

/// Maximum number of symlinks in one path.
const MAX_LINKS: usize = 40;

/// Maximum number of parts of one path, including those of its links. Each is looked up, and links can multiply long paths.
const MAX_PARTS: usize = 512;

/// All readings of a path, absolute and without `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The path with `.` and `..` removed, that path as the kernel resolves it, and the path as written as the kernel resolves it.
    /// (A link before `..` makes a difference.) Parts that do not exist are kept as written.
    pub readings: Vec<PathBuf>,
    /// The links in the path. One of them in a protected place is enough for a denial.
    pub through: Vec<PathBuf>,
}

impl Resolved {
    /// Returns all readings and links.
    pub fn everywhere(&self) -> impl Iterator<Item = &PathBuf> {
        self.readings.iter().chain(&self.through)
    }

    /// Adds the readings of another possible path.
    pub fn join(&mut self, other: Self) {
        self.readings.extend(other.readings);
        self.through.extend(other.through);
    }
}

/// Resolves a path. Returns `None` if it cannot be resolved (empty, with a NUL, a loop of links, too long, another user's `~`).
pub(crate) fn resolve(path: &str, cwd: &Path, user_home: &Path, read_link: ReadLink) -> Option<Resolved> {
    if path.is_empty() || path.contains('\0') || !cwd.is_absolute() {
        return None;
    }
    let full = match path.strip_prefix('~') {
        Some("") => user_home.to_owned(),
        Some(rest) => match rest.strip_prefix('/') {
            Some(rest) => user_home.join(rest.trim_start_matches('/')),
            None => return None,
        },
        None => cwd.join(path),
    };
    if !full.is_absolute() {
        return None;
    }
    let written = lexical(&full);
    let (real, mut through) = walk(&written, read_link)?;
    let mut readings = vec![written, real];
    if full.components().any(|part| part == Component::ParentDir) {
        let (real, more) = walk(&full, read_link)?;
        readings.push(real);
        through.extend(more);
    }
    readings.dedup();
    Some(Resolved { readings, through })
}

/// Returns whether a path is that of a process in `/proc`, this or another one, or below it.
pub(super) fn is_of_process(path: &Path) -> bool {
    let mut parts = path.components().skip(1).map(|part| part.as_os_str().as_encoded_bytes());
    let is_number = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
    parts.next() == Some(b"proc")
        && parts.next().is_some_and(|name| [&b"self"[..], b"thread-self"].contains(&name) || is_number(name))
}

/// Returns the folder as given, and its resolved path if that differs.
pub(super) fn spellings(path: &Path, read_link: ReadLink) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    all.extend(walk(path, read_link).map(|(real, _)| real).filter(|real| real != path));
    all
}

fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Follows the path as the kernel would, one part at a time.
fn walk(path: &Path, read_link: ReadLink) -> Option<(PathBuf, Vec<PathBuf>)> {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components()
            .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
            .map(|part| part.as_os_str().to_owned())
            .rev()
            .collect()
    };
    let mut todo = parts(path);
    let mut here = PathBuf::from("/");
    let mut through = Vec::new();
    let mut links = 0;
    let mut missing = false;
    let mut walked = 0;
    while let Some(part) = todo.pop() {
        walked += 1;
        if walked > MAX_PARTS {
            return None;
        }
        if part == ".." {
            // Behind a missing part the kernel fails, so the lexical reading is the nearest.
            here.pop();
            missing = false;
            continue;
        }
        let next = here.join(&part);
        if is_of_process(&next) {
            // `self` depends on the process, so places below it differ between the program and this process.
            if !is_of_process(&here) {
                through.push(next.clone());
            }
            here = next;
            continue;
        }
        let link = if missing { Err(io::ErrorKind::NotFound.into()) } else { read_link(&next) };
        missing |= link.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::InvalidInput);
        if let Ok(target) = link {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            through.push(next.clone());
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            todo.extend(parts(&target));
        } else {
            here = next;
        }
    }
    Some((here, through))
}
