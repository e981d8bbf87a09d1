//! How a routine recurs.

use std::fmt;
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
    /// What a routine that has no times waits for: `when email-triage has completed`. `None`: it has times.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        match &self.cadence {
            Cadence::Cron(_) | Cadence::Every(_) => None,
            Cadence::After(Follows { job, outcome }) => Some(match outcome {
                FollowedEnd::Completed => format!("when {job} has completed"),
                FollowedEnd::Failed => format!("when {job} has failed"),
                FollowedEnd::Any => format!("when {job} has ended"),
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
        }
        match self.jitter {
            Some(jitter) => write!(f, " + 0-{}", humantime::format_duration(jitter)),
            None => Ok(()),
        }
    }
}
