//! Active occurrences: claimed, and without an outcome yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command::CancelError;
use super::missed::is_late;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{DelayCause, NewClaim, Occasion, Occurrence, Purpose, RunId, RunState, Unfinished};

/// Why a running attempt is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A person cancelled it.
    Person,
    /// A newer occurrence fell due, and the routine says `on_overlap: cancel`.
    Overlap,
    /// The service is stopping.
    Stopping,
}

/// What an active occurrence waits for.
#[derive(Debug)]
pub(super) enum Stage {
    /// A slot, or an earlier occurrence of its definition.
    Waiting {
        /// Its file was read again just now, so it may launch without another pre-launch check.
        reread: bool,
    },
    /// The answer whether the file of its missing definition exists.
    FindingFile,
    /// Its file, which exists, to become valid or be deleted.
    FileInvalid,
    /// The end of an attempt.
    Running(Running),
    /// The time of its next attempt.
    RetryAt(Instant),
    /// The journal.
    Recording,
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) definition: Arc<Definition>,
    pub(super) since: DateTime<Utc>,
    /// The same on a clock that nobody sets.
    pub(super) begun: Instant,
    /// Whether it runs as a turn of the main session.
    pub(super) foreground: bool,
    /// Ends the attempt.
    pub(super) cancel: CancellationToken,
    /// Why the attempt is being ended, if it is.
    pub(super) cause: Option<Cause>,
}

/// When an occurrence may start although others are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Never.
    Scheduled,
    /// While jobs wait for a login: it found that there was none, and tries again on behalf of all.
    LoginProbe,
    /// Always: a person fired it.
    ByHand,
}

/// The state of the last recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastAttempt {
    /// Claimed, and not yet concluded.
    Claimed {
        /// The attempt before it was interrupted.
        after_interruption: bool,
    },
    /// Interrupted by the end of the previous process.
    Interrupted,
    /// Failed or timed out; another attempt follows.
    Failed(RunState),
}

/// An active occurrence.
#[derive(Debug)]
pub(super) struct ActiveOccurrence {
    /// The last attempt, and its number.
    pub(super) run: RunId,
    pub(super) attempt: u32,
    pub(super) last: LastAttempt,
    pub(super) occurrence: Occurrence,
    /// What it fell due for; `None`: its time.
    pub(super) occasion: Option<Occasion>,
    pub(super) file: PathBuf,
    /// The file's text when it was claimed or launched last.
    pub(super) text: Arc<str>,
    pub(super) priority: Priority,
    /// How many attempts failed, and why the last of them did.
    pub(super) failures: u32,
    pub(super) failure: Option<String>,
    /// Why the last attempt failed, one that found no login included.
    pub(super) last_error: Option<String>,
    /// Whether any attempt had a side effect.
    pub(super) had_side_effect: bool,
    /// It waits for an agent, which was missing.
    pub(super) awaits_agent: bool,
    /// When it was claimed.
    pub(super) claimed: DateTime<Utc>,
    /// The machine lacks what it requires; when that is looked at again.
    pub(super) unmet: Option<Instant>,
    /// Since when this attempt waits for that.
    pub(super) unmet_since: Option<DateTime<Utc>>,
    /// The person may have been asked whether it may begin, and not have answered.
    pub(super) may_be_asked_about: bool,
    /// Why it could not begin when that was looked at last, which is recorded.
    pub(super) delayed_by: Option<DelayCause>,
    /// The person knows whether it is late.
    pub(super) told_late: bool,
    /// A newer occurrence replaces it (`on_overlap: cancel`), so it gets no further attempt.
    pub(super) superseded: bool,
    pub(super) stage: Stage,
    /// Who waits for the end of the run to be recorded.
    pub(super) cancellers: Vec<oneshot::Sender<Result<RunState, CancelError>>>,
}

impl ActiveOccurrence {
    pub(super) fn claimed(claim: NewClaim, run: RunId, now: DateTime<Utc>) -> Self {
        let NewClaim { occurrence, file, text, purpose, occasion, .. } = claim;
        let by_hand = purpose == Purpose::RunByHand;
        let active = Self::unfinished(Unfinished {
            run,
            claimed: now,
            occurrence,
            file,
            text,
            by_hand,
            attempt: 1,
            state: RunState::Claimed,
            retry_at: None,
            failures: 0,
            failure: None,
            error: None,
            interruptions: 0,
            effect: None,
            occasion,
        });
        Self { may_be_asked_about: false, ..active }
    }

    /// An occurrence of the previous process. It is `Recording` unless nothing of it was ever launched.
    pub(super) fn unfinished(left: Unfinished) -> Self {
        let last = match left.state {
            RunState::Claimed => LastAttempt::Claimed { after_interruption: false },
            RunState::Interrupted => LastAttempt::Interrupted,
            failed => LastAttempt::Failed(failed),
        };
        let claimed = left.state == RunState::Claimed;
        // One that was late when it was claimed was told then.
        let told_late = left.by_hand || left.attempt > 1 || is_late(left.occurrence.at, left.claimed);
        Self {
            run: left.run,
            attempt: left.attempt,
            last,
            occurrence: left.occurrence,
            occasion: left.occasion,
            file: left.file,
            text: left.text,
            priority: if left.by_hand { Priority::ByHand } else { Priority::Scheduled },
            failures: left.failures,
            failure: left.failure,
            last_error: left.error,
            had_side_effect: left.effect.is_some(),
            told_late,
            awaits_agent: false,
            claimed: left.claimed,
            unmet: None,
            unmet_since: None,
            may_be_asked_about: claimed,
            delayed_by: None,
            superseded: false,
            stage: if claimed { Stage::Waiting { reread: false } } else { Stage::Recording },
            cancellers: Vec::new(),
        }
    }

    /// Whether neither an attempt nor the journal is at work on it.
    pub(super) fn is_idle(&self) -> bool {
        !matches!(self.stage, Stage::Running(_) | Stage::Recording)
    }

    /// Whether it waits for its first attempt.
    pub(super) fn awaits_first_attempt(&self) -> bool {
        self.attempt == 1 && matches!(self.stage, Stage::Waiting { .. } | Stage::FindingFile | Stage::FileInvalid)
    }

    pub(super) fn running(&self) -> Option<&Running> {
        if let Stage::Running(running) = &self.stage { Some(running) } else { None }
    }

    /// Tells a running attempt to end. The first cause counts.
    pub(super) fn end(&mut self, why: Cause) {
        if let Stage::Running(running) = &mut self.stage {
            running.cause.get_or_insert(why);
            running.cancel.cancel();
        }
    }

    /// Answers those who wait for the end of its run.
    pub(super) fn answer_cancellers(&mut self, answer: &Result<RunState, CancelError>) {
        for canceller in self.cancellers.drain(..) {
            // The caller may have gone away.
            let _gone = canceller.send(answer.clone());
        }
    }
}

/// All active occurrences, numbered in the order in which they were claimed.
#[derive(Debug, Default)]
pub(super) struct ActiveOccurrences {
    all: BTreeMap<u64, ActiveOccurrence>,
    by_definition: BTreeSet<(DefinitionId, u64)>,
    /// Those in [`Stage::Waiting`], by the time at which they were due.
    waiting: BTreeSet<(DateTime<Utc>, u64)>,
    /// Those in [`Stage::RetryAt`], by the time of their next attempt.
    retries: BTreeSet<(Instant, u64)>,
    /// How many attempts run in the background.
    background: usize,
    /// How many of these are of what runs have made.
    made_by_runs: usize,
    /// How many attempts run as turns of the main session.
    foreground: usize,
    /// Occurrences that will wait once the journal has recorded a claim or another attempt.
    expected: BTreeSet<(DateTime<Utc>, DefinitionId)>,
    last_number: u64,
}

impl ActiveOccurrences {
    pub(super) fn insert(&mut self, mut active: ActiveOccurrence) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        self.by_definition.insert((active.occurrence.id.clone(), number));
        let stage = std::mem::replace(&mut active.stage, Stage::Recording);
        self.all.insert(number, active);
        self.set_stage(number, stage);
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&ActiveOccurrence> {
        self.all.get(&number)
    }

    /// To change anything but the stage.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ActiveOccurrence> {
        self.all.get_mut(&number)
    }

    pub(super) fn set_stage(&mut self, number: u64, stage: Stage) {
        let Some(active) = self.all.get_mut(&number) else { return };
        let due = active.occurrence.at;
        match &active.stage {
            Stage::Waiting { .. } => _ = self.waiting.remove(&(due, number)),
            Stage::RetryAt(at) => _ = self.retries.remove(&(*at, number)),
            Stage::Running(Running { foreground: true, .. }) => self.foreground -= 1,
            Stage::Running(running) => {
                self.background -= 1;
                self.made_by_runs -= usize::from(running.definition.is_made_by_run());
            }
            Stage::FindingFile | Stage::FileInvalid | Stage::Recording => {}
        }
        match &stage {
            Stage::Waiting { .. } => _ = self.waiting.insert((due, number)),
            Stage::RetryAt(at) => _ = self.retries.insert((*at, number)),
            Stage::Running(Running { foreground: true, .. }) => self.foreground += 1,
            Stage::Running(running) => {
                self.background += 1;
                self.made_by_runs += usize::from(running.definition.is_made_by_run());
            }
            Stage::FindingFile | Stage::FileInvalid | Stage::Recording => {}
        }
        active.stage = stage;
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ActiveOccurrence> {
        self.set_stage(number, Stage::Recording);
        let active = self.all.remove(&number)?;
        self.by_definition.remove(&(active.occurrence.id.clone(), number));
        Some(active)
    }

    /// A definition's, in the order in which they were claimed.
    pub(super) fn of(&self, id: &DefinitionId) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        let range = (id.clone(), 0)..=(id.clone(), u64::MAX);
        self.by_definition.range(range).filter_map(|(_, number)| Some((*number, self.all.get(number)?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        self.all.iter().map(|(number, active)| (*number, active))
    }

    /// The numbers of those for which `wanted` holds.
    pub(super) fn numbers(&self, wanted: impl Fn(&ActiveOccurrence) -> bool) -> Vec<u64> {
        self.iter().filter(|(_, active)| wanted(active)).map(|(number, _)| number).collect()
    }

    /// Waiting occurrences in due order, up to the first that is still expected: what the previous process left in the
    /// middle keeps its place before what it left waiting.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        let expected = self.expected.first().map(|(at, _)| *at);
        let waiting = self.waiting.iter().take_while(move |(at, _)| expected.is_none_or(|expected| *at < expected));
        waiting.filter_map(|(_, number)| Some((*number, self.all.get(number)?)))
    }

    /// Keeps the place of an occurrence while a claim or another attempt is being recorded.
    pub(super) fn expect(&mut self, occurrence: &Occurrence) {
        self.expected.insert((occurrence.at, occurrence.id.clone()));
    }

    /// The claim or attempt is recorded, or was refused.
    pub(super) fn arrived(&mut self, occurrence: &Occurrence) {
        self.expected.remove(&(occurrence.at, occurrence.id.clone()));
    }

    /// Those that wait for the time of their next attempt, the earliest first.
    pub(super) fn retries(&self) -> impl Iterator<Item = (Instant, u64)> {
        self.retries.iter().copied()
    }

    /// How many attempts run as turns of the main session, or in the background.
    pub(super) fn running(&self, foreground: bool) -> usize {
        if foreground { self.foreground } else { self.background }
    }

    /// How many attempts of what runs have made run in the background.
    pub(super) fn running_made_by_runs(&self) -> usize {
        self.made_by_runs
    }

    /// Whether it must wait for another occurrence of its definition: one that is running or being recorded or, of a
    /// routine or a webhook, any older one. (A reminder's older one only waits to be closed: its time was changed.)
    pub(super) fn is_behind(&self, number: u64, id: &DefinitionId) -> bool {
        self.of(id).any(|(other, active)| {
            !active.is_idle() || (other < number && matches!(active.occurrence.kind, Kind::Routine | Kind::Webhook))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
