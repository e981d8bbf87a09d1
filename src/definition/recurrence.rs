//! How a routine recurs.

use std::fmt;
use std::time::Duration;

/// How a routine recurs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// At which times.
    pub cadence: Cadence,
    /// Each fires up to so much later.
    pub jitter: Option<Duration>,
}

/// At which times a routine recurs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cadence {
    /// On every match of a cron expression in the definition's zone: five fields or `@daily` and the like, as written. Checked on
    /// load to have a next occurrence.
    Cron(String),
    /// Each time so much has passed: whole seconds, a minute at least.
    Every(Duration),
}

impl From<&str> for Recurrence {
    /// A cron expression, without jitter.
    fn from(cron: &str) -> Self {
        Self { cadence: Cadence::Cron(cron.to_owned()), jitter: None }
    }
}

impl fmt::Display for Recurrence {
    /// `30 8 * * *`, `every 1h 30m`, `@daily + 0-5m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cadence {
            Cadence::Cron(cron) => f.write_str(cron)?,
            Cadence::Every(span) => write!(f, "every {}", humantime::format_duration(*span))?,
        }
        match self.jitter {
            Some(jitter) => write!(f, " + 0-{}", humantime::format_duration(jitter)),
            None => Ok(()),
        }
    }
}
