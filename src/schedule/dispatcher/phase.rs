//! The phases of a dispatcher's life, and how it ends.

use std::time::Duration;

use tokio::time::Instant;

use super::super::active::Cause;
use super::super::command::Command;
use super::{Dispatcher, ScheduleError};

/// How long runs have to end after they were told to. A client is asked to break off, then to leave, then killed: together
/// longer than ten seconds.
const ENDING_WAIT: Duration = Duration::from_secs(20);

/// How long the ends of runs that were cut off have to be recorded.
const RECORDING_WAIT: Duration = Duration::from_secs(10);

/// The schedule ends at most this long after its grace.
pub const LONGEST_END: Duration = ENDING_WAIT.saturating_add(RECORDING_WAIT);

/// What the dispatcher is doing with its life.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing fires before the definitions are known and what the previous process left is taken up.
    Starting {
        /// The definitions are known.
        recovering: bool,
        /// Commands that are obeyed afterwards.
        deferred: Vec<Command>,
    },
    Running,
    /// Nothing starts any more.
    Stopping {
        step: Step,
        /// Why, if nobody asked for it.
        fault: Option<ScheduleError>,
    },
}

/// The steps of stopping, each with its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Runs may finish.
    Grace(Instant),
    /// Runs were told to end.
    Ending(Instant),
    /// Runs were cut off, and their ends are being recorded.
    CutOff(Instant),
}

impl Default for Phase {
    fn default() -> Self {
        Self::Starting { recovering: false, deferred: Vec::new() }
    }
}

impl Phase {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping { .. })
    }

    /// When stopping takes its next step.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Stopping { step: Step::Grace(at) | Step::Ending(at) | Step::CutOff(at), .. } => Some(*at),
            Self::Starting { .. } | Self::Running => None,
        }
    }

    /// Keeps a command for later if it cannot be obeyed yet; else gives it back.
    pub(super) fn defer(&mut self, command: Command) -> Option<Command> {
        match self {
            Self::Starting { recovering, deferred } if command.needs_recovery(*recovering) => {
                deferred.push(command);
                None
            }
            _ => Some(command),
        }
    }

    /// How the dispatcher ended.
    pub(super) fn outcome(self) -> Result<(), ScheduleError> {
        match self {
            Self::Stopping { fault: Some(fault), .. } => Err(fault),
            _ => Ok(()),
        }
    }

    /// Takes the next step, with what has made it necessary. Commands that were deferred are dropped: their callers hear
    /// that the service is ending.
    fn stop(&mut self, step: Step, why: Option<ScheduleError>) {
        let before = match std::mem::replace(self, Self::Running) {
            Self::Stopping { fault, .. } => fault,
            Self::Starting { .. } | Self::Running => None,
        };
        *self = Self::Stopping { step, fault: before.or(why) };
    }
}

impl Dispatcher {
    /// Starts nothing more, and lets runs finish for `grace`.
    pub(super) fn stop(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match self.phase {
            Phase::Stopping { step: Step::Grace(at), .. } => self.phase.stop(Step::Grace(until.min(at)), None),
            Phase::Stopping { .. } => {}
            Phase::Starting { .. } | Phase::Running => self.phase.stop(Step::Grace(until), None),
        }
    }

    /// Ends at once, and leaves what is running to the next process.
    pub(super) fn fail(&mut self, fault: ScheduleError) {
        tracing::error!(error = %fault, "the schedule ends");
        self.cut_off(Some(fault));
    }

    /// Waits for nothing but records: running attempts are cut off in the middle, as when the process is killed.
    pub(super) fn end_now(&mut self) {
        self.cut_off(None);
    }

    fn cut_off(&mut self, fault: Option<ScheduleError>) {
        let until = match self.phase {
            Phase::Stopping { step: Step::CutOff(at), .. } => at,
            _ => Instant::now() + RECORDING_WAIT,
        };
        self.phase.stop(Step::CutOff(until), fault);
        self.end_all();
        self.cut_off.cancel();
    }

    /// Whether all is done. Takes the next step of stopping when its time has come.
    pub(super) fn is_over(&mut self) -> bool {
        let Phase::Stopping { step, .. } = self.phase else { return false };
        // Records and files are seen through. What only waits is left to the next process.
        if self.tasks.is_empty() {
            return true;
        }
        let now = Instant::now();
        match step {
            Step::Grace(at) | Step::Ending(at) | Step::CutOff(at) if now < at => return false,
            Step::Grace(_) => {
                self.phase.stop(Step::Ending(now + ENDING_WAIT), None);
                self.end_all();
            }
            Step::Ending(_) => {
                tracing::warn!("runs that were told to end did not; they are cut off");
                self.end_now();
            }
            Step::CutOff(_) => return true,
        }
        false
    }

    fn end_all(&mut self) {
        for number in self.active.numbers(|active| active.running().is_some()) {
            self.end(number, Cause::Stopping);
        }
    }

    /// Tells a running attempt to end.
    pub(super) fn end(&mut self, number: u64, why: Cause) {
        if let Some(active) = self.active.get_mut(number) {
            active.end(why);
        }
    }
}
