//! The one table of a definition's fields: what they are called, where they belong, what hangs on them.

/// One field.
#[derive(Debug)]
pub(crate) struct Field {
    /// In snake_case, as the program writes it.
    pub name: &'static str,
    /// The kinds of definition that have it.
    pub on: On,
    /// What it says, where the job runs in the background only.
    pub background_only: bool,
    /// Whether leaving it out (by a typing error) could let a job do or cost more than its file says: a key close
    /// to its name is an error instead of a warning.
    pub restricts: bool,
}

/// The kinds of definition that have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Both,
    Routine,
    Reminder,
}

const fn field(name: &'static str, on: On) -> Field {
    Field { name, on, background_only: false, restricts: false }
}

impl Field {
    const fn background_only(mut self) -> Self {
        self.background_only = true;
        self
    }
    const fn restricts(mut self) -> Self {
        self.restricts = true;
        self
    }
}

/// Every field, in the order in which the program writes them.
pub(crate) static FIELDS: [Field; 28] = [
    field("id", On::Both),
    field("description", On::Both),
    field("cron", On::Routine),
    field("run_at", On::Reminder),
    field("timezone", On::Both),
    field("enabled", On::Both).restricts(),
    field("background", On::Both).restricts(),
    field("isolated", On::Both).background_only(),
    field("model", On::Both).background_only(),
    field("thinking", On::Both).background_only(),
    field("allowed_tools", On::Both).background_only().restricts(),
    field("disallowed_tools", On::Both).background_only().restricts(),
    field("agent", On::Both).background_only().restricts(),
    field("update_main_session", On::Both).background_only().restricts(),
    field("allow_ping", On::Both).background_only().restricts(),
    field("network", On::Both).background_only().restricts(),
    field("skills", On::Both),
    field("timeout", On::Both).restricts(),
    field("max_turns", On::Both).restricts(),
    field("max_cost_usd", On::Both).restricts(),
    field("on_missed", On::Both),
    field("on_overlap", On::Routine),
    field("retry", On::Both),
    field("max_chain", On::Reminder),
    field("chain_depth", On::Reminder),
    field("chain_parent", On::Reminder),
    // Written where a run made the file: that job may change it later, and a person sees where it came from.
    field("created_by", On::Both),
    // Written into a file that is moved to `reminders/failed/`, taken out when it comes back.
    field("failed_reason", On::Reminder),
];

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
