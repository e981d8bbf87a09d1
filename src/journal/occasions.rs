//! Causes of occurrences other than a scheduled time.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, RunId, RunState};
use crate::definition::DefinitionId;

/// Maximum number of files named in a line.
const NAMED: usize = 3;

/// The cause of an occurrence that has no scheduled time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Occasion {
    /// Another job ended.
    After {
        /// The job.
        job: DefinitionId,
        /// Its last attempt.
        run: RunId,
        /// Its outcome.
        outcome: RunState,
    },
    /// Something was delivered to its webhook.
    Delivered {
        /// The key that identifies the delivery.
        key: String,
        /// The payload, a JSON object. Removed once the occurrence has ended.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        payload: String,
    },
    /// Files in the watched folder changed.
    Changed {
        /// The first changed files, relative to that folder, in order.
        files: Vec<String>,
        /// Number of changed files beyond those.
        more: usize,
        /// Whether too much changed to tell which files did.
        lost: bool,
    },
}

/// The jobs whose runs may have caused an occurrence. Recorded beside its occasion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The jobs, including its own.
    pub comes_of: BTreeSet<DefinitionId>,
    /// How often in a row its routine has triggered itself.
    pub in_a_row: u32,
}

/// Both, as the column holds them.
#[derive(Serialize)]
struct Column<'a> {
    #[serde(flatten)]
    occasion: &'a Occasion,
    #[serde(flatten)]
    origin: Option<&'a Origin>,
}

impl Journal {
    /// Returns the origin of each routine's last run. Leaves out runs with another cause.
    ///
    /// # Errors
    /// Fails when the journal cannot be read.
    pub async fn origins(&self, ids: Vec<DefinitionId>) -> Result<Vec<(DefinitionId, Origin)>, JournalError> {
        self.writer
            .commit(move |connection| {
                // An occurrence skipped for another reason than its cause has no origin, and did not run.
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
    /// Returns whether a run may have caused it.
    #[must_use]
    pub fn is_of_runs(&self) -> bool {
        matches!(self, Self::After { .. } | Self::Changed { .. })
    }

    /// Describes it for people: `after run 1a2b3c4d of email-triage, completed`.
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

    /// Returns the key of a delivery.
    pub(super) fn delivery(&self) -> Option<&str> {
        match self {
            Self::Delivered { key, .. } => Some(key),
            Self::After { .. } | Self::Changed { .. } => None,
        }
    }

    /// Returns the text for the column.
    pub(super) fn text(&self, origin: Option<&Origin>) -> Result<String, JournalError> {
        let column = Column { occasion: self, origin };
        serde_json::to_string(&column).map_err(|error| JournalError::Unreadable(format!("an occasion ({error})")))
    }

    /// Reads it from the column. Returns `None` for a cause that only a newer version knows.
    pub(super) fn read(text: Option<String>) -> Option<Self> {
        text.and_then(|text| serde_json::from_str(&text).ok())
    }
}
