//! What hostile programs leave behind, and the end of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Removes a folder and all that is in it, whatever a hostile program made there: closed folders, and folders deeper than a path
/// can say. To be called when nothing of the run is left.
///
/// # Errors
/// The first thing that could not be removed; the rest is.
pub fn remove(folder: &Path) -> io::Result<()> {
    let mut failed = None;
    let mut folders = vec![folder.to_path_buf()];
    let mut moved = 0u64;
    while let Some(next) = folders.pop() {
        if let Err(error) = empty(&next, folder, &mut moved, &mut folders) {
            failed.get_or_insert(error);
        }
    }
    // Emptied, or as far as could be.
    match (fs::remove_dir_all(folder), failed) {
        (Ok(()), _) => Ok(()),
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(error), failed) => Err(failed.unwrap_or(error)),
    }
}

/// Removes the files of one folder and moves its folders to the top, so that no path grows longer.
fn empty(folder: &Path, top: &Path, moved: &mut u64, folders: &mut Vec<PathBuf>) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    let mut failed = Ok(());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let done = match entry.file_type()?.is_dir() {
            true if folder == top => {
                folders.push(path);
                Ok(())
            }
            true => {
                *moved += 1;
                let up = top.join(format!(".removed-{moved}"));
                fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
                    .and_then(|()| fs::rename(&path, &up))
                    .map(|()| folders.push(up))
            }
            false => fs::remove_file(&path),
        };
        failed = failed.and(done);
    }
    if folder != top {
        failed = failed.and(fs::remove_dir(folder));
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        fs::write(&kept, "x").unwrap();
        let top = folder.path().join("run");
        fs::create_dir_all(top.join("closed/within")).unwrap();
        fs::write(top.join("closed/within/file"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, top.join("link")).unwrap();
        for mode in ["closed/within", "closed"] {
            fs::set_permissions(top.join(mode), fs::Permissions::from_mode(0o000)).unwrap();
        }
        // Far deeper than a path can say: what is deep is made first, and moved below the next.
        let name = "d".repeat(200);
        let mut inner = top.join("0");
        fs::create_dir_all(&inner).unwrap();
        for level in 1..100 {
            let outer = top.join(level.to_string());
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join(&name)).unwrap();
            inner = outer;
        }
        remove(&top).unwrap();
        assert!(!top.exists() && kept.exists());
        remove(&top).unwrap();
    }
}
