//! When definitions fire, and what becomes of each occurrence.
//!
//! Theory of operation. One task, the [`Dispatcher`], owns all state and never waits for anything but its next event:
//! a command, the timer, a clock that was set, or the end of something it has started. Everything slow (the journal,
//! files, the runs themselves) is a task of its own that reports back. So one stuck job, or a full disk, never keeps
//! it from the others.
//!
//! What always holds: an occurrence is claimed in the journal before anything is started for it, and its outcome is
//! recorded before its file is touched; all that fall due together are one commit; at most one attempt of a definition
//! is going; nothing starts before its time, whatever the clock does. If the process dies at any instruction, the
//! journal and the files hold enough for the next life to go on (docs/lifecycle.md).
//!
//! Must not know: clients, channels, prompts. It hands a [`Job`] to a [`Launcher`] and gets a report.

mod command;
mod conclusion;
pub mod cron;
mod dispatcher;
mod files;
mod housekeeping;
mod job;
mod leftover;
mod missed;
mod open;
mod queue;
mod reached;
mod retry;
mod streak;
#[cfg(test)]
mod tests;

pub use command::{Activity, CancelError, DecisionError, FireError, Loaded, OpenView, Schedule, Snapshot, StageView};
pub use dispatcher::{Dispatcher, LONGEST_END, ScheduleError, occurrences};
pub use files::{Files, Look, Removal};
pub use housekeeping::{Chore, Housekeeping, HousekeepingError};
pub use job::{Job, Launcher};
