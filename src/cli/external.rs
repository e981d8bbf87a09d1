//! Commands of one's own: `ollim-bot NAME …` runs `ollim-bot-NAME` from the data folder's `bin/`, then `PATH`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory as _;

use super::args::Cli;
use super::context::Environment;
use super::error::CliError;
use crate::home::Home;

const PREFIX: &str = "ollim-bot-";

/// Where `ollim-bot-NAME` is. A name is letters, digits, `-` and `_`: never a path.
///
/// # Errors
/// When there is none, with the nearest name that there is.
pub fn find(name: &str, home: &Home, env: &Environment) -> Result<PathBuf, CliError> {
    if is_name(name) {
        let file = format!("{PREFIX}{name}");
        let found = folders(home, env).into_iter().map(|folder| folder.join(&file)).find(|path| is_program(path));
        if let Some(path) = found {
            return Ok(path);
        }
    }
    let error = CliError::user(format!("there is no command `{}`", crate::channel::terminal::plain(name)));
    Err(match nearest(name, home, env) {
        Some(known) => error.hint(format!("did you mean `{known}`?")),
        None => error,
    }
    .hint(format!(
        "`ollim-bot help` lists all; one of your own is a program `{PREFIX}NAME` in {}",
        home.bin().display()
    )))
}

/// The names of all that there are, sorted.
#[must_use]
pub fn names(home: &Home, env: &Environment) -> Vec<String> {
    names_in(&folders(home, env)).into_iter().collect()
}

/// The same of these folders.
pub(super) fn names_in(folders: &[PathBuf]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let file = entry.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PREFIX))
                && is_name(name)
                && is_program(&entry.path())
            {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// Becomes the command: this process is replaced. Returns only when that fails.
#[must_use]
pub fn become_command(program: &Path, args: &[OsString], home: &Home) -> CliError {
    let error = Command::new(program).args(args).env("OLLIM_HOME", home.root()).exec();
    let failed = CliError::environment(format!("cannot run {}: {error}", program.display()));
    if error.kind() == io::ErrorKind::NotFound {
        return failed.hint("the interpreter in its first line is not there");
    }
    failed
}

fn folders(home: &Home, env: &Environment) -> Vec<PathBuf> {
    let mut folders = vec![home.bin()];
    folders.extend(env.search_path());
    folders
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

fn nearest(name: &str, home: &Home, env: &Environment) -> Option<String> {
    let ours = Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect::<Vec<_>>();
    let mut known: Vec<(usize, String)> = ours
        .into_iter()
        .chain(names(home, env))
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .filter(|(distance, known)| *distance <= 2 && *distance < known.len())
        .collect();
    known.sort();
    known.into_iter().next().map(|(_, known)| known)
}

/// The name and the arguments of an external command, as clap has them.
///
/// # Errors
/// When the name is no UTF-8.
pub fn split(words: &[OsString]) -> Result<(&str, &[OsString]), CliError> {
    let (name, args) =
        words.split_first().map_or((OsStr::new(""), [].as_slice()), |(name, args)| (name.as_os_str(), args));
    match name.to_str() {
        Some(name) => Ok((name, args)),
        None => Err(CliError::user("the command's name is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_never_paths() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::create_dir(home.bin()).unwrap();
        let program = home.bin().join("ollim-bot-mail");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let env = Environment::default();
        assert!(find("mail", &home, &env).is_err(), "not executable yet");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("mail", &home, &env).unwrap(), program);
        assert_eq!(names(&home, &env), ["mail"]);
        for name in ["", "../bin/ollim-bot-mail", "mail/", "./mail", "ma il", "mail\n", "m\u{e4}il"] {
            assert!(find(name, &home, &env).is_err(), "{name:?}");
        }
        assert_eq!(find("mial", &home, &env).unwrap_err().hints()[0], "did you mean `mail`?");
        assert_eq!(find("statsu", &home, &env).unwrap_err().hints()[0], "did you mean `status`?");
    }
}
