//! Reads YAML as a list of entries of any type, and locates each of them.
//!
//! `serde_yaml` reports positions only in errors. To find a position, this module reads the text again and fails on
//! purpose at the entry. Files without problems are read once.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::Value as Json;

/// Maximum number of values in a file, counted after aliases are followed: far more than a person writes, and few
/// enough to refuse an alias bomb before it takes memory or time.
const MAX_VALUES: u32 = 1_000;

/// Maximum length of a YAML text, in bytes. The parser takes quadratic time in the nesting: a megabyte of `[` keeps it
/// busy for minutes.
const LONGEST: usize = 64 << 10;

/// Maximum number of entries in a mapping. Each unknown entry is located by reading the text again.
const MAX_ENTRIES: usize = 100;

/// Maximum number of `[` and `{` in a YAML text, since parsing takes quadratic time in the nesting.
const MAX_BRACKETS: usize = 2_000;

const TOO_MANY: &str = "too many values (do aliases repeat each other?)";

/// One `key: value` of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The key as written.
    pub key: String,
    pub value: Node,
}

/// A value with its YAML type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// `!name …`, which no field accepts.
    Tagged,
}

impl Node {
    /// Returns the value that YAML reads from this JSON.
    pub(crate) fn of_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) => match number.as_i128() {
                Some(whole) => Self::Int(whole),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::of_json).collect()),
            Json::Object(entries) => {
                let entry = |(key, value): (&String, &Json)| Entry { key: key.clone(), value: Self::of_json(value) };
                Self::Map(entries.iter().map(entry).collect())
            }
        }
    }

    /// Returns the value as JSON; `None` if JSON cannot express it.
    pub(crate) fn json(&self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(*flag),
            Self::Int(whole) => Json::Number(serde_json::Number::from_i128(*whole)?),
            Self::Float(number) => Json::Number(serde_json::Number::from_f64(*number)?),
            Self::Text(text) => Json::String(text.clone()),
            Self::List(items) => Json::Array(items.iter().map(Self::json).collect::<Option<_>>()?),
            Self::Map(entries) => Json::Object(
                entries.iter().map(|entry| Some((entry.key.clone(), entry.value.json()?))).collect::<Option<_>>()?,
            ),
            Self::Tagged => return None,
        })
    }

    /// Returns its type for use in a sentence: "a list".
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
            Self::Tagged => "a value with a `!` tag",
        }
    }
}

/// A location in a mapping. The path holds the index of the entry or item, then the index within it, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum YamlPath {
    /// The key of an entry.
    Key(Vec<usize>),
    /// A value, or an item of a list.
    Value(Vec<usize>),
}

/// A YAML error, in lines and columns (from 1) of the block.
#[derive(Debug)]
pub(super) struct Fault {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

impl Fault {
    fn at_start(message: String) -> Self {
        Self { message, line: 1, column: 1 }
    }
}

pub(super) fn read(yaml: &str) -> Result<Vec<Entry>, Fault> {
    if yaml.len() > LONGEST {
        return Err(Fault::at_start("it is longer than 64 KiB".into()));
    }
    if yaml.bytes().filter(|b| matches!(b, b'[' | b'{')).count() > MAX_BRACKETS {
        return Err(Fault::at_start("it has more than 2000 brackets".into()));
    }
    let left = Cell::new(MAX_VALUES);
    let root = serde_yaml::Deserializer::from_str(yaml);
    if yaml.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    match (Walk { left: &left }).deserialize(root) {
        Ok(Node::Map(entries)) => Ok(entries),
        Ok(Node::Null) => Ok(Vec::new()),
        Ok(other) => Err(Fault::at_start(format!("expected `key: value` lines, found {}", other.describe()))),
        Err(error) => Err(fault(&error)),
    }
}

pub(super) fn locate(yaml: &str, place: &YamlPath) -> Option<(u32, u32)> {
    let (path, goal) = match place {
        YamlPath::Key(path) => (path, Goal::Key),
        YamlPath::Value(path) => (path, Goal::Value),
    };
    let seek = Seek { path, goal, raw: &RefCell::new(None) };
    let location = seek.deserialize(serde_yaml::Deserializer::from_str(yaml)).err()?.location()?;
    Some((number(location.line()), number(location.column())))
}

pub(super) fn raw(yaml: &str, path: &[usize]) -> Option<String> {
    let found = RefCell::new(None);
    let seek = Seek { path, goal: Goal::Raw, raw: &found };
    let _ = seek.deserialize(serde_yaml::Deserializer::from_str(yaml));
    found.into_inner()
}

fn fault(error: &serde_yaml::Error) -> Fault {
    let (line, column) = error.location().map_or((1, 1), |at| (number(at.line()), number(at.column())));
    let message = without_positions(&error.to_string());
    let message = if message.contains(TOO_MANY) {
        TOO_MANY.to_owned()
    } else if message.contains("invalid type") {
        "a key must be plain text".to_owned()
    } else if message.contains("more than one document") {
        "a line `...` or `---` ends the YAML too early".to_owned()
    } else {
        message
    };
    Fault { message, line, column }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Removes positions from a message. They count from the block's start and are reported separately.
fn without_positions(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(" at line ") {
        out.push_str(&rest[..at]);
        rest = rest[at + " at line ".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        rest = rest.strip_prefix(" column ").map_or(rest, |r| r.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out + rest
}

/// Reads any value, and counts values against [`MAX_VALUES`].
#[derive(Clone, Copy)]
struct Walk<'a> {
    left: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(TOO_MANY)),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Node::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Node::Int(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Node::Int(value.into()))
    }
    fn visit_i128<E>(self, value: i128) -> Result<Self::Value, E> {
        Ok(Node::Int(value))
    }
    fn visit_u128<E>(self, value: u128) -> Result<Self::Value, E> {
        Ok(i128::try_from(value).map_or(Node::Float(f64::INFINITY), Node::Int))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Node::Float(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Node::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Node::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        // Reading a key as a string keeps its spelling, and makes a list or a mapping as a key an error at its
        // location.
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
            if entries.len() == MAX_ENTRIES {
                return Err(A::Error::custom(TOO_MANY));
            }
            entries.push(Entry { key, value });
        }
        Ok(Node::Map(entries))
    }
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Self::Value, A::Error> {
        let (IgnoredAny, value) = data.variant()?;
        value.newtype_variant::<IgnoredAny>()?;
        Ok(Node::Tagged)
    }
}

/// Descends to a path and fails there.
#[derive(Clone, Copy)]
struct Seek<'a> {
    path: &'a [usize],
    goal: Goal,
    raw: &'a RefCell<Option<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Key,
    Value,
    Raw,
}

/// Refuses every value, so that `serde_yaml` reports where the value begins.
struct Refuse;

impl Visitor<'_> for Refuse {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}

/// Keeps a scalar as written.
struct Keep<'a>(&'a RefCell<Option<String>>);

impl Visitor<'_> for Keep<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.replace(Some(text.to_owned()));
        Err(E::custom("found"))
    }
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match (self.path, self.goal) {
            ([], Goal::Raw) => deserializer.deserialize_str(Keep(self.raw)),
            ([], _) => deserializer.deserialize_any(Refuse),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a mapping")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((&target, path)) = self.path.split_first() else { return Ok(()) };
        for _ in 0..target {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        seq.next_element_seed(Seek { path, ..self })?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((&target, path)) = self.path.split_first() else { return Ok(()) };
        for _ in 0..target {
            if map.next_entry::<IgnoredAny, IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        if path.is_empty() && self.goal == Goal::Key {
            // Fails at the key, unless there is no such entry.
            map.next_key_seed(Seek { path, ..self })?;
            return Ok(());
        }
        if map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Seek { path, ..self })?;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_types_and_their_letters() {
        let yaml =
            "id: 1234e567\nn: 007\nyes: true\nlist: [a, 5, ~]\nnested:\n  kind: console\ntag: !x y\nstr: !!str 12\n";
        let entries = read(yaml).unwrap();
        insta::assert_snapshot!(entries.iter().map(|e| format!("{} = {:?}", e.key, e.value)).collect::<Vec<_>>().join("\n"), @r#"
        id = Text("1234e567")
        n = Text("007")
        yes = Bool(true)
        list = List([Text("a"), Int(5), Null])
        nested = Map([Entry { key: "kind", value: Text("console") }])
        tag = Tagged
        str = Text("12")
        "#);
        assert_eq!(raw(yaml, &[0]).unwrap(), "1234e567");
        assert_eq!(raw(yaml, &[1]).unwrap(), "007");
        assert_eq!(raw(yaml, &[3, 1]).unwrap(), "5");
        assert_eq!(raw(yaml, &[3]), None);
    }

    #[test]
    fn every_place_is_found() {
        let yaml = "# top\nid: x\n\"quoted key\": y\ntools:\n  - Read   # one\n  -   'Bash(ls *)'\nchannel: { kind: console, url: ü }\n";
        for (path, expected) in [
            (YamlPath::Key(vec![0]), (2, 1)),
            (YamlPath::Value(vec![0]), (2, 5)),
            (YamlPath::Key(vec![1]), (3, 1)),
            (YamlPath::Key(vec![2]), (4, 1)),
            (YamlPath::Value(vec![2]), (5, 3)),
            (YamlPath::Value(vec![2, 0]), (5, 5)),
            (YamlPath::Value(vec![2, 1]), (6, 7)),
            (YamlPath::Key(vec![3, 1]), (7, 27)),
            (YamlPath::Value(vec![3, 1]), (7, 32)),
        ] {
            assert_eq!(locate(yaml, &path), Some(expected), "{path:?}");
        }
        assert_eq!(locate(yaml, &YamlPath::Key(vec![9])), None);
    }

    #[test]
    fn faults_are_located() {
        let bomb = {
            let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
            for n in 1..9 {
                let previous = format!("*a{}, ", n - 1).repeat(9);
                text.push_str(&format!("a{n}: &a{n} [{}]\n", previous.trim_end_matches(", ")));
            }
            text
        };
        let deep = format!("a: {}", "[".repeat(4000));
        let shown: Vec<String> = [
            "id: x\ncron: */5 * * * *\n",
            "id: x\ncron: @daily\n",
            "id: x\n\tcron: y\n",
            "message: a: b\n",
            "id: 'x\n",
            "- a\n- b\n",
            "just text\n",
            "? [a]\n: b\n",
            "id: x\n...\nmore: y\n",
            "id: *nowhere\n",
            "<<: {a: b}\n",
            &bomb,
            &deep,
            &format!("a: [{}]", "x, ".repeat(1001)),
            &(0..101).map(|n| format!("k{n}: 1\n")).collect::<String>(),
            &format!("a: {}", "x".repeat(65 << 10)),
        ]
        .iter()
        .map(|yaml| match read(yaml) {
            Ok(entries) => format!("{entries:?}"),
            Err(fault) => format!("{}:{} {}", fault.line, fault.column, fault.message),
        })
        .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        2:8 did not find expected alphabetic or numeric character, while scanning an alias
        2:7 found character that cannot start any token, while scanning for the next token
        2:1 found a tab character that violates indentation, while scanning a plain scalar
        1:11 mapping values are not allowed in this context
        2:1 found unexpected end of stream, while scanning a quoted scalar
        1:1 expected `key: value` lines, found a list
        1:1 expected `key: value` lines, found text
        1:3 a key must be plain text
        1:1 a line `...` or `---` ends the YAML too early
        1:5 unknown anchor
        [Entry { key: "<<", value: Map([Entry { key: "a", value: Text("b") }]) }]
        1:5 too many values (do aliases repeat each other?)
        1:1 it has more than 2000 brackets
        1:4 too many values (do aliases repeat each other?)
        1:1 too many values (do aliases repeat each other?)
        1:1 it is longer than 64 KiB
        "#);
    }
}
