//! Chains: what a reminder hands to its next link, and the command that makes that link.
//!
//! A link is made by the same `ollim-bot reminder add` that a person would type, so both sides of the hand-over are the
//! command line's code. The flags come from the table of fields: a new field is inherited as soon as it has one.

use std::time::Duration;

use crate::definition::fields::{FIELDS, On};
use crate::definition::{Chain, Definition, DefinitionId, Draft, Trigger};

/// What a chain reminder below its last link hands on.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainContext {
    /// The reminder that fired.
    pub reminder_id: DefinitionId,
    /// Its body.
    pub message: String,
    /// Which link fired.
    pub chain_depth: u32,
    /// How many follow-ups the chain may have.
    pub max_chain: u32,
    /// The first link.
    pub chain_parent: DefinitionId,
    /// Everything else that the next link inherits, as flags of `reminder add`.
    inherited: Vec<String>,
}

impl ChainContext {
    /// The hand-over of a reminder; `None` where it is no chain reminder, or the last link.
    #[must_use]
    pub fn of(definition: &Definition) -> Option<Self> {
        let Trigger::Reminder { run_at: _, chain: Some(Chain { max, depth, parent }) } = &definition.trigger else {
            return None;
        };
        if depth >= max {
            return None;
        }
        let draft = Draft::from(definition);
        // A reminder's own fields say when it fires and where it stands in its chain; the rest is inherited.
        let inherited = FIELDS.iter().filter(|field| field.on == On::Both);
        let flags = inherited.filter_map(|field| Some(field.flags_for(&field.not_default(&draft)?)));
        Some(Self {
            reminder_id: definition.id.clone(),
            message: definition.body.clone(),
            chain_depth: *depth,
            max_chain: *max,
            chain_parent: parent.clone(),
            inherited: flags.flatten().collect(),
        })
    }

    /// [`of`](Self::of), of the last link too: then the chain may have one more.
    #[must_use]
    pub fn prolonged(definition: &Definition) -> Option<Self> {
        let mut definition = definition.clone();
        if let Trigger::Reminder { chain: Some(chain), .. } = &mut definition.trigger {
            chain.max = chain.max.max(chain.depth + 1);
        }
        Self::of(&definition)
    }

    /// The command line, after `ollim-bot`, that makes the next link `delay` from now.
    #[must_use]
    pub fn arguments(&self, delay: Duration) -> Vec<String> {
        let seconds = delay.as_secs();
        let (flag, delay) = if seconds.is_multiple_of(60) {
            ("delay", (seconds / 60).to_string())
        } else {
            ("in", humantime::format_duration(Duration::from_secs(seconds)).to_string())
        };
        let place = [
            format!("--{flag}={delay}"),
            format!("--message={}", self.message),
            format!("--max-chain={}", self.max_chain),
            format!("--chain-depth={}", self.chain_depth + 1),
            format!("--chain-parent={}", self.chain_parent),
        ];
        let command = ["reminder".to_owned(), "add".to_owned()];
        command.into_iter().chain(place).chain(self.inherited.iter().cloned()).collect()
    }
}
