//! Converts YAML values to the values of fields. Nothing is rounded, clamped or guessed: an invalid value yields a
//! [`Fault`] that names the valid ones.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, LocalResult, NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::cron::check_cron;
use super::fields::words;
use super::frontmatter::{Block, Node, YamlPath};
use super::problem::quoted;
use super::skill::is_name as is_skill_name;
use super::{DefinitionId, Expect, FollowedEnd, Follows, Need, PayloadSchema, Thinking, WatchedFolder};
use crate::policy::{AskTerms, BOT, PatternError, ToolPattern};

/// Maximum of any count (turns, attempts, follow-ups, tokens): above any use, and sums do not overflow.
const HIGHEST_COUNT: u32 = 1_000_000;

/// Maximum length of a command line, in bytes.
const LONGEST_LINE: usize = 16 * 1024;

/// Maximum number of jobs in `context_from`.
const MAX_JOBS: usize = 10;

/// Maximum of `jitter`.
const LONGEST_JITTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A problem with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub message: String,
    pub hint: Option<String>,
    /// Index (from 0) of the item in a list or of the entry in a mapping; `None` for the whole value.
    pub item: Option<usize>,
}

impl Fault {
    /// Creates the fault of a field that cannot be written.
    pub(super) fn of(field: &str, why: &str) -> Self {
        Self { message: format!("`{field}` cannot be written: {why}"), hint: None, item: None }
    }

    fn new(message: String, hint: impl Into<String>) -> Self {
        Self { message, hint: Some(hint.into()), item: None }
    }
}

/// A value, its name for messages, and its location.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    pub name: &'a str,
    pub node: &'a Node,
    pub block: &'a Block,
    /// The index of the file's entry, then the indices within it.
    pub path: &'a [usize],
    /// The zone of local times.
    pub zone: Tz,
}

/// Maximum of any span: beyond any use, and far below the overflow of a clock.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

impl<'a> Value<'a> {
    fn must_be(&self, what: &str, hint: impl Into<String>) -> Fault {
        let found = match self.node {
            Node::Null => return self.nothing(),
            Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Text(_) => quoted(&self.scalar().unwrap_or_default()),
            other => other.describe().to_owned(),
        };
        Fault::new(format!("`{}` must be {what}, found {found}", self.name), hint)
    }

    fn nothing(&self) -> Fault {
        Fault::new(format!("`{}` has no value", self.name), "give it a value, or remove the line")
    }

    /// Returns a scalar as written.
    fn scalar(&self) -> Option<Cow<'a, str>> {
        match self.node {
            Node::Text(text) => Some(Cow::Borrowed(text)),
            // YAML reads `1234e567`, `0x10` and `True` as other types.
            Node::Bool(_) | Node::Int(_) | Node::Float(_) => self.block.raw(self.path).map(Cow::Owned),
            _ => None,
        }
    }

    /// Returns its line and column in the file. `item` selects an item of a list.
    pub(crate) fn line_and_column(&self, item: Option<usize>) -> (u32, u32) {
        self.block.locate(&YamlPath::Value(self.path.iter().copied().chain(item).collect()))
    }

    /// Reads any scalar as text.
    pub(crate) fn text(&self) -> Result<String, Fault> {
        self.letters().map(Cow::into_owned)
    }

    /// Reads any scalar as text, without a copy if possible.
    pub(crate) fn letters(&self) -> Result<Cow<'a, str>, Fault> {
        self.scalar().ok_or_else(|| self.must_be("text", format!("write `{}: …` on one line", self.name)))
    }

    /// Reads a text as one line. Blanks replace control characters, which could reach terminals.
    pub(crate) fn line(&self) -> Result<String, Fault> {
        let text = self.letters()?;
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        Ok(words.collect::<Vec<_>>().join(" "))
    }

    /// Reads a command line for the shell; it may have several lines.
    pub(crate) fn shell_line(&self) -> Result<String, Fault> {
        let text = self.letters()?;
        let text = text.trim();
        let example = format!("write `{}: 'test -s inbox.txt'`", self.name);
        match text {
            "" => Err(self.must_be("a command", example)),
            _ if text.contains('\0') => Err(Fault::new(format!("`{}` contains a NUL character", self.name), example)),
            _ if text.len() > LONGEST_LINE => Err(Fault::new(
                format!("`{}` is over {} KiB", self.name, LONGEST_LINE / 1024),
                "put the rest into a script in work/, and grant it by a rule",
            )),
            _ => Ok(text.to_owned()),
        }
    }

    /// Reads the delivery that a job must make.
    pub(crate) fn expect(&self) -> Result<Expect, Fault> {
        let text = self.letters()?;
        Expect::parse(&text).ok_or_else(|| {
            let hint = format!("write `{}: file notes/today.md`: a path within work/", self.name);
            self.must_be("`message`, `report` or `file PATH`", hint)
        })
    }

    /// Reads the identity of another definition; `None` if blank.
    pub(crate) fn identity(&self) -> Result<Option<DefinitionId>, Fault> {
        let text = self.letters()?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(DefinitionId::new))
    }

    /// Reads a cron expression with at least one occurrence.
    pub(crate) fn cron(&self) -> Result<String, Fault> {
        let text = self.letters()?;
        let text = text.trim();
        check_cron(text)
            .map_err(|error| Fault::new(format!("bad `{}` {}: {error}", self.name, quoted(text)), error.hint()))?;
        Ok(text.to_owned())
    }

    /// Reads `true` or `false`, or the older spellings `yes`, `no`, `on`, `off`.
    pub(crate) fn flag(&self) -> Result<bool, Fault> {
        let word = match self.node {
            Node::Bool(value) => return Ok(*value),
            Node::Text(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        match word.as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(self.must_be("`true` or `false`", format!("write `{}: true` or `{0}: false`", self.name))),
        }
    }

    /// Reads the name of an environment variable.
    pub(crate) fn variable(&self) -> Result<String, Fault> {
        let text = self.text()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(plain) {
            true => Ok(text),
            false => {
                Err(self.must_be("the name of a variable", format!("write `{}: GITHUB_WEBHOOK_SECRET`", self.name)))
            }
        }
    }

    /// Reads a JSON Schema of an object.
    pub(crate) fn payload_schema(&self) -> Result<PayloadSchema, Fault> {
        let example = format!("write `{}: {{ type: object, properties: {{ ref: {{ type: string }} }} }}`", self.name);
        let Some(json) = Some(self.node).filter(|node| matches!(node, Node::Map(_))).and_then(Node::json) else {
            return Err(self.must_be("a JSON Schema of an object", example));
        };
        PayloadSchema::new(json).map_err(|why| Fault::new(format!("`{}` is no JSON Schema: {why}", self.name), example))
    }

    /// Reads a whole number from `least` to [`HIGHEST_COUNT`].
    pub(crate) fn count(&self, least: u32) -> Result<u32, Fault> {
        let wrong = match self.node {
            Node::Int(n) if *n < 0 => format!("cannot be negative, found {n}"),
            Node::Int(n) => match u32::try_from(*n) {
                Ok(n) if n >= least && n <= HIGHEST_COUNT => return Ok(n),
                Ok(n) if n < least => format!("must be at least {least}, found {n}"),
                _ => {
                    let hint = format!("write `{}: {HIGHEST_COUNT}` or less", self.name);
                    return Err(Fault::new(format!("`{}` is too large: {n}", self.name), hint));
                }
            },
            _ => return Err(self.must_be("a whole number", self.count_hint(least))),
        };
        Err(Fault::new(format!("`{}` {wrong}", self.name), self.count_hint(least)))
    }

    fn count_hint(&self, least: u32) -> String {
        format!("write `{}: {least}` or more", self.name)
    }

    /// Reads an amount of US dollars: finite and above zero.
    pub(crate) fn dollars(&self) -> Result<f64, Fault> {
        let amount = match self.node {
            #[allow(clippy::cast_precision_loss)]
            Node::Int(n) => *n as f64,
            Node::Float(n) => *n,
            _ => f64::NAN,
        };
        let hint = format!("write `{}: 0.50`", self.name);
        if amount.is_finite() && amount > 0.0 {
            Ok(amount)
        } else if amount < 0.0 {
            Err(Fault::new(format!("`{}` cannot be negative, found {amount}", self.name), hint))
        } else {
            Err(self.must_be("an amount of dollars above zero", hint))
        }
    }

    /// Reads a web address, `http://` or `https://`.
    pub(crate) fn web_address(&self) -> Result<String, Fault> {
        let text = self.letters()?;
        let rest = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        if rest
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '[') && rest.chars().all(plain))
        {
            return Ok(text.into_owned());
        }
        // What was written may be a secret, as a monitor's address is.
        let message = format!("`{}` must be a web address, and begin with `https://` or `http://`", self.name);
        Err(Fault::new(message, format!("write `{}: https://…`", self.name)))
    }

    /// Reads a duration of at least `least`: `90s`, `10m`, `1h30m`.
    pub(crate) fn span(&self, least: Duration) -> Result<Duration, Fault> {
        let [one, other] = if least < Duration::from_secs(60 * 60) { ["10m", "90s"] } else { ["90d", "12h"] };
        let hint = || format!("write `{}: {one}`, `{other}` or `1h30m`", self.name);
        if let Node::Int(_) | Node::Float(_) = self.node {
            let number = self.scalar().unwrap_or_default();
            let message = format!("`{}` needs a unit, found {}", self.name, quoted(&number));
            return Err(Fault::new(message, format!("write `{}: {number}s` or `{0}: {number}m`", self.name)));
        }
        let Node::Text(text) = self.node else { return Err(self.must_be("a span of time", hint())) };
        match humantime::parse_duration(text) {
            Ok(span) if span > LONGEST => Err(Fault::new(format!("`{}` is longer than ten years", self.name), hint())),
            Ok(span) if span < least => {
                let least = humantime::format_duration(least);
                Err(Fault::new(format!("`{}` must be at least {least}, found {}", self.name, quoted(text)), hint()))
            }
            Ok(span) => Ok(span),
            Err(_) => Err(self.must_be("a span of time", hint())),
        }
    }

    /// Reads the time between two occurrences: whole seconds, at least a minute.
    pub(crate) fn period(&self) -> Result<Duration, Fault> {
        self.whole_seconds(Duration::from_secs(60))
    }

    /// Reads the maximum delay of an occurrence: whole seconds, at most a day.
    pub(crate) fn jitter(&self) -> Result<Duration, Fault> {
        let span = self.whole_seconds(Duration::from_secs(1))?;
        if span > LONGEST_JITTER {
            return Err(Fault::new(
                format!("`{}` is longer than a day", self.name),
                format!("write `{}: 5m`", self.name),
            ));
        }
        Ok(span)
    }

    fn whole_seconds(&self, least: Duration) -> Result<Duration, Fault> {
        let span = self.span(least)?;
        if span.subsec_nanos() != 0 {
            return Err(self.must_be("a span of whole seconds", format!("write `{}: 90m`", self.name)));
        }
        Ok(span)
    }

    /// Reads a word of an enum. `-` and `_` are equal.
    pub(crate) fn one_of<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let written = self.scalar().unwrap_or_default();
        let word: StringDeserializer<serde::de::value::Error> = written.replace('-', "_").into_deserializer();
        T::deserialize(word).map_err(|_| {
            let names: Vec<String> = words::<T>().iter().map(|word| format!("`{word}`")).collect();
            let names = format!("one of {}", names.join(", "));
            self.must_be(&names, nearest_word(&written, words::<T>()).unwrap_or_else(|| format!("write {names}")))
        })
    }

    /// Reads `true`, `false` or a token budget.
    pub(crate) fn thinking(&self) -> Result<Thinking, Fault> {
        match self.node {
            Node::Int(_) => self.count(1).map(Thinking::Budget),
            _ => match self.flag() {
                Ok(true) => Ok(Thinking::Adaptive),
                Ok(false) => Ok(Thinking::Disabled),
                Err(_) => Err(self.must_be(
                    "`true`, `false` or a number of tokens",
                    format!("write `{}: true`, `{0}: false` or `{0}: 8000`", self.name),
                )),
            },
        }
    }

    /// Reads the name of a model. The name is an argument of the client, so it must not look like an option.
    pub(crate) fn model(&self) -> Result<String, Fault> {
        let text = self.text()?;
        if !is_model_name(&text) {
            return Err(self.must_be("the name of a model", MODELS_FOR_EXAMPLE));
        }
        Ok(text)
    }

    /// Reads the name of an agent.
    pub(crate) fn agent(&self) -> Result<String, Fault> {
        let text = self.text()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || text.len() > 64 || !text.chars().all(plain) {
            return Err(self.must_be("the name of an agent", "`ollim-bot agents list` shows those there are"));
        }
        Ok(text)
    }

    /// Reads the name of a channel.
    pub(crate) fn channel(&self) -> Result<String, Fault> {
        let text = self.text()?;
        if !is_channel_name(&text) {
            return Err(self.must_be("the name of a channel", "`ollim-bot channels` shows those there are"));
        }
        Ok(text)
    }

    /// Returns the entries of a mapping, or of a text from the command line: `deadline: 10m, default: deny`, with or without braces.
    fn parts(&self, hint: &str) -> Result<Vec<(String, Node)>, Fault> {
        match self.node {
            Node::Map(entries) => Ok(entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()),
            Node::Text(text) => {
                let word = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
                let part = |part: &str| {
                    let (key, value) = part.split_once([':', '='])?;
                    Some((word(key), Node::Text(word(value))))
                };
                let parts = without_braces(text).split(',').map(part).collect::<Option<Vec<_>>>();
                parts.ok_or_else(|| self.must_be("a mapping", hint.to_owned()))
            }
            _ => Err(self.must_be("a mapping", hint.to_owned())),
        }
    }

    /// Reads each of [`Self::parts`]. `read` returns `None` for an unknown name.
    fn each_part(
        &self,
        hint: &str,
        mut read: impl FnMut(&str, &Value<'_>) -> Option<Result<(), Fault>>,
    ) -> Result<(), Fault> {
        let entries = self.parts(hint)?;
        for (at, (key, node)) in entries.iter().enumerate() {
            let path: Vec<usize> = self.path.iter().copied().chain([at]).collect();
            let name = format!("{}.{key}", self.name);
            let value = Value { name: &name, node, path: &path, ..*self };
            let read = if entries[..at].iter().any(|(before, _)| before == key) {
                Err(Fault::new(format!("`{name}` is set twice"), "keep one of the two"))
            } else {
                let unknown = || Fault::new(format!("`{}` has no {}", self.name, quoted(key)), hint);
                read(key, &value).unwrap_or_else(|| Err(unknown()))
            };
            let located = matches!(self.node, Node::Map(_)).then_some(at);
            read.map_err(|fault| Fault { item: located, ..fault })?;
        }
        Ok(())
    }

    /// Reads the terms of questions to the person: a mapping, or a text from the command line.
    pub(crate) fn ask_terms(&self) -> Result<AskTerms, Fault> {
        let hint = format!("write `{}: {{ deadline: 10m, default: deny, channel: phone }}`", self.name);
        let mut terms = AskTerms::default();
        self.each_part(&hint, |key, value| {
            Some(match key {
                "deadline" => value.span(AskTerms::SHORTEST).and_then(|span| match span > AskTerms::LONGEST {
                    true => Err(Fault::new(format!("`{}` is longer than 24 hours", value.name), hint.clone())),
                    false => {
                        terms.deadline = span;
                        Ok(())
                    }
                }),
                "default" => value.one_of().map(|default| terms.default = default),
                "channel" => value.channel().map(|channel| terms.channel = Some(channel)),
                _ => return None,
            })
        })?;
        Ok(terms)
    }

    /// Reads the ends of another job that fire a routine: its id, or `job` and `outcome` as a mapping or a text from the command line.
    pub(crate) fn follows(&self) -> Result<Follows, Fault> {
        let hint = format!("write `{0}: ID`, or `{0}: {{ job: ID, outcome: failed }}`", self.name);
        let is_mapping = |text: &str| {
            let entries = without_braces(text);
            let key = entries.split([':', '=']).next().unwrap_or_default().trim();
            entries.len() < text.trim().len() || entries.len() > key.len() && ["job", "outcome"].contains(&key)
        };
        if !matches!(self.node, Node::Map(_)) && !self.scalar().is_some_and(|text| is_mapping(&text)) {
            return Ok(Follows { job: self.other_job(&hint)?, outcome: FollowedEnd::default() });
        }
        let (mut job, mut outcome) = (None, FollowedEnd::default());
        self.each_part(&hint, |key, value| {
            Some(match key {
                "job" => value.other_job(&hint).map(|id| job = Some(id)),
                "outcome" => value.one_of().map(|end| outcome = end),
                _ => return None,
            })
        })?;
        let job = job.ok_or_else(|| Fault::new(format!("`{}` names no job", self.name), hint))?;
        Ok(Follows { job, outcome })
    }

    /// Reads a folder to watch.
    pub(crate) fn folder(&self) -> Result<WatchedFolder, Fault> {
        let text = self.letters()?;
        WatchedFolder::parse(&text).ok_or_else(|| {
            let hint =
                format!("write `{0}: inbox` for work/inbox, or `{0}: /an/absolute/path`, without `..`", self.name);
            self.must_be("a folder of work/, or an absolute path", hint)
        })
    }

    /// Reads the id of another job.
    fn other_job(&self, hint: &str) -> Result<DefinitionId, Fault> {
        let plain = |id: &DefinitionId| !id.as_str().contains(|c: char| c.is_control() || "{}".contains(c));
        self.identity().ok().flatten().filter(plain).ok_or_else(|| self.must_be("the id of a job", hint.to_owned()))
    }

    /// Reads an IANA time zone.
    pub(crate) fn zone(&self) -> Result<Tz, Fault> {
        let text = self.letters()?;
        text.parse().map_err(|_| {
            let hint = nearest_zone(&text).map_or_else(
                || "write an IANA name, for example `Europe/Vienna`".into(),
                |zone| format!("did you mean `{zone}`?"),
            );
            Fault::new(format!("unknown time zone {}", quoted(&text)), hint)
        })
    }

    /// Reads an RFC 3339 time, or a local time in the value's zone.
    pub(crate) fn instant(&self) -> Result<DateTime<FixedOffset>, Fault> {
        let zone = self.zone;
        let text = self.letters()?;
        let text = text.trim();
        if let Some(at) = time_with_offset(text) {
            return Ok(at);
        }
        let example = "for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone";
        let Some(local) = local_time(text) else {
            return Err(Fault::new(format!("`{}` is not a time: {}", self.name, quoted(text)), example));
        };
        match zone.from_local_datetime(&local) {
            LocalResult::Single(at) => Ok(at.fixed_offset()),
            LocalResult::Ambiguous(first, second) => Err(Fault::new(
                format!("`{}` happens twice: the clocks in {zone} go back over {}", self.name, quoted(text)),
                format!("write `{}` or `{}`", first.to_rfc3339(), second.to_rfc3339()),
            )),
            LocalResult::None => Err(Fault::new(
                format!("`{}` does not exist: the clocks in {zone} skip {}", self.name, quoted(text)),
                "write a time with an offset, or one before or after the change",
            )),
        }
    }

    /// Reads a list of texts.
    pub(crate) fn texts(&self) -> Result<Vec<&'a str>, Fault> {
        let example = format!("write `{}:` and below it one `- …` a line", self.name);
        let Node::List(items) = self.node else {
            let hint = match self.node {
                Node::Null => format!("write `{}: []` for the empty list, or remove the line", self.name),
                _ => example,
            };
            return Err(Fault { hint: Some(hint), ..self.must_be("a list", "") });
        };
        let text = |(n, node): (usize, &'a Node)| match node {
            Node::Text(text) => Ok(&**text),
            other => {
                let message = format!("each item of `{}` must be text, found {}", self.name, other.describe());
                Err(Fault { item: Some(n), ..Fault::new(message, "quote it: `- '…'`") })
            }
        };
        items.iter().enumerate().map(text).collect()
    }

    /// Reads a list of skill names without duplicates.
    pub(crate) fn skills(&self) -> Result<Vec<String>, Fault> {
        let names = self.texts()?;
        for (item, name) in names.iter().enumerate() {
            let fault = |message: String, hint: &str| Fault { item: Some(item), ..Fault::new(message, hint) };
            if !is_skill_name(name) {
                let message = format!("`{}`: {} is no name of a skill", self.name, quoted(name));
                return Err(fault(message, "write the name of a folder in skills/: letters, digits, `-` and `_`"));
            }
            if names[..item].contains(name) {
                return Err(fault(format!("`{}`: {} is named twice", self.name, quoted(name)), "keep one of the two"));
            }
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Reads a list of host names and labels.
    pub(crate) fn hosts(&self) -> Result<Vec<String>, Fault> {
        let names = self.texts()?;
        for (item, name) in names.iter().enumerate() {
            if !is_host_name(name) {
                let message = format!("`{}`: {} is no name of a host", self.name, quoted(name));
                return Err(Fault { item: Some(item), ..Fault::new(message, HOST_NAMES) });
            }
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Reads a list of other jobs' ids without duplicates.
    pub(crate) fn jobs(&self) -> Result<Vec<DefinitionId>, Fault> {
        let ids = self.texts()?;
        let fault = |item: usize, message: String, hint: &str| Fault { item: Some(item), ..Fault::new(message, hint) };
        for (item, id) in ids.iter().enumerate() {
            if id.trim() != *id || id.is_empty() || id.contains(char::is_control) {
                let message = format!("`{}`: {} is no id of a job", self.name, quoted(id));
                return Err(fault(
                    item,
                    message,
                    "`ollim-bot routine list` and `ollim-bot reminder list` show those there are",
                ));
            }
            if ids[..item].contains(id) {
                let message = format!("`{}`: {} is named twice", self.name, quoted(id));
                return Err(fault(item, message, "keep one of the two"));
            }
        }
        if ids.len() > MAX_JOBS {
            let message = format!("`{}` names {} jobs, and at most {MAX_JOBS} may be", self.name, ids.len());
            return Err(fault(MAX_JOBS, message, "keep those that matter most"));
        }
        Ok(ids.into_iter().map(DefinitionId::new).collect())
    }

    /// Reads the conditions that the machine must meet. Duplicates count once.
    pub(crate) fn needs(&self) -> Result<Vec<Need>, Fault> {
        let mut needs = Vec::new();
        for (item, word) in self.texts()?.into_iter().enumerate() {
            match Need::ALL.into_iter().find(|need| need.as_str() == word) {
                Some(need) if needs.contains(&need) => {}
                Some(need) => needs.push(need),
                None => {
                    let message = format!("`{}`: {} is nothing that can be required", self.name, quoted(word));
                    return Err(Fault { item: Some(item), ..Fault::new(message, "write `online`, `power`, or both") });
                }
            }
        }
        Ok(needs)
    }

    /// Reads a list of tool patterns.
    pub(crate) fn patterns(&self) -> Result<Vec<ToolPattern>, Fault> {
        let pattern = |(n, text): (usize, &str)| {
            ToolPattern::parse_for_job(text, &BOT).map_err(|error| {
                let said = error.to_string();
                let (what, hint) = match said.split_once("; ") {
                    Some((what, hint)) => (what, hint),
                    None if error == PatternError::Empty => {
                        (said.as_str(), "remove the item: an empty list is written `[]`")
                    }
                    None => (said.as_str(), "write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`"),
                };
                Fault { item: Some(n), ..Fault::new(format!("`{}`: {what}", self.name), hint) }
            })
        };
        let mut patterns = self.texts()?.into_iter().enumerate().map(pattern).collect::<Result<Vec<_>, _>>()?;
        // The list lives as long as the definition.
        patterns.shrink_to_fit();
        Ok(patterns)
    }
}

/// Removes the braces of a mapping; returns a text without braces unchanged.
fn without_braces(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text).trim()
}

/// Whether a text is a valid channel name.
pub(crate) fn is_channel_name(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Formats a duration as `span` reads it: `1h30m`, `90d`.
pub(crate) fn span_text(span: Duration) -> String {
    let seconds = span.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(span.subsec_millis()), "ms"),
        (u64::from(span.subsec_micros() % 1000), "us"),
        (u64::from(span.subsec_nanos() % 1000), "ns"),
    ];
    let text: String = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if text.is_empty() { "0s".into() } else { text }
}

/// Parses an RFC 3339 time, with or without seconds.
pub(crate) fn time_with_offset(text: &str) -> Option<DateTime<FixedOffset>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at);
    }
    // RFC 3339 also allows a blank for the `T`, and `Z` for `+00:00`.
    let spelled = text.replacen([' ', 't'], "T", 1).replace(['Z', 'z'], "+00:00");
    let formats = ["%Y-%m-%dT%H:%M:%S%.f%:z", "%Y-%m-%dT%H:%M%:z"];
    formats.iter().find_map(|format| DateTime::parse_from_str(&spelled, format).ok())
}

fn local_time(text: &str) -> Option<NaiveDateTime> {
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
}

fn nearest_word(written: &str, words: &[&str]) -> Option<String> {
    // The distance takes time proportional to the product of both lengths.
    let written = Some(written).filter(|written| written.len() < 40)?;
    let near = words.iter().map(|word| (strsim::damerau_levenshtein(word, written), word));
    near.filter(|(distance, _)| *distance <= 2).min().map(|(_, word)| format!("did you mean `{word}`?"))
}

/// Returns the zone most similar to `text`: that of a city of this name, else one that differs by at most two letters.
fn nearest_zone(text: &str) -> Option<Tz> {
    let text = Some(text).filter(|text| text.len() < 60)?;
    let wanted = text.to_lowercase().replace([' ', '-'], "_");
    let city = |zone: &Tz| zone.name().to_lowercase().rsplit('/').next().is_some_and(|city| city == wanted);
    let near = |zone: &Tz| strsim::damerau_levenshtein(&zone.name().to_lowercase(), &wanted);
    let by_city = chrono_tz::TZ_VARIANTS.iter().find(|zone| city(zone));
    let by_letters = || chrono_tz::TZ_VARIANTS.iter().filter(|zone| near(zone) <= 2).min_by_key(|zone| near(zone));
    by_city.or_else(|| (wanted.len() > 4).then(by_letters).flatten()).copied()
}

/// The hint for an invalid model name.
pub(crate) const MODELS_FOR_EXAMPLE: &str = "for example `haiku`, `sonnet` or `claude-sonnet-4-5`";

/// Whether a word is a valid model name: a client must not take it for an option.
#[must_use]
pub(crate) fn is_model_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/[]@+".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

#[cfg(test)]
mod tests;

/// The hint for an invalid host name or label.
pub(crate) const HOST_NAMES: &str = "write letters, digits, `-`, `_` and `.`, at most 63 of them";

/// Whether a text is a valid host name or label.
pub(crate) fn is_host_name(name: &str) -> bool {
    let usual = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=63).contains(&name.len()) && name.chars().all(usual)
}
