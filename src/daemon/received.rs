//! Saves files that came with a message in `work/received/`, where the main session reads them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use agent_sandbox::folders;

use crate::channel::ReceivedFile;
use crate::channel::terminal::plain_lines;

/// Maximum length of a saved file's name, in characters.
const LONGEST_NAME: usize = 100;

/// Saves files in a new folder below `work`, and returns the lines that name them. Empty if there are no files.
pub(super) fn save(work: &Path, files: &[ReceivedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let folder = new_folder(work);
    let mut lines = String::from("\n\n[files that came with this message]");
    for (place, file) in files.iter().enumerate() {
        let kept = file.content.as_ref().map_err(Clone::clone).and_then(|content| {
            let (folder, name) = folder.as_ref().map_err(ToString::to_string)?;
            let taken = new_file(&file.name, place, folder).and_then(|(file_name, mut file)| {
                file.write_all(content)?;
                Ok(format!("received/{name}/{file_name} ({} bytes)", content.len()))
            });
            taken.map_err(|error| error.to_string())
        });
        let line = kept.unwrap_or_else(|why| format!("{}: not taken: {why}", plain(&file.name)));
        lines.push_str("\n- ");
        lines.push_str(&line);
    }
    lines
}

/// Makes a new folder below `work/received`. Follows no link that a job may have planted there.
fn new_folder(work: &Path) -> io::Result<(OwnedFd, String)> {
    let name = agent_sandbox::token::random()?[..8].to_owned();
    match folders::make(work, &Path::new("received").join(&name)) {
        Ok(folder) => Ok((folder, name)),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(io::Error::new(io::ErrorKind::NotADirectory, "work/received is no folder"))
        }
        Err(error) => Err(error),
    }
}

/// Creates a file whose name stays in its folder and is unique there.
fn new_file(sent: &str, place: usize, folder: &OwnedFd) -> io::Result<(String, File)> {
    let name = plain(sent.rsplit(['/', '\\']).next().unwrap_or_default());
    let name = name.trim_matches(['.', ' ']);
    let name = if name.is_empty() { "file" } else { name };
    match folders::new_file(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let name = format!("{place}-{name}");
            folders::new_file(folder, &name).map(|file| (name, file))
        }
        file => file.map(|file| (name.to_owned(), file)),
    }
}

fn plain(name: &str) -> String {
    plain_lines(name).replace(['\n', '\t'], "").chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_stay_in_their_folder_whatever_they_are_called() {
        let work = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| ReceivedFile { name: name.into(), content: Ok(content.into()) };
        let files = [
            file("photo.jpg", "a"),
            file("../../etc/passwd", "b"),
            file("photo.jpg", "c"),
            file("..", "d"),
            file("a\n\u{202e}b", "e"),
            ReceivedFile { name: "film.mp4".into(), content: Err("it is over 25 MB".into()) },
        ];
        let listed = save(work.path(), &files);
        let folder = fs::read_dir(work.path().join("received")).unwrap().next().unwrap().unwrap().path();
        let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            listed.replace(&id, "ID"),
            "\n\n[files that came with this message]\n- received/ID/photo.jpg (1 bytes)\n- received/ID/passwd (1 bytes)\n\
             - received/ID/2-photo.jpg (1 bytes)\n- received/ID/file (1 bytes)\n- received/ID/ab (1 bytes)\n\
             - film.mp4: not taken: it is over 25 MB"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
        assert_eq!(save(work.path(), &[]), "");
    }

    /// Calls `call` while another thread switches `place` between a folder and a link to `target`.
    fn while_turned(place: &Path, target: &Path, mut call: impl FnMut()) {
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        let beside = place.with_extension("beside");
        symlink(target, &beside).unwrap();
        fs::create_dir_all(place).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let (here, there) = ((rustix::fs::CWD, place), (rustix::fs::CWD, &beside));
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(here.0, here.1, there.0, there.1, exchange).unwrap();
                }
            });
            call();
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn no_file_is_kept_behind_a_link_that_a_job_turns() {
        let (work, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = ReceivedFile { name: "a.md".into(), content: Ok("x".into()) };
        while_turned(&work.path().join("received"), elsewhere.path(), || {
            let kept = (0..2000).map(|_| save(work.path(), std::slice::from_ref(&file)));
            assert!(kept.filter(|listed| listed.contains("(1 bytes)")).count() > 0);
        });
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}
