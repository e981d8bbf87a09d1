//! What an occurrence fell due for, where that was no time.

use serde::{Deserialize, Serialize};

use super::{JournalError, RunId, RunState};
use crate::definition::DefinitionId;

/// How many files are named in a line.
const NAMED: usize = 3;

/// What an occurrence fell due for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Occasion {
    /// Another job has ended.
    After {
        /// Which.
        job: DefinitionId,
        /// Its last attempt.
        run: RunId,
        /// Its outcome.
        outcome: RunState,
    },
    /// Something was delivered to it.
    Delivered {
        /// What the delivery is known by.
        key: String,
        /// What was delivered: a JSON object. Empty once it is over.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        payload: String,
    },
    /// Something below the folder that it watches has changed.
    Changed {
        /// What, relative to that folder, in order; the first ones of many.
        files: Vec<String>,
        /// How many more there were.
        more: usize,
        /// So much has changed that it is not known what.
        lost: bool,
    },
}

impl Occasion {
    /// Whether what happened may be the doing of a run.
    #[must_use]
    pub fn is_of_runs(&self) -> bool {
        matches!(self, Self::After { .. } | Self::Changed { .. })
    }

    /// For people: `after run 1a2b3c4d of email-triage, completed`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::After { job, run, outcome } => format!("after run {run} of {job}, {outcome}"),
            Self::Delivered { key, .. } => format!("delivered: {key}"),
            Self::Changed { lost: true, .. } => "so much has changed that it is not known what".to_owned(),
            Self::Changed { files, more, .. } => {
                let named = files.len().min(NAMED);
                let more = match files.len() - named + more {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!("changed: {}{more}", files[..named].join(", "))
            }
        }
    }

    /// What a delivery is known by.
    pub(super) fn delivery(&self) -> Option<&str> {
        match self {
            Self::Delivered { key, .. } => Some(key),
            Self::After { .. } | Self::Changed { .. } => None,
        }
    }

    /// As it stands in its column.
    pub(super) fn text(&self) -> Result<String, JournalError> {
        serde_json::to_string(self).map_err(|error| JournalError::Unreadable(format!("an occasion ({error})")))
    }

    /// Out of its column. One that a newer version has written is none.
    pub(super) fn read(text: Option<String>) -> Option<Self> {
        text.and_then(|text| serde_json::from_str(&text).ok())
    }
}
