//! A person's own commands: `ollim-bot NAME …` runs `ollim-bot-NAME` from the data folder's `bin/` or, failing that, from `PATH`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::app::{App, EXTERNAL_PREFIX, is_command_name};
use crate::home::Home;
use crate::refusal::Refusal;
use crate::search_path::is_program;

/// Finds the program `ollim-bot-NAME`. A name consists of letters, digits, `-` and `_`, so it is never a path.
///
/// # Errors
/// Fails if there is no such program. The hint names the nearest known command.
pub fn find(name: &str, app: &App) -> Result<PathBuf, Refusal> {
    if is_command_name(name) {
        let file = format!("{EXTERNAL_PREFIX}{name}");
        let found = app.command_folders().into_iter().map(|folder| folder.join(&file)).find(|path| is_program(path));
        if let Some(path) = found {
            return Ok(path);
        }
    }
    let shown: String = name.chars().take(100).collect();
    let error = Refusal::user(format!("there is no command `{}`", crate::channel::terminal::plain(&shown)));
    Err(match super::examples::suggestion(name).map(ToOwned::to_owned).or_else(|| nearest(name, known_commands(app))) {
        Some(known) => error.hint(format!("did you mean `{known}`?")),
        None => error,
    }
    .hint(format!(
        "`ollim-bot help` lists all; one of your own is a program `{EXTERNAL_PREFIX}NAME` in {}",
        app.home.bin().display()
    )))
}

/// Replaces this process by the command. Returns only if that fails.
#[must_use]
pub fn become_command(program: &Path, args: &[OsString], home: &Home) -> Refusal {
    let error = Command::new(program).args(args).env("OLLIM_HOME", home.root()).exec();
    let failed = Refusal::environment(format!("cannot run {}: {error}", program.display()));
    if error.kind() == io::ErrorKind::NotFound {
        return failed.hint("the interpreter in its first line is not there");
    }
    failed
}

fn known_commands(app: &App) -> Vec<String> {
    (app.command_names)().into_iter().chain(app.external_commands()).collect()
}

/// Returns the known name that differs from this one in two letters at most.
pub(super) fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    // The distance takes time proportional to the product of both lengths.
    let name = Some(name).filter(|name| name.len() < 100)?;
    let mut known: Vec<(usize, String)> = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .filter(|(distance, known)| *distance <= 2 && *distance < known.len())
        .collect();
    known.sort();
    known.into_iter().next().map(|(_, known)| known)
}

/// Splits clap's words into the name and the arguments of an external command.
///
/// # Errors
/// Fails if the name is not UTF-8.
pub fn split(words: &[OsString]) -> Result<(&str, &[OsString]), Refusal> {
    let (name, args) =
        words.split_first().map_or((OsStr::new(""), [].as_slice()), |(name, args)| (name.as_os_str(), args));
    match name.to_str() {
        Some(name) => Ok((name, args)),
        None => Err(Refusal::user("the command's name is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::app::Environment;

    #[test]
    fn only_names_never_paths() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::create_dir(home.bin()).unwrap();
        let program = home.bin().join("ollim-bot-mail");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        let app = crate::cli::for_person(home.clone(), Environment::default());
        assert!(find("mail", &app).is_err(), "not executable yet");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("mail", &app).unwrap(), program);
        assert_eq!(app.external_commands(), ["mail"]);
        for name in ["", "../bin/ollim-bot-mail", "mail/", "./mail", "ma il", "mail\n", "m\u{e4}il"] {
            assert!(find(name, &app).is_err(), "{name:?}");
        }
        let long = find(&"m".repeat(100_000), &app).unwrap_err();
        assert!(long.reason.len() < 200 && long.hints.len() == 1, "{long:?}");
        assert_eq!(find("mial", &app).unwrap_err().hints[0], "did you mean `mail`?");
        assert_eq!(find("statsu", &app).unwrap_err().hints[0], "did you mean `status`?");
    }
}
