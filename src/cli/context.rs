//! What a command is executed with: whose it is, on which data folder, with which clock and environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use clap::CommandFactory as _;

use super::args::Cli;
use super::error::{CliError, NO_HOME};
use super::external;
use crate::agents::known_agents;
use crate::clock::Clock;
use crate::config::{Config, ConfigError};
use crate::definition::{self, Defaults, Kind, KnownCommands, Loaded};
use crate::home::Home;
use crate::policy::Places;
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
    config: OnceLock<Arc<Config>>,
}

impl Context {
    /// A command's surroundings on the machine's own clock.
    #[must_use]
    pub fn new(home: Home, caller: Caller, env: Environment, folder: PathBuf, json: bool) -> Self {
        Self { home, caller, clock: Clock::system(), env, folder, json, config: OnceLock::new() }
    }

    /// The same for a run of the service, by the service's settings.
    #[must_use]
    pub fn of_run(&self, run: Arc<RunAuthority>, json: bool) -> Self {
        Self { caller: Caller::Run(run), json, ..self.clone() }
    }

    /// The same with settings that are read anew.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { config: OnceLock::new(), ..self.clone() }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The settings, read once.
    ///
    /// # Errors
    /// When something in them is wrong.
    pub fn config(&self) -> Result<Arc<Config>, CliError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(Config::load(&self.home, &self.env.texts())?);
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }

    /// The zone of definitions that name none.
    ///
    /// # Errors
    /// When something in the settings is wrong.
    pub fn zone(&self) -> Result<Tz, CliError> {
        Ok(self.config()?.timezone)
    }

    /// The zone that records are shown in: settings that are wrong do not hide what happened.
    #[must_use]
    pub fn zone_of_records(&self) -> Tz {
        self.zone().unwrap_or_else(|_| self.zone_without_settings())
    }

    /// The zone where no settings count.
    #[must_use]
    pub fn zone_without_settings(&self) -> Tz {
        Config::parse("", &BTreeMap::new()).map_or(Tz::UTC, |config| config.timezone)
    }

    /// What a command line of a job is judged by.
    #[must_use]
    pub fn places(&self) -> Places {
        let user_home = self.env.path("HOME").map_or_else(|| PathBuf::from("/"), Path::to_owned);
        Places { root: self.home.root().to_owned(), work: self.home.work(), user_home }
    }

    /// What holds for definitions that do not say.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn defaults(&self) -> Result<Defaults, CliError> {
        Ok(self.defaults_in(self.zone()?))
    }

    pub(super) fn defaults_in(&self, zone: Tz) -> Defaults {
        let path = self.env.search_path();
        let others = move || {
            let ours = Cli::command();
            let ours = ours.get_subcommands().map(|command| command.get_name().to_owned());
            ours.chain(external::names_in(&path)).collect()
        };
        let commands = KnownCommands::new(external::names_in(&[self.home.bin()]), others);
        Defaults { zone, commands, agents: known_agents(&self.home, self.env.path("HOME")) }
    }

    /// All definitions.
    ///
    /// # Errors
    /// When there is no data folder, or the settings cannot be read.
    pub fn load(&self) -> Result<Loaded, CliError> {
        self.require_home()?;
        Ok(definition::load(&self.home, &self.defaults()?)?)
    }

    /// All definitions of a kind.
    ///
    /// # Errors
    /// When there is no data folder, or the settings cannot be read.
    pub fn load_kind(&self, kind: Kind) -> Result<Loaded, CliError> {
        self.require_home()?;
        Ok(definition::load_kind(&self.home, kind, &self.defaults()?)?)
    }

    /// [`Context::load`], whatever is wrong with the settings: that is a problem like any other, and they do not count.
    ///
    /// # Errors
    /// When there is no data folder, or the settings cannot be read.
    pub fn load_without_settings(&self) -> Result<Loaded, CliError> {
        self.require_home()?;
        let (zone, of_settings) = match Config::load(&self.home, &self.env.texts()) {
            Ok(config) => (config.timezone, Vec::new()),
            Err(ConfigError::Invalid { problems }) => (self.zone_without_settings(), problems),
            Err(error) => return Err(error.into()),
        };
        let mut loaded = definition::load(&self.home, &self.defaults_in(zone))?;
        loaded.problems.splice(0..0, of_settings);
        Ok(loaded)
    }

    /// # Errors
    /// When there is no data folder, with the way to one.
    pub fn require_home(&self) -> Result<(), CliError> {
        if self.home.root().is_dir() {
            return Ok(());
        }
        Err(CliError::user(format!("there is no data folder at {}", self.home.root().display())).hint(NO_HOME))
    }
}

/// The service's surroundings, by the settings that it read last. Clones share them.
#[derive(Clone, Debug)]
pub struct InForce(Arc<RwLock<Context>>);

impl InForce {
    /// Those of the start.
    #[must_use]
    pub fn new(context: Context) -> Self {
        Self(Arc::new(RwLock::new(context)))
    }

    /// As they are now.
    #[must_use]
    pub fn context(&self) -> Context {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These count from now on.
    pub(super) fn replace(&self, fresh: Context) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = fresh;
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
