//! Decides when definitions fire, and concludes each occurrence.
//!
//! # Theory of operation
//!
//! One task, the [`Dispatcher`], owns all state. It waits for events only: a command, the timer, a clock that was set, or
//! the end of a task that it has spawned. Everything slow (the journal, files, the runs themselves) is such a task and
//! reports back. So one stuck job, or a full disk, never holds up the others.
//!
//! What always holds:
//! - An occurrence is claimed in the journal before anything is started for it, and its outcome is recorded before its file
//!   is touched.
//! - All occurrences that fall due together are claimed in one commit.
//! - At most one attempt of a definition is running.
//! - Nothing starts before its time, whatever the clock does.
//! - If the process dies at any instruction, the journal and the files hold enough for the next process to go on
//!   (docs/lifecycle.md).
//!
//! Must not know: clients, channels, prompts. It hands a [`Job`] to a [`Launcher`] and gets a report.

mod active;
mod command;
mod conclusion;
pub mod cron;
mod definitions;
mod delays;
mod dispatcher;
mod failures;
mod files;
mod gate;
mod housekeeping;
mod job;
mod leftover;
mod live;
mod missed;
mod overlap;
mod queue;
mod recent;
mod retry;
mod self_triggered;
mod sharing;
mod simulate;
#[cfg(test)]
mod tests;
mod wall_clock;

pub use command::{
    Accepted, ActiveView, Activity, Burst, CancelError, DecisionError, DeliverError, Delivery, FireError, Inbox,
    Loaded, Schedule, Snapshot, StageView,
};
pub(crate) use conclusion::buttons_of;
pub(crate) use definitions::due_at;
pub use definitions::{fires_after, generation, next_due, occurrences};
pub use dispatcher::cannot_wake;
pub use dispatcher::{Dispatcher, LONGEST_END, ScheduleError};
pub use files::{Files, Removal};
pub use housekeeping::{Housekeeping, HousekeepingError, MaintenanceTask};
pub use job::{AgentNeed, Approval, Job, Launcher};
#[cfg(test)]
pub(crate) use live::tests::scene as live_scene;
pub use live::{LiveDefinitions, ProblemsOfFile};
pub use sharing::{REMOVAL, has_zone_of_host, is_named, needs_main};
pub use simulate::{Assumptions, OpenRun, OpenRunState, PredictedOccurrence, Prediction, SimulatedJob, simulate};
