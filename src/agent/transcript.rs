//! The files in which a client keeps a conversation.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

/// The name of the copy of a conversation that a run's client resumes, in the run's folder.
pub const RESUMED: &str = "main.jsonl";

/// The last parts of a transcript's path that a run's client may have made: `claude/projects/FOLDER/SESSION.jsonl`.
const OF_CLIENT: usize = 4;

/// Opens a transcript that a client has written. The service may read more than a job, which can have put a link in the place of the
/// transcript, or of one of its folders.
///
/// # Errors
/// If it cannot be opened, or is no plain file of its own.
pub fn open_transcript(path: &Path) -> io::Result<fs::File> {
    let base = path.ancestors().nth(OF_CLIENT).ok_or(io::ErrorKind::InvalidInput)?;
    let rest = path.strip_prefix(base).map_err(io::Error::other)?;
    let base = rustix::fs::open(base, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = fs::File::from(openat2(&base, rest, flags, Mode::empty(), resolve)?);
    let facts = file.metadata()?;
    match facts.is_file() && facts.nlink() == 1 {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_below_the_runs_folder() {
        let root = tempfile::tempdir().unwrap();
        let (secret, run) = (root.path().join("secret"), root.path().join("data/runs/1"));
        fs::create_dir_all(&secret).unwrap();
        fs::write(secret.join("s.jsonl"), "secret\n").unwrap();
        let projects = run.join("claude/projects");
        fs::create_dir_all(projects.join("p")).unwrap();
        fs::write(projects.join("p/s.jsonl"), "own\n").unwrap();
        symlink("../../../../../../secret/s.jsonl", projects.join("p/file.jsonl")).unwrap();
        symlink(&secret, projects.join("folder")).unwrap();
        fs::hard_link(secret.join("s.jsonl"), projects.join("p/hard.jsonl")).unwrap();
        fs::create_dir(projects.join("p/none.jsonl")).unwrap();
        let read = |path: &Path| {
            let mut text = String::new();
            open_transcript(path).and_then(|mut file| file.read_to_string(&mut text)).ok().map(|_| text)
        };
        assert_eq!(read(&projects.join("p/s.jsonl")).as_deref(), Some("own\n"));
        for path in ["p/file.jsonl", "folder/s.jsonl", "p/hard.jsonl", "p/none.jsonl", "p/missing.jsonl"] {
            assert_eq!(read(&projects.join(path)), None, "{path}");
        }
        fs::rename(run.join("claude"), root.path().join("elsewhere")).unwrap();
        symlink(root.path().join("elsewhere"), run.join("claude")).unwrap();
        assert_eq!(read(&projects.join("p/s.jsonl")), None);
        // The data folder itself may be reached over a link.
        fs::remove_file(run.join("claude")).unwrap();
        fs::rename(root.path().join("elsewhere"), run.join("claude")).unwrap();
        symlink(root.path().join("data"), root.path().join("link")).unwrap();
        assert!(read(&root.path().join("link/runs/1/claude/projects/p/s.jsonl")).is_some());
    }
}
