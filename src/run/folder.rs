//! Cleanup of a run's own folder: the transcript stays, everything else is removed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use agent_sandbox::leftovers;

use crate::agent::RESUMED;

/// The entries that stay: the client's transcripts, and the copy of the conversation that a fork resumed.
const RETAINED: [&str; 2] = ["claude", RESUMED];

/// The entries of the client's own folder that stay.
const KEPT_OF_CLIENT: [&str; 1] = ["projects"];

/// Removes a run's leftovers in `folder`, after all its processes have ended. Failures are logged.
pub async fn tidy(folder: PathBuf) {
    // `tidy_now` logs its errors.
    let _ended = tokio::task::spawn_blocking(move || tidy_now(&folder)).await;
}

/// Does the same as [`tidy`] on this thread.
pub fn tidy_now(folder: &Path) {
    for (folder, kept) in [(folder.to_path_buf(), &RETAINED[..]), (folder.join("claude"), &KEPT_OF_CLIENT[..])] {
        // A run may end before it has this folder.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let left = entries.flatten().filter(|entry| !kept.iter().any(|kept| entry.file_name() == OsStr::new(kept)));
        for entry in left {
            if let Err(error) = leftovers::remove(&entry.path()) {
                tracing::warn!(%error, "what a run has left was not removed: {}", entry.path().display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_stay_and_the_rest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in ["claude/projects/p/s.jsonl", "claude/shell-snapshots/x", "main.jsonl", "tmp/a/b", "shell.sock"] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        tidy_now(root);
        let names = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(root), ["claude", "main.jsonl"]);
        assert_eq!(names(&root.join("claude")), ["projects"]);
        assert!(root.join("claude/projects/p/s.jsonl").exists() && Path::new("/etc/passwd").exists());
    }
}
