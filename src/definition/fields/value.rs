//! A field's value, independent of its field: as YAML, JSON, a flag's text and text for people.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::frontmatter::{Entry, Node, yaml_text};
use super::super::values::span_text;

/// A value for a field.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum FieldValue {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Count(u32),
    /// US dollars.
    Amount(f64),
    /// A duration.
    Span(Duration),
    /// Any text.
    Text(String),
    /// A list of texts; may be empty.
    Texts(Vec<String>),
    /// A mapping of names to texts.
    Map(Vec<(&'static str, String)>),
    /// Any JSON, which is also YAML.
    Json(String),
}

impl FieldValue {
    /// Returns the value that YAML reads from the written form.
    pub(in super::super) fn node(&self) -> Node {
        match self {
            Self::Flag(flag) => Node::Bool(*flag),
            Self::Count(n) => Node::Int((*n).into()),
            Self::Amount(amount) => Node::Float(*amount),
            Self::Span(span) => Node::Text(span_text(*span)),
            Self::Text(text) => Node::Text(text.clone()),
            Self::Texts(texts) => Node::List(texts.iter().map(|text| Node::Text(text.clone())).collect()),
            Self::Map(entries) => {
                let entry =
                    |(key, value): &(&str, String)| Entry { key: (*key).into(), value: Node::Text(value.clone()) };
                Node::Map(entries.iter().map(entry).collect())
            }
            Self::Json(text) => Node::of_json(&parsed(text)),
        }
    }

    /// Returns the text after the colon, and the lines below it.
    pub(in super::super) fn written(&self, indent: &str, eol: &str) -> (String, String) {
        match self {
            Self::Flag(flag) => (flag.to_string(), String::new()),
            Self::Count(n) => (n.to_string(), String::new()),
            Self::Amount(amount) => (format!("{amount:?}"), String::new()),
            Self::Span(span) => (yaml_text(&span_text(*span)), String::new()),
            Self::Text(text) => (yaml_text(text), String::new()),
            Self::Map(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key}: {}", yaml_text(value))).collect();
                (format!("{{ {} }}", entries.join(", ")), String::new())
            }
            Self::Json(text) => (text.clone(), String::new()),
            Self::Texts(texts) if texts.is_empty() => ("[]".into(), String::new()),
            Self::Texts(texts) => {
                let lines = texts.iter().map(|text| format!("{indent}  - {}{eol}", yaml_text(text)));
                (String::new(), lines.collect())
            }
        }
    }

    /// Returns `name: value` and the lines below it.
    #[must_use]
    pub fn entry(&self, name: &str) -> String {
        let (inline, below) = self.written("", "\n");
        let space = if inline.is_empty() { "" } else { " " };
        format!("{name}:{space}{inline}\n{below}")
    }

    /// Returns the value as `--json` prints it.
    pub(crate) fn json(&self) -> Json {
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Count(n) => json!(n),
            Self::Amount(amount) => json!(amount),
            Self::Span(span) => json!(humantime::format_duration(*span).to_string()),
            Self::Text(text) => json!(text),
            Self::Texts(texts) => json!(texts),
            Self::Json(text) => parsed(text),
            Self::Map(entries) => {
                Json::Object(entries.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect())
            }
        }
    }
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

impl std::fmt::Display for FieldValue {
    /// Formats the value for people: `no`, `1h 30m`, `Read, WebFetch`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Self::Count(n) => write!(f, "{n}"),
            Self::Amount(amount) => write!(f, "{amount}"),
            Self::Span(span) => write!(f, "{}", humantime::format_duration(*span)),
            Self::Text(text) => f.write_str(text),
            Self::Map(entries) => {
                let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                f.write_str(&entries.join(", "))
            }
            Self::Json(text) => f.write_str(text),
            Self::Texts(texts) if texts.is_empty() => f.write_str("none"),
            Self::Texts(texts) => f.write_str(&texts.join(", ")),
        }
    }
}
