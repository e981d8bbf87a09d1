//! Chains: the hand-over of a reminder to its next check.
//!
//! The next check is a draft like the one of `reminder add`. It is made from the whole definition, so that it inherits new
//! fields without a change here.

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use crate::definition::{Chain, Definition, DefinitionId, Draft, Trigger};

/// The hand-over of a chain reminder to its next check.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// The position of the check that fired; the first is 0.
    pub depth: u32,
    /// Maximum number of follow-ups in the chain.
    pub max: u32,
    /// The chain's first reminder.
    pub parent: DefinitionId,
    /// The next check, without its time.
    draft: Draft,
}

impl FollowUp {
    /// Returns the hand-over of a reminder; `None` if it is not a chain reminder, or is the last check.
    #[must_use]
    pub fn of(definition: &Definition) -> Option<Self> {
        let Trigger::Reminder { chain: Some(Chain { max, depth, parent }), .. } = &definition.trigger else {
            return None;
        };
        if depth >= max {
            return None;
        }
        let draft = Draft {
            id: None,
            enabled: true,
            chain_depth: depth + 1,
            chain_parent: Some(parent.clone()),
            ..Draft::from(definition)
        };
        Some(Self { depth: *depth, max: *max, parent: parent.clone(), draft })
    }

    /// Returns the same as [`of`](Self::of), but allows the last check one more follow-up.
    #[must_use]
    pub fn prolonged(definition: &Definition) -> Option<Self> {
        let mut definition = definition.clone();
        if let Trigger::Reminder { chain: Some(chain), .. } = &mut definition.trigger {
            chain.max = chain.max.max(chain.depth + 1);
        }
        Self::of(&definition)
    }

    /// Returns the draft of the next check at a time.
    #[must_use]
    pub fn at(&self, run_at: DateTime<FixedOffset>) -> Draft {
        Draft { run_at: Some(run_at), ..self.draft.clone() }
    }

    /// Returns the time zone that the chain's files name.
    pub(super) fn zone(&self) -> Option<Tz> {
        self.draft.timezone
    }

    /// Returns whether a definition is the next check.
    pub(super) fn is(&self, definition: &Definition) -> bool {
        definition.chain().is_some_and(|chain| chain.parent == self.parent && chain.depth == self.depth + 1)
    }

    /// Returns the position of the next check, as in `check 2 of 3`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("check {} of {}", self.depth + 2, self.max + 1)
    }
}
