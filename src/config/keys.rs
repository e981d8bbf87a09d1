//! The table of settings. Each row generates a setting's storage, and its reading, display and documentation.
//!
//! A row is
//!
//! ```text
//! /// One line of help.
//! name: Type = default, reader, show, { attributes }
//! ```
//!
//! The reader converts a [`Value`] into the type; `show` converts the type into JSON. The attributes are those of [`Key`].

use std::collections::BTreeMap;
use std::time::Duration;

use agent_sandbox::Limits;
use chrono_tz::Tz;
use serde_json::{Value as Json, json};

use super::channels::{CONSOLE, ChannelSettings, QuietHours, channels, channels_shown, quiet_hours, quiet_hours_shown};
use super::listen::{ListenAddress, listen_address, local_address};
use super::mcp_servers::{McpServer, mcp_servers, mcp_servers_shown};
use super::values::{
    budget, budget_shown, command, host_name, limits, limits_shown, name, optional, server, site, spawned_tools,
    variables,
};
use super::{ClientChoice, Origin, SandboxChoice};
use crate::definition::fields::FieldType;
use crate::definition::values::{Fault, Value, span_text};
use crate::definition::{Budget, Thinking};
use crate::policy::{ToolLists, ToolPattern, default_main_tools};

/// A setting.
pub struct Key {
    /// Its key in `config.yaml`.
    pub name: &'static str,
    /// One line for the documentation.
    pub help: &'static str,
    /// Further lines for the documentation.
    pub details: &'static str,
    /// A value as written in `config.yaml`: the default, if that is a single value.
    pub example: &'static str,
    /// The default in words, if it is not a single value.
    pub unset: &'static str,
    /// How the text of a variable is read.
    pub shape: Shape,
    /// Reads a value into the settings.
    pub(super) read: fn(&Value, &mut Config) -> Result<(), Fault>,
    /// Returns the value, as it would be written; `null` if not set.
    pub show: fn(&Config) -> Json,
}

impl Key {
    /// The values of most settings. A row sets `name`, `help`, `read` and `show`.
    const BASE: Self = Self {
        name: "",
        help: "",
        details: "",
        example: "",
        unset: "",
        shape: Shape::Yaml,
        read: |_, _| Ok(()),
        show: |_| Json::Null,
    };
}

/// How the text of a variable is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As text, without quotes.
    Text,
    /// As a list `[a, b]`, or as a single text.
    List,
    /// As YAML.
    Yaml,
}

/// Names reserved for settings of a later version.
pub(super) const LATER: [&str; 1] = ["git_commit"];

macro_rules! settings {
    ($(
        #[doc = $help:literal]
        $name:ident: $type:ty = $default:expr, $read:expr, $show:expr, { $($attributes:tt)* }
    )*) => {
        /// The effective settings.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = $help] pub $name: $type,)*
            pub(super) origins: BTreeMap<&'static str, Origin>,
        }

        impl Config {
            /// Returns the defaults. `zone` is the system's time zone.
            #[must_use]
            pub fn defaults(zone: Tz) -> Self {
                Self { timezone: zone, ..Self { origins: BTreeMap::new(), $($name: $default,)* } }
            }
        }

        /// Every setting, in the order of the documentation.
        #[allow(clippy::needless_update, reason = "a row may have every attribute")]
        pub static KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            help: $help,
            read: |value, config| {
                config.$name = $read(value)?;
                Ok(())
            },
            show: |config| $show(&config.$name),
            $($attributes)*
            ..Key::BASE
        }),*];
    };
}

settings! {
    /// The default time zone of routines and reminders, and the zone of displayed times.
    timezone: Tz = Tz::UTC, |v: &Value| v.zone(), |zone: &Tz| json!(zone.name()), {
        shape: Shape::Text, unset: "the system's, else UTC", example: "Europe/Vienna",
    }
    /// The client that runs jobs: `claude`, `notify`, or `auto`.
    agent_client: ClientChoice = ClientChoice::Auto, |v: &Value| v.one_of(), plain, {
        shape: Shape::Text, example: "auto",
        details: "`claude` is the agent. `notify` has no model: your own text is delivered to you. `auto` is `claude` where it is \
                  installed and logged in, else `notify`; a job that needs an agent, or has had one, waits for it then.",
    }
    /// The command of the agent client: a name on PATH, or a path.
    claude_command: String = "claude".into(), command, plain, {
        shape: Shape::Text, example: "claude", details: "The variable OLLIM_CLAUDE sets it too.",
    }
    /// Additional variables that the agent gets from the service's environment.
    client_env: Vec<String> = Vec::new(), variables, plain, { shape: Shape::List, example: "[]" , }
    /// The model of the main session, and the default model of jobs.
    model: Option<String> = None, |v: &Value| optional(v, |v| v.model()), plain, {
        shape: Shape::Text, unset: "the client's own default", example: "sonnet",
    }
    /// How the main session's model thinks: true, false, or a number of tokens.
    thinking: Thinking = Thinking::Adaptive, |v: &Value| v.thinking(), shown, { example: "true", }
    /// Tools that the main session has.
    main_tools: Vec<ToolPattern> = default_main_tools(), |v: &Value| v.patterns(), shown, {
        shape: Shape::List, unset: "`ollim-bot config` shows it", example: "[Read, WebSearch]",
        details: "See [the patterns](policy.md).",
    }
    /// Additional tools of the main session whose calls wait for your answer.
    main_ask_tools: Vec<ToolPattern> = Vec::new(), |v: &Value| v.patterns(), shown, {
        shape: Shape::List, unset: "it asks about nothing", example: "[mcp__calendar]",
        details: "What `main_tools` grants is not asked about: to be asked about `Bash(git push *)`, say `main_tools` without `Bash`. \
            Silence for ten minutes is a no. See [questions](chat.md#questions).",
    }
    /// Tools that spawned agents have, and tools that they do not have.
    tools: ToolLists = ToolLists::default(), spawned_tools, |tools: &ToolLists| json!({ "subagents": { "tools": tools } }), {
        unset: "what the caller has", example: "{ subagents: { tools: { deny: [WebFetch] } } }",
        details: "A spawn's own `allow` replaces this one, its `deny` is added.",
    }
    /// Your own MCP servers. Rules can grant their tools to jobs and the main session.
    mcp_servers: Vec<McpServer> = Vec::new(), mcp_servers, |servers: &Vec<McpServer>| mcp_servers_shown(servers), {
        unset: "none", example: "{ calendar: { command: [uvx, my-calendar-server], env: [CALENDAR_TOKEN] } }",
        details: "A job has of them what its rules grant, `mcp__calendar__list_events` for one. See [MCP servers](mcp.md).",
    }
    /// Channels by which messages reach you, in addition to the terminal of `ollim-bot run`.
    channels: Vec<ChannelSettings> = Vec::new(), channels, |channels: &Vec<ChannelSettings>| channels_shown(channels), {
        unset: "none", example: "{ phone: { kind: ntfy, url: https://ntfy.sh/a-topic-that-nobody-guesses } }",
        details: "See [channels](channels.md). `ollim-bot inbox` shows every message, wherever it went.",
    }
    /// The channel for messages of jobs that name no channel.
    default_channel: String = CONSOLE.into(), |v: &Value| v.channel(), plain, {
        shape: Shape::Text, example: "console", details: "`console` is the terminal of `ollim-bot run`.",
    }
    /// The channel that additionally gets critical messages.
    critical_channel: Option<String> = None, |v: &Value| optional(v, |v| v.channel()), plain, {
        shape: Shape::Text, unset: "none", example: "console",
    }
    /// The hours in which messages wait, except critical ones. Waiting messages come as one at the end.
    quiet_hours: Option<QuietHours> = None, |v: &Value| optional(v, quiet_hours), |hours: &Option<QuietHours>| {
        hours.as_ref().map_or(Json::Null, quiet_hours_shown)
    }, {
        unset: "none", example: "{ from: \"22:00\", to: \"07:30\" }", details: "Times of day in your own zone. A channel may have its own.",
    }
    /// How long a channel may fail before the next one takes over its messages.
    failover_after: Duration = minutes(5), |v: &Value| v.span(SECOND), span, { example: "5m", }
    /// Maximum time of a run whose definition sets no `timeout`.
    timeout: Duration = minutes(30), |v: &Value| v.span(SECOND), span, { example: "30m", }
    /// Maximum time that the agent may be silent in a run.
    inactivity_timeout: Duration = minutes(10), |v: &Value| v.span(SECOND), span, { example: "10m", }
    /// How long the main session's client waits for your next message before it ends.
    main_idle_timeout: Duration = minutes(15), |v: &Value| v.span(SECOND), span, {
        example: "15m",
        details: "While it waits, an answer begins without the start of a client, and the client keeps its memory.",
    }
    /// Maximum number of background runs at once. Further due jobs wait in order.
    max_concurrent_runs: usize = 4, |v: &Value| v.count(1).map(|n| n as usize), plain, {
        example: "4",
        details: "Agents that were spawned, and jobs that jobs have made, take at most half of it, rounded up; the rest is for the \
                  jobs that you wrote. A made job that you fire by hand may take any free one.",
    }
    /// How long runs may continue after a request to stop the service.
    shutdown_grace: Duration = Duration::from_secs(30), |v: &Value| v.span(Duration::ZERO), span, { example: "30s", }
    /// After how many failures in a row of a routine the bot notifies you, if its file does not set it.
    alert_after: u32 = 1, |v: &Value| v.count(1), plain, { example: "1", details: "`1`: the first one is told." , }
    /// Time until the next follow-up of a chain under `notify`.
    notify_chain_delay: Duration = minutes(60), |v: &Value| v.span(SECOND), span, { example: "1h", }
    /// Refuse background jobs if the kernel cannot enforce the whole sandbox (Linux before 6.12).
    require_sandbox: bool = false, |v: &Value| v.flag(), plain, { example: "false", }
    /// What enforces `Bash(...)` rules: `kernel` or `none`.
    sandbox: SandboxChoice = SandboxChoice::Kernel, |v: &Value| v.one_of(), plain, {
        shape: Shape::Text, example: "kernel",
        details: "`kernel`: jobs that have such rules are refused where it cannot (Linux before 5.13, or Landlock off). `none`: they \
                  run there all the same, and nothing holds what their programs do.",
    }
    /// Limits for all processes of one run together.
    limits: Limits = Limits::default(), limits, limits_shown, {
        example: "{ memory: 8GiB, processes: 1024, disk: 4GiB }",
        details: "Memory, processes and threads, and bytes in the run's own folder. A run that takes more is ended and says so. \
                  `cpus: 1.5` needs a delegated control group (systemd: `Delegate=yes`).",
    }
    /// Caps on the cost of everything that the bot runs, including the conversation with you.
    budget: Budget = Budget::default(), budget, budget_shown, {
        unset: "no caps", example: "{ day: 5.00, month: 60.00 }",
        details: "US dollars of a `day` and a `month`; `run`: of a run whose file sets no `max_cost_usd`, else a tenth of `day` or a hundredth \
                  of `month`. `tokens_day: 2000000` is for subscriptions. At 80 % you are told, at 100 % jobs are skipped. See [costs](costs.md).",
    }
    /// Where the journal is: `postgres://USER@HOST/NAME` on a server that several hosts share.
    journal: Option<String> = None, |v: &Value| optional(v, server), plain, {
        shape: Shape::Text, unset: "a file in `state/`", example: "postgres://ollim@db.example.org/ollim?sslmode=verify-full",
        details: "The password is JOURNAL_PASSWORD in `.env`. See [several hosts](several-hosts.md).",
    }
    /// The name of this host among the hosts that share a journal.
    host: Option<String> = None, |v: &Value| optional(v, host_name), plain, {
        shape: Shape::Text, unset: "the machine's name", example: "attic",
    }
    /// Labels of this host. Jobs can name them in `hosts`.
    host_labels: Vec<String> = Vec::new(), |v: &Value| v.hosts(), plain, {
        shape: Shape::List, unset: "none", example: "[gpu, home]",
    }
    /// Whether hosts that share a journal synchronize routines, reminders, webhooks, agents and skills through it.
    share_files: bool = true, |v: &Value| v.flag(), plain, {
        example: "true",
        details: "`false` where something else keeps the folders equal, or where each host is to have its own. See [several hosts](several-hosts.md#files).",
    }
    /// How long the journal keeps ended runs.
    journal_retention: Duration = minutes(90 * 24 * 60), |v: &Value| v.span(minutes(60)), span, {
        example: "90d",
        details: "What a cap of the day or of the month still counts is kept until then, whatever stands here.",
    }
    /// The URL of a monitor, such as healthchecks.io, that the service calls every minute.
    heartbeat_url: Option<String> = None, |v: &Value| optional(v, |v| v.web_address()), plain, {
        shape: Shape::Text, unset: "none", example: "https://hc-ping.com/0f3c5d0e-…",
        details: "`URL/start` at the start, `URL` each minute, `URL/fail` when nothing can fire, `URL/log` when it was told to end.",
    }
    /// The address on which the page listens: an address of this machine, or a Unix socket.
    web: Option<ListenAddress> = None, |v: &Value| optional(v, local_address), plain, {
        shape: Shape::Text, unset: "there is no page", example: "127.0.0.1:8080",
        details: "`ollim-bot web` prints a link that logs a browser in. See [the page](web.md).",
    }
    /// The address at which other machines reach the page, through a proxy of yours.
    web_url: Option<String> = None, |v: &Value| optional(v, site), plain, {
        shape: Shape::Text, unset: "by this machine alone", example: "https://bot.example.org",
    }
    /// The address for deliveries of webhooks: `127.0.0.1:PORT`, or the path of a Unix socket.
    webhooks: Option<ListenAddress> = None, |v: &Value| optional(v, listen_address), plain, {
        shape: Shape::Text, unset: "nowhere", example: "127.0.0.1:8787",
        details: "Speaks HTTP, without TLS: put a reverse proxy or a tunnel before it. See [webhooks](webhooks.md).",
    }
    /// Your name in prompts.
    user_name: Option<String> = None, |v: &Value| optional(v, name), plain, {
        shape: Shape::Text, unset: "none", example: "Ada",
    }
    /// The bot's name in prompts.
    bot_name: String = "ollim-bot".into(), name, plain, {
        shape: Shape::Text, example: "ollim-bot",
        details: "What the bot is to be like: write it into persona.md, beside config.yaml.",
    }
}

const SECOND: Duration = Duration::from_secs(1);

const fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

fn plain(value: &impl serde::Serialize) -> Json {
    json!(value)
}

fn span(span: &Duration) -> Json {
    json!(span_text(*span))
}

/// Returns the value as a definition's field of this type would be shown.
fn shown(value: &impl FieldType) -> Json {
    value.show().map_or(Json::Null, |value| value.json())
}

/// The meaning of a key.
pub(super) enum KeyMeaning {
    Key(&'static Key),
    /// A setting of a later version.
    Later(&'static str),
    Unknown,
}

pub(super) fn named(key: &str) -> KeyMeaning {
    let same = |name: &str| name == key || name.replace('_', "-") == key;
    match (KEYS.iter().find(|known| same(known.name)), LATER.into_iter().find(|name| same(name))) {
        (Some(known), _) => KeyMeaning::Key(known),
        (None, Some(later)) => KeyMeaning::Later(later),
        (None, None) => KeyMeaning::Unknown,
    }
}

/// Returns the setting that an unknown key probably means.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let word = Some(key).filter(|key| key.len() < 60)?.to_lowercase().replace(['-', ' '], "_");
    let distance = |name: &str| strsim::damerau_levenshtein(name, &word);
    let names = KEYS.iter().map(|known| known.name).chain(LATER);
    names.filter(|name| distance(name) <= 3 && distance(name) < name.len() / 2).min_by_key(|name| distance(name))
}
