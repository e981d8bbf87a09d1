//! Splits a file into its YAML block and its body, and reads YAML with positions.
//!
//! `gray_matter` and `serde_yaml` appear only in this folder. Invariants: a line and a column always refer to the
//! original file, whatever was trimmed; nothing is expanded beyond a fixed number of values. This folder knows no
//! field; [`super::parse`] and [`crate::config`] do.

mod emit;
mod mapping;

pub(crate) use emit::yaml_text;
pub(crate) use mapping::{Entry, Node, YamlPath};

use gray_matter::engine::Engine;
use gray_matter::{Matter, Pod};

/// The two parts of a file.
#[derive(Debug)]
pub(crate) struct Document {
    /// The YAML between the fences.
    pub block: Block,
    /// The text after the closing fence, without leading blank lines and without the last line's end. Line ends are
    /// `\n`, whatever the file uses.
    pub body: String,
}

/// A YAML text, and its location in its file.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    yaml: String,
    /// The line of the file (from 1) at which the block begins.
    first_line: u32,
}

/// The reason why a file has no frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFrontmatter {
    /// The file does not begin with `---`.
    Missing,
    /// The file begins with `---`, and no closing line follows. Holds the line (from 1) of the opening one.
    Unclosed(u32),
}

/// A YAML error, in lines and columns (from 1) of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub message: String,
    pub hint: Option<String>,
    pub line: u32,
    pub column: u32,
}

/// Passes the block on unparsed. The engines of `gray_matter` lose positions and types, and run out of memory on an alias bomb.
struct Raw;

impl Engine for Raw {
    fn parse(content: &str) -> gray_matter::Result<Pod> {
        Ok(Pod::String(content.to_owned()))
    }
}

/// Splits `text`. Allows a byte order mark, blank lines before the opening fence, and blanks after a fence.
pub(crate) fn split(text: &str) -> Result<Document, NoFrontmatter> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // gray_matter finds no frontmatter after a blank line.
    let start = text.len() - text.trim_start().len();
    let start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let skipped = newlines(&text[..start]);
    let text = &text[start..];
    let Some((fence, rest)) = text.split_once('\n') else {
        return Err(if text.trim_end() == "---" {
            NoFrontmatter::Unclosed(skipped + 1)
        } else {
            NoFrontmatter::Missing
        });
    };
    if fence.trim_end() != "---" {
        return Err(NoFrontmatter::Missing);
    }
    // gray_matter takes an unclosed block for the body.
    if !rest.split('\n').any(|line| line.starts_with("---") && line.trim_end() == "---") {
        return Err(NoFrontmatter::Unclosed(skipped + 1));
    }
    // The raw engine never fails. A file that gray_matter cannot split has no frontmatter.
    let parsed = Matter::<Raw>::new().parse::<String>(text).map_err(|_| NoFrontmatter::Missing)?;
    // gray_matter trims the block at both ends. Count the trimmed lines again, and restore the first line's
    // indentation, which YAML needs.
    let lead = &rest[..rest.len() - rest.trim_start().len()];
    let indent = lead.rfind('\n').map_or(lead, |newline| &lead[newline + 1..]);
    let yaml = parsed.data.map(|block| [indent, &block, "\n"].concat()).unwrap_or_default();
    let above = if yaml.is_empty() { 0 } else { newlines(lead) };
    let block = Block { yaml, first_line: skipped + 2 + above };
    Ok(Document { block, body: parsed.content })
}

/// Returns the line (from 1) of the closing fence, or the last line if there is none.
pub(crate) fn closing_line(text: &str) -> u32 {
    let fences = (1u32..).zip(text.lines()).filter(|(_, line)| line.trim_start_matches('\u{feff}').trim_end() == "---");
    fences.map(|(line, _)| line).nth(1).unwrap_or_else(|| newlines(text).max(1))
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|b| *b == b'\n').count()).unwrap_or(u32::MAX)
}

impl Block {
    /// Wraps a whole file that is YAML.
    pub(crate) fn of_file(text: &str) -> Block {
        Block { yaml: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(), first_line: 1 }
    }

    /// Returns the entries of the block; none if it holds only comments.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, YamlError> {
        mapping::read(&self.yaml).map_err(|fault| {
            let hint = self.hint(fault.line, &fault.message);
            let line = self.first_line + fault.line.saturating_sub(1);
            YamlError { message: fault.message, hint, line, column: fault.column.max(1) }
        })
    }

    /// Returns the line and column of a location in the file, or the block's start if the YAML cannot be located.
    pub(crate) fn locate(&self, place: &YamlPath) -> (u32, u32) {
        match mapping::locate(&self.yaml, place) {
            Some((line, column)) => (self.first_line + line.saturating_sub(1), column),
            None => (self.first_line, 1),
        }
    }

    /// Returns a scalar as written, whatever type YAML gives it; `None` if it is no scalar.
    pub(crate) fn raw(&self, path: &[usize]) -> Option<String> {
        mapping::raw(&self.yaml, path)
    }

    /// Suggests a fix for the most frequent faults, such as a tab or a value that needs quotes.
    fn hint(&self, line: u32, message: &str) -> Option<String> {
        let text = self.yaml.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?).unwrap_or_default();
        if text.trim_start_matches(' ').starts_with('\t') {
            return Some("indent with spaces: YAML has no tabs there".into());
        }
        if message.contains("too many values") || message.contains("repetition limit") {
            return Some("write the values out instead of repeating them with `*`".into());
        }
        if message.contains("quoted scalar") {
            return Some("close the quote: a `'` within single quotes is written `''`".into());
        }
        let (before, value) = match text.trim_start().strip_prefix("- ") {
            Some(item) => ("- ".to_owned(), item),
            None => {
                let (key, value) = text.split_once(": ")?;
                (format!("{}: ", key.trim()), value)
            }
        };
        let value = value.trim();
        if value.starts_with(['[', '{']) {
            return Some(IN_BRACKETS.into());
        }
        let special = value.starts_with(['*', '&', '@', '`', '%', '!', '|', '>', ']', '}', ',']);
        let quote_helps = !value.is_empty() && !value.starts_with(['\'', '"']) && (special || value.contains(": "));
        quote_helps.then(|| format!("quote the value: `{before}{}`", single_quoted(value)))
    }
}

/// The hint for a value that begins with a bracket.
const IN_BRACKETS: &str = "close the bracket, and quote each value in it by itself: `['Bash(git log *)', Read]`; a text that begins with \
                           one is quoted as a whole";

fn single_quoted(value: &str) -> String {
    let short: String = value.chars().take(60).collect();
    format!("'{}'", short.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        match split(text) {
            Ok(Document { block, body }) => format!("line {}: {:?} / {body:?}", block.first_line, block.yaml),
            Err(no) => format!("{no:?}"),
        }
    }

    #[test]
    fn a_file_splits() {
        let shown: Vec<String> = [
            "---\nid: x\n---\nbody\n",
            "---\nid: x\n---\n\n\nbody\n\n",
            "---\r\nid: x\r\ncron: y\r\n---\r\none\r\ntwo\r\n",
            "\u{feff}---\nid: x\n---\nbody",
            "\n  \n---\nid: x\n---\nbody",
            "---   \nid: x\n--- \t\nbody",
            "---\n\n# note\n  id: x\n  cron: y\n---\nbody",
            "---\n  id: x\n  cron: y\n---\nbody",
            "---\nid: x\n---\na\n---\nb\n",
            "---\nid: x\n---\na---\nb\n",
            "---\n---\nbody",
            "---\n\n---\nbody",
            "---\nid: |\n  a\n  ---\n---\nbody",
            "---\nid: x\n---",
            "---\nid: x\n---\n",
            "",
            "---",
            "---\n",
            "---\nid: x\n",
            "\n---\nid: x\n",
            " ---\nid: x\n---\nbody",
            "----\nid: x\n---\nbody",
            "body\n---\nid: x\n---\n",
        ]
        .iter()
        .map(|text| format!("{text:?}\n    {}", check(text)))
        .collect();
        insta::assert_snapshot!(shown.join("\n"), @r##"
        "---\nid: x\n---\nbody\n"
            line 2: "id: x\n" / "body"
        "---\nid: x\n---\n\n\nbody\n\n"
            line 2: "id: x\n" / "body\n"
        "---\r\nid: x\r\ncron: y\r\n---\r\none\r\ntwo\r\n"
            line 2: "id: x\ncron: y\n" / "one\ntwo"
        "\u{feff}---\nid: x\n---\nbody"
            line 2: "id: x\n" / "body"
        "\n  \n---\nid: x\n---\nbody"
            line 4: "id: x\n" / "body"
        "---   \nid: x\n--- \t\nbody"
            line 2: "id: x\n" / "body"
        "---\n\n# note\n  id: x\n  cron: y\n---\nbody"
            line 3: "# note\n  id: x\n  cron: y\n" / "body"
        "---\n  id: x\n  cron: y\n---\nbody"
            line 2: "  id: x\n  cron: y\n" / "body"
        "---\nid: x\n---\na\n---\nb\n"
            line 2: "id: x\n" / "a\n---\nb"
        "---\nid: x\n---\na---\nb\n"
            line 2: "id: x\n" / "a---\nb"
        "---\n---\nbody"
            line 2: "" / "body"
        "---\n\n---\nbody"
            line 2: "" / "body"
        "---\nid: |\n  a\n  ---\n---\nbody"
            line 2: "id: |\n  a\n  ---\n" / "body"
        "---\nid: x\n---"
            line 2: "id: x\n" / ""
        "---\nid: x\n---\n"
            line 2: "id: x\n" / ""
        ""
            Missing
        "---"
            Unclosed(1)
        "---\n"
            Unclosed(1)
        "---\nid: x\n"
            Unclosed(1)
        "\n---\nid: x\n"
            Unclosed(2)
        " ---\nid: x\n---\nbody"
            Missing
        "----\nid: x\n---\nbody"
            Missing
        "body\n---\nid: x\n---\n"
            Missing
        "##);
    }
}
