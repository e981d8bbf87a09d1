//! The recurrence of a routine.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::DefinitionId;

/// The times or events at which a routine fires, and their maximum delay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// The times or events.
    pub cadence: Cadence,
    /// Maximum delay of each occurrence.
    pub jitter: Option<Duration>,
}

/// The times or events at which a routine fires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cadence {
    /// Every match of a cron expression (five fields, or an `@name`) in the definition's zone. Kept as written; has at
    /// least one occurrence.
    Cron(String),
    /// Every such period: whole seconds, at least a minute.
    Every(Duration),
    /// Every end of another job.
    After(Follows),
    /// Every change below a folder.
    Watch(WatchedFolder),
}

/// A folder that a routine watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchedFolder {
    /// Relative to `work/`, without `.` and `..`; empty for all of `work/`.
    OfWork(PathBuf),
    /// Absolute, without `.` and `..`.
    Absolute(PathBuf),
}

impl WatchedFolder {
    /// Reads a path as written in a file. Returns `None` for an invalid path, and for one with `..`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = !text.trim().is_empty() && text.trim() == text && !text.contains(char::is_control);
        let parts = || Path::new(text).components().filter(|part| *part != Component::CurDir);
        let inside = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
        let path: PathBuf = Some(parts()).filter(|_| plain && parts().all(|part| inside(&part)))?.collect();
        Some(if path.is_absolute() { Self::Absolute(path) } else { Self::OfWork(path) })
    }
}

impl fmt::Display for WatchedFolder {
    /// Formats the path as written in a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfWork(path) if path.as_os_str().is_empty() => f.write_str("."),
            Self::OfWork(path) | Self::Absolute(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The ends of another job that a routine follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follows {
    /// The other job.
    pub job: DefinitionId,
    /// The ends that count.
    pub outcome: FollowedEnd,
}

/// The ends of a job after which a routine fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowedEnd {
    /// The job completed.
    #[default]
    Completed,
    /// The job failed or timed out.
    Failed,
    /// The job ran, with any outcome.
    Any,
}

impl Recurrence {
    /// Describes the event that a routine without times waits for: "when `email-triage` has completed". Returns `None` if it has times.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        match &self.cadence {
            Cadence::Cron(_) | Cadence::Every(_) => None,
            Cadence::After(Follows { job, outcome }) => Some(match outcome {
                FollowedEnd::Completed => format!("when `{job}` has completed"),
                FollowedEnd::Failed => format!("when `{job}` has failed"),
                FollowedEnd::Any => format!("when `{job}` has ended"),
            }),
            Cadence::Watch(folder) => Some(match folder {
                WatchedFolder::OfWork(path) => {
                    format!("when something in {} has changed", Path::new("work").join(path).display())
                }
                WatchedFolder::Absolute(path) => format!("when something in {} has changed", path.display()),
            }),
        }
    }
}

impl From<&str> for Recurrence {
    /// Creates a recurrence from a cron expression, without jitter.
    fn from(cron: &str) -> Self {
        Self { cadence: Cadence::Cron(cron.to_owned()), jitter: None }
    }
}

impl fmt::Display for Recurrence {
    /// `30 8 * * *`, `every 1h 30m`, `@daily + 0-5m`, `after email-triage (failed)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cadence {
            Cadence::Cron(cron) => f.write_str(cron)?,
            Cadence::Every(span) => write!(f, "every {}", humantime::format_duration(*span))?,
            Cadence::After(Follows { job, outcome: FollowedEnd::Completed }) => write!(f, "after {job}")?,
            Cadence::After(Follows { job, outcome: FollowedEnd::Failed }) => write!(f, "after {job} (failed)")?,
            Cadence::After(Follows { job, outcome: FollowedEnd::Any }) => write!(f, "after {job} (any)")?,
            Cadence::Watch(folder) => write!(f, "watch {folder}")?,
        }
        match self.jitter {
            Some(jitter) => write!(f, " + 0-{}", humantime::format_duration(jitter)),
            None => Ok(()),
        }
    }
}
