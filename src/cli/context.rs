//! What a command is executed with: whose it is, on which data folder, with which clock and environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::error::CliError;
use crate::clock::Clock;
use crate::home::Home;
use crate::run::tokens::RunAuthority;

/// Who a command is executed for.
#[derive(Clone, Debug)]
pub enum Caller {
    /// The person, in a process of theirs.
    Person,
    /// A run, in the service's process.
    Run(Arc<RunAuthority>),
}

/// The surroundings of one command.
#[derive(Clone, Debug)]
pub struct Context {
    /// The data folder.
    pub home: Home,
    /// Who asks.
    pub caller: Caller,
    /// The time.
    pub clock: Clock,
    /// The environment of the process that executes the command.
    pub env: Environment,
    /// What relative paths are relative to.
    pub folder: PathBuf,
    /// Whether data is to be one JSON document.
    pub json: bool,
}

impl Context {
    /// The time now.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The zone that times are shown in.
    #[must_use]
    pub fn zone(&self) -> chrono_tz::Tz {
        let named = self.env.text("TZ").and_then(|name| name.parse().ok());
        named.or_else(|| iana_time_zone::get_timezone().ok()?.parse().ok()).unwrap_or(chrono_tz::UTC)
    }

    /// # Errors
    /// When there is no data folder, with the way to one.
    pub fn require_home(&self) -> Result<(), CliError> {
        if self.home.root().is_dir() {
            return Ok(());
        }
        Err(CliError::user(format!("there is no data folder at {}", self.home.root().display()))
            .hint("`ollim-bot init` makes one; `--home DIR` or OLLIM_HOME names another"))
    }
}

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
pub fn home(flag: Option<&Path>, env: &Environment, folder: &Path) -> Result<Home, CliError> {
    let chosen = match (flag, env.path("OLLIM_HOME"), env.path("HOME")) {
        (Some(flag), _, _) => flag.to_owned(),
        (None, Some(chosen), _) => chosen.to_owned(),
        (None, None, Some(person)) => person.join(".ollim-bot"),
        (None, None, None) => {
            return Err(CliError::user("cannot tell where the data folder is: neither OLLIM_HOME nor HOME is set")
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
