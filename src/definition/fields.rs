//! A definition's fields: what each is called, where it belongs, and what hangs on it. [`table`] has them all.

mod table;
mod types;
mod value;

pub use table::{Definition, Draft, FIELDS};
pub use types::Shape;
pub(crate) use types::{FieldType, words};
pub use value::FieldValue;

use super::values::{Fault, Value};
use super::{JobClient, Kind};

/// One field.
pub struct Field {
    /// In snake_case, as the program writes it.
    pub name: &'static str,
    /// One line, for `--help` and the documentation.
    pub help: &'static str,
    /// More lines for the documentation.
    pub details: &'static str,
    /// A value as a file has it.
    pub example: &'static str,
    /// What holds where neither the file nor the program sets a value.
    pub unset: &'static str,
    /// The kinds of definition that have it.
    pub on: On,
    /// A definition of those kinds cannot be without it.
    pub required: bool,
    /// It has an effect only where the job runs in the background.
    pub background_only: bool,
    /// Only an agent heeds it. So it is with each that is `background_only`.
    pub agent_only: bool,
    /// Of those, one that a command (`client: exec`) heeds, too.
    pub command_too: bool,
    /// Only a command (`client: exec`) heeds it.
    pub command_only: bool,
    /// Whether leaving it out (by a typing error) could let a job do or cost more than its file says: a key close
    /// to its name is an error instead of a warning.
    pub restricts: bool,
    /// Whether `name:` without a value is the same as no line.
    pub may_be_empty: bool,
    /// The fields that cannot be set beside it.
    pub not_with: &'static [&'static str],
    /// A note of the program's in the file, and no part of what the definition says.
    pub note: bool,
    /// What a run may set where it makes a definition.
    pub limit: Limit,
    /// How `add` and `edit` spell it.
    pub flags: &'static [Flag],
    /// What its value is on a command line.
    pub shape: Shape,
    /// Reads a value into a draft.
    pub(crate) read: fn(&Value, &mut Draft) -> Result<(), Fault>,
    /// The value in a draft; `None`: it is not set.
    pub show: fn(&Draft) -> Option<FieldValue>,
}

impl Field {
    /// What holds of most fields. `name`, `help`, `shape`, `read` and `show` come from the row.
    const BASE: Self = Self {
        name: "",
        help: "",
        details: "",
        example: "",
        unset: "",
        on: On::All,
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

    /// Whether only an agent heeds it.
    #[must_use]
    pub fn is_for_agents(&self) -> bool {
        self.agent_only || self.background_only
    }

    /// Whether a job of this client heeds it.
    #[must_use]
    pub fn is_heeded_by(&self, client: Option<JobClient>) -> bool {
        match client {
            Some(JobClient::Exec) => self.command_only || self.command_too || !self.is_for_agents(),
            Some(JobClient::Notify) => !self.command_only && !self.is_for_agents(),
            Some(JobClient::Claude) | None => !self.command_only,
        }
    }

    /// The value in a draft, where it is not the default.
    #[must_use]
    pub fn not_default(&self, draft: &Draft) -> Option<FieldValue> {
        let value = (self.show)(draft);
        value.filter(|value| (self.show)(&Draft::empty(draft.kind, String::new())).as_ref() != Some(value))
    }
}

/// The kinds of definition that have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All.
    All,
    /// Routines.
    Routine,
    /// Reminders, and spawned agents.
    Reminder,
    /// Webhooks.
    Webhook,
    /// Those that fire again and again: routines and webhooks.
    Recurring,
    /// Those that fire at times of their own: all but webhooks.
    Timed,
}

impl On {
    /// Whether this kind has it.
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

    /// The kinds of files that have it.
    pub fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::WITH_FILES.into_iter().filter(move |kind| self.has(*kind))
    }
}

/// What a run may set in a definition that it makes.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Anything.
    Free,
    /// At most the value of its own definition, which is also the default.
    AtMost,
    /// A rule of its own, in a sentence; `run::delegation` holds it.
    Other(&'static str),
}

/// A flag of `add` and `edit`.
pub struct Flag {
    /// Its name, without dashes.
    pub long: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// Another name.
    pub alias: Option<&'static str>,
    /// What its argument is called in help.
    pub argument: &'static str,
    /// The value that it sets; `None`: its argument.
    pub sets: Option<fn() -> FieldValue>,
    /// `None`: the field's.
    pub help: Option<&'static str>,
    /// Only the program uses it.
    pub hidden: bool,
    /// Only `edit` has it: it sets what holds anyway where a file is made.
    pub only_edits: bool,
}

/// A flag with an argument.
const fn takes(long: &'static str, argument: &'static str) -> Flag {
    Flag { long, short: None, alias: None, argument, sets: None, help: None, hidden: false, only_edits: false }
}

/// A flag without one.
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

/// Other words for a restriction, further than two letters from its name but plainly meant.
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

/// The field that `key` names, in snake_case or kebab-case.
pub(crate) fn named(key: &str) -> Option<&'static Field> {
    let same = |name: &str| {
        name.len() == key.len() && name.bytes().zip(key.bytes()).all(|(n, k)| n == k || (n == b'_' && k == b'-'))
    };
    FIELDS.iter().find(|field| same(field.name))
}

/// The field an unknown key may have meant, a restriction first.
pub(crate) fn nearest(key: &str) -> Option<&'static Field> {
    // Measuring takes time by the product of both lengths.
    let word = bare(Some(key).filter(|key| key.len() < 60)?);
    if let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word) {
        return named(name);
    }
    let distance = |field: &Field| strsim::damerau_levenshtein(&bare(field.name), &word);
    let near = |field: &&'static Field| distance(field) <= 2 && distance(field) < field.name.len().min(word.len());
    FIELDS.iter().filter(near).min_by_key(|field| (!field.restricts, distance(field)))
}

/// Lower case, without what separates words: `allowedTools`, `Allowed Tools` and `allowed-tools` are one word.
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
