//! Whether anything may start: not while a person has paused everything, and not while the client is not logged in.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::active::{ActiveOccurrence, Priority};
use crate::journal::DelayCause;

/// There is no agent that the service can use.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentMissing {
    /// Since when.
    pub(super) since: DateTime<Utc>,
    /// When it is looked for again.
    pub(super) again: Instant,
    /// It is there, and not logged in.
    pub(super) lacks_login: bool,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Gate {
    /// Since when a person has paused everything.
    pub(super) paused: Option<DateTime<Utc>>,
    /// Since when jobs wait for a login.
    pub(super) waiting_for_login: Option<DateTime<Utc>>,
    /// Jobs that need an agent wait for one, while others go on.
    pub(super) agent_missing: Option<AgentMissing>,
    /// When the first of those that wait for what the machine lacks is looked at again.
    pub(super) needs_again: Option<Instant>,
    /// The person was notified that there is no login, by this process or a previous one, and not yet that it is back.
    pub(super) login_notified: bool,
    /// Occurrences due before then were missed.
    pub(super) eligible_since: DateTime<Utc>,
    /// Why nothing could run until then.
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

    /// Whether an occurrence may start now.
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

    /// Jobs wait for a login. Returns whether the person is to be notified.
    pub(super) fn login_missing(&mut self, now: DateTime<Utc>) -> bool {
        if self.waiting_for_login.is_some() {
            return false;
        }
        self.waiting_for_login = Some(now);
        !std::mem::replace(&mut self.login_notified, true)
    }

    /// Jobs wait no longer for a login. Returns whether any did.
    pub(super) fn stop_waiting_for_login(&mut self, now: DateTime<Utc>) -> bool {
        let waited = self.waiting_for_login.take().is_some();
        if waited {
            (self.eligible_since, self.missed_by) = (now, DelayCause::Login);
        }
        waited
    }

    /// Since when jobs wait for a login.
    pub(super) fn waits_for_login(&self) -> Option<DateTime<Utc>> {
        let missing = self.agent_missing.filter(|missing| missing.lacks_login);
        self.waiting_for_login.or(missing.map(|missing| missing.since))
    }

    /// Since when jobs wait for an agent that is not there.
    pub(super) fn waits_for_agent(&self) -> Option<DateTime<Utc>> {
        self.agent_missing.filter(|missing| !missing.lacks_login).map(|missing| missing.since)
    }

    /// Nothing could run until then, and why.
    pub(super) fn not_eligible_until(&mut self, until: DateTime<Utc>, by: DelayCause) {
        if until > self.eligible_since {
            (self.eligible_since, self.missed_by) = (until, by);
        }
    }
}
