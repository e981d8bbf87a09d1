//! Files that came with a message: they are put into `work/received/`, where the main session reads them.

use std::fs;
use std::io;
use std::path::Path;

use crate::channel::ReceivedFile;
use crate::channel::terminal::plain_lines;

/// The longest name of a file that is kept, in characters.
const LONGEST_NAME: usize = 100;

/// Puts files into a new folder below `work`, and returns the lines that name them: nothing where there are none.
pub(super) fn keep(work: &Path, files: &[ReceivedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let folder = new_folder(work);
    let mut lines = String::from("\n\n[files that came with this message]");
    for (place, file) in files.iter().enumerate() {
        let kept = file.content.as_ref().map_err(Clone::clone).and_then(|content| {
            let (folder, name) = folder.as_ref().map_err(ToString::to_string)?;
            let file_name = file_name(&file.name, place, folder);
            fs::write(folder.join(&file_name), content).map_err(|error| error.to_string())?;
            Ok(format!("received/{name}/{file_name} ({} bytes)", content.len()))
        });
        let line = kept.unwrap_or_else(|why| format!("{}: not taken: {why}", plain(&file.name)));
        lines.push_str("\n- ");
        lines.push_str(&line);
    }
    lines
}

fn new_folder(work: &Path) -> io::Result<(std::path::PathBuf, String)> {
    let received = work.join("received");
    fs::create_dir_all(&received)?;
    // What a job may have put there leads nowhere else.
    if !received.symlink_metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "work/received is no folder"));
    }
    let name = agent_sandbox::token::random()?[..8].to_owned();
    let folder = received.join(&name);
    fs::create_dir(&folder)?;
    Ok((folder, name))
}

/// A name that stays in its folder, and that no other file there has.
fn file_name(sent: &str, place: usize, folder: &Path) -> String {
    let name = plain(sent.rsplit(['/', '\\']).next().unwrap_or_default());
    let name = name.trim_matches(['.', ' ']);
    let name = if name.is_empty() { "file" } else { name };
    match folder.join(name).exists() {
        true => format!("{place}-{name}"),
        false => name.to_owned(),
    }
}

fn plain(name: &str) -> String {
    plain_lines(name).replace(['\n', '\t'], "").chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
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
        let listed = keep(work.path(), &files);
        let folder = fs::read_dir(work.path().join("received")).unwrap().next().unwrap().unwrap().path();
        let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            listed.replace(&id, "ID"),
            "\n\n[files that came with this message]\n- received/ID/photo.jpg (1 bytes)\n- received/ID/passwd (1 bytes)\n\
             - received/ID/2-photo.jpg (1 bytes)\n- received/ID/file (1 bytes)\n- received/ID/ab (1 bytes)\n\
             - film.mp4: not taken: it is over 25 MB"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
        assert_eq!(keep(work.path(), &[]), "");
    }
}
