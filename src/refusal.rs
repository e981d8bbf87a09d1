//! Why something that was asked for was not done, and what to do now.
//!
//! One type for every layer: who finds the reason also knows the way out, and an interface renders both. It says whose
//! turn it is, so that an interface can choose an exit code or a status from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that was asked for and not done.
///
/// Its `Display` is the reason alone, with the place behind it where there is one.
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
    /// Who can change that.
    pub cause: Cause,
}

/// Who can change that something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Whoever asked: bad input, or nothing of that name.
    Caller,
    /// Only the person: a run asked for more than it may. It goes into the run's record.
    Denied,
    /// Nobody who asks: the program or the environment failed.
    Environment,
}

impl Refusal {
    /// Whoever asked can mend it: bad input, not found.
    #[must_use]
    pub fn user(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hints: Vec::new(), place: None, cause: Cause::Caller }
    }

    /// A run asked for what it may not do.
    #[must_use]
    pub fn denied(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Denied, ..Self::user(reason) }
    }

    /// The program or the environment failed.
    #[must_use]
    pub fn environment(reason: impl Into<String>) -> Self {
        Self { cause: Cause::Environment, ..Self::user(reason) }
    }

    /// Adds what to do now.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds where it is.
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
