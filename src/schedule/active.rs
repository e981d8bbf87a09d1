//! Active occurrences: claimed, and without an outcome.

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
use crate::journal::{DelayCause, NewClaim, Occasion, Occurrence, Purpose, RunId, RunState, UnfinishedOccurrence};

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

/// The stage of an active occurrence: the event that it waits for.
#[derive(Debug)]
pub(super) enum Stage {
    /// A slot, or an earlier occurrence of its definition.
    Waiting {
        /// Whether its file was just read again. Then it may launch without another pre-launch check.
        reread: bool,
    },
    /// The answer to whether the file of its missing definition exists.
    FindingFile,
    /// Its file, which exists, to become valid or be deleted.
    FileInvalid,
    /// The end of an attempt.
    Running(Running),
    /// The time of its next attempt.
    RetryAt(Instant),
    /// The journal.
    Recording,
    /// The journal, after its last attempt. It is over: nothing overlaps with it.
    Closing,
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) definition: Arc<Definition>,
    pub(super) since: DateTime<Utc>,
    /// The same moment on the steady clock, which nobody sets.
    pub(super) begun: Instant,
    /// Whether it is a turn of the main session or of one of its forks.
    pub(super) foreground: bool,
    /// Ends the attempt.
    pub(super) cancel: CancellationToken,
    /// Why the attempt is being ended, if it is.
    pub(super) cause: Option<Cause>,
}

/// Whether an occurrence may start although others are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Never.
    Scheduled,
    /// While jobs wait for a login: it found no login, and retries on behalf of all.
    LoginProbe,
    /// Always, since a person fired it.
    ByHand,
}

/// The state of the last recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastAttempt {
    /// Claimed, and not yet concluded.
    Claimed {
        /// Whether the attempt before it was interrupted.
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
    /// The cause; `None`: its scheduled time.
    pub(super) occasion: Option<Occasion>,
    pub(super) file: PathBuf,
    /// The text of the file at its claim or last launch.
    pub(super) text: Arc<str>,
    pub(super) priority: Priority,
    /// Number of failed attempts, and why the last of them failed.
    pub(super) failures: u32,
    pub(super) failure: Option<String>,
    /// Why the last attempt failed, even if it only found no login.
    pub(super) last_error: Option<String>,
    /// Whether any attempt had a side effect.
    pub(super) had_side_effect: bool,
    /// Whether it waits for a missing agent.
    pub(super) awaits_agent: bool,
    /// When it was claimed.
    pub(super) claimed: DateTime<Utc>,
    /// The time of the next check, while something that the occurrence requires is missing.
    pub(super) unmet: Option<Instant>,
    /// When this attempt began to wait for that.
    pub(super) unmet_since: Option<DateTime<Utc>>,
    /// Whether the person may have been asked to approve it, without an answer yet.
    pub(super) may_be_asked_about: bool,
    /// Whether the person has approved it, as far as its text is the same. It then waits for a slot alone.
    pub(super) is_approved: bool,
    /// Why the person does not approve it, until it has ended.
    pub(super) refused: Option<String>,
    /// The recorded reason why it could not begin at the last check.
    pub(super) delayed_by: Option<DelayCause>,
    /// Whether the person was notified that it is late, or need not be.
    pub(super) told_late: bool,
    /// Whether a newer occurrence replaces it (`on_overlap: cancel`). Then it gets no further attempt.
    pub(super) superseded: bool,
    pub(super) stage: Stage,
    /// Callers that wait for the end of the run to be recorded.
    pub(super) cancellers: Vec<oneshot::Sender<Result<RunState, CancelError>>>,
}

impl ActiveOccurrence {
    pub(super) fn claimed(claim: NewClaim, run: RunId, now: DateTime<Utc>) -> Self {
        let NewClaim { occurrence, file, text, purpose, occasion, .. } = claim;
        let by_hand = purpose == Purpose::RunByHand;
        let active = Self::unfinished(UnfinishedOccurrence {
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

    /// Makes an occurrence that the previous process left. It is `Recording` unless none of its attempts was ever launched.
    pub(super) fn unfinished(left: UnfinishedOccurrence) -> Self {
        let last = match left.state {
            RunState::Claimed => LastAttempt::Claimed { after_interruption: false },
            RunState::Interrupted => LastAttempt::Interrupted,
            failed => LastAttempt::Failed(failed),
        };
        let claimed = left.state == RunState::Claimed;
        // An occurrence that was late at its claim was reported then.
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
            is_approved: false,
            refused: None,
            delayed_by: None,
            superseded: false,
            stage: if claimed { Stage::Waiting { reread: false } } else { Stage::Recording },
            cancellers: Vec::new(),
        }
    }

    /// Returns whether neither an attempt nor the journal works on it.
    pub(super) fn is_idle(&self) -> bool {
        !matches!(self.stage, Stage::Running(_) | Stage::Recording | Stage::Closing)
    }

    /// Returns whether it waits for its first attempt.
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

    /// Answers the callers that wait for the end of its run.
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
    /// Occurrences in [`Stage::Waiting`], by their scheduled time.
    waiting: BTreeSet<(DateTime<Utc>, u64)>,
    /// Occurrences in [`Stage::RetryAt`], by the time of their next attempt.
    retries: BTreeSet<(Instant, u64)>,
    /// Number of attempts that run in the background.
    background: usize,
    /// Number of those whose definition a run made.
    made_by_runs: usize,
    /// The conversations in which a turn runs: those of forks, and the main session (`None`).
    conversations: BTreeSet<Option<DefinitionId>>,
    /// Occurrences that will wait, once the journal has recorded their claim or another attempt.
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

    /// Returns an occurrence, to change anything but its stage.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ActiveOccurrence> {
        self.all.get_mut(&number)
    }

    pub(super) fn set_stage(&mut self, number: u64, stage: Stage) {
        let Some(active) = self.all.get_mut(&number) else { return };
        let due = active.occurrence.at;
        match &active.stage {
            Stage::Waiting { .. } => _ = self.waiting.remove(&(due, number)),
            Stage::RetryAt(at) => _ = self.retries.remove(&(*at, number)),
            Stage::Running(Running { foreground: true, definition, .. }) => {
                self.conversations.remove(&definition.fork().cloned());
            }
            Stage::Running(running) => {
                self.background -= 1;
                self.made_by_runs -= usize::from(running.definition.is_made_by_run());
            }
            Stage::FindingFile | Stage::FileInvalid | Stage::Recording | Stage::Closing => {}
        }
        match &stage {
            Stage::Waiting { .. } => _ = self.waiting.insert((due, number)),
            Stage::RetryAt(at) => _ = self.retries.insert((*at, number)),
            Stage::Running(Running { foreground: true, definition, .. }) => {
                self.conversations.insert(definition.fork().cloned());
            }
            Stage::Running(running) => {
                self.background += 1;
                self.made_by_runs += usize::from(running.definition.is_made_by_run());
            }
            Stage::FindingFile | Stage::FileInvalid | Stage::Recording | Stage::Closing => {}
        }
        active.stage = stage;
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ActiveOccurrence> {
        self.set_stage(number, Stage::Recording);
        let active = self.all.remove(&number)?;
        self.by_definition.remove(&(active.occurrence.id.clone(), number));
        Some(active)
    }

    /// Returns a definition's active occurrences, in the order of their claims.
    pub(super) fn of(&self, id: &DefinitionId) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        let range = (id.clone(), 0)..=(id.clone(), u64::MAX);
        self.by_definition.range(range).filter_map(|(_, number)| Some((*number, self.all.get(number)?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        self.all.iter().map(|(number, active)| (*number, active))
    }

    /// Returns the numbers of the occurrences that satisfy `wanted`.
    pub(super) fn numbers(&self, wanted: impl Fn(&ActiveOccurrence) -> bool) -> Vec<u64> {
        self.iter().filter(|(_, active)| wanted(active)).map(|(number, _)| number).collect()
    }

    /// Returns waiting occurrences in due order, up to the first expected one. So an occurrence that the previous
    /// process left unfinished keeps its position before those that it left waiting.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u64, &ActiveOccurrence)> {
        let expected = self.expected.first().map(|(at, _)| *at);
        let waiting = self.waiting.iter().take_while(move |(at, _)| expected.is_none_or(|expected| *at < expected));
        waiting.filter_map(|(_, number)| Some((*number, self.all.get(number)?)))
    }

    /// Keeps the position of an occurrence while the journal records its claim or another attempt.
    pub(super) fn expect(&mut self, occurrence: &Occurrence) {
        self.expected.insert((occurrence.at, occurrence.id.clone()));
    }

    /// Ends the expectation: the claim or attempt is recorded, or was refused.
    pub(super) fn arrived(&mut self, occurrence: &Occurrence) {
        self.expected.remove(&(occurrence.at, occurrence.id.clone()));
    }

    /// Returns the occurrences that wait for their next attempt, the earliest first.
    pub(super) fn retries(&self) -> impl Iterator<Item = (Instant, u64)> {
        self.retries.iter().copied()
    }

    /// Returns how many attempts run.
    pub(super) fn running(&self) -> usize {
        self.conversations.len() + self.background
    }

    /// Returns how many attempts run in the background.
    pub(super) fn running_in_background(&self) -> usize {
        self.background
    }

    /// Returns whether a turn runs in the conversation that a foreground job is a turn of.
    pub(super) fn is_conversation_busy(&self, definition: &Definition) -> bool {
        self.conversations.contains(&definition.fork().cloned())
    }

    /// Returns how many background attempts belong to definitions that runs made.
    pub(super) fn running_made_by_runs(&self) -> usize {
        self.made_by_runs
    }

    /// Returns whether it must wait for another occurrence of its definition: one that is running or being recorded or, for a
    /// routine or webhook, any older one. (The older one of a reminder only waits to be closed, since the time was changed.)
    pub(super) fn is_behind(&self, number: u64, id: &DefinitionId) -> bool {
        self.of(id).any(|(other, active)| {
            !active.is_idle() || (other < number && matches!(active.occurrence.kind, Kind::Routine | Kind::Webhook))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
