//! Holds occurrences back while a person has paused everything, or while the client is not logged in.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::active::{ActiveOccurrence, Priority};
use crate::journal::DelayCause;

/// The lack of an agent that the service can use.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentMissing {
    /// When the lack was noticed.
    pub(super) since: DateTime<Utc>,
    /// When to look for the agent again.
    pub(super) next_check: Instant,
    /// Whether the agent is installed but not logged in.
    pub(super) lacks_login: bool,
}

/// The gate: see the module's documentation.
#[derive(Debug)]
pub(super) struct Gate {
    /// When a person paused everything.
    pub(super) paused: Option<DateTime<Utc>>,
    /// When jobs began to wait for a login.
    pub(super) waiting_for_login: Option<DateTime<Utc>>,
    /// Set while jobs that need an agent wait for one. Other jobs run.
    pub(super) agent_missing: Option<AgentMissing>,
    /// When to check again for the first job whose requirements are not met.
    pub(super) needs_again: Option<Instant>,
    /// Whether the person was notified of the missing login, by this process or a previous one, and not yet of its return.
    pub(super) login_notified: bool,
    /// Occurrences due before this time were missed.
    pub(super) eligible_since: DateTime<Utc>,
    /// Why nothing could run before that.
    pub(super) missed_by: DelayCause,
}

impl Gate {
    pub(super) fn new(now: DateTime<Utc>) -> Self {
        Self {
            paused: None,
            waiting_for_login: None,
            agent_missing: None,
            needs_again: None,
            login_notified: false,
            eligible_since: now,
            missed_by: DelayCause::ServiceOff,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.paused.is_none() && self.waiting_for_login.is_none()
    }

    /// Returns whether an occurrence may start now.
    pub(super) fn admits(&self, active: &ActiveOccurrence) -> bool {
        match active.priority {
            _ if active.awaits_agent || active.unmet.is_some() => false,
            Priority::Scheduled => self.is_open(),
            Priority::LoginProbe => self.paused.is_none(),
            Priority::ByHand => true,
        }
    }

    pub(super) fn resume(&mut self, now: DateTime<Utc>) {
        if self.paused.is_some() {
            self.missed_by = DelayCause::Paused;
        } else if self.waiting_for_login.is_some() {
            self.missed_by = DelayCause::Login;
        }
        (self.paused, self.waiting_for_login, self.eligible_since) = (None, None, now);
    }

    /// Makes jobs wait for a login. Returns whether to notify the person.
    pub(super) fn login_missing(&mut self, now: DateTime<Utc>) -> bool {
        if self.waiting_for_login.is_some() {
            return false;
        }
        self.waiting_for_login = Some(now);
        !std::mem::replace(&mut self.login_notified, true)
    }

    /// Ends the wait for a login. Returns whether jobs waited.
    pub(super) fn stop_waiting_for_login(&mut self, now: DateTime<Utc>) -> bool {
        let waited = self.waiting_for_login.take().is_some();
        if waited {
            (self.eligible_since, self.missed_by) = (now, DelayCause::Login);
        }
        waited
    }

    /// Returns since when jobs wait for a login.
    pub(super) fn waits_for_login(&self) -> Option<DateTime<Utc>> {
        let missing = self.agent_missing.filter(|missing| missing.lacks_login);
        self.waiting_for_login.or(missing.map(|missing| missing.since))
    }

    /// Returns since when jobs wait for a missing agent.
    pub(super) fn waits_for_agent(&self) -> Option<DateTime<Utc>> {
        self.agent_missing.filter(|missing| !missing.lacks_login).map(|missing| missing.since)
    }

    /// Records that nothing could run until `until`, and why.
    pub(super) fn not_eligible_until(&mut self, until: DateTime<Utc>, by: DelayCause) {
        if until > self.eligible_since {
            (self.eligible_since, self.missed_by) = (until, by);
        }
    }
}
