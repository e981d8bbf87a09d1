//! What an occurrence fell due for, where that was no time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, RunId, RunState};
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

/// What an occurrence comes of that may be the doing of runs. It stands beside its occasion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The jobs; its own is one of them.
    pub comes_of: BTreeSet<DefinitionId>,
    /// How often in a row its routine has set itself off.
    pub in_a_row: u32,
}

/// Both, as they stand in their column.
#[derive(Serialize)]
struct Column<'a> {
    #[serde(flatten)]
    occasion: &'a Occasion,
    #[serde(flatten)]
    origin: Option<&'a Origin>,
}

impl Journal {
    /// What the last run of each of these routines comes of; of one that was set off by something else, nothing.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn origins(&self, ids: Vec<DefinitionId>) -> Result<Vec<(DefinitionId, Origin)>, JournalError> {
        self.writer
            .commit(move |connection| {
                // One that was skipped for another reason than for what set it off has none, and did not run.
                let sql = r#"SELECT occasion FROM occurrence o WHERE id = ?1 AND (occasion LIKE '%"in_a_row":%'
                       OR EXISTS (SELECT 1 FROM run WHERE occurrence = o.number AND launched IS NOT NULL))
                     ORDER BY at DESC LIMIT 1"#;
                let mut found = Vec::new();
                for id in &ids {
                    let text: Option<Option<String>> = connection.one(sql, [id.as_str()], |row| row.get("occasion"))?;
                    let origin = text.flatten().and_then(|text| serde_json::from_str(&text).ok());
                    found.extend(origin.map(|origin| (id.clone(), origin)));
                }
                Ok(found)
            })
            .await
    }
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
    pub(super) fn text(&self, origin: Option<&Origin>) -> Result<String, JournalError> {
        let column = Column { occasion: self, origin };
        serde_json::to_string(&column).map_err(|error| JournalError::Unreadable(format!("an occasion ({error})")))
    }

    /// Out of its column. One that a newer version has written is none.
    pub(super) fn read(text: Option<String>) -> Option<Self> {
        text.and_then(|text| serde_json::from_str(&text).ok())
    }
}
