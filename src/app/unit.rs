//! The service as a systemd unit, of the person's own manager or of the machine's.

mod systemd;
mod text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::refusals::cannot;
use super::{App, Environment, service};
use crate::agent::claude::login;
use crate::config::{ClientChoice, secrets};
use crate::definition::durable;
use crate::home::Home;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::search_path;
use systemd::Manager;
use text::UnitFacts;

/// A command for the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitCommand {
    /// Whether to use the machine's manager instead of the person's own.
    pub system: bool,
    /// The action.
    pub act: UnitAct,
}

/// See [`UnitCommand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitAct {
    /// Show the unit that `Install` would write.
    Print,
    /// Write the unit, enable it at boot, and start it.
    Install,
    /// Stop the unit, and remove it.
    Uninstall,
    /// Show its status.
    Status,
    /// Start the unit.
    Start,
    /// End it gracefully. It starts again at the next boot.
    Stop,
    /// End it gracefully, and start it again.
    Restart,
}

/// The outcome of a [`UnitCommand`].
#[derive(Debug)]
pub enum UnitOutcome {
    /// The unit's text, with notes.
    Printed {
        /// The path at which it would be installed.
        file: PathBuf,
        /// The text.
        text: String,
        /// Notes for the person, each with what to do.
        notes: Vec<String>,
    },
    /// The unit is installed and started.
    Installed {
        /// Its status.
        status: UnitStatus,
        /// Whether its file was written; `false` if it was already up to date.
        written: bool,
        /// See [`UnitOutcome::Printed`].
        notes: Vec<String>,
    },
    /// The unit was stopped, and its file removed.
    Uninstalled {
        /// The file.
        file: PathBuf,
    },
    /// The unit's status.
    Status {
        /// Its status.
        status: UnitStatus,
        /// See [`UnitOutcome::Printed`].
        notes: Vec<String>,
    },
    /// The unit was started, stopped or restarted.
    Done {
        /// The action.
        act: UnitAct,
        /// Its status.
        status: UnitStatus,
    },
}

/// The status of the unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnitStatus {
    /// Its name.
    pub unit: String,
    /// Its file.
    pub file: PathBuf,
    /// Whether it belongs to the machine's manager.
    pub system: bool,
    /// Whether its file exists.
    pub installed: bool,
    /// Whether it is started at boot (for the person's own manager: when the manager starts).
    pub enabled: bool,
    /// Its state in systemd's words: `active`, `activating`, `failed`, `inactive`, …
    pub active: String,
    /// The id of its main process.
    pub pid: Option<u32>,
    /// How often systemd has restarted it after a failure.
    pub restarts: u32,
    /// The status text that the service reported.
    pub says: String,
    /// Whether the person's own manager starts at boot and outlives a log-out; `None` for the machine's manager.
    pub lingers: Option<bool>,
}

impl UnitStatus {
    /// Whether the service is running and ready.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading")
    }
}

/// Executes a command for the unit.
pub(super) fn unit(command: &UnitCommand, app: &App) -> Result<UnitOutcome, Refusal> {
    let unit = match command.act {
        UnitAct::Print | UnitAct::Install => Unit::of(command.system, app)?,
        _ => Unit::found(command.system, app)?,
    };
    match command.act {
        UnitAct::Print => {
            let manager = Manager { system: command.system, env: &app.env };
            let text = unit.text(manager.version().unwrap_or(text::NEWEST))?;
            Ok(UnitOutcome::Printed { file: unit.file.clone(), text, notes: unit.notes() })
        }
        UnitAct::Install => unit.install(),
        UnitAct::Uninstall => unit.uninstall(),
        UnitAct::Status => {
            let status = unit.status(&unit.manager()?)?;
            let notes = if status.installed { unit.lingering_note(&status).into_iter().collect() } else { Vec::new() };
            Ok(UnitOutcome::Status { status, notes })
        }
        UnitAct::Start => unit.have("start", &command.act),
        UnitAct::Stop => unit.have("stop", &command.act),
        UnitAct::Restart => unit.have("restart", &command.act),
    }
}

/// Returns the command that shows the service's log: `journalctl …`.
///
/// # Errors
/// If no unit is installed.
pub fn log_command(system: bool, more: &[String], app: &App) -> Result<std::process::Command, Refusal> {
    let unit = Unit::found(system, app)?;
    unit.installed()?;
    let mut command = std::process::Command::new("journalctl");
    command.arg(if unit.system { "--unit" } else { "--user-unit" }).arg(&unit.name).args(more);
    Ok(command)
}

/// Returns the status of a data folder's unit, and the `PATH` that its file sets; `None` if there is no systemd, or no unit.
pub(super) fn known(app: &App) -> Option<(UnitStatus, Option<String>)> {
    [false, true].into_iter().find_map(|system| {
        let unit = Unit::of(system, app).ok()?;
        let text = fs::read_to_string(&unit.file).ok()?;
        let status = unit.status(&unit.manager().ok()?).ok()?;
        Some((status, text::path_in(&text)))
    })
}

/// What starts a service that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// The person: there is no unit.
    Person,
    /// The person, by the unit that is installed.
    Unit,
    /// systemd, which is about to start its unit.
    Systemd,
}

impl Starter {
    /// Returns what to do. `word`: `start it`, or `start it again`.
    #[must_use]
    pub fn hint(self, word: &str) -> String {
        match self {
            Self::Person => format!("{word}: `ollim-bot run`"),
            Self::Unit => format!("{word}: `ollim-bot service start`"),
            Self::Systemd => "systemd is about to start it; how it goes: `ollim-bot service status`".to_owned(),
        }
    }
}

/// Returns what starts this data folder's service. Asks systemd only if the file of a unit is there.
pub(super) fn starter(app: &App) -> Starter {
    let Ok(unit) = Unit::found(false, app) else { return Starter::Person };
    if !unit.file.is_file() {
        return Starter::Person;
    }
    let facts = Manager { system: unit.system, env: &app.env }.show(&unit.name).unwrap_or_default();
    match facts.get("ActiveState").map(String::as_str) {
        // No manager answers.
        None => Starter::Person,
        Some("activating") => Starter::Systemd,
        Some(_) => Starter::Unit,
    }
}

/// Whether systemd booted this machine.
#[must_use]
pub fn is_systemd_there() -> bool {
    Path::new(systemd::BOOTED).is_dir()
}

/// The unit of one data folder.
struct Unit<'a> {
    system: bool,
    name: String,
    file: PathBuf,
    app: &'a App,
}

impl<'a> Unit<'a> {
    fn of(system: bool, app: &'a App) -> Result<Self, Refusal> {
        let name = name(system, &app.home, &app.env);
        let folder = match (system, app.env.path("XDG_CONFIG_HOME"), app.env.path("HOME")) {
            (true, ..) => PathBuf::from("/etc/systemd/system"),
            (false, Some(config), _) => config.join("systemd/user"),
            (false, None, Some(home)) => home.join(".config/systemd/user"),
            (false, None, None) => {
                return Err(Refusal::user("cannot tell where units belong: neither XDG_CONFIG_HOME nor HOME is set")
                    .hint("set HOME, or use `--system`"));
            }
        };
        Ok(Self { system, file: folder.join(&name), name, app })
    }

    /// Returns the unit that is installed: the machine's if that is asked for, or if there is no other.
    fn found(system: bool, app: &'a App) -> Result<Self, Refusal> {
        let own = Self::of(system, app)?;
        if system || own.file.is_file() {
            return Ok(own);
        }
        let machines = Self::of(true, app)?;
        Ok(if machines.file.is_file() { machines } else { own })
    }

    fn manager(&self) -> Result<Manager<'a>, Refusal> {
        let manager = Manager { system: self.system, env: &self.app.env };
        manager.is_there()?;
        Ok(manager)
    }

    /// Returns the manager, if the unit is installed.
    fn installed(&self) -> Result<Manager<'a>, Refusal> {
        let manager = self.manager()?;
        if self.file.is_file() {
            return Ok(manager);
        }
        let absent = Refusal::user(format!("the service is not installed: there is no {}", self.file.display()));
        let own = Unit::of(false, self.app).ok().filter(|own| own.file.is_file());
        Err(match own {
            Some(_) => absent.hint("it is your own manager's: leave out `--system`"),
            None => absent.hint("install it: `ollim-bot service install`"),
        })
    }

    /// Executes an action on an installed unit. `word` is systemctl's name of it.
    fn have(&self, word: &str, act: &UnitAct) -> Result<UnitOutcome, Refusal> {
        let manager = self.installed()?;
        manager.act(&[word, &self.name])?;
        Ok(UnitOutcome::Done { act: act.clone(), status: self.status(&manager)? })
    }

    fn text(&self, version: u32) -> Result<String, Refusal> {
        let program = std::env::current_exe()
            .map_err(|error| Refusal::environment(format!("cannot tell where our own program is: {error}")))?;
        let path = std::env::join_paths(self.path()).unwrap_or_default().to_string_lossy().into_owned();
        if self.app.env.text(MONITOR).is_some() {
            return Err(Refusal::user(format!(
                "{MONITOR} would stand in the unit, which every program of this machine can read"
            ))
            .hint(format!("write `heartbeat_url` into config.yaml, and install it with `env -u {MONITOR}`")));
        }
        let mut variables = vec![("PATH".to_owned(), path)];
        variables.extend(carried(&self.app.env));
        let user = if self.system { Some(owner(self.app.home.root())?) } else { None };
        let definitions = self.app.load_without_settings()?.definitions;
        let wakes = definitions.values().any(|definition| definition.enabled && definition.wake);
        let home = self.app.home.root();
        text::unit(&UnitFacts { program: &program, home, variables: &variables, user, version, wakes })
    }

    /// Returns the existing folders of `PATH`, each once.
    fn path(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in self.app.env.search_path() {
            if folder.is_dir() && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    fn install(&self) -> Result<UnitOutcome, Refusal> {
        let app = self.app;
        // Invalid settings keep the service from starting. Reports them here, rather than only in a log.
        app.config()?;
        app.require_home()?;
        let manager = self.manager()?;
        if self.system && !rustix::process::getuid().is_root() {
            return Err(Refusal::user("only root may install a service of the machine")
                .hint(format!("`sudo ollim-bot --home {} service install --system`", app.home.root().display()))
                .hint("or install it for yourself: without `--system`"));
        }
        let text = self.text(manager.version().unwrap_or(text::NEWEST))?;
        let before = self.status(&manager)?;
        let running = match service::status(app) {
            _ if before.is_active() => None,
            // This unit may have started it: it waits for the journal's database.
            Err(_) if before.active == "activating" => None,
            status => status?,
        };
        if let Some(running) = running {
            return Err(Refusal::user(format!(
                "the service is already running (pid {}), and not by this unit",
                running.pid
            ))
            .hint(format!("end it first: `kill {}`, or Ctrl-C where it was started", running.pid)));
        }
        let there = match fs::read_to_string(&self.file) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("read", &self.file, &error)),
        };
        if there.as_deref().is_some_and(|there| !text::is_ours(there, app.home.root())) {
            return Err(Refusal::user(format!(
                "{} is there, and is not the unit of this data folder",
                self.file.display()
            ))
            .hint("look at it; if nobody needs it, remove it and install again"));
        }
        let written = there.as_deref() != Some(&text);
        if written {
            write(&self.file, &text)?;
            manager.act(&["daemon-reload"])?;
        }
        manager.act(&["enable", &self.name])?;
        // A unit that is running takes a new text only when it restarts.
        let start = if before.is_active() && written { "restart" } else { "start" };
        manager.act(&[start, &self.name])?;
        let status = self.status(&manager)?;
        let mut notes = self.notes();
        notes.extend(self.lingering_note(&status));
        Ok(UnitOutcome::Installed { status, written, notes })
    }

    fn uninstall(&self) -> Result<UnitOutcome, Refusal> {
        let manager = self.installed()?;
        manager.act(&["disable", "--now", &self.name])?;
        fs::remove_file(&self.file).map_err(|error| cannot("remove", &self.file, &error))?;
        manager.act(&["daemon-reload"])?;
        Ok(UnitOutcome::Uninstalled { file: self.file.clone() })
    }

    fn status(&self, manager: &Manager) -> Result<UnitStatus, Refusal> {
        let facts = manager.show(&self.name)?;
        let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
        Ok(UnitStatus {
            unit: self.name.clone(),
            file: self.file.clone(),
            system: self.system,
            installed: self.file.is_file(),
            enabled: matches!(fact("UnitFileState").as_str(), "enabled" | "enabled-runtime"),
            active: fact("ActiveState"),
            pid: fact("MainPID").parse().ok().filter(|pid| *pid != 0),
            restarts: fact("NRestarts").parse().unwrap_or_default(),
            says: fact("StatusText"),
            lingers: (!self.system).then(|| systemd::lingers(&self.app.env)),
        })
    }

    /// Returns notes on the service as this unit would start it.
    fn notes(&self) -> Vec<String> {
        let Ok(config) = self.app.config() else { return Vec::new() };
        if config.agent_client == ClientChoice::Notify {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let user_home = self.app.places().user_home;
        if search_path::find(&config.claude_command, &self.path(), &user_home).is_err() {
            notes.push(format!(
                "`{}` is in no folder of this PATH: start this command where it is found, or set `claude_command` in config.yaml",
                config.claude_command
            ));
        }
        // The service does not have the variables of this shell.
        let person = self.app.env.path("HOME");
        let sources = |env: &Environment| {
            let environment = env.texts();
            let variables = secrets::read(&self.app.home, &environment).unwrap_or_default();
            login::LoginSources::of(variables, &environment, person)
        };
        let now = self.app.now();
        match (
            login::find_login(&sources(&self.app.env), now),
            login::find_login(&sources(&Environment::default()), now),
        ) {
            (Some(here), None) => notes.push(format!(
                "the login is known here only, by {}: put that line into {} and make it private, `chmod 600`",
                here.source,
                self.app.home.env_file().display()
            )),
            (None, None) => {
                notes.push(
                    "the agent client is not logged in: `ollim-bot login`, once it and the service are there".into(),
                );
            }
            _ => {}
        }
        notes
    }

    fn lingering_note(&self, status: &UnitStatus) -> Option<String> {
        (status.lingers == Some(false)).then(|| {
            "without lingering your services start when you log in and end when you log out; to have this one from boot on: \
             `loginctl enable-linger`"
                .to_owned()
        })
    }
}

/// Returns `ollim-bot.service`, with the folder's path in the name unless it is the default data folder. The machine's unit has the
/// same name for every user.
fn name(system: bool, home: &Home, env: &Environment) -> String {
    let usual = env.path("HOME").map(|person| person.join(".ollim-bot"));
    let usual = usual.map(|usual| usual.canonicalize().unwrap_or(usual));
    if !system && usual.as_deref() == Some(home.root()) {
        return "ollim-bot.service".to_owned();
    }
    let path = home.root().to_string_lossy();
    let tame = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let words: String = path.trim_matches('/').chars().map(tame).collect();
    // A file name has at most 255 bytes. The end of a path identifies it better than its beginning.
    let from = words.len().saturating_sub(150);
    format!("ollim-bot-{}.service", &words[from..])
}

/// The variable with the monitor's URL, by which anybody could silence the monitor.
const MONITOR: &str = "OLLIM_HEARTBEAT_URL";

/// Returns the variables of this environment that set settings or the time zone. Without them the service would behave differently.
fn carried(env: &Environment) -> Vec<(String, String)> {
    let of_settings = crate::config::KEYS.iter().map(|key| format!("OLLIM_{}", key.name.to_uppercase()));
    let names = ["TZ".to_owned(), "OLLIM_CLAUDE".to_owned()].into_iter().chain(of_settings);
    names.filter_map(|name| Some((name.clone(), env.text(&name)?.to_owned()))).collect()
}

/// Returns the name of the user who owns a data folder.
fn owner(root: &Path) -> Result<String, Refusal> {
    let failed = |why: String| Refusal::environment(format!("cannot tell whose {} is: {why}", root.display()));
    let owner = Owner::of(root).map_err(|error| failed(error.to_string()))?;
    owner.name().map(str::to_owned).ok_or_else(|| failed("this machine does not know the user".to_owned()))
}

/// Writes the file atomically, because systemd may read it at any moment.
fn write(file: &Path, text: &str) -> Result<(), Refusal> {
    let failed = |error: io::Error| cannot("write", file, &error);
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(durable::cause(&error)))?;
    io::Write::write_all(&mut fresh, text.as_bytes()).map_err(failed)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fresh.as_file().set_permissions(readable).map_err(failed)?;
    fresh.persist(file).map(drop).map_err(|error| cannot("write", file, &error.error))
}
