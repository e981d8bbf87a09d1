//! Reads the values that only settings have.

use agent_sandbox::Limits;
use bytesize::ByteSize;
use serde_json::{Value as Json, json};

use crate::definition::Budget;
use crate::definition::frontmatter::Node;
use crate::definition::values::{Fault, HOST_NAMES, Value, is_host_name};
use crate::policy::{BOT, ToolLists, ToolPattern};

pub(super) fn fault(message: String, hint: &str) -> Fault {
    Fault { message, hint: Some(hint.into()), item: None }
}

/// Reads a value with `read`; `None` for a key without a value.
pub(super) fn optional<T>(value: &Value, read: impl Fn(&Value) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
    if *value.node == Node::Null { Ok(None) } else { read(value).map(Some) }
}

/// Reads the name or path of a command.
pub(super) fn command(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    if text.trim().is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
        let message = format!("`{}` must be a command's name or path", value.name);
        return Err(fault(message, "for example `claude` or `/opt/claude/bin/claude`; options are not part of it"));
    }
    Ok(text)
}

/// Reads the address of a journal's server.
pub(super) fn server(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    // Connecting checks the rest.
    if ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Ok(text);
    }
    Err(fault(format!("`{}` is no address of a PostgreSQL server", value.name), "write `postgres://USER@HOST/NAME`"))
}

/// Reads the address of a site and normalizes it as browsers do: `https://bot.example.org`.
pub(super) fn site(value: &Value) -> Result<String, Fault> {
    let text = value.web_address()?.to_ascii_lowercase();
    let text = text.strip_suffix('/').unwrap_or(&text);
    let (scheme, host) = text.split_once("://").unwrap_or_default();
    if host.contains(['/', '?', '#', '@']) {
        let message = format!("`{}` must be a scheme and a host alone, without a path", value.name);
        return Err(fault(message, "give the page a name of its own, such as `https://bot.example.org`"));
    }
    let port = if scheme == "https" { ":443" } else { ":80" };
    Ok(format!("{scheme}://{}", host.strip_suffix(port).unwrap_or(host)))
}

/// Reads the name of a host.
pub(super) fn host_name(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    if is_host_name(&text) {
        return Ok(text);
    }
    Err(fault(format!("`{}` is no name of a host", value.name), HOST_NAMES))
}

/// Reads a name for prompts: one short line.
pub(super) fn name(value: &Value) -> Result<String, Fault> {
    let text = value.text()?;
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 64 || text.chars().any(char::is_control) {
        return Err(fault(format!("`{}` must be a name of at most 64 letters on one line", value.name), "shorten it"));
    }
    Ok(text.to_owned())
}

/// Reads names of environment variables. Our own are refused, since the run's token is one of them.
pub(super) fn variables(value: &Value) -> Result<Vec<String>, Fault> {
    let names = value.texts()?;
    for (item, name) in names.iter().enumerate() {
        variable(name).map_err(|fault| Fault { item: Some(item), ..fault })?;
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Checks the name of an environment variable that programs may receive.
pub(super) fn variable(name: &str) -> Result<(), Fault> {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let message = format!("{} is not the name of a variable", crate::definition::quoted(name));
        return Err(fault(message, "write names only, for example `- HTTPS_PROXY`"));
    }
    if name.starts_with("OLLIM_") {
        return Err(fault(format!("`{name}` is ollim-bot's own and cannot be handed on"), "remove it from the list"));
    }
    Ok(())
}

/// Reads `tools: { subagents: { tools: { allow: […], deny: […] } } }`.
pub(super) fn spawned_tools(value: &Value) -> Result<ToolLists, Fault> {
    let hint =
        "write `tools: { subagents: { tools: { allow: [Read], deny: [WebFetch] } } }`; each list may be left out";
    let mut node = value.node;
    for (within, key) in [("tools", "subagents"), ("tools.subagents", "tools")] {
        let Node::Map(entries) = node else { return Err(fault(format!("`{within}` must have `{key}`"), hint)) };
        if let Some(other) = entries.iter().find(|entry| entry.key != key) {
            let message = format!("unknown setting {} of `{within}`", crate::definition::quoted(&other.key));
            return Err(fault(message, hint));
        }
        let Some(entry) = entries.first() else { return Ok(ToolLists::default()) };
        node = &entry.value;
    }
    let Node::Map(entries) = node else {
        return Err(fault("`tools.subagents.tools` must have `allow`, `deny` or both".into(), hint));
    };
    let mut tools = ToolLists::default();
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
            Node::Text(text) => ToolPattern::parse_for_job(text, &BOT)
                .map_err(|error| fault(error.to_string(), "write `Tool` or `Tool(what)`")),
            other => Err(fault(format!("a tool pattern is a text, not {}", other.describe()), hint)),
        };
        *list = Some(items.iter().map(pattern).collect::<Result<_, _>>()?);
    }
    Ok(tools)
}

/// Reads `budget: { day: 5.00, month: 60.00, run: 0.50, tokens_day: 2000000 }`.
pub(super) fn budget(value: &Value) -> Result<Budget, Fault> {
    let hint = "write `budget: { day: 5.00, month: 60.00, run: 0.50, tokens_day: 2000000 }`; each may be left out";
    let Node::Map(entries) = value.node else { return Err(fault("`budget` must name what it caps".into(), hint)) };
    let mut budget = Budget::default();
    for (index, entry) in entries.iter().enumerate() {
        if entries[..index].iter().any(|earlier| earlier.key == entry.key) {
            return Err(fault(format!("`budget.{}` is set twice", entry.key), "keep one of the two"));
        }
        let wrong = |what: &str| fault(format!("`budget.{}` must be {what}", entry.key), hint);
        let dollars = || {
            let amount = number(&entry.value).filter(|amount| amount.is_finite() && *amount > 0.0);
            amount.ok_or_else(|| wrong("an amount of dollars above zero"))
        };
        match (&*entry.key, &entry.value) {
            ("day", _) => budget.day = Some(dollars()?),
            ("month", _) => budget.month = Some(dollars()?),
            ("run", _) => budget.run = Some(dollars()?),
            ("tokens_day", Node::Int(n)) if *n > 0 => {
                budget.tokens_day = Some(u64::try_from(*n).map_err(|_| wrong("a number of tokens"))?);
            }
            ("tokens_day", _) => return Err(wrong("a number of tokens above zero")),
            (other, _) => {
                return Err(fault(format!("unknown setting {} of `budget`", crate::definition::quoted(other)), hint));
            }
        }
    }
    Ok(budget)
}

/// Returns the value as it would be written.
pub(super) fn budget_shown(budget: &Budget) -> Json {
    let Budget { day, month, run, tokens_day } = *budget;
    let mut shown = serde_json::Map::new();
    let dollars = [("day", day), ("month", month), ("run", run)];
    shown.extend(dollars.into_iter().filter_map(|(name, usd)| Some((name.to_owned(), json!(usd?)))));
    shown.extend(tokens_day.map(|tokens| ("tokens_day".to_owned(), json!(tokens))));
    if shown.is_empty() { Json::Null } else { Json::Object(shown) }
}

/// Reads `limits: { memory: 4GiB, processes: 512, disk: 2GiB, cpus: 1.5 }`.
pub(super) fn limits(value: &Value) -> Result<Limits, Fault> {
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

/// Minimum of `processes`: a client needs as many for itself.
const LEAST_PROCESSES: u32 = 32;

/// Reads a size: `512MiB`, `4GB`. The minimum is what a client needs for itself.
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

/// Returns the value as it would be written.
pub(super) fn limits_shown(limits: &Limits) -> Json {
    let Limits { memory, processes, disk, cpus } = *limits;
    let size = |bytes| ByteSize(bytes).to_string().replace(' ', "");
    json!({ "memory": size(memory), "processes": processes, "disk": size(disk), "cpus": cpus })
}
