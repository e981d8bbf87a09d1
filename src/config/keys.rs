//! The one table of settings, what each of them means, and its default.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_sandbox::Limits;
use bytesize::ByteSize;
use chrono_tz::Tz;
use serde_json::{Value as Json, json};

use super::{ChannelKind, ClientChoice, Config, Origin, SandboxChoice, Setting, Sources};
use crate::definition::Thinking;
use crate::definition::frontmatter::Node;
use crate::definition::values::{Fault, Value, span_text};
use crate::policy::{SpawnTools, ToolPattern};

/// One setting.
pub(super) struct Key {
    pub name: &'static str,
    /// `false`: this version does not act on it.
    pub supported: bool,
    shape: Shape,
}

/// How a variable's text is to be taken.
#[derive(PartialEq)]
enum Shape {
    Text,
    List,
    Yaml,
}

const fn key(name: &'static str, shape: Shape) -> Key {
    Key { name, supported: true, shape }
}

const fn not_yet(name: &'static str) -> Key {
    Key { name, supported: false, shape: Shape::Yaml }
}

/// In the order of the documentation.
pub(super) static KEYS: [Key; 21] = [
    key("timezone", Shape::Text),
    key("agent_client", Shape::Text),
    key("claude_command", Shape::Text),
    key("client_env", Shape::List),
    key("model", Shape::Text),
    key("thinking", Shape::Yaml),
    key("main_tools", Shape::List),
    key("tools", Shape::Yaml),
    key("channel", Shape::Yaml),
    key("timeout", Shape::Yaml),
    key("inactivity_timeout", Shape::Yaml),
    key("max_concurrent_runs", Shape::Yaml),
    key("shutdown_grace", Shape::Yaml),
    key("notify_chain_delay", Shape::Yaml),
    key("require_sandbox", Shape::Yaml),
    key("sandbox", Shape::Text),
    key("limits", Shape::Yaml),
    key("journal_retention", Shape::Yaml),
    not_yet("git_commit"),
    key("user_name", Shape::Text),
    key("bot_name", Shape::Text),
];

/// Channels that have a name already and nothing behind it yet.
const LATER_CHANNELS: [&str; 4] = ["discord", "webhook", "ntfy", "desktop"];

pub(super) fn named(key: &str) -> Option<&'static Key> {
    KEYS.iter().find(|known| known.name == key || known.name.replace('_', "-") == key)
}

pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let word = Some(key).filter(|key| key.len() < 60)?.to_lowercase().replace(['-', ' '], "_");
    let distance = |name: &str| strsim::damerau_levenshtein(name, &word);
    let near =
        KEYS.iter().map(|known| known.name).filter(|name| distance(name) <= 3 && distance(name) < name.len() / 2);
    near.min_by_key(|name| distance(name))
}

pub(super) fn is_text(key: &str) -> bool {
    named(key).is_some_and(|key| key.shape == Shape::Text)
}

pub(super) fn is_list(key: &str) -> bool {
    named(key).is_some_and(|key| key.shape == Shape::List)
}

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

pub(super) fn defaults(zone: Tz) -> Config {
    Config {
        timezone: zone,
        agent_client: ClientChoice::Auto,
        claude_command: "claude".into(),
        client_env: Vec::new(),
        model: None,
        thinking: Thinking::Adaptive,
        main_tools: crate::policy::default_main_tools(),
        spawned_tools: SpawnTools::default(),
        channel: ChannelKind::Console,
        timeout: minutes(30),
        inactivity_timeout: minutes(10),
        max_concurrent_runs: 4,
        shutdown_grace: Duration::from_secs(30),
        notify_chain_delay: minutes(60),
        require_sandbox: false,
        sandbox: SandboxChoice::Kernel,
        limits: Limits::default(),
        journal_retention: minutes(90 * 24 * 60),
        user_name: None,
        bot_name: "ollim-bot".into(),
        origins: BTreeMap::new(),
    }
}

/// Every setting from its sources; `None` where one of them has a fault, which is then noted.
pub(super) fn read(sources: &mut Sources, env: &BTreeMap<String, String>) -> Option<Config> {
    let (system, known) = match system_zone(env) {
        Some(zone) => (zone, true),
        None => (Tz::UTC, false),
    };
    let d = defaults(system);
    let mut origins = BTreeMap::new();
    let o = &mut origins;
    let second = Duration::from_secs(1);
    // Each is read before any is given up, so that a person sees every problem at once.
    let timezone = sources.read(o, "timezone", d.timezone, |v| v.zone());
    let agent_client = sources.read(o, "agent_client", d.agent_client, |v| v.one_of());
    let claude_command = sources.read(o, "claude_command", d.claude_command, command);
    let client_env = sources.read(o, "client_env", d.client_env, variables);
    let model = sources.read(o, "model", d.model, |v| optional(v, |v| v.model()));
    let thinking = sources.read(o, "thinking", d.thinking, |v| v.thinking());
    let main_tools = sources.read(o, "main_tools", d.main_tools, |v| v.patterns());
    let spawned_tools = sources.read(o, "tools", d.spawned_tools, spawned_tools);
    let channel = sources.read(o, "channel", d.channel, channel);
    let timeout = sources.read(o, "timeout", d.timeout, |v| v.span(second));
    let inactivity_timeout = sources.read(o, "inactivity_timeout", d.inactivity_timeout, |v| v.span(second));
    let max_concurrent_runs =
        sources.read(o, "max_concurrent_runs", d.max_concurrent_runs, |v| Ok(v.count(1)? as usize));
    let shutdown_grace = sources.read(o, "shutdown_grace", d.shutdown_grace, |v| v.span(Duration::ZERO));
    let notify_chain_delay = sources.read(o, "notify_chain_delay", d.notify_chain_delay, |v| v.span(second));
    let require_sandbox = sources.read(o, "require_sandbox", d.require_sandbox, |v| v.flag());
    let sandbox = sources.read(o, "sandbox", d.sandbox, |v| v.one_of());
    let limits = sources.read(o, "limits", d.limits, limits);
    let journal_retention = sources.read(o, "journal_retention", d.journal_retention, |v| v.span(minutes(60)));
    let user_name = sources.read(o, "user_name", d.user_name, |v| optional(v, name));
    let bot_name = sources.read(o, "bot_name", d.bot_name, name);
    if known {
        origins.entry("timezone").or_insert(Origin::System);
    }
    Some(Config {
        timezone: timezone?,
        agent_client: agent_client?,
        claude_command: claude_command?,
        client_env: client_env?,
        model: model?,
        thinking: thinking?,
        main_tools: main_tools?,
        spawned_tools: spawned_tools?,
        channel: channel?,
        timeout: timeout?,
        inactivity_timeout: inactivity_timeout?,
        max_concurrent_runs: max_concurrent_runs?,
        shutdown_grace: shutdown_grace?,
        notify_chain_delay: notify_chain_delay?,
        require_sandbox: require_sandbox?,
        sandbox: sandbox?,
        limits: limits?,
        journal_retention: journal_retention?,
        user_name: user_name?,
        bot_name: bot_name?,
        origins,
    })
}

pub(super) fn settings(config: &Config) -> Vec<Setting> {
    let span = |span: Duration| json!(span_text(span));
    // Taken apart without `..`, so that a new setting cannot be forgotten here.
    let Config {
        timezone,
        agent_client,
        claude_command,
        client_env,
        model,
        thinking,
        main_tools,
        spawned_tools,
        channel,
        timeout,
        inactivity_timeout,
        max_concurrent_runs,
        shutdown_grace,
        notify_chain_delay,
        require_sandbox,
        sandbox,
        limits,
        journal_retention,
        user_name,
        bot_name,
        origins: _,
    } = config;
    let values: [(&'static str, Json); 20] = [
        ("timezone", json!(timezone.name())),
        ("agent_client", json!(agent_client)),
        ("claude_command", json!(claude_command)),
        ("client_env", json!(client_env)),
        ("model", json!(model)),
        (
            "thinking",
            match thinking {
                Thinking::Adaptive => json!(true),
                Thinking::Disabled => json!(false),
                Thinking::Budget(tokens) => json!(tokens),
            },
        ),
        ("main_tools", json!(main_tools.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("tools", json!({ "subagents": { "tools": spawned_tools } })),
        ("channel", json!({ "kind": channel })),
        ("timeout", span(*timeout)),
        ("inactivity_timeout", span(*inactivity_timeout)),
        ("max_concurrent_runs", json!(max_concurrent_runs)),
        ("shutdown_grace", span(*shutdown_grace)),
        ("notify_chain_delay", span(*notify_chain_delay)),
        ("require_sandbox", json!(require_sandbox)),
        ("sandbox", json!(sandbox)),
        ("limits", limits_shown(limits)),
        ("journal_retention", span(*journal_retention)),
        ("user_name", json!(user_name)),
        ("bot_name", json!(bot_name)),
    ];
    values.into_iter().map(|(key, value)| Setting { key, value, origin: config.origin(key).clone() }).collect()
}

/// `TZ`, else what the system is set to.
fn system_zone(env: &BTreeMap<String, String>) -> Option<Tz> {
    let named = env.get("TZ").and_then(|name| name.trim_start_matches(':').parse().ok());
    named.or_else(|| iana_time_zone::get_timezone().ok()?.parse().ok())
}

fn fault(message: String, hint: &str) -> Fault {
    Fault { message, hint: Some(hint.into()), item: None }
}

fn optional<T>(value: &Value, read: impl Fn(&Value) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
    if *value.node == Node::Null { Ok(None) } else { read(value).map(Some) }
}

fn command(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    if text.trim().is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
        let message = format!("`{}` must be a command's name or path", value.name);
        return Err(fault(message, "for example `claude` or `/opt/claude/bin/claude`; options are not part of it"));
    }
    Ok(text)
}

/// A name is put into prompts: one short line.
fn name(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 64 || text.chars().any(char::is_control) {
        return Err(fault(format!("`{}` must be a name of at most 64 letters on one line", value.name), "shorten it"));
    }
    Ok(text.to_owned())
}

/// Names of environment variables. Our own are never handed on: the run's token is one of them.
fn variables(value: &Value) -> Result<Vec<String>, Fault> {
    let names = value.texts()?;
    for (item, name) in names.iter().enumerate() {
        let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = format!("{} is not the name of a variable", crate::definition::quoted(name));
            return Err(Fault { item: Some(item), ..fault(message, "write names only, for example `- HTTPS_PROXY`") });
        }
        if name.starts_with("OLLIM_") {
            let message = format!("`{name}` is ollim-bot's own and cannot be handed on");
            return Err(Fault { item: Some(item), ..fault(message, "remove it from the list") });
        }
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// `tools: { subagents: { tools: { allow: […], deny: […] } } }`.
fn spawned_tools(value: &Value) -> Result<SpawnTools, Fault> {
    let hint =
        "write `tools: { subagents: { tools: { allow: [Read], deny: [WebFetch] } } }`; each list may be left out";
    let mut node = value.node;
    for (within, key) in [("tools", "subagents"), ("tools.subagents", "tools")] {
        let Node::Map(entries) = node else { return Err(fault(format!("`{within}` must have `{key}`"), hint)) };
        if let Some(other) = entries.iter().find(|entry| entry.key != key) {
            let message = format!("unknown setting {} of `{within}`", crate::definition::quoted(&other.key));
            return Err(fault(message, hint));
        }
        let Some(entry) = entries.first() else { return Ok(SpawnTools::default()) };
        node = &entry.value;
    }
    let Node::Map(entries) = node else {
        return Err(fault("`tools.subagents.tools` must have `allow`, `deny` or both".into(), hint));
    };
    let mut tools = SpawnTools::default();
    for entry in entries {
        let list = match &*entry.key {
            "allow" => &mut tools.allow,
            "deny" => &mut tools.deny,
            other => {
                let message =
                    format!("unknown setting {} of `tools.subagents.tools`", crate::definition::quoted(other));
                return Err(fault(message, hint));
            }
        };
        if list.is_some() {
            return Err(fault(format!("`tools.subagents.tools.{}` is set twice", entry.key), "keep one of the two"));
        }
        let Node::List(items) = &entry.value else {
            return Err(fault(format!("`tools.subagents.tools.{}` must be a list", entry.key), hint));
        };
        let pattern = |item: &Node| match item {
            Node::Text(text) => ToolPattern::parse_for_job(text)
                .map_err(|error| fault(error.to_string(), "write `Tool` or `Tool(what)`")),
            other => Err(fault(format!("a tool pattern is a text, not {}", other.describe()), hint)),
        };
        *list = Some(items.iter().map(pattern).collect::<Result<_, _>>()?);
    }
    Ok(tools)
}

/// `limits: { memory: 4GiB, processes: 512, disk: 2GiB, cpus: 1.5 }`.
fn limits(value: &Value) -> Result<Limits, Fault> {
    let hint = "write `limits: { memory: 4GiB, processes: 512, disk: 2GiB, cpus: 1.5 }`; each may be left out";
    let Node::Map(entries) = value.node else { return Err(fault("`limits` must name what it limits".into(), hint)) };
    let mut limits = Limits::default();
    for (index, entry) in entries.iter().enumerate() {
        if entries[..index].iter().any(|earlier| earlier.key == entry.key) {
            return Err(fault(format!("`limits.{}` is set twice", entry.key), "keep one of the two"));
        }
        let wrong = |what: &str| Err(fault(format!("`limits.{}` must be {what}", entry.key), hint));
        match (&*entry.key, &entry.value) {
            (key @ ("memory" | "disk"), node) => match size(node) {
                Some(bytes) if key == "memory" => limits.memory = bytes,
                Some(bytes) => limits.disk = bytes,
                None => return wrong("a size of at least 64MiB"),
            },
            ("processes", Node::Int(n)) => match u32::try_from(*n) {
                Ok(n) if n >= LEAST_PROCESSES => limits.processes = n,
                _ => return wrong("at least 32"),
            },
            ("processes", _) => return wrong("a whole number"),
            ("cpus", Node::Null) => limits.cpus = None,
            ("cpus", node) => match number(node) {
                Some(cpus) if (0.05..=4096.0).contains(&cpus) => limits.cpus = Some(cpus),
                _ => return wrong("a number of processors from 0.05"),
            },
            (other, _) => {
                return Err(fault(format!("unknown setting {} of `limits`", crate::definition::quoted(other)), hint));
            }
        }
    }
    Ok(limits)
}

/// What a client needs for itself.
const LEAST_PROCESSES: u32 = 32;

/// `512MiB`, `4GB`: at least what a client needs for itself.
fn size(node: &Node) -> Option<u64> {
    let Node::Text(text) = node else { return None };
    text.parse::<ByteSize>().ok().map(|size| size.as_u64()).filter(|bytes| *bytes >= 64 << 20)
}

fn number(node: &Node) -> Option<f64> {
    match node {
        #[allow(clippy::cast_precision_loss)]
        Node::Int(n) => Some(*n as f64),
        Node::Float(n) => Some(*n),
        _ => None,
    }
}

/// As it would be written.
fn limits_shown(limits: &Limits) -> Json {
    let Limits { memory, processes, disk, cpus } = *limits;
    let size = |bytes| ByteSize(bytes).to_string().replace(' ', "");
    json!({ "memory": size(memory), "processes": processes, "disk": size(disk), "cpus": cpus })
}

/// `channel: console`, or `channel: { kind: console }`.
fn channel(value: &Value) -> Result<ChannelKind, Fault> {
    let hint = "write `channel: { kind: console }`";
    let kind = match value.node {
        Node::Map(entries) => match entries.as_slice() {
            [kind] if kind.key == "kind" => &kind.value,
            _ => {
                let other = entries.iter().find(|entry| entry.key != "kind");
                let message = match other {
                    Some(other) => format!("unknown setting {} of `channel`", crate::definition::quoted(&other.key)),
                    None => "`channel` needs one `kind`".into(),
                };
                return Err(fault(message, hint));
            }
        },
        other => other,
    };
    match kind {
        Node::Text(kind) if kind == "console" => Ok(ChannelKind::Console),
        Node::Text(kind) if LATER_CHANNELS.contains(&&**kind) => {
            Err(fault(format!("the channel `{kind}` is not supported by this version"), hint))
        }
        _ => Err(fault("`channel.kind` must be `console`".into(), hint)),
    }
}
