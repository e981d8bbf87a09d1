//! Tool patterns, in the agent client's own format: `Tool` or `Tool(specifier)`.

use std::fmt;

/// One pattern as a person wrote it: a tool's name and, in parentheses, what it may be used on.
///
/// `Bash(ollim-bot gmail *)` has the tool `Bash` and the specifier `ollim-bot gmail *`; `Read` has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolPattern {
    tool: String,
    specifier: Option<String>,
}

/// Why a text is not a tool pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing but blanks.
    #[error("empty tool pattern")]
    Empty,
    /// An opening parenthesis without its end, an end without a start, or text after the end.
    #[error("unbalanced parentheses in tool pattern `{0}`")]
    Unbalanced(String),
    /// A character that no tool name has.
    #[error("`{0}` is not a tool name")]
    Name(String),
}

impl ToolPattern {
    /// # Errors
    /// [`PatternError`] when the text is empty, not balanced, or its name cannot be a tool's.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let (tool, specifier) = match text.split_once('(') {
            None if text.contains(')') => return Err(PatternError::Unbalanced(text.into())),
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(specifier) => (tool, Some(specifier.trim())),
                None => return Err(PatternError::Unbalanced(text.into())),
            },
        };
        let known = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
        if tool.is_empty() || !tool.chars().all(known) {
            return Err(PatternError::Name(tool.into()));
        }
        Ok(Self { tool: tool.into(), specifier: specifier.map(Into::into) })
    }

    /// The entry that every allowlist gets by itself.
    #[must_use]
    pub fn ollim_bot_help() -> Self {
        Self { tool: "Bash".into(), specifier: Some("ollim-bot help".into()) }
    }

    /// The tool's name as written.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What stands in the parentheses; `None` without parentheses.
    #[must_use]
    pub fn specifier(&self) -> Option<&str> {
        self.specifier.as_deref()
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.specifier {
            Some(specifier) => write!(f, "{}({specifier})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}
