//! The reason why a request was not fulfilled, and what to do now.
//!
//! One type for every layer: the code that finds the reason also knows the way out, and an interface renders both. The
//! cause says who can fix it, so that an interface can choose an exit code or a status.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request that was not fulfilled.
///
/// Its `Display` is the reason alone, followed by the place if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// A sentence without a capital at the start and without a full stop.
    pub reason: String,
    /// What to do now, one step each; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// `FILE:LINE:COLUMN`, the file relative to the data folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Who can fix it.
    pub cause: Cause,
}

/// Who can fix the cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The caller: bad input, or nothing with that name.
    Caller,
    /// Only the person: a run asked for more than it may. It goes into the run's record.
    Denied,
    /// No caller: the program or the environment failed.
    Environment,
}

impl Refusal {
    /// Creates a refusal that the caller can fix: bad input, not found.
    #[must_use]
    pub fn user(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hints: Vec::new(), place: None, cause: Cause::Caller }
    }

    /// Creates a refusal of something that a run may not do.
    #[must_use]
    pub fn denied(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Denied, ..Self::user(reason) }
    }

    /// Creates a refusal for a failure of the program or the environment.
    #[must_use]
    pub fn environment(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Environment, ..Self::user(reason) }
    }

    /// Adds a step to take now.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the place of the error.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}
