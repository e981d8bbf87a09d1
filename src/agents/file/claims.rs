//! Whose place a broken file takes: the names that it may mean, where it cannot be read well enough to say.
//!
//! A file that cannot be read must hide the agent it was to replace, or a person's own stricter `Explore` would give
//! way to the built-in one by a typing error. So a guess names too many rather than too few.

use std::path::Path;

use crate::definition::frontmatter::{Entry, Node};

/// The names of a file whose frontmatter was read, but names no agent: its stem, and whatever `name` says.
pub(super) fn of(path: &Path, entries: &[Entry]) -> Vec<String> {
    let said = entries.iter().filter(|entry| entry.key == "name").filter_map(|entry| match &entry.value {
        Node::Text(name) => Some(name.trim().to_owned()),
        _ => None,
    });
    with_stem(path, said)
}

/// The names of a file that could not be read: what stands behind a `name:` anywhere, or its stem.
pub(super) fn guessed(path: &Path, text: &str) -> Vec<String> {
    let said = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_name = bare(key).eq_ignore_ascii_case("name");
        is_name.then(|| bare(value.split(['#', ',', '}']).next().unwrap_or(value)).to_owned())
    });
    with_stem(path, said)
}

/// Without what stands around a word: blanks, quotes, a BOM, the marks of lists and flow mappings.
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

/// The text with its one-line `description` in quotes, and that line (from 1), where it has none that YAML would read:
/// a colon or a `#` in it is common, and the client reads the line as it is.
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
