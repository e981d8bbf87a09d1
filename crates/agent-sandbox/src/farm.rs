//! Farms: folders of links under the names of programs, for a shell's `PATH`.
//!
//! In the farm of all programs a name links to the trampoline, or to the program itself for a filter or wrapper that needs no
//! rule. Each run has a small overlay before it, with the names in its own rules.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::stamped::{Stamped, stamp};

/// Name of the folder with a link for each program of this machine.
pub const FOLDER: &str = "program-farm";

/// Name of the folder in which every link leads to the trampoline, for programs that start others.
pub const JUDGED: &str = "program-farm-judged";

/// Name of the folder with the links of one run.
pub const OVERLAY: &str = "program-overlay";

/// Returns the programs of a search path by name. The first file of a name wins. Folders that cannot be listed are skipped.
#[must_use]
pub fn programs(path: &[PathBuf]) -> Programs {
    let mut found = BTreeMap::new();
    for folder in path.iter().filter(|folder| folder.is_absolute()) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string()
                && !found.contains_key(&name)
                && is_program(&entry.path())
            {
                found.insert(name, entry.path());
            }
        }
    }
    found
}

/// Files of programs, by name.
pub type Programs = BTreeMap<String, PathBuf>;

/// Returns the same as [`programs`], cached until a folder changes.
#[must_use]
pub fn known_programs(path: &[PathBuf]) -> Arc<Programs> {
    static KNOWN: Stamped<Arc<Programs>> = Stamped::new();
    KNOWN.get(stamp(path, ""), || Arc::new(programs(path)))
}

/// Name of the folder with one run's links for programs that run others. It contains only the names that denials mention,
/// and our own.
pub const GUARD: &str = "program-guard";

/// Returns whether a folder is one of these, by its name.
#[must_use]
pub fn is_farm(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| [FOLDER, JUDGED, OVERLAY, GUARD].iter().any(|farm| name == *farm))
}

/// Returns whether a file is executable according to its mode.
#[must_use]
pub fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Returns whether a program is a script, which needs its interpreter and all that this starts.
#[must_use]
pub fn is_script(program: &Path) -> bool {
    let mut head = [0; 2];
    let read = opened(program).and_then(|mut file| io::Read::read(&mut file, &mut head));
    read.is_ok() && head == *b"#!"
}

/// Opens a program to read. Never waits: a job may put a pipe in the place of a file.
fn opened(program: &Path) -> io::Result<std::fs::File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    std::fs::OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(program)
}

/// Returns the program in a script's first line, or `None` if there is none. `path`: the search path of `env`.
#[must_use]
pub fn interpreter(program: &Path, path: &[PathBuf]) -> Option<PathBuf> {
    // The kernel reads only 256 bytes of the line (execve(2)).
    let mut head = Vec::new();
    let file = opened(program).ok()?;
    io::Read::read_to_end(&mut io::Read::take(file, 256), &mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let named = words.next()?;
    match Path::new(named).file_name()?.to_str()? {
        "env" => find(words.find(|word| !word.starts_with('-') && !word.contains('='))?, path),
        _ => Some(named.into()),
    }
}

/// Returns the first executable file with this name in a search path.
#[must_use]
pub fn find(name: &str, path: &[PathBuf]) -> Option<PathBuf> {
    path.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Makes `folder` contain exactly these links. Changes it link by link, so that a shell that uses it meanwhile misses none.
///
/// # Errors
/// If the folder cannot be made or written.
pub fn sync_links(folder: &Path, links: &BTreeMap<String, PathBuf>) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut there: BTreeSet<String> = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let wanted = entry.file_name().to_str().and_then(|name| links.get(name));
        if wanted.is_some() && std::fs::read_link(entry.path()).ok().as_ref() == wanted {
            there.extend(entry.file_name().into_string());
        } else {
            match std::fs::remove_file(entry.path()) {
                // Another run has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    for (name, target) in links.iter().filter(|(name, _)| !there.contains(*name)) {
        match symlink(target, folder.join(name)) {
            // Another run lays the same link.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farm_holds_what_it_is_told_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let farm = folder.path().join(FOLDER);
        let links = |list: &[(&str, &str)]| {
            list.iter().map(|(name, target)| ((*name).to_owned(), PathBuf::from(target))).collect::<BTreeMap<_, _>>()
        };
        let held = || {
            let entries = std::fs::read_dir(&farm).unwrap().map(Result::unwrap);
            let link = |entry: std::fs::DirEntry| {
                (entry.file_name().into_string().unwrap(), std::fs::read_link(entry.path()).unwrap())
            };
            entries.map(link).collect::<BTreeMap<_, _>>()
        };
        for wanted in [links(&[("a", "/x"), ("b", "/y")]), links(&[("b", "/z"), ("c", "/x")]), links(&[])] {
            sync_links(&farm, &wanted).unwrap();
            assert_eq!(held(), wanted);
        }
    }

    #[test]
    fn several_runs_may_change_the_links_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let links = |target: &str| (0..200).map(|name| (name.to_string(), PathBuf::from(target))).collect();
        for target in ["/a", "/b", "/c", "/d", "/e"] {
            let wanted: BTreeMap<String, PathBuf> = links(target);
            std::thread::scope(|threads| {
                let runs: Vec<_> = (0..4).map(|_| threads.spawn(|| sync_links(folder.path(), &wanted))).collect();
                runs.into_iter().for_each(|run| run.join().unwrap().unwrap());
            });
            sync_links(folder.path(), &wanted).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 200);
        }
    }

    #[test]
    fn the_first_of_a_name_counts_and_only_programs_do() {
        let programs = programs(&["/nonexistent".into(), "relative".into(), "/usr/bin".into()]);
        assert_eq!(programs.get("env"), Some(&PathBuf::from("/usr/bin/env")));
        assert_eq!(find("env", &["/usr/bin".into()]), Some(PathBuf::from("/usr/bin/env")));
        assert_eq!(find("no such program", &["/usr/bin".into()]), None);
    }
}
