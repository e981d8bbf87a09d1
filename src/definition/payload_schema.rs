//! Validates deliveries against the part of JSON Schema that other services' payloads need.
//!
//! Written by hand, since the crate `jsonschema` brings 31 crates and 5.2 MB of program. An unknown keyword is an error
//! of the file, so none is ignored silently.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use regex_lite::Regex;
use serde_json::{Map, Value as Json};

/// Maximum number of reported faults of a payload.
const MAX_FAULTS: usize = 20;

/// Maximum nesting of a schema. A deeper one is refused.
const DEEPEST: usize = 64;

/// A schema for payloads.
#[derive(Clone)]
pub struct PayloadSchema {
    json: Json,
    root: Arc<Rules>,
}

/// A fault of a payload.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PayloadFault {
    /// JSON pointer to the value; empty for the whole payload.
    pub path: String,
    /// The fault. It quotes nothing of the payload.
    pub message: String,
}

impl fmt::Display for PayloadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format!("{} {}", self.path, self.message).trim_start())
    }
}

/// The rules for one value.
#[derive(Default)]
struct Rules {
    types: Option<Vec<Type>>,
    one_of: Option<Vec<Json>>,
    required: Vec<String>,
    properties: BTreeMap<String, Rules>,
    /// The rules for properties not in `properties`; `Err` if there may be none.
    others: Option<Result<Box<Rules>, ()>>,
    items: Option<Box<Rules>>,
    /// The limits of a text's length, then of a list's.
    lengths: [Limits<u64>; 2],
    numbers: Limits<f64>,
    pattern: Option<Regex>,
}

#[derive(Default)]
struct Limits<T> {
    least: Option<T>,
    most: Option<T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    Null,
}

impl Type {
    const ALL: [(&str, Self); 7] = [
        ("object", Self::Object),
        ("array", Self::Array),
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("null", Self::Null),
    ];

    fn named(name: &Json) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| name == known).map(|(_, found)| *found);
        found.ok_or_else(|| format!("there is no type {name}"))
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| *name)
    }

    fn has(self, value: &Json) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
            Self::Boolean => value.is_boolean(),
            Self::Null => value.is_null(),
        }
    }
}

impl fmt::Debug for PayloadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PayloadSchema").field(&self.json).finish()
    }
}

impl PartialEq for PayloadSchema {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl PayloadSchema {
    /// Reads a schema of an object.
    ///
    /// # Errors
    /// A sentence that says what is not a schema, or not supported.
    pub fn new(json: Json) -> Result<Self, String> {
        let mut root = Rules::read(&json, DEEPEST)?;
        match &root.types {
            None => root.types = Some(vec![Type::Object]),
            Some(types) if types[..] == [Type::Object] => {}
            Some(_) => return Err("`type` must be `object`: what is delivered is one".to_owned()),
        }
        Ok(Self { json, root: Arc::new(root) })
    }

    /// Returns the schema as written.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the faults of a payload, at most the first 20.
    #[must_use]
    pub fn faults(&self, payload: &Json) -> Vec<PayloadFault> {
        let mut faults = Vec::new();
        self.root.check(payload, &mut String::new(), &mut faults);
        faults
    }

    /// Whether a payload may have a field. A full stop separates the names of nested fields.
    #[must_use]
    pub fn may_have(&self, field: &str) -> bool {
        let mut rules = &*self.root;
        for name in field.split('.') {
            let item = rules.items.as_deref().filter(|_| name.parse::<usize>().is_ok());
            match (rules.properties.get(name).or(item), &rules.others) {
                (Some(inner), _) => rules = inner,
                // A schema without `properties` allows any field. One with `properties` is expected to list them all.
                (None, None) => return rules.properties.is_empty(),
                (None, Some(Ok(inner))) => rules = inner,
                (None, Some(Err(()))) => return false,
            }
        }
        true
    }
}

impl Rules {
    fn read(json: &Json, deeper: usize) -> Result<Self, String> {
        let map = match json {
            Json::Object(map) if deeper > 0 => map,
            // Allows any value.
            Json::Bool(true) => return Ok(Self::default()),
            _ => return Err(format!("{json} is no mapping of keywords")),
        };
        let mut rules = Self::default();
        for (keyword, value) in map {
            rules.keyword(keyword, value, deeper - 1).map_err(|why| format!("`{keyword}`: {why}"))?;
        }
        Ok(rules)
    }

    fn keyword(&mut self, keyword: &str, value: &Json, deeper: usize) -> Result<(), String> {
        let count = || value.as_u64().ok_or_else(|| "a whole number is needed".to_owned());
        let number = || value.as_f64().ok_or_else(|| "a number is needed".to_owned());
        let list = || value.as_array().ok_or_else(|| "a list is needed".to_owned());
        let [text, items] = &mut self.lengths;
        match keyword {
            "type" => {
                let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                self.types = Some(names.iter().map(Type::named).collect::<Result<_, _>>()?);
            }
            "enum" => self.one_of = Some(list()?.clone()),
            "const" => self.one_of = Some(vec![value.clone()]),
            "required" => {
                let name = |name: &Json| name.as_str().map(str::to_owned).ok_or_else(|| "names are needed".to_owned());
                self.required = list()?.iter().map(name).collect::<Result<_, _>>()?;
            }
            "properties" => {
                let map: &Map<String, Json> = value.as_object().ok_or("a mapping is needed")?;
                for (name, inner) in map {
                    let inner = Self::read(inner, deeper).map_err(|why| format!("`{name}`: {why}"))?;
                    self.properties.insert(name.clone(), inner);
                }
            }
            "additionalProperties" => {
                let refused = *value == Json::Bool(false);
                self.others = Some(if refused { Err(()) } else { Ok(Box::new(Self::read(value, deeper)?)) });
            }
            "items" => self.items = Some(Box::new(Self::read(value, deeper)?)),
            "minLength" => text.least = Some(count()?),
            "maxLength" => text.most = Some(count()?),
            "minItems" => items.least = Some(count()?),
            "maxItems" => items.most = Some(count()?),
            "minimum" => self.numbers.least = Some(number()?),
            "maximum" => self.numbers.most = Some(number()?),
            "pattern" => {
                let pattern = value.as_str().ok_or("a regular expression is needed")?;
                self.pattern = Some(Regex::new(pattern).map_err(|error| error.to_string())?);
            }
            // These keywords restrict nothing.
            "$schema" | "$id" | "$comment" | "title" | "description" | "default" | "examples" | "format" => {}
            _ => return Err("this keyword is not supported".to_owned()),
        }
        Ok(())
    }

    fn check(&self, value: &Json, path: &mut String, faults: &mut Vec<PayloadFault>) {
        let mut fault = |message: String| {
            if faults.len() < MAX_FAULTS {
                faults.push(PayloadFault { path: path.clone(), message });
            }
        };
        if let Some(types) = &self.types
            && !types.iter().any(|wanted| wanted.has(value))
        {
            let names: Vec<&str> = types.iter().map(|wanted| wanted.name()).collect();
            return fault(format!("it must be of type {}", names.join(" or ")));
        }
        if self.one_of.as_ref().is_some_and(|allowed| !allowed.contains(value)) {
            fault("it is none of the values that are allowed".to_owned());
        }
        match value {
            Json::String(text) => {
                let [limits, _] = &self.lengths;
                // Counted only if there is a limit, since counting reads the whole text.
                let length = || text.chars().count() as u64;
                if limits.is_any() {
                    limits.check(length()).map(|said| format!("it must have {said} characters")).map(&mut fault);
                }
                if self.pattern.as_ref().is_some_and(|pattern| !pattern.is_match(text)) {
                    fault("it does not match the pattern".to_owned());
                }
            }
            Json::Number(number) => {
                let said = self.numbers.check(number.as_f64().unwrap_or(f64::NAN));
                said.map(|said| format!("it must be {said}")).map(&mut fault);
            }
            Json::Array(items) => {
                let [_, limits] = &self.lengths;
                limits.check(items.len() as u64).map(|said| format!("it must have {said} items")).map(&mut fault);
                for (place, item) in items.iter().enumerate().filter(|_| self.items.is_some()) {
                    self.items.iter().for_each(|rules| rules.below(item, &place.to_string(), path, faults));
                }
            }
            Json::Object(map) => {
                for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
                    fault(format!("`{name}` is missing"));
                }
                self.check_properties(map, path, faults);
            }
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn check_properties(&self, map: &Map<String, Json>, path: &mut String, faults: &mut Vec<PayloadFault>) {
        for (name, inner) in map {
            match (self.properties.get(name), &self.others) {
                (Some(rules), _) => rules.below(inner, name, path, faults),
                (None, Some(Ok(rules))) => rules.below(inner, name, path, faults),
                (None, Some(Err(()))) if faults.len() < MAX_FAULTS => {
                    faults.push(PayloadFault {
                        path: path.clone(),
                        message: "it has a field that is not allowed".to_owned(),
                    });
                }
                (None, _) => {}
            }
        }
    }

    /// Checks a value inside of another.
    fn below(&self, value: &Json, name: &str, path: &mut String, faults: &mut Vec<PayloadFault>) {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        self.check(value, path, faults);
        path.truncate(length);
    }
}

impl<T: PartialOrd + Copy + fmt::Display> Limits<T> {
    fn is_any(&self) -> bool {
        self.least.is_some() || self.most.is_some()
    }

    /// Returns the requirement that a number beyond a limit breaks.
    fn check(&self, number: T) -> Option<String> {
        match (self.least, self.most) {
            (Some(least), _) if number < least => Some(format!("at least {least}")),
            (_, Some(most)) if number > most => Some(format!("at most {most}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Json, payload: Json, expected: &[(&str, &str)]) {
        let faults = PayloadSchema::new(schema.clone()).unwrap().faults(&payload);
        let found: Vec<_> = faults.iter().map(|fault| (&*fault.path, &*fault.message)).collect();
        assert_eq!(found, expected, "{schema} {payload}");
    }

    #[test]
    fn each_keyword_holds() {
        let of = |inner: Json| json!({ "properties": { "a": inner } });
        for (rules, good, bad, said) in [
            (json!({ "type": "string" }), json!("x"), json!(1), "it must be of type string"),
            (json!({ "type": ["string", "null"] }), json!(null), json!([]), "it must be of type string or null"),
            (json!({ "type": "integer" }), json!(3.0), json!(3.5), "it must be of type integer"),
            (json!({ "type": "number" }), json!(3.5), json!("3"), "it must be of type number"),
            (json!({ "type": "boolean" }), json!(false), json!(0), "it must be of type boolean"),
            (json!({ "enum": ["a", 1] }), json!(1), json!("b"), "it is none of the values that are allowed"),
            (json!({ "const": "a" }), json!("a"), json!("b"), "it is none of the values that are allowed"),
            (json!({ "minLength": 2 }), json!("öö"), json!("ö"), "it must have at least 2 characters"),
            (json!({ "maxLength": 2 }), json!("öö"), json!("ööö"), "it must have at most 2 characters"),
            (json!({ "pattern": "^[a-z]+$" }), json!("abc"), json!("a1"), "it does not match the pattern"),
            (json!({ "minimum": 1 }), json!(1), json!(0), "it must be at least 1"),
            (json!({ "maximum": 1.5 }), json!(1.5), json!(2), "it must be at most 1.5"),
            (json!({ "minItems": 1 }), json!([1]), json!([]), "it must have at least 1 items"),
            (json!({ "maxItems": 1 }), json!([1]), json!([1, 2]), "it must have at most 1 items"),
            (json!({ "required": ["b"] }), json!({ "b": 1 }), json!({}), "`b` is missing"),
            (
                json!({ "properties": { "b": true }, "additionalProperties": false }),
                json!({ "b": 1 }),
                json!({ "c": 1 }),
                "it has a field that is not allowed",
            ),
        ] {
            check(of(rules.clone()), json!({ "a": good }), &[]);
            check(of(rules), json!({ "a": bad }), &[("/a", said)]);
        }
    }

    #[test]
    fn faults_have_their_paths_and_an_end() {
        let schema = json!({
            "properties": { "list": { "items": { "type": "string" } } },
            "additionalProperties": { "type": "integer" },
        });
        let payload = json!({ "list": ["a", 1], "x/y~z": "text" });
        let said = "it must be of type string";
        check(schema.clone(), payload, &[("/list/1", said), ("/x~1y~0z", "it must be of type integer")]);
        let many = PayloadSchema::new(schema).unwrap().faults(&json!({ "list": vec![0; 1000] }));
        assert_eq!(many.len(), MAX_FAULTS);
        check(json!({}), json!([]), &[("", "it must be of type object")]);
    }

    #[test]
    fn what_is_no_schema_says_why() {
        for (schema, expected) in [
            (json!({ "anyOf": [] }), "`anyOf`: this keyword is not supported"),
            (json!({ "maxlength": 3 }), "`maxlength`: this keyword is not supported"),
            (
                json!({ "properties": { "a": { "type": "text" } } }),
                "`properties`: `a`: `type`: there is no type \"text\"",
            ),
            (json!({ "type": "array" }), "`type` must be `object`: what is delivered is one"),
            (json!({ "required": "a" }), "`required`: a list is needed"),
            (json!({ "properties": { "a": 3 } }), "`properties`: `a`: 3 is no mapping of keywords"),
        ] {
            assert_eq!(PayloadSchema::new(schema).unwrap_err(), expected);
        }
        assert!(PayloadSchema::new(json!({ "properties": { "a": { "pattern": "(" } } })).is_err());
    }

    #[test]
    fn a_schema_knows_which_fields_there_may_be() {
        let schema = json!({
            "properties": { "a": {}, "b": { "properties": { "c": {} } }, "d": { "items": { "properties": { "e": {} } } } },
        });
        let schema = PayloadSchema::new(schema).unwrap();
        for (field, expected) in
            [("a", true), ("a.x", true), ("b.c", true), ("b.x", false), ("d.0.e", true), ("x", false)]
        {
            assert_eq!(schema.may_have(field), expected, "{field}");
        }
    }
}
