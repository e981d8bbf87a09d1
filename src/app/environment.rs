//! The environment of a process: its variables, the data folder, and the person's own commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::home::Home;
use crate::refusal::Refusal;
use crate::search_path::is_program;

/// Environment variables, read once. Values that are not UTF-8 are available as paths only.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Reads this process's own environment.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// Creates an environment with these variables.
    #[must_use]
    pub fn of(variables: impl IntoIterator<Item = (String, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// Returns a variable's text; `None` if it is not set, empty, or not UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// Returns a variable unchanged, even if empty; `None` if it is not set.
    #[must_use]
    pub fn as_it_is(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Returns a variable as a path; `None` if it is not set or empty.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.0.get(name).filter(|value| !value.is_empty()).map(Path::new)
    }

    /// Returns all variables that are UTF-8.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&String, &OsString)| Some((name.clone(), value.to_str()?.to_owned()));
        self.0.iter().filter_map(text).collect()
    }

    /// Returns the absolute folders of `PATH`. Relative ones are left out, so that the current folder never decides what runs.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        let Some(path) = self.0.get("PATH") else { return Vec::new() };
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
    }
}

/// Returns the data folder: the flag, else `$OLLIM_HOME`, else `~/.ollim-bot`. The path is absolute, and without
/// symlinks if the folder exists.
///
/// # Errors
/// If none of these is set.
pub fn home(flag: Option<&Path>, env: &Environment, folder: &Path) -> Result<Home, Refusal> {
    let chosen = match (flag, env.path("OLLIM_HOME"), env.path("HOME")) {
        (Some(flag), _, _) => flag.to_owned(),
        (None, Some(chosen), _) => chosen.to_owned(),
        (None, None, Some(person)) => person.join(".ollim-bot"),
        (None, None, None) => {
            return Err(Refusal::user("cannot tell where the data folder is: neither OLLIM_HOME nor HOME is set")
                .hint("name it: `--home DIR`"));
        }
    };
    let absolute = folder.join(chosen);
    Ok(Home::new(absolute.canonicalize().unwrap_or_else(|_| tidy(&absolute))))
}

/// Removes `.` and doubled slashes. `..` stays, since its meaning depends on symlinks.
fn tidy(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Prefix of the file name of an external command.
pub const EXTERNAL_PREFIX: &str = "ollim-bot-";

/// Returns the names of the external commands in these folders.
pub(super) fn external_commands_in(folders: &[PathBuf]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let file = entry.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_prefix(EXTERNAL_PREFIX))
                && is_command_name(name)
                && is_program(&entry.path())
            {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// Whether the name is valid for an external command: letters, digits, `-` and `_`, never a path.
#[must_use]
pub fn is_command_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
