//! What can go wrong with a command, as a person reads it.

use std::fmt;

use crate::config::ConfigError;
use crate::definition::{DefinitionError, Problem};
use crate::journal::JournalError;

/// The way to a data folder.
pub(super) const NO_HOME: &str = "`ollim-bot init` makes one; `--home DIR` or OLLIM_HOME names another";

/// An error with ways out. Its exit code says whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    exit: u8,
    message: String,
    hints: Vec<String>,
    denied: bool,
}

impl CliError {
    /// The person can fix it: bad input, not found, denied. Exit code 1.
    #[must_use]
    pub fn user(message: impl Into<String>) -> Self {
        Self { exit: 1, message: message.into(), hints: Vec::new(), denied: false }
    }

    /// A run asked for what it may not do: it goes into its record. Exit code 1.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self { denied: true, ..Self::user(message) }
    }

    /// Whether it is such a denial.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.denied
    }

    /// The program or the environment failed. Exit code 2.
    #[must_use]
    pub fn environment(message: impl Into<String>) -> Self {
        Self { exit: 2, message: message.into(), hints: Vec::new(), denied: false }
    }

    /// Adds what to do now.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn of_problems(problems: Vec<Problem>, words: impl Fn(&Problem) -> String) -> Self {
        let mut failed = Self::user("");
        for problem in problems {
            match failed.message.is_empty() {
                true => failed.message = words(&problem),
                false => failed.hints.push(format!("also: {}", words(&problem))),
            }
            failed.hints.extend(problem.hint);
        }
        failed
    }

    /// The exit code.
    #[must_use]
    pub fn exit(&self) -> u8 {
        self.exit
    }

    /// What to do now.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl From<DefinitionError> for CliError {
    /// What is invalid, missing or in the way is the person's to fix; the rest is the disk's.
    fn from(error: DefinitionError) -> Self {
        let message = error.to_string();
        match error {
            DefinitionError::NoHome { root } => {
                Self::user(format!("there is no data folder at {}", root.display())).hint(NO_HOME)
            }
            DefinitionError::Invalid { problems } => Self::of_problems(problems, |problem| problem.message.clone()),
            DefinitionError::NotFound { .. }
            | DefinitionError::Exists { .. }
            | DefinitionError::Changed { .. }
            | DefinitionError::Edit { .. }
            | DefinitionError::Refused { .. }
            | DefinitionError::Skill { .. }
            | DefinitionError::NotADefinition { .. } => Self::user(message),
            DefinitionError::Io { .. } | DefinitionError::Random(_) | DefinitionError::Watch { .. } => {
                Self::environment(message)
            }
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Invalid { problems } => Self::of_problems(problems, |problem| {
                format!("{} ({}:{}:{})", problem.message, problem.file.display(), problem.line, problem.column)
            }),
            ConfigError::Io { .. } => Self::environment(error.to_string()),
        }
    }
}

impl From<JournalError> for CliError {
    /// Never the person's to fix by typing something else.
    fn from(error: JournalError) -> Self {
        Self::environment(error.to_string())
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}
