//! Chains: what a reminder hands to its next check.
//!
//! The next check is a draft like the one of `reminder add`. It is made from the whole definition, so a new field is inherited
//! without a word here.

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use crate::definition::{Chain, Definition, DefinitionId, Draft, Trigger};

/// What a chain reminder hands to its next check.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// Which check fired; the first is 0.
    pub depth: u32,
    /// How many follow-ups the chain may have.
    pub max: u32,
    /// The chain's first reminder.
    pub parent: DefinitionId,
    /// The next check, but for its time.
    draft: Draft,
}

impl FollowUp {
    /// The hand-over of a reminder; `None` where it is no chain reminder, or the last check.
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

    /// [`of`](Self::of), of the last check too: then the chain may have one more.
    #[must_use]
    pub fn prolonged(definition: &Definition) -> Option<Self> {
        let mut definition = definition.clone();
        if let Trigger::Reminder { chain: Some(chain), .. } = &mut definition.trigger {
            chain.max = chain.max.max(chain.depth + 1);
        }
        Self::of(&definition)
    }

    /// The next check at a time.
    #[must_use]
    pub fn at(&self, run_at: DateTime<FixedOffset>) -> Draft {
        Draft { run_at: Some(run_at), ..self.draft.clone() }
    }

    /// The zone that the chain's files name.
    pub(super) fn zone(&self) -> Option<Tz> {
        self.draft.timezone
    }

    /// Whether a definition is the next check.
    pub(super) fn is(&self, definition: &Definition) -> bool {
        definition.chain().is_some_and(|chain| chain.parent == self.parent && chain.depth == self.depth + 1)
    }

    /// `check 2 of 3`: the next one.
    #[must_use]
    pub fn place(&self) -> String {
        format!("check {} of {}", self.depth + 2, self.max + 1)
    }
}
