//! The table of an agent's fields, and the guess at the field that a misspelled key means.

/// The way a field is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldUse {
    /// The program reads the field.
    Read,
    /// The program reads the field, and it restricts the agent: a similar unknown key is an error.
    Restricts,
    /// A field of the client's without effect here. The person is warned.
    NotHere,
    /// A field for the client's screen only. It is ignored.
    Screen,
}

/// The client's fields (<https://code.claude.com/docs/en/sub-agents>), those of its files and of its SDK.
pub(super) const FIELDS: &[(&str, FieldUse)] = &[
    ("name", FieldUse::Read),
    ("description", FieldUse::Read),
    ("tools", FieldUse::Restricts),
    ("disallowedTools", FieldUse::Restricts),
    ("model", FieldUse::Read),
    ("permissionMode", FieldUse::Restricts),
    ("maxTurns", FieldUse::Restricts),
    ("color", FieldUse::Screen),
    ("skills", FieldUse::NotHere),
    ("mcpServers", FieldUse::NotHere),
    ("hooks", FieldUse::NotHere),
    ("memory", FieldUse::NotHere),
    ("background", FieldUse::NotHere),
    ("effort", FieldUse::NotHere),
    ("isolation", FieldUse::NotHere),
    ("initialPrompt", FieldUse::NotHere),
    ("autoCompactWindow", FieldUse::NotHere),
    ("omitClaudeMd", FieldUse::NotHere),
    ("observer", FieldUse::NotHere),
    ("observerMessage", FieldUse::NotHere),
];

/// Names that definitions and skills use for a restriction.
const SYNONYMS: &[(&str, &str)] = &[
    ("allowedtools", "tools"),
    ("blockedtools", "disallowedTools"),
    ("deniedtools", "disallowedTools"),
    ("denytools", "disallowedTools"),
    ("mode", "permissionMode"),
    ("permissions", "permissionMode"),
    ("turns", "maxTurns"),
];

/// Returns the field that an unknown key may have meant.
pub(super) fn nearest(key: &str) -> Option<(&'static str, FieldUse)> {
    let bare =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    // The distance takes time proportional to the product of both lengths.
    let word = bare(Some(key).filter(|key| key.len() < 60)?);
    let field = |name: &str| FIELDS.iter().find(|(field, _)| *field == name).copied();
    if let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word) {
        return field(name);
    }
    let distance = |name: &str| strsim::damerau_levenshtein(&bare(name), &word);
    let near = FIELDS.iter().filter(|(name, _)| distance(name) <= 2 && distance(name) < name.len().min(word.len()));
    near.min_by_key(|(name, how)| (*how != FieldUse::Restricts, distance(name))).copied()
}
