//! The one table of an agent's fields, and what a misspelled one may have meant.

/// What a field is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Read.
    Read,
    /// Read, and a restriction: a key close to it is an error.
    Restricts,
    /// The client's; it has no effect here, and the person should know.
    NotHere,
    /// The client's; for its screen only.
    Screen,
}

/// The client's fields (<https://code.claude.com/docs/en/sub-agents>), those of its files and of its SDK.
pub(super) const FIELDS: &[(&str, Use)] = &[
    ("name", Use::Read),
    ("description", Use::Read),
    ("tools", Use::Restricts),
    ("disallowedTools", Use::Restricts),
    ("model", Use::Read),
    ("permissionMode", Use::Restricts),
    ("maxTurns", Use::Restricts),
    ("color", Use::Screen),
    ("skills", Use::NotHere),
    ("mcpServers", Use::NotHere),
    ("hooks", Use::NotHere),
    ("memory", Use::NotHere),
    ("background", Use::NotHere),
    ("effort", Use::NotHere),
    ("isolation", Use::NotHere),
    ("initialPrompt", Use::NotHere),
    ("autoCompactWindow", Use::NotHere),
    ("omitClaudeMd", Use::NotHere),
    ("observer", Use::NotHere),
    ("observerMessage", Use::NotHere),
];

/// Other words for a restriction: those of definitions and of skills.
const SYNONYMS: &[(&str, &str)] = &[
    ("allowedtools", "tools"),
    ("blockedtools", "disallowedTools"),
    ("deniedtools", "disallowedTools"),
    ("denytools", "disallowedTools"),
    ("mode", "permissionMode"),
    ("permissions", "permissionMode"),
    ("turns", "maxTurns"),
];

/// The field an unknown key may have meant.
pub(super) fn nearest(key: &str) -> Option<(&'static str, Use)> {
    let bare =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect() };
    // Measuring takes time by the product of both lengths.
    let word = bare(Some(key).filter(|key| key.len() < 60)?);
    let field = |name: &str| FIELDS.iter().find(|(field, _)| *field == name).copied();
    if let Some((_, name)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word) {
        return field(name);
    }
    let distance = |name: &str| strsim::damerau_levenshtein(&bare(name), &word);
    let near = FIELDS.iter().filter(|(name, _)| distance(name) <= 2 && distance(name) < name.len().min(word.len()));
    near.min_by_key(|(name, how)| (*how != Use::Restricts, distance(name))).copied()
}
