//! The phases of a dispatcher's life, including its end.

use std::time::Duration;

use tokio::time::Instant;

use super::super::active::Cause;
use super::super::command::Command;
use super::{Dispatcher, ScheduleError};

/// Time that runs have to end after they were told to. A client is asked to break off, then to leave, then killed:
/// together longer than ten seconds.
const ENDING_WAIT: Duration = Duration::from_secs(20);

/// Time for recording the ends of runs that were cut off.
const RECORDING_WAIT: Duration = Duration::from_secs(10);

/// Maximum time from the end of the grace period to the end of the schedule.
pub const LONGEST_END: Duration = ENDING_WAIT.saturating_add(RECORDING_WAIT);

/// The phases of a dispatcher. Those of stopping have deadlines.
pub(super) enum Phase {
    /// Starting: nothing fires before the definitions are known and the previous process's work is recovered.
    Starting {
        /// Whether the definitions are known.
        recovering: bool,
        /// Commands to obey afterwards.
        deferred: Vec<Command>,
    },
    Running,
    /// Stopping: nothing starts any more, and runs may finish.
    Grace(Instant),
    /// Stopping: runs were told to end.
    Ending(Instant),
    /// Stopping: runs were cut off, and their ends are being recorded.
    CutOff(Instant),
}

impl Phase {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.deadline().is_some()
    }

    /// Returns when stopping takes its next step.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Grace(at) | Self::Ending(at) | Self::CutOff(at) => Some(*at),
            Self::Starting { .. } | Self::Running => None,
        }
    }

    /// Keeps a command for later if it cannot be obeyed yet; otherwise returns it.
    pub(super) fn defer(&mut self, command: Command) -> Option<Command> {
        match self {
            Self::Starting { recovering, deferred } if command.needs_recovery(*recovering) => {
                deferred.push(command);
                None
            }
            _ => Some(command),
        }
    }
}

impl Dispatcher {
    /// Starts nothing more, and lets runs finish for `grace`. Deferred commands are dropped, so their callers
    /// learn that the service is ending.
    pub(super) fn stop(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match self.phase {
            Phase::Starting { .. } | Phase::Running => self.phase = Phase::Grace(until),
            Phase::Grace(at) => self.phase = Phase::Grace(until.min(at)),
            Phase::Ending(_) | Phase::CutOff(_) => {}
        }
    }

    /// Ends at once, and leaves running attempts to the next process.
    pub(super) fn fail(&mut self, fault: ScheduleError) {
        tracing::error!(error = %fault, "the schedule ends");
        self.fault.get_or_insert(fault);
        self.end_now();
    }

    /// Waits only for records. Cuts running attempts off immediately, as if the process were killed.
    pub(super) fn end_now(&mut self) {
        if !matches!(self.phase, Phase::CutOff(_)) {
            self.phase = Phase::CutOff(Instant::now() + RECORDING_WAIT);
            self.end_all();
            self.cut_off.cancel();
        }
    }

    /// Returns whether everything is done. Takes the next step of stopping when its time has come.
    pub(super) fn is_over(&mut self) -> bool {
        let Some(deadline) = self.phase.deadline() else { return false };
        // Pending records and files are completed. Waiting occurrences are left to the next process.
        if self.tasks.is_empty() {
            return true;
        }
        let now = Instant::now();
        if now < deadline {
            return false;
        }
        match self.phase {
            Phase::CutOff(_) => return true,
            Phase::Ending(_) => {
                tracing::warn!("runs that were told to end did not; they are cut off");
                self.end_now();
            }
            Phase::Starting { .. } | Phase::Running | Phase::Grace(_) => {
                self.phase = Phase::Ending(now + ENDING_WAIT);
                self.end_all();
            }
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
