//! What can go wrong with a command, as a person reads it.

use std::fmt;

/// An error with ways out. Its exit code says whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    exit: u8,
    message: String,
    hints: Vec<String>,
}

impl CliError {
    /// The person can fix it: bad input, not found, denied. Exit code 1.
    #[must_use]
    pub fn user(message: impl Into<String>) -> Self {
        Self { exit: 1, message: message.into(), hints: Vec::new() }
    }

    /// The program or the environment failed. Exit code 2.
    #[must_use]
    pub fn environment(message: impl Into<String>) -> Self {
        Self { exit: 2, message: message.into(), hints: Vec::new() }
    }

    /// Adds what to do now.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
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

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}
