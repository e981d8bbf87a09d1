//! The environment of a process: its variables, the data folder, and the person's own commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::home::Home;
use crate::refusal::Refusal;
use crate::search_path::is_program;

/// Environment variables, read once. Those that are not UTF-8 are kept for paths only.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// This process's own.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// A variable's text; `None` where it is not set, is empty, or is no UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// A variable as it is, even empty; `None` where it is not set.
    #[must_use]
    pub fn as_it_is(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// A variable as a path; `None` where it is not set or empty.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.0.get(name).filter(|value| !value.is_empty()).map(Path::new)
    }

    /// Every variable that is text.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&String, &OsString)| Some((name.clone(), value.to_str()?.to_owned()));
        self.0.iter().filter_map(text).collect()
    }

    /// The folders of `PATH`, absolute ones only: what runs never depends on where one stands.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        let Some(path) = self.0.get("PATH") else { return Vec::new() };
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
    }
}

/// The data folder: the flag, else `$OLLIM_HOME`, else `~/.ollim-bot`. Absolute, and without symlinks where it
/// is there.
///
/// # Errors
/// When nothing says where it is.
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

/// Without `.` and doubled slashes; `..` stays, since what it means depends on symlinks.
fn tidy(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What the file of an external command `NAME` is called, without `NAME`.
pub const EXTERNAL_PREFIX: &str = "ollim-bot-";

/// The names of the external commands in these folders.
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

/// Whether an external command may have this name: letters, digits, `-` and `_`, never a path.
#[must_use]
pub fn is_command_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
