//! Folders in which hostile programs write too. Each is opened by name from its parent, so that no link leads elsewhere.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Creates the missing parts of the folder `below` below `root`, and opens it. Only `root` itself may contain links.
///
/// # Errors
/// [`io::ErrorKind::NotADirectory`] if a part is no folder, for example a link.
pub fn make(root: &Path, below: &Path) -> io::Result<OwnedFd> {
    fs::create_dir_all(root)?;
    let mut folder = openat(CWD, root, FOLDER, Mode::empty())?;
    for part in below.components() {
        let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = openat(&folder, name, FOLDER.union(OFlags::NOFOLLOW), Mode::empty())?;
    }
    Ok(folder)
}

/// Creates a file in a folder. No entry with this name may exist.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if one does.
pub fn new_file(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::from_raw_mode(0o666))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_made_through_a_link() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), root.path().join("way-out")).unwrap();
        symlink(elsewhere.path().join("new"), root.path().join("dangling")).unwrap();
        symlink(root.path(), elsewhere.path().join("root")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let kind = |below: &str| make(root.path(), Path::new(below)).map(drop).map_err(|error| error.kind());
        for below in ["way-out", "way-out/a", "dangling", "dangling/a", "file", "file/a"] {
            assert_eq!(kind(below), Err(ErrorKind::NotADirectory), "{below}");
        }
        for below in ["..", "a/../b", "/a"] {
            assert_eq!(kind(below), Err(ErrorKind::InvalidInput), "{below}");
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        make(&elsewhere.path().join("root"), Path::new("a/b")).unwrap();
        make(root.path(), Path::new("a/b")).unwrap();
        assert!(root.path().join("a/b").is_dir());

        let folder = make(root.path(), Path::new("")).unwrap();
        for name in ["way-out", "dangling", "file", "a"] {
            assert_eq!(
                new_file(&folder, name).map(drop).map_err(|error| error.kind()),
                Err(ErrorKind::AlreadyExists),
                "{name}"
            );
        }
        new_file(&folder, "new").unwrap();
    }
}
