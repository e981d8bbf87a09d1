//! Links in a path, and what they lead past.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of links that are followed, as in the kernel.
const MAX_LINKS: u32 = 40;

/// Returns whether a path leads into one of `folders`, or past one: a link on the way lies there.
///
/// # Errors
/// If the path leads in a circle, or its links cannot be read.
pub fn leads_through(path: &Path, folders: &[PathBuf]) -> io::Result<bool> {
    let real = |folder: &PathBuf| fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
    let folders: Vec<PathBuf> = folders.iter().map(real).collect();
    let mut rest: Vec<PathBuf> = parts(path);
    let (mut at, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        if part == Path::new("..") {
            at.pop();
            continue;
        }
        // The root replaces everything before it.
        let next = at.join(part);
        if folders.iter().any(|folder| next.starts_with(folder)) {
            return Ok(true);
        }
        match fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                rest.extend(parts(&target));
            }
            // It is no link, or not there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => at = next,
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns the parts of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_link_on_the_way_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["work/deep", "safe"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("safe/file"), "").unwrap();
        for (target, link) in [
            ("../safe", "work/n"),
            ("work/n", "notes"),
            ("notes/file", "by-folder"),
            ("safe/file", "plain"),
            ("work/../safe/file", "past"),
            ("nothing", "dangling"),
            ("circle", "circle"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let leads = |path: &str| leads_through(&root.join(path), &[root.join("work")]);
        for path in ["work/deep/x", "notes/file", "by-folder", "past", "notes"] {
            assert!(leads(path).unwrap(), "{path}");
        }
        for path in ["safe/file", "plain", "dangling", "nothing/at/all", "safe/../safe/file"] {
            assert!(!leads(path).unwrap(), "{path}");
        }
        assert!(leads("circle").is_err());
    }
}
