//! Settings from `config.yaml` and from `OLLIM_<KEY>` variables, which override the file.
//!
//! Every key has a default. A key that is unknown, or that this version does not support, is an error with its
//! location: no setting is ignored silently. This module knows what values mean, not what other modules do with them.

mod channels;
pub mod edit;
mod keys;
mod listen;
mod mcp_servers;
pub mod secrets;
mod section;
mod values;

pub use channels::{
    CONSOLE, ChannelKind, ChannelSettings, CommandChannel, DiscordChannel, Encryption, MailChannel, NtfyChannel, Quiet,
    QuietHours, TERMINAL, TelegramChannel,
};
pub use keys::{Config, KEYS, Key, Shape};
pub use listen::ListenAddress;
pub use mcp_servers::{McpServer, McpTransport};

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use serde::{Deserialize, Serialize, Serializer};

use crate::definition::frontmatter::{Block, Entry, Node, YamlPath, yaml_text};
use crate::definition::values::Value;
use crate::definition::{Problem, Severity};
use crate::home::Home;
use crate::policy::BOT;
use keys::KeyMeaning;

/// The reason why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// At least one setting is wrong. The message holds all problems.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid {
        /// All problems, at least one, each with its location.
        problems: Vec<Problem>,
    },
    /// The file exists and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The value of `sandbox`: how the programs of Bash rules are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// By the kernel. If the kernel cannot, jobs with such rules are refused.
    #[default]
    Kernel,
    /// By nothing if the kernel cannot. The person accepts that.
    None,
}

/// The value of `agent_client`: the client that does the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientChoice {
    /// `claude` if it is installed and logged in, else `notify`. Decided at the start.
    #[default]
    Auto,
    /// The `claude` command.
    Claude,
    /// No model: the person's text is delivered as written.
    Notify,
}

/// The source of an effective setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No source: the default.
    Default,
    /// No source: the value of the operating system.
    System,
    /// `config.yaml`, with the line (from 1).
    File(u32),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::System => f.write_str("system"),
            Self::File(line) => write!(f, "config.yaml:{line}"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An effective setting, for `ollim-bot config`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Its key in `config.yaml`.
    pub key: &'static str,
    /// Its value, as it would be written; `null` if not set.
    pub value: serde_json::Value,
    /// The source of the value.
    pub origin: Origin,
}

impl Config {
    /// Reads `config.yaml`, which may be missing, and the variables in `env`.
    ///
    /// # Errors
    /// [`ConfigError`], with all problems at once.
    pub fn load(home: &Home, env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let path = home.config_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(ConfigError::Io { path, source }),
        };
        Self::parse(&text, env)
    }

    /// Parses the settings from a text, like [`Config::load`]. Pure, except that it reads the system's time zone.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn parse(text: &str, env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let mut sources = Sources { file: Vec::new(), variables: Vec::new(), problems: Vec::new() };
        let block = Block::of_file(text);
        match block.entries() {
            Ok(entries) => sources.file(&block, &entries),
            Err(error) => {
                let message = format!("not valid YAML: {}", error.message);
                let hint = error.hint.unwrap_or_else(|| "each setting is a line `key: value`".into());
                sources.problem(FILE, (error.line, error.column), None, message, hint);
            }
        }
        sources.variables(env);
        let system = system_zone(env);
        let mut config = Self::defaults(system.unwrap_or(Tz::UTC));
        config.origins.extend(system.map(|_| ("timezone", Origin::System)));
        sources.read(&mut config);
        sources.problems.sort_by(|a, b| {
            (a.file != Path::new(FILE), a.line, a.column).cmp(&(b.file != Path::new(FILE), b.line, b.column))
        });
        if sources.problems.is_empty() { Ok(config) } else { Err(ConfigError::Invalid { problems: sources.problems }) }
    }

    /// Returns every setting of this version, in the order of the documentation.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let setting =
            |key: &Key| Setting { key: key.name, value: (key.show)(self), origin: self.origin(key.name).clone() };
        KEYS.iter().map(setting).collect()
    }

    /// Returns the channels in the order of failover: the default one, the person's others, the console.
    pub fn channel_names(&self) -> impl Iterator<Item = &str> {
        let others = self.channels.iter().map(|channel| channel.name.as_str()).chain([CONSOLE]);
        std::iter::once(&*self.default_channel).chain(others.filter(|name| *name != self.default_channel))
    }

    /// Whether a channel of this name exists.
    #[must_use]
    pub fn has_channel(&self, name: &str) -> bool {
        name == CONSOLE || self.channels.iter().any(|channel| channel.name == name)
    }

    /// Returns the quiet hours of a channel; `None` if it has none.
    #[must_use]
    pub fn quiet_hours_of(&self, channel: &str) -> Option<QuietHours> {
        if channel == TERMINAL {
            return None;
        }
        match self.channels.iter().find(|one| one.name == channel).and_then(|one| one.quiet_hours) {
            Some(Quiet::Never) => None,
            Some(Quiet::Hours(hours)) => Some(hours),
            None => self.quiet_hours,
        }
    }

    /// Returns the source of a setting.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }
}

/// Returns the file that `init` writes: every setting with its default or an example, commented out.
#[must_use]
pub fn commented() -> String {
    let mut text = "# Settings of ollim-bot. Each line shows a default or an example: remove the `#` to change it.\n\
                    # `ollim-bot config` prints the settings in force and where each comes from.\n\
                    # A variable OLLIM_<KEY>, for example OLLIM_TIMEZONE, wins over this file.\n"
        .to_owned();
    for key in KEYS {
        let unset = Some(key.unset).filter(|unset| !unset.is_empty()).map(|unset| format!("Default: {unset}."));
        let parts = [key.help.trim(), key.details, unset.as_deref().unwrap_or_default()];
        let lines = parts.iter().filter(|part| !part.is_empty()).map(|part| format!("# {part}\n"));
        text += &format!("\n{}# {}: {}\n", lines.collect::<String>(), key.name, key.example);
    }
    text
}

/// Returns the zone of `TZ`, else that of the system.
fn system_zone(env: &BTreeMap<String, String>) -> Option<Tz> {
    let named = env.get("TZ").and_then(|name| name.trim_start_matches(':').parse().ok());
    named.or_else(zone_without_variable)
}

/// Returns the zone of the system, whatever `TZ` is in this shell.
pub(crate) fn zone_without_variable() -> Option<Tz> {
    iana_time_zone::get_timezone().ok()?.parse().ok()
}

const FILE: &str = "config.yaml";

/// A key that was set, before its value is read.
struct RawSetting {
    key: &'static Key,
    origin: Origin,
    /// The name of the file or of the variable.
    place: String,
    /// Its own YAML, for positions and scalars as written.
    block: Block,
    path: Vec<usize>,
    node: Node,
}

impl RawSetting {
    fn value(&self) -> Value<'_> {
        Value { name: self.key.name, node: &self.node, block: &self.block, path: &self.path, zone: Tz::UTC }
    }
}

/// Everything that was set, and the problems so far.
struct Sources {
    file: Vec<RawSetting>,
    variables: Vec<RawSetting>,
    problems: Vec<Problem>,
}

impl Sources {
    fn file(&mut self, block: &Block, entries: &[Entry]) {
        for (index, entry) in entries.iter().enumerate() {
            let at = block.locate(&YamlPath::Key(vec![index]));
            let Some(key) = self.known(FILE, at, &entry.key) else { continue };
            if self.file.iter().any(|given| given.key.name == key.name) {
                let message = format!("`{}` is set twice", key.name);
                self.problem(FILE, at, Some(key.name), message, "keep one of the two".into());
                continue;
            }
            self.file.push(RawSetting {
                key,
                origin: Origin::File(at.0),
                place: FILE.into(),
                block: block.clone(),
                path: vec![index],
                node: entry.value.clone(),
            });
        }
    }

    /// Adds `OLLIM_<KEY>` variables, and `OLLIM_CLAUDE` for `claude_command`. Ignores variables with other names.
    fn variables(&mut self, env: &BTreeMap<String, String>) {
        let named = KEYS.iter().map(|key| key.name).chain(keys::LATER).map(|key| (key, key.to_uppercase()));
        for (key, name) in named.chain([("claude_command", "CLAUDE".to_owned())]) {
            let name = format!("OLLIM_{name}");
            let Some(text) = env.get(&name) else { continue };
            let Some(key) = self.known(&name, (1, 1), key) else { continue };
            if self.variables.iter().any(|given| given.key.name == key.name) {
                continue;
            }
            // A variable holds the text after the colon. A setting of type text needs no quotes.
            let yaml = match key.shape {
                Shape::Text => yaml_text(text),
                Shape::List if !text.trim_start().starts_with('[') => format!("[{}]", yaml_text(text)),
                Shape::List | Shape::Yaml => text.clone(),
            };
            let block = Block::of_file(&format!("{}: {yaml}\n", key.name));
            match block.entries() {
                Ok(mut entries) if entries.len() == 1 => {
                    let node = entries.remove(0).value;
                    let origin = Origin::Variable(name.clone());
                    self.variables.push(RawSetting { key, origin, place: name, block, path: vec![0], node });
                }
                _ => {
                    let hint = "write one value, as it would stand in config.yaml".into();
                    self.problem(&name, (1, 1), Some(key.name), format!("the value of `{name}` cannot be read"), hint);
                }
            }
        }
    }

    /// Returns the setting of a key, or reports a key that this version does not support.
    fn known(&mut self, place: &str, at: (u32, u32), key: &str) -> Option<&'static Key> {
        match keys::named(key) {
            KeyMeaning::Key(known) => return Some(known),
            KeyMeaning::Later(later) => {
                let message = format!("`{later}` is not supported by this version");
                self.problem(place, at, Some(later), message, "remove it, or use a newer version".into());
            }
            KeyMeaning::Unknown => {
                let hint = match keys::nearest(key) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "remove it; docs/configuration.md lists every setting".into(),
                };
                let shown = crate::definition::quoted(key);
                self.problem(place, at, Some(key), format!("unknown setting {shown}"), hint);
            }
        }
        None
    }

    /// Reads everything into the settings. Variables come after the file, so they override it; a mistake in the file is
    /// reported all the same.
    fn read(&mut self, config: &mut Config) {
        let mut named = Vec::new();
        for given in std::mem::take(&mut self.file).into_iter().chain(std::mem::take(&mut self.variables)) {
            let value = given.value();
            match (given.key.read)(&value, config) {
                Ok(()) => {
                    if matches!(given.key.name, "default_channel" | "critical_channel" | "main_ask_tools") {
                        let at = if given.place == FILE { value.line_and_column(None) } else { (1, 1) };
                        named.push((given.key.name, given.place.clone(), at));
                    }
                    config.origins.insert(given.key.name, given.origin);
                }
                Err(fault) => {
                    let at = if given.place == FILE { value.line_and_column(fault.item) } else { (1, 1) };
                    let hint = fault.hint.unwrap_or_default();
                    self.problem(&given.place, at, Some(given.key.name), fault.message, hint);
                }
            }
        }
        self.check_beside_others(named, config);
    }

    /// Checks settings against one another: a named channel exists, and a call to ask about is not granted anyway.
    fn check_beside_others(&mut self, named: Vec<(&'static str, String, (u32, u32))>, config: &Config) {
        for (key, place, at) in named {
            if key == "main_ask_tools" {
                for pattern in &config.main_ask_tools {
                    if let Some(grant) = config.main_tools.iter().find(|grant| BOT.covers(grant, pattern)) {
                        let message = format!("`{pattern}` is never asked about: `{grant}` of `main_tools` grants it");
                        let hint = format!("say `main_tools` without `{grant}`");
                        self.problem(&place, at, Some(key), message, hint);
                    }
                }
                continue;
            }
            let name = match key {
                "default_channel" => Some(&config.default_channel),
                _ => config.critical_channel.as_ref(),
            };
            if let Some(name) = name.filter(|name| !config.has_channel(name)) {
                let names: Vec<&str> = config.channel_names().filter(|name| config.has_channel(name)).collect();
                let message = format!("there is no channel `{name}`");
                let hint = format!("`channels` makes it; there is: {}", names.join(", "));
                self.problem(&place, at, Some(key), message, hint);
            }
        }
    }

    fn problem(&mut self, place: &str, (line, column): (u32, u32), field: Option<&str>, message: String, hint: String) {
        let mut problem = Problem::of_file(Path::new(place), Severity::Error, message, Some(hint));
        (problem.line, problem.column) = (line, column);
        problem.field = field.map(Into::into);
        self.problems.push(problem);
    }
}

#[cfg(test)]
mod tests;
