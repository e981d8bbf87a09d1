//! How a routine recurs.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::DefinitionId;

/// How a routine recurs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// At which times.
    pub cadence: Cadence,
    /// Each fires up to so much later.
    pub jitter: Option<Duration>,
}

/// At which times a routine recurs, or for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cadence {
    /// On every match of a cron expression in the definition's zone: five fields or `@daily` and the like, as written. Checked on
    /// load to have a next occurrence.
    Cron(String),
    /// Each time so much has passed: whole seconds, a minute at least.
    Every(Duration),
    /// Each time another job has ended.
    After(Follows),
    /// Each time something below a folder has changed.
    Watch(WatchedFolder),
}

/// A folder that a routine watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchedFolder {
    /// Relative to `work/`, without `.` and `..`; empty: all of it.
    OfWork(PathBuf),
    /// Elsewhere, without `.` and `..`.
    Absolute(PathBuf),
}

impl WatchedFolder {
    /// Reads a path as a file has it. `None`: it leads out of `work/`, or is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = !text.trim().is_empty() && text.trim() == text && !text.contains(char::is_control);
        let parts = || Path::new(text).components().filter(|part| *part != Component::CurDir);
        let inside = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::RootDir);
        let path: PathBuf = Some(parts()).filter(|_| plain && parts().all(|part| inside(&part)))?.collect();
        Some(if path.is_absolute() { Self::Absolute(path) } else { Self::OfWork(path) })
    }
}

impl fmt::Display for WatchedFolder {
    /// As a file has it.
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
    /// How it has to end.
    pub outcome: FollowedEnd,
}

/// How a job has to end to be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowedEnd {
    /// It did its work.
    #[default]
    Completed,
    /// It failed or timed out.
    Failed,
    /// It ran, however that ended.
    Any,
}

impl Recurrence {
    /// What a routine that has no times waits for: when `email-triage` has completed. `None`: it has times.
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
    /// A cron expression, without jitter.
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
