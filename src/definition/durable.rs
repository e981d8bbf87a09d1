//! Files that are whole or not there: written beside their place, made durable, then moved into it.
//!
//! A reader sees the old text or the new one, never a part; after a return, a power cut does not undo it. What a
//! crash leaves behind is a hidden `.tmp` file that nothing reads.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Writes a file that must not be there yet. Of two writers one gets [`io::ErrorKind::AlreadyExists`].
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    staged(path, content)?.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Puts `content` in the place of a file, which keeps its permissions. The file need not be there.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let staged = staged(path, content)?;
    match fs::metadata(path) {
        Ok(about) => staged.as_file().set_permissions(about.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    staged.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Removes a file. `false`: it was not there.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn staged(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = Builder::new().prefix(".ollim-").suffix(".tmp").tempfile_in(folder(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A rename or a removal is durable only when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn of_many_writers_one_wins_and_nothing_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tea.md");
        let won: Vec<bool> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn({
                        let path = path.clone();
                        move || write_new(&path, format!("{n}").repeat(5000).as_bytes())
                    })
                })
                .collect();
            writers
                .into_iter()
                .map(|writer| match writer.join().unwrap() {
                    Ok(()) => true,
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
                        false
                    }
                })
                .collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), winner.to_string().repeat(5000));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tea.md");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(remove(&path).unwrap());
        assert!(!remove(&path).unwrap());
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write_new(&dir.path().join("nowhere/tea.md"), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
