//! An occurrence that was claimed and has no outcome yet, as the dispatcher holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{Occurrence, RunId, RunState};

/// Why a going attempt is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A person said so.
    Person,
    /// A newer occurrence fell due, and the routine says `on_overlap: cancel`.
    Overlap,
    /// The service is ending.
    Stopping,
}

/// Where an open occurrence stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// Claimed; waits for a slot, or for an earlier one of its definition.
    Waiting,
    /// Its definition is not there: being looked for, or parked until its file is valid again.
    Missing {
        /// The file is there, so it will be valid again or be deleted.
        parked: bool,
    },
    /// An attempt is going.
    Going {
        /// Ends it.
        cancel: CancellationToken,
        /// Why it is being ended, if it is.
        cause: Option<Cause>,
        /// Since when.
        since: DateTime<Utc>,
        /// Whether it has the main session.
        foreground: bool,
    },
    /// Waits for another attempt.
    RetryAt(Instant),
    /// Something is being recorded; what follows comes with the answer.
    Recording,
}

/// An open occurrence.
#[derive(Debug)]
pub(super) struct Open {
    /// The last attempt.
    pub(super) run: RunId,
    pub(super) occurrence: Occurrence,
    pub(super) file: PathBuf,
    /// The text as it fired last.
    pub(super) text: Arc<str>,
    /// The definition as it fired last.
    pub(super) fired: Option<Arc<Definition>>,
    pub(super) by_hand: bool,
    /// The last attempt's number.
    pub(super) attempt: u32,
    /// How the last attempt stands; `Claimed` until it is launched.
    pub(super) state: RunState,
    /// How many attempts failed.
    pub(super) failures: u32,
    /// Why the last of those failed.
    pub(super) failure: Option<String>,
    /// How often its file turned out to have changed just as it was to be launched.
    pub(super) edits: u32,
    /// Some attempt had an effect.
    pub(super) touched: bool,
    /// The last attempt was cut off.
    pub(super) cut_off: bool,
    /// It may run while others wait for a login.
    pub(super) probe: bool,
    /// A newer occurrence has ended it (`on_overlap: cancel`): no further attempt is made.
    pub(super) superseded: bool,
    pub(super) stage: Stage,
}

/// All open occurrences, by the order in which they were claimed.
#[derive(Debug, Default)]
pub(super) struct OpenOnes {
    all: BTreeMap<u64, Open>,
    of: std::collections::HashMap<DefinitionId, BTreeSet<u64>>,
    /// Those that wait, in due order.
    waiting: BTreeSet<(DateTime<Utc>, u64)>,
    /// What is going to wait once it is recorded, in due order.
    coming: BTreeSet<(DateTime<Utc>, DefinitionId)>,
    background: usize,
    turns: usize,
    count: u64,
}

impl Open {
    /// Whether no attempt is going and nothing is being recorded.
    pub(super) fn is_unlaunched(&self) -> bool {
        !matches!(self.stage, Stage::Going { .. } | Stage::Recording)
    }

    /// Whether it waits for its first attempt.
    pub(super) fn is_unbegun(&self) -> bool {
        self.attempt == 1 && matches!(self.stage, Stage::Waiting | Stage::Missing { .. })
    }
}

impl OpenOnes {
    fn going(&mut self, foreground: bool) -> &mut usize {
        if foreground { &mut self.turns } else { &mut self.background }
    }

    pub(super) fn insert(&mut self, mut open: Open) -> u64 {
        self.count += 1;
        let number = self.count;
        self.of.entry(open.occurrence.id.clone()).or_default().insert(number);
        let stage = std::mem::replace(&mut open.stage, Stage::Recording);
        self.all.insert(number, open);
        self.set_stage(number, stage);
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&Open> {
        self.all.get(&number)
    }

    /// Changes what it says, except for its stage.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Open> {
        self.all.get_mut(&number)
    }

    pub(super) fn set_stage(&mut self, number: u64, stage: Stage) {
        let Some(open) = self.all.get_mut(&number) else { return };
        let place = (open.occurrence.at, number);
        let new = match stage {
            Stage::Going { foreground, .. } => Some(foreground),
            _ => None,
        };
        if matches!(stage, Stage::Waiting) {
            self.waiting.insert(place);
        } else {
            self.waiting.remove(&place);
        }
        let old = std::mem::replace(&mut open.stage, stage);
        if let Stage::Going { foreground, .. } = old {
            *self.going(foreground) -= 1;
        }
        if let Some(foreground) = new {
            *self.going(foreground) += 1;
        }
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Open> {
        self.set_stage(number, Stage::Recording);
        let open = self.all.remove(&number)?;
        if let Some(numbers) = self.of.get_mut(&open.occurrence.id) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.of.remove(&open.occurrence.id);
            }
        }
        Some(open)
    }

    /// A definition's, oldest claim first.
    pub(super) fn of(&self, id: &DefinitionId) -> impl Iterator<Item = (u64, &Open)> {
        self.of.get(id).into_iter().flatten().filter_map(|number| Some((*number, self.all.get(number)?)))
    }

    pub(super) fn by_run(&self, run: &RunId) -> Option<u64> {
        self.iter().find(|(_, open)| open.run == *run).map(|(number, _)| number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Open)> {
        self.all.iter().map(|(number, open)| (*number, open))
    }

    /// Those that wait, in due order, as far as none that is still being recorded comes before them: else what an earlier
    /// life left in the middle would lose its place to what it left waiting.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u64, &Open)> {
        let coming = self.coming.first().map(|(at, _)| *at);
        let waiting = self.waiting.iter().take_while(move |(at, _)| coming.is_none_or(|coming| *at < coming));
        waiting.filter_map(|(_, number)| Some((*number, self.all.get(number)?)))
    }

    /// A claim or another attempt of it is being recorded.
    pub(super) fn expect(&mut self, occurrence: &Occurrence) {
        self.coming.insert((occurrence.at, occurrence.id.clone()));
    }

    /// That is recorded.
    pub(super) fn arrived(&mut self, occurrence: &Occurrence) {
        self.coming.remove(&(occurrence.at, occurrence.id.clone()));
    }

    /// How many attempts are going in the background.
    pub(super) fn background(&self) -> usize {
        self.background
    }

    /// How many attempts are going as turns of the main session.
    pub(super) fn turns(&self) -> usize {
        self.turns
    }

    /// Whether it has to wait for another one of its definition: an attempt is going or something is being recorded,
    /// or, of a routine, an older one is not over, as one that waits for another attempt is not. (A reminder's older one
    /// only waits to be closed: its time was changed.)
    pub(super) fn is_behind(&self, number: u64, id: &DefinitionId) -> bool {
        self.of(id).any(|(other, open)| {
            matches!(open.stage, Stage::Going { .. } | Stage::Recording)
                || (other < number && open.occurrence.kind == Kind::Routine)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
