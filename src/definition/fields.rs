//! The fields of a definition: names, kinds and rules. [`table`] lists them all.

mod table;
mod types;
mod value;

pub use table::{Definition, Draft, FIELDS};
pub use types::Shape;
pub(crate) use types::{FieldType, words};
pub use value::FieldValue;

use super::values::{Fault, Value};
use super::{JobClient, Kind};

/// A field of a definition.
pub struct Field {
    /// The name in snake_case, as the program writes it.
    pub name: &'static str,
    /// One line, for `--help` and the documentation.
    pub help: &'static str,
    /// Further lines for the documentation.
    pub details: &'static str,
    /// A value as written in a file.
    pub example: &'static str,
    /// The effective value if neither the file nor the program sets one, in words.
    pub unset: &'static str,
    /// The kinds of definition that have it.
    pub on: FieldKinds,
    /// Whether a definition of those kinds needs it.
    pub required: bool,
    /// Whether it has an effect only on background jobs.
    pub background_only: bool,
    /// Whether only an agent uses it. That also holds for every `background_only` field.
    pub agent_only: bool,
    /// Whether a command (`client: exec`) uses it too, although only an agent does otherwise.
    pub command_too: bool,
    /// Whether only a command (`client: exec`) uses it.
    pub command_only: bool,
    /// Whether omitting it (by a typing error) could let a job do or cost more than its file says. A key similar to its
    /// name is then an error instead of a warning.
    pub restricts: bool,
    /// Whether `name:` without a value equals no line.
    pub may_be_empty: bool,
    /// Fields that cannot be set with it.
    pub not_with: &'static [&'static str],
    /// Whether it is a note of the program in the file, and no part of the definition.
    pub note: bool,
    /// The values that a run may set in a definition that it makes.
    pub limit: Limit,
    /// The flags of `add` and `edit` that set it.
    pub flags: &'static [Flag],
    /// The form of its value on a command line.
    pub shape: Shape,
    /// Reads a value into a draft.
    pub(crate) read: fn(&Value, &mut Draft) -> Result<(), Fault>,
    /// Returns the value in a draft; `None` if it is not set.
    pub show: fn(&Draft) -> Option<FieldValue>,
}

impl Field {
    /// The values of most fields. A row sets `name`, `help`, `shape`, `read` and `show`.
    const BASE: Self = Self {
        name: "",
        help: "",
        details: "",
        example: "",
        unset: "",
        on: FieldKinds::All,
        required: false,
        background_only: false,
        agent_only: false,
        command_too: false,
        command_only: false,
        restricts: false,
        may_be_empty: false,
        not_with: &[],
        note: false,
        limit: Limit::Free,
        flags: &[],
        shape: Shape::Text,
        read: |_, _| Ok(()),
        show: |_| None,
    };

    /// Whether only an agent uses it.
    #[must_use]
    pub fn is_for_agents(&self) -> bool {
        self.agent_only || self.background_only
    }

    /// Whether a job of this client uses it.
    #[must_use]
    pub fn is_heeded_by(&self, client: Option<JobClient>) -> bool {
        match client {
            Some(JobClient::Exec) => self.command_only || self.command_too || !self.is_for_agents(),
            Some(JobClient::Notify) => !self.command_only && !self.is_for_agents(),
            Some(JobClient::Claude) | None => !self.command_only,
        }
    }

    /// Returns the value in a draft; `None` if it is not set or is the default.
    #[must_use]
    pub fn not_default(&self, draft: &Draft) -> Option<FieldValue> {
        let value = (self.show)(draft);
        value.filter(|value| (self.show)(&Draft::empty(draft.kind, String::new())).as_ref() != Some(value))
    }
}

/// The kinds of definition that have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKinds {
    /// All kinds.
    All,
    /// Routines.
    Routine,
    /// Reminders and sessions.
    Reminder,
    /// Webhooks.
    Webhook,
    /// Kinds that fire again and again: routines and webhooks.
    Recurring,
    /// Kinds that fire at times of their own: all but webhooks.
    Timed,
}

impl FieldKinds {
    /// Whether this kind has the field.
    #[must_use]
    pub fn has(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Routine => kind == Kind::Routine,
            Self::Reminder => matches!(kind, Kind::Reminder | Kind::Session),
            Self::Webhook => kind == Kind::Webhook,
            Self::Recurring => matches!(kind, Kind::Routine | Kind::Webhook),
            Self::Timed => kind != Kind::Webhook,
        }
    }

    /// Returns the kinds of files that have the field.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::WITH_FILES.into_iter().filter(move |kind| self.has(*kind))
    }
}

/// A limit on the value that a run may set in a definition that it makes.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Any value.
    Free,
    /// At most the value of the run's own definition, which is also the default.
    AtMost,
    /// A special rule, as a sentence. `run::delegation` enforces it.
    Other(&'static str),
}

/// A flag of `add` and `edit`.
pub struct Flag {
    /// Its name, without dashes.
    pub long: &'static str,
    /// One-letter form.
    pub short: Option<char>,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// Name of its argument in help.
    pub argument: &'static str,
    /// The value that it sets; `None` if it takes an argument.
    pub sets: Option<fn() -> FieldValue>,
    /// The help text; `None` for that of the field.
    pub help: Option<&'static str>,
    /// Whether only the program uses it.
    pub hidden: bool,
    /// Whether only `edit` has it, because it sets the default of a new file.
    pub only_edits: bool,
}

/// Creates a flag with an argument.
const fn takes(long: &'static str, argument: &'static str) -> Flag {
    Flag { long, short: None, alias: None, argument, sets: None, help: None, hidden: false, only_edits: false }
}

/// Creates a flag without an argument.
const fn sets(long: &'static str, value: fn() -> FieldValue) -> Flag {
    Flag { sets: Some(value), ..takes(long, "") }
}

const TRUE: fn() -> FieldValue = || FieldValue::Flag(true);
const FALSE: fn() -> FieldValue = || FieldValue::Flag(false);
const INTERNET: fn() -> FieldValue = || FieldValue::Text("internet".to_owned());
const NO_NETWORK: fn() -> FieldValue = || FieldValue::Text("none".to_owned());

impl Flag {
    const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }
    const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }
    const fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }
    const fn only_edits(self) -> Self {
        Self { only_edits: true, ..self }
    }
    const fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }
}

/// Other names for a restriction: more than two letters away from it, but with a clear meaning.
const SYNONYMS: [(&str, &str); 8] = [
    ("blockedtools", "disallowed_tools"),
    ("deniedtools", "disallowed_tools"),
    ("denytools", "disallowed_tools"),
    ("disallow", "disallowed_tools"),
    ("tools", "allowed_tools"),
    ("allow", "allowed_tools"),
    ("allowed", "allowed_tools"),
    ("noping", "allow_ping"),
];

/// Returns the field with this name, in snake_case or kebab-case.
pub(crate) fn named(key: &str) -> Option<&'static Field> {
    let same = |name: &str| {
        name.len() == key.len() && name.bytes().zip(key.bytes()).all(|(n, k)| n == k || (n == b'_' && k == b'-'))
    };
    FIELDS.iter().find(|field| same(field.name))
}

/// Returns the field that an unknown key probably means; a restriction first.
pub(crate) fn nearest(key: &str) -> Option<&'static Field> {
    // The distance takes time proportional to the product of both lengths.
    let word = bare(Some(key).filter(|key| key.len() < 60)?);
    if let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word) {
        return named(name);
    }
    let distance = |field: &Field| strsim::damerau_levenshtein(&bare(field.name), &word);
    let near = |field: &&'static Field| distance(field) <= 2 && distance(field) < field.name.len().min(word.len());
    FIELDS.iter().filter(near).min_by_key(|field| (!field.restricts, distance(field)))
}

/// Returns the key in lower case without separators: `allowedTools`, `Allowed Tools` and `allowed-tools` are equal.
fn bare(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_a_field() {
        for (key, expected) in [
            ("allowed_tools", Some("allowed_tools")),
            ("allowed-tools", Some("allowed_tools")),
            ("max-cost_usd", Some("max_cost_usd")),
            ("allowedtools", None),
            ("Allowed_Tools", None),
            ("", None),
        ] {
            assert_eq!(named(key).map(|f| f.name), expected, "{key}");
        }
    }

    #[test]
    fn an_unknown_key_has_its_nearest() {
        for (key, expected) in [
            ("alowed_tools", Some("allowed_tools")),
            ("allowedTools", Some("allowed_tools")),
            ("disalowed-tool", Some("disallowed_tools")),
            ("blocked_tools", Some("disallowed_tools")),
            ("tools", Some("allowed_tools")),
            ("backgroud", Some("background")),
            ("enable", Some("enabled")),
            ("agents", Some("agent")),
            ("discription", Some("description")),
            ("time_zone", Some("timezone")),
            ("priority", None),
            ("at", None),
            ("x", None),
        ] {
            assert_eq!(nearest(key).map(|f| f.name), expected, "{key}");
        }
    }
}
