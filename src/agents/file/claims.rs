//! The names that a broken file claims.
//!
//! A file that cannot be read must still hide the agent that it would replace. Otherwise a typing error would turn a
//! person's own, stricter `Explore` into the built-in one. So a guess returns too many names rather than too few.

use std::path::Path;

use crate::definition::frontmatter::{Entry, Node};

/// Returns the names claimed by a file with valid frontmatter but no single `name`: its stem and each value of `name`.
pub(super) fn of(path: &Path, entries: &[Entry]) -> Vec<String> {
    let said = entries.iter().filter(|entry| entry.key == "name").filter_map(|entry| match &entry.value {
        Node::Text(name) => Some(name.trim().to_owned()),
        _ => None,
    });
    with_stem(path, said)
}

/// Returns the names claimed by a file that could not be read: its stem and the text after each `name:`.
pub(super) fn guessed(path: &Path, text: &str) -> Vec<String> {
    let said = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_name = bare(key).eq_ignore_ascii_case("name");
        is_name.then(|| bare(value.split(['#', ',', '}']).next().unwrap_or(value)).to_owned())
    });
    with_stem(path, said)
}

/// Strips the characters around a word: blanks, quotes, a BOM, and the punctuation of lists and flow mappings.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "\"'{},-?\u{feff}".contains(c))
}

fn with_stem(path: &Path, said: impl Iterator<Item = String>) -> Vec<String> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut names: Vec<String> = said.filter(|name| !name.is_empty()).collect();
    names.extend(stem);
    names.sort();
    names.dedup();
    names
}

/// Returns the text with its unquoted one-line `description` put in quotes, and that line's number (from 1). A colon or a
/// `#` in a description is common and breaks YAML, while the client reads the line as it is.
pub(super) fn with_quoted_description(text: &str) -> Option<(String, u32)> {
    const KEY: &str = "description:";
    let mut number = 0_u32;
    let mut found = None;
    let lines = text.lines().map(|line| {
        number += 1;
        match line.strip_prefix(KEY).map(str::trim) {
            Some(value) if found.is_none() && !value.is_empty() && !value.starts_with(['"', '\'', '|', '>']) => {
                found = Some(number);
                format!("{KEY} '{}'", value.replace('\'', "''"))
            }
            _ => line.to_owned(),
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    found.map(|line| (text, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_takes_the_place_of_all_that_it_may_mean() {
        for (file, text, expected) in [
            ("x.md", "---\nname: Explore\ntools: [\n---\n", vec!["Explore", "x"]),
            ("x.md", "---\n\"name\": \"Explore\" # mine\n: :\n", vec!["Explore", "x"]),
            ("x.md", "{ name: Explore, tools: [", vec!["Explore", "x"]),
            ("x.md", "\u{feff}name : 'Plan'", vec!["Plan", "x"]),
            ("Plan.md", "", vec!["Plan"]),
            ("x.md", "name:\nname: a\n  name: b", vec!["a", "b", "x"]),
            ("x.md", "rename: a", vec!["x"]),
        ] {
            assert_eq!(guessed(Path::new(file), text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_description_is_put_in_quotes() {
        for (text, expected) in [
            ("---\ndescription: a: b\n---", Some(("---\ndescription: 'a: b'\n---", 2))),
            ("description: it's: so", Some(("description: 'it''s: so'", 1))),
            ("description: 'a'", None),
            ("description: |\n  a", None),
            ("name: x", None),
        ] {
            assert_eq!(with_quoted_description(text), expected.map(|(text, line)| (text.to_owned(), line)), "{text}");
        }
    }
}
