//! Settings: `config.yaml`, and `OLLIM_<KEY>` variables, which win over it.
//!
//! Every key has a default. A key nobody knows, or one that this version does not act on, is an error with its
//! place, never ignored: a setting that looks as if it held must hold. Knows the values' meaning, not what is done
//! with them.

mod keys;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_sandbox::Limits;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize, Serializer};

use crate::definition::frontmatter::{Block, Entry, Node, Spot, yaml_text};
use crate::definition::values::{Fault, Value};
use crate::definition::{Problem, Severity, Thinking};
use crate::home::Home;
use crate::policy::{SpawnTools, ToolPattern};

/// What `init` writes: every setting with its default, commented out.
pub const COMMENTED: &str = include_str!("config/commented.yaml");

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

/// `channel.kind`: where messages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    /// The terminal of `ollim-bot run`, and `ollim-bot inbox`.
    #[default]
    Console,
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

/// The effective settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The zone of definitions that name none, and of times shown. Default: the system's, else UTC.
    pub timezone: Tz,
    /// What does the work.
    pub agent_client: ClientChoice,
    /// The client's command: a name on PATH or a path.
    pub claude_command: String,
    /// Names of variables that the client gets from the service's environment.
    pub client_env: Vec<String>,
    /// Model of the main session, and of jobs that name none; `None`: the client's own default.
    pub model: Option<String>,
    /// How the main session's model thinks.
    pub thinking: Thinking,
    /// What the main session may do.
    pub main_tools: Vec<ToolPattern>,
    /// What spawned agents have and have not, where a spawn does not say.
    pub spawned_tools: SpawnTools,
    /// Where messages go.
    pub channel: ChannelKind,
    /// Wall clock for a run whose definition does not say.
    pub timeout: Duration,
    /// Longest silence of the client within a run.
    pub inactivity_timeout: Duration,
    /// How many background runs go at once; at least 1.
    pub max_concurrent_runs: usize,
    /// How long runs may go on after the service was told to stop.
    pub shutdown_grace: Duration,
    /// When the `notify` client schedules a chain's next link.
    pub notify_chain_delay: Duration,
    /// Whether jobs with a tool list are refused where there is no kernel wall.
    pub require_sandbox: bool,
    /// What holds Bash allowlists.
    pub sandbox: SandboxChoice,
    /// What the processes of one run may take.
    pub limits: Limits,
    /// How long ended runs are kept in the journal.
    pub journal_retention: Duration,
    /// What the bot calls the person.
    pub user_name: Option<String>,
    /// What the bot is called.
    pub bot_name: String,
    origins: BTreeMap<&'static str, Origin>,
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
        let config = keys::read(&mut sources, env);
        sources.problems.sort_by(|a, b| {
            (a.file != Path::new(FILE), a.line, a.column).cmp(&(b.file != Path::new(FILE), b.line, b.column))
        });
        match config.filter(|_| sources.problems.is_empty()) {
            Some(config) => Ok(config),
            None => Err(ConfigError::Invalid { problems: sources.problems }),
        }
    }

    /// The defaults alone.
    #[must_use]
    pub fn defaults(zone: Tz) -> Self {
        keys::defaults(zone)
    }

    /// Every setting of this version, in the order of the documentation.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        keys::settings(self)
    }

    /// Where a setting comes from.
    #[must_use]
    pub fn origin(&self, key: &str) -> &Origin {
        self.origins.get(key).unwrap_or(&Origin::Default)
    }
}

const FILE: &str = "config.yaml";

/// One key that was set, before its value is understood.
struct Given {
    key: &'static str,
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
        Value { name: self.key, node: &self.node, block: &self.block, path: &self.path, zone: Tz::UTC }
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
            if self.file.iter().any(|given| given.key == key) {
                self.problem(FILE, at, Some(key), format!("`{key}` is set twice"), "keep one of the two".into());
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
        let name_of = |key: &str| format!("OLLIM_{}", key.to_uppercase());
        let names = keys::KEYS.iter().map(|key| (key.name, name_of(key.name)));
        for (key, name) in names.chain([("claude_command", "OLLIM_CLAUDE".to_owned())]) {
            let Some(text) = env.get(&name) else { continue };
            if self.known(&name, (1, 1), key).is_none() || self.variables.iter().any(|given| given.key == key) {
                continue;
            }
            // A variable holds what would stand behind the colon; a text needs no quotes.
            let plain = keys::is_text(key) || !text.trim_start().starts_with('[') && keys::is_list(key);
            let yaml = if plain { yaml_text(text) } else { text.clone() };
            let yaml = if plain && keys::is_list(key) { format!("[{yaml}]") } else { yaml };
            let block = Block::of_file(&format!("{key}: {yaml}\n"));
            match block.entries() {
                Ok(mut entries) if entries.len() == 1 => {
                    let node = entries.remove(0).value;
                    let origin = Origin::Variable(name.clone());
                    self.variables.push(Given { key, origin, place: name, block, path: vec![0], node });
                }
                _ => {
                    let hint = "write one value, as it would stand in config.yaml".into();
                    self.problem(&name, (1, 1), Some(key), format!("the value of `{name}` cannot be read"), hint);
                }
            }
        }
    }

    /// The key's own name, if it is one that this version acts on.
    fn known(&mut self, place: &str, at: (u32, u32), key: &str) -> Option<&'static str> {
        let known = keys::named(key);
        match known {
            Some(known) if known.supported => return Some(known.name),
            Some(known) => {
                let message = format!("`{}` is not supported by this version", known.name);
                self.problem(place, at, Some(known.name), message, "remove it, or use a newer version".into());
            }
            None => {
                let hint = match keys::nearest(key) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`ollim-bot config` lists every setting".into(),
                };
                let shown = crate::definition::quoted(key);
                self.problem(place, at, Some(key), format!("unknown setting {shown}"), hint);
            }
        }
        None
    }

    /// What `read` makes of a key, and where it comes from; the default where it is not set.
    fn read<T>(
        &mut self,
        origins: &mut BTreeMap<&'static str, Origin>,
        key: &'static str,
        default: T,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Option<T> {
        let of = |given: &&Given| given.key == key;
        // Both are read, so that a mistake in the file does not hide behind a variable.
        let mut found = Some((default, None));
        let mut faults = Vec::new();
        for given in self.file.iter().find(of).into_iter().chain(self.variables.iter().find(of)) {
            let value = given.value();
            match read(&value) {
                Ok(value) => found = found.map(|_| (value, Some(given.origin.clone()))),
                Err(fault) => {
                    let at = if given.place == FILE { value.spot(fault.item) } else { (1, 1) };
                    faults.push((given.place.clone(), at, fault));
                    found = None;
                }
            }
        }
        for (place, at, fault) in faults {
            let hint = fault.hint.unwrap_or_default();
            self.problem(&place, at, Some(key), fault.message, hint);
        }
        let (value, origin) = found?;
        if let Some(origin) = origin {
            origins.insert(key, origin);
        }
        Some(value)
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
