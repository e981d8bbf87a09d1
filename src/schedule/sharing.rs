//! Chooses the occurrences that this host fires when several hosts share the work.
//!
//! Every host computes every occurrence. Of the hosts that may run it, one is first. The others try a moment later
//! and find its record. So no host has to know what the others do. A wrong view costs a moment but never causes a
//! second run, since the journal has one record per occurrence.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;
use tokio::time::Duration;

use crate::definition::{Definition, JobClient, Kind, Mode, Remember, Trigger};
use crate::journal::{ConsecutiveFailures, Hosts, Member};

/// Delay after which the others try an occurrence for which another host is first.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// How long after its time a reminder of the database that has its outcome is removed by the main host, if the host that ran it did not
/// do it.
pub const REMOVAL: TimeDelta = TimeDelta::seconds(60);

/// Period around a clock change in which two versions of the time zone rules may differ.
const AROUND_CHANGE: TimeDelta = TimeDelta::days(1);

/// This host's share in a due occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// This host claims it at once.
    First,
    /// This host claims it after [`GRACE`].
    Later,
    /// This host leaves it to others.
    Never,
}

/// This host's view of the others; `None` if it has the journal to itself.
#[derive(Debug, Default)]
pub(super) struct Sharing(Option<watch::Receiver<Hosts>>);

impl Sharing {
    pub(super) fn new(hosts: Option<watch::Receiver<Hosts>>) -> Self {
        Self(hosts)
    }

    /// Returns whether other hosts may share the journal.
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Returns this host's share in `definition`, which is due at `at`.
    pub(super) fn share(&self, definition: &Definition, at: DateTime<Utc>) -> Share {
        let Some(hosts) = &self.0 else { return Share::First };
        share(definition, at, &hosts.borrow())
    }

    /// Returns whether the clock is close enough to the server's to fire by it.
    pub(super) fn has_correct_time(&self) -> bool {
        self.0.as_ref().is_none_or(|hosts| hosts.borrow().has_correct_time())
    }

    /// Returns this host's name, and how far its clock is ahead of the server's; `None` if it is the only one.
    pub(super) fn clock(&self) -> Option<(String, TimeDelta)> {
        let hosts = self.0.as_ref()?.borrow();
        Some((hosts.me.name.clone(), hosts.ahead))
    }

    /// Returns the names and the time zones of this host and of the main one, if they differ.
    pub(super) fn other_zone(&self) -> Option<[(String, String); 2]> {
        let hosts = self.0.as_ref()?.borrow();
        let named = |member: &Member| Some((member.name.clone(), member.timezone.clone()?));
        let (me, main) = (named(&hosts.me)?, named(hosts.alive.iter().find(|member| member.is_main)?)?);
        (me.1 != main.1).then_some([me, main])
    }

    /// Returns how long after its own time this host fires, so that it is never early by the server's clock.
    pub(super) fn waits(&self) -> TimeDelta {
        self.0.as_ref().map_or_else(TimeDelta::zero, |hosts| hosts.borrow().waits())
    }

    /// Returns whether a person has paused everything, as the journal said within the last second; `None` if this
    /// host is the only one, since it knows by itself.
    pub(super) fn is_paused(&self) -> Option<bool> {
        self.0.as_ref().map(|hosts| hosts.borrow().paused)
    }

    /// Returns definitions that failed lately, as last read from the journal; `None` as for [`Self::is_paused`].
    pub(super) fn failing(&self) -> Option<Vec<ConsecutiveFailures>> {
        self.0.as_ref().map(|hosts| hosts.borrow().failing.clone())
    }

    /// Returns why this host may not run `definition`, neither on time nor on request; `None` if it may.
    pub(super) fn not_here(&self, definition: &Definition) -> Option<String> {
        if definition.kind() == Kind::Session {
            return None;
        } else if !self.is_named_here(definition) {
            return Some(format!("its `hosts` name {}", definition.hosts.join(" and ")));
        }
        (needs_main(definition) && !self.is_main())
            .then(|| "it goes on from the main session, which another host has".to_owned())
    }

    /// Returns whether this is the main host, and no living host may run `definition`.
    pub(super) fn has_no_host(&self, definition: &Definition) -> bool {
        self.0.as_ref().is_some_and(|hosts| {
            let hosts = hosts.borrow();
            let may = |member: &Member| is_named(definition, &member.name, |label| member.labels.contains(label));
            hosts.is_main && !hosts.alive.iter().any(may)
        })
    }

    /// Returns whether the file of `definition` lets it run on this host.
    pub(super) fn is_named_here(&self, definition: &Definition) -> bool {
        self.0.as_ref().is_none_or(|hosts| {
            let me = &hosts.borrow().me;
            is_named(definition, &me.name, |label| me.labels.contains(label))
        })
    }

    /// Returns whether hosts went away and left open occurrences, or an occurrence waits for a host that may run it.
    pub(super) fn is_something_left(&self) -> bool {
        let is_left = |hosts: &Hosts| hosts.is_some_unassigned || !hosts.left_open.is_empty();
        self.0.as_ref().is_some_and(|hosts| is_left(&hosts.borrow()))
    }

    /// Returns whether this host has the main session. A single host always has it.
    pub(super) fn is_main(&self) -> bool {
        self.0.as_ref().is_none_or(|hosts| hosts.borrow().is_main)
    }

    /// Returns when the state of the hosts has changed. Never returns for a single host.
    pub(super) async fn changed(&mut self) {
        let changed = match &mut self.0 {
            Some(hosts) => hosts.changed().await.is_ok(),
            None => false,
        };
        // No changes are reported any more: the journal is closed, or has one host.
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}

fn share(definition: &Definition, at: DateTime<Utc>, hosts: &Hosts) -> Share {
    // A session belongs to the process that spawned it.
    if definition.kind() == Kind::Session {
        return Share::First;
    }
    let needs_main = needs_main(definition);
    let is_named = |member: &Member| is_named(definition, &member.name, |label| member.labels.contains(label));
    if !is_named(&hosts.me) || (needs_main && !hosts.is_main) {
        return Share::Never;
    }
    if hosts.is_outdated() && is_near_change(definition, at) {
        return Share::Never;
    }
    let common = hosts.common_zone(is_named).filter(|_| has_zone_of_host(definition));
    let fires =
        |member: &Member| is_named(member) && common.is_none_or(|zone| member.timezone.as_deref() == Some(zone));
    if needs_main {
        Share::First
    } else if !fires(&hosts.me) {
        Share::Never
    } else if hosts.is_first_for(&definition.id, fires) {
        Share::First
    } else {
        Share::Later
    }
}

/// Returns whether a definition fires in the time zone of its host, which another host may not have.
#[must_use]
pub fn has_zone_of_host(definition: &Definition) -> bool {
    definition.own_zone.is_none() && !definition.is_pushed() && definition.kind() != Kind::Webhook
}

/// Returns whether the file of a definition lets it run on the host `name`, or on one with such a label.
#[must_use]
pub fn is_named(definition: &Definition, name: &str, has_label: impl Fn(&str) -> bool) -> bool {
    definition.hosts.is_empty() || definition.hosts.iter().any(|wish| wish == name || has_label(wish))
}

/// Returns whether only the host with the main session can run it, since it continues that session, or one of its
/// own whose transcripts are files of that host.
#[must_use]
pub fn needs_main(definition: &Definition) -> bool {
    // No session is used.
    if matches!(definition.client, Some(JobClient::Notify | JobClient::Exec)) {
        return false;
    }
    match &definition.mode {
        Mode::Foreground => true,
        Mode::Background(background) => !background.isolated || definition.remember == Remember::Thread,
    }
}

/// Returns whether the zone of a routine changes its offset around `at`.
fn is_near_change(definition: &Definition, at: DateTime<Utc>) -> bool {
    use chrono::Offset as _;
    let offset = |at: DateTime<Utc>| at.with_timezone(&definition.zone).offset().fix();
    matches!(definition.trigger, Trigger::Routine { .. }) && offset(at - AROUND_CHANGE) != offset(at + AROUND_CHANGE)
}
