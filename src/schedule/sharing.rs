//! What this host fires, where several share the work.
//!
//! Every host computes every occurrence. Of the hosts that may run it, one comes first; the others try a moment later, and find its
//! record. So no host has to know what the others are doing, and a wrong view costs a moment and never a second run: the journal has one
//! record of an occurrence.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;
use tokio::time::Duration;

use crate::definition::{Definition, JobClient, Kind, Mode, Remember, Trigger};
use crate::journal::{ConsecutiveFailures, Hosts, Member};

/// How much later the others try what another host comes first for.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// Around a change of clocks by so much, two versions of the rules of time zones may differ.
const AROUND_CHANGE: TimeDelta = TimeDelta::days(1);

/// What this host does about an occurrence that falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// It claims it at once.
    First,
    /// It claims it after [`GRACE`].
    Later,
    /// It leaves it to others.
    Never,
}

/// What this host knows of the others; nothing where it has the journal to itself.
#[derive(Debug, Default)]
pub(super) struct Sharing(Option<watch::Receiver<Hosts>>);

impl Sharing {
    pub(super) fn new(hosts: Option<watch::Receiver<Hosts>>) -> Self {
        Self(hosts)
    }

    /// Whether other hosts may share the journal.
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// What this host does about `definition`, which is due at `at`.
    pub(super) fn share(&self, definition: &Definition, at: DateTime<Utc>) -> Share {
        let Some(hosts) = &self.0 else { return Share::First };
        share(definition, at, &hosts.borrow())
    }

    /// Whether the clock is near enough to the others' to fire by it.
    pub(super) fn has_the_time(&self) -> bool {
        self.0.as_ref().is_none_or(|hosts| hosts.borrow().has_the_time())
    }

    /// How long after its own clock's time this host fires, so that it is never early by the server's.
    pub(super) fn waits(&self) -> TimeDelta {
        self.0.as_ref().map_or_else(TimeDelta::zero, |hosts| hosts.borrow().waits())
    }

    /// Whether a person has paused everything, as the journal said within the last second; `None`: this host is the only one, which knows by
    /// itself.
    pub(super) fn is_paused(&self) -> Option<bool> {
        self.0.as_ref().map(|hosts| hosts.borrow().paused)
    }

    /// Definitions that have failed lately, as the journal said last; `None`: as [`Self::is_paused`].
    pub(super) fn failing(&self) -> Option<Vec<ConsecutiveFailures>> {
        self.0.as_ref().map(|hosts| hosts.borrow().failing.clone())
    }

    /// Why no time and no wish lets this host run `definition`, where others may; `None`: it may.
    pub(super) fn not_here(&self, definition: &Definition) -> Option<String> {
        let hosts = self.0.as_ref()?.borrow();
        let (me, hosts) = (&hosts.me, &hosts);
        if definition.kind() == Kind::Session {
            return None;
        } else if !is_named(definition, &me.name, |label| me.labels.contains(label)) {
            return Some(format!("its `hosts` name {}", definition.hosts.join(" and ")));
        }
        (needs_main(definition) && !hosts.is_main)
            .then(|| "it goes on from the main session, which another host has".to_owned())
    }

    /// Whether hosts went away and left something open.
    pub(super) fn is_something_left(&self) -> bool {
        self.0.as_ref().is_some_and(|hosts| !hosts.borrow().left_open.is_empty())
    }

    /// Whether this host has the main session; one that is alone always has it.
    pub(super) fn is_main(&self) -> bool {
        self.0.as_ref().is_none_or(|hosts| hosts.borrow().is_main)
    }

    /// Returns when something has changed with the hosts; never where there is one.
    pub(super) async fn changed(&mut self) {
        let changed = match &mut self.0 {
            Some(hosts) => hosts.changed().await.is_ok(),
            None => false,
        };
        // Nobody tells any more of changes: the journal is closed, or has one host.
        if !changed {
            std::future::pending::<()>().await;
        }
    }
}

fn share(definition: &Definition, at: DateTime<Utc>, hosts: &Hosts) -> Share {
    // It lives in the process that spawned it.
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
    if needs_main || hosts.is_first_for(&definition.id, is_named) { Share::First } else { Share::Later }
}

/// Whether the file of a definition lets it run on the host `name`, or on one with such a label.
#[must_use]
pub fn is_named(definition: &Definition, name: &str, has_label: impl Fn(&str) -> bool) -> bool {
    definition.hosts.is_empty() || definition.hosts.iter().any(|wish| wish == name || has_label(wish))
}

/// Whether only the host with the main session can run it: it goes on from that session, or from one of its own, whose transcripts are files
/// of that host.
#[must_use]
pub fn needs_main(definition: &Definition) -> bool {
    // No session is asked.
    if matches!(definition.client, Some(JobClient::Notify | JobClient::Exec)) {
        return false;
    }
    match &definition.mode {
        Mode::Foreground => true,
        Mode::Background(background) => !background.isolated || definition.remember == Remember::Thread,
    }
}

/// Whether the zone of a routine changes its offset around `at`.
fn is_near_change(definition: &Definition, at: DateTime<Utc>) -> bool {
    use chrono::Offset as _;
    let offset = |at: DateTime<Utc>| at.with_timezone(&definition.zone).offset().fix();
    matches!(definition.trigger, Trigger::Routine { .. }) && offset(at - AROUND_CHANGE) != offset(at + AROUND_CHANGE)
}
