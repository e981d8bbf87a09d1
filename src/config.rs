//! Settings: `config.yaml`, and `OLLIM_<KEY>` variables, which win over it.
//!
//! Every key has a default. A key nobody knows, or one that this version does not act on, is an error with its
//! place, never ignored: a setting that looks as if it held must hold. Knows the values' meaning, not what is done
//! with them.

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

use crate::definition::frontmatter::{Block, Entry, Node, Spot, yaml_text};
use crate::definition::values::Value;
use crate::definition::{Problem, Severity};
use crate::home::Home;
use crate::policy::BOT;
use keys::Named;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something in them is wrong. At least one problem, each located; the message is all of them.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid {
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// The file is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// `sandbox`: what holds an allowlist of Bash rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// The kernel; where it cannot, jobs with such a list are refused.
    #[default]
    Kernel,
    /// Nothing, where the kernel cannot: the person has said so.
    None,
}

/// `agent_client`: what does the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientChoice {
    /// `claude` where it is found and logged in, else `notify`. Decided at start.
    #[default]
    Auto,
    /// The `claude` command.
    Claude,
    /// No model: the person's own text is delivered.
    Notify,
}

/// Where an effective setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// Nobody set it; the operating system says.
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

/// One effective setting, for `ollim-bot config`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// Its key in `config.yaml`.
    pub key: &'static str,
    /// Its value, as it would be written. `null`: not set.
    pub value: serde_json::Value,
    /// Where it comes from.
    pub origin: Origin,
}

impl Config {
    /// Reads `config.yaml`, which need not be there, and the variables in `env`.
    ///
    /// # Errors
    /// [`ConfigError`]; every problem is found at once.
    pub fn load(home: &Home, env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let path = home.config_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(ConfigError::Io { path, source }),
        };
        Self::parse(&text, env)
    }

    /// [`Config::load`], of a text. Pure, save for asking the system's time zone.
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

    /// Every setting of this version, in the order of the documentation.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let setting =
            |key: &Key| Setting { key: key.name, value: (key.show)(self), origin: self.origin(key.name).clone() };
        KEYS.iter().map(setting).collect()
    }

    /// The channels that there are, in the order in which one takes over from another: the default one, yours, the console.
    pub fn channel_names(&self) -> impl Iterator<Item = &str> {
        let others = self.channels.iter().map(|channel| channel.name.as_str()).chain([CONSOLE]);
        std::iter::once(&*self.default_channel).chain(others.filter(|name| *name != self.default_channel))
    }

    /// Whether there is a channel of this name.
    #[must_use]
    pub fn has_channel(&self, name: &str) -> bool {
        name == CONSOLE || self.channels.iter().any(|channel| channel.name == name)
    }

    /// The quiet hours of a channel; `None`: it has none.
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

    /// Where a setting comes from.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }
}

/// What `init` writes: every setting with its default, commented out.
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

/// `TZ`, else what the system is set to.
fn system_zone(env: &BTreeMap<String, String>) -> Option<Tz> {
    let named = env.get("TZ").and_then(|name| name.trim_start_matches(':').parse().ok());
    named.or_else(|| iana_time_zone::get_timezone().ok()?.parse().ok())
}

const FILE: &str = "config.yaml";

/// One key that was set, before its value is understood.
struct Given {
    key: &'static Key,
    origin: Origin,
    /// The file's name, or the variable's.
    place: String,
    /// Its own YAML, for positions and letters.
    block: Block,
    path: Vec<usize>,
    node: Node,
}

impl Given {
    fn value(&self) -> Value<'_> {
        Value { name: self.key.name, node: &self.node, block: &self.block, path: &self.path, zone: Tz::UTC }
    }
}

/// All that was set, and what was found wrong so far.
struct Sources {
    file: Vec<Given>,
    variables: Vec<Given>,
    problems: Vec<Problem>,
}

impl Sources {
    fn file(&mut self, block: &Block, entries: &[Entry]) {
        for (index, entry) in entries.iter().enumerate() {
            let at = block.locate(&Spot::Key(vec![index]));
            let Some(key) = self.known(FILE, at, &entry.key) else { continue };
            if self.file.iter().any(|given| given.key.name == key.name) {
                let message = format!("`{}` is set twice", key.name);
                self.problem(FILE, at, Some(key.name), message, "keep one of the two".into());
                continue;
            }
            self.file.push(Given {
                key,
                origin: Origin::File(at.0),
                place: FILE.into(),
                block: block.clone(),
                path: vec![index],
                node: entry.value.clone(),
            });
        }
    }

    /// `OLLIM_<KEY>`, and `OLLIM_CLAUDE` for the command. Variables of other names are none of ours.
    fn variables(&mut self, env: &BTreeMap<String, String>) {
        let named = KEYS.iter().map(|key| key.name).chain(keys::LATER).map(|key| (key, key.to_uppercase()));
        for (key, name) in named.chain([("claude_command", "CLAUDE".to_owned())]) {
            let name = format!("OLLIM_{name}");
            let Some(text) = env.get(&name) else { continue };
            let Some(key) = self.known(&name, (1, 1), key) else { continue };
            if self.variables.iter().any(|given| given.key.name == key.name) {
                continue;
            }
            // A variable holds what would stand behind the colon; a text needs no quotes.
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
                    self.variables.push(Given { key, origin, place: name, block, path: vec![0], node });
                }
                _ => {
                    let hint = "write one value, as it would stand in config.yaml".into();
                    self.problem(&name, (1, 1), Some(key.name), format!("the value of `{name}` cannot be read"), hint);
                }
            }
        }
    }

    /// The setting, if it is one that this version acts on.
    fn known(&mut self, place: &str, at: (u32, u32), key: &str) -> Option<&'static Key> {
        match keys::named(key) {
            Named::Key(known) => return Some(known),
            Named::Later(later) => {
                let message = format!("`{later}` is not supported by this version");
                self.problem(place, at, Some(later), message, "remove it, or use a newer version".into());
            }
            Named::Unknown => {
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

    /// Reads all that was set into the settings. A variable comes after the file, and wins; a mistake in the file does not
    /// hide behind it.
    fn read(&mut self, config: &mut Config) {
        let mut named = Vec::new();
        for given in std::mem::take(&mut self.file).into_iter().chain(std::mem::take(&mut self.variables)) {
            let value = given.value();
            match (given.key.read)(&value, config) {
                Ok(()) => {
                    if matches!(given.key.name, "default_channel" | "critical_channel" | "main_ask_tools") {
                        let at = if given.place == FILE { value.spot(None) } else { (1, 1) };
                        named.push((given.key.name, given.place.clone(), at));
                    }
                    config.origins.insert(given.key.name, given.origin);
                }
                Err(fault) => {
                    let at = if given.place == FILE { value.spot(fault.item) } else { (1, 1) };
                    let hint = fault.hint.unwrap_or_default();
                    self.problem(&given.place, at, Some(given.key.name), fault.message, hint);
                }
            }
        }
        self.check_beside_others(named, config);
    }

    /// What is right only beside other settings: a channel that is named is there, and what is asked about is not granted anyway.
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
