//! Problems of files: location, message and hint.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::{Definition, DefinitionId, Kind};
use crate::home::Home;

/// The effect of a problem on its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The definition does not fire. For `config.yaml`: the program does not start.
    Error,
    /// The definition fires; the person should look at it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A problem of a file, with its location.
///
/// Its JSON keys are those of `check --json`. Its `Display` is the output of `check`, without a final newline. Texts
/// from the file are shortened and their control characters escaped, so that a problem can be printed on a terminal and
/// sent through a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, relative to the data folder.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Counted from 1. 1 if the problem concerns the file as a whole.
    pub line: u32,
    /// Counted from 1, in characters. 1 if the problem concerns the line as a whole.
    pub column: u32,
    /// The field, in snake_case (an unknown one as written); `None` if the problem concerns no single field.
    pub field: Option<String>,
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong: a lowercase sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The id of the definition, as far as it could be read; `None` if the file is not a single definition.
    pub id: Option<DefinitionId>,
    /// The job that made the definition, as far as it could be read; `None` if no job did.
    #[serde(skip)]
    pub made_by: Option<DefinitionId>,
}

impl Problem {
    /// Returns the place as `FILE:LINE:COLUMN`, with control characters escaped.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}:{}", plain(&self.file.to_string_lossy()), self.line, self.column)
    }

    /// Creates a problem of `file` as a whole.
    #[must_use]
    pub fn of_file(file: &Path, severity: Severity, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 1,
            column: 1,
            field: None,
            severity,
            message: message.into(),
            hint,
            id: None,
            made_by: None,
        }
    }

    /// Creates a problem of a definition's field. The location is that of the file as a whole.
    #[must_use]
    pub fn of_field(
        definition: &Definition,
        field: &str,
        severity: Severity,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (field, id) = (Some(field.to_owned()), Some(definition.id.clone()));
        let made_by = definition.created_by.clone();
        Self { field, id, made_by, ..Self::of_file(&definition.file, severity, message, Some(hint.into())) }
    }

    /// Locates the problem at its field in the current file, unless it has a location already.
    #[must_use]
    pub fn at_field(self, home: &Home) -> Self {
        match &self.field {
            Some(field) if (self.line, self.column) == (1, 1) => {
                let (line, column) = super::read::position(home, &self.file, field);
                Self { line, column, ..self }
            }
            _ => self,
        }
    }

    /// Locates the problem at the first `words` in the file's text; unchanged if they are not there.
    #[must_use]
    pub fn at_words(self, text: &str, words: &str) -> Self {
        match text.find(words) {
            Some(at) => self.at_offset(text, at),
            None => self,
        }
    }

    /// Locates the problem at this byte of the file's text.
    pub(crate) fn at_offset(self, text: &str, at: usize) -> Self {
        let before = &text[..at];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        Self { line: number(before.matches('\n').count()), column: number(column), ..self }
    }

    /// Whether it is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A name of a file may be no UTF-8.
fn as_text<S: Serializer>(file: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&file.to_string_lossy())
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.severity)?;
        if let (Some(kind), Some(id)) = (kind_of(&self.file), &self.id) {
            write!(f, "{kind} {}: ", quoted(id.as_str()))?;
        }
        writeln!(f, "{}", plain(&self.message))?;
        write!(f, "  --> {}", self.place())?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", plain(hint))?;
        }
        Ok(())
    }
}

/// Returns the kind of a file in the data folder, by its folder.
pub(crate) fn kind_of(file: &Path) -> Option<Kind> {
    match file.as_os_str().as_encoded_bytes().split(|byte| *byte == b'/').next()? {
        b"routines" => Some(Kind::Routine),
        b"reminders" => Some(Kind::Reminder),
        b"webhooks" => Some(Kind::Webhook),
        _ => None,
    }
}

/// Quotes a text from a file in backquotes: at most 80 characters, with control characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    let short: String = text.chars().take(LONGEST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", plain(&short))
}

/// Escapes control characters, and characters that change the writing direction.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem() -> Problem {
        Problem {
            file: "reminders/tea.md".into(),
            line: 6,
            column: 1,
            field: Some("disallowed_tools".into()),
            severity: Severity::Error,
            message: "`allowed_tools` and `disallowed_tools` cannot both be set".into(),
            hint: Some("keep one".into()),
            id: Some(DefinitionId::new("tea")),
            made_by: None,
        }
    }

    #[test]
    fn a_problem_is_three_lines() {
        insta::assert_snapshot!(problem(), @"
        error: reminder `tea`: `allowed_tools` and `disallowed_tools` cannot both be set
          --> reminders/tea.md:6:1
        hint: keep one
        ");
    }

    #[test]
    fn the_json_keys_are_those_that_others_build_on() {
        insta::assert_snapshot!(serde_json::to_string(&problem()).unwrap(), @r#"{"file":"reminders/tea.md","line":6,"column":1,"field":"disallowed_tools","severity":"error","message":"`allowed_tools` and `disallowed_tools` cannot both be set","hint":"keep one","id":"tea"}"#);
    }

    #[test]
    fn what_a_file_says_cannot_drive_the_terminal() {
        let shown = quoted("\u{1b}[2Jx\n\u{202e}y");
        assert_eq!(shown, "`\\u{1b}[2Jx\\n\\u{202e}y`");
        assert_eq!(quoted(&"ä".repeat(100)).chars().count(), 83);
    }
}
