//! This host's part in shared work: leaves occurrences to other hosts, and takes over from hosts that went away.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Duration, Instant};

use super::super::definitions::{due_at, generation};
use super::super::sharing::Share;
use super::Dispatcher;
use super::following::observe;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::failpoints::of_lease;
use crate::journal::{
    ConcludedReminder, ConsecutiveFailures, JournalError, NewMessage, Occurrence, PAUSED, Subject, Takeover,
};

/// Time between requests for the pause, while this host and the others disagree.
const PAUSE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Beginning of the key under which the journal records that the person knows of a host's wrong clock. The host's name follows.
const WRONG_CLOCK: &str = "wrong_clock";

/// Beginning of the key under which the journal records that the person knows of a host's other time zone. The host's name follows.
const OTHER_ZONE: &str = "other_zone";

/// Time between checks whether another host has ended a reminder.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Leaves a due definition that only other hosts may run.
    pub(super) fn leave_to_others(&mut self, definition: &Definition, now: DateTime<Utc>) {
        self.note_without_host(definition);
        match due_at(definition) {
            Some(at) => {
                if let Some(entry) = self.definitions.get_mut(&definition.id) {
                    entry.claimed = Some(at);
                }
                if definition.kind() == Kind::Reminder {
                    self.await_record(Occurrence { id: definition.id.clone(), kind: Kind::Reminder, at });
                }
            }
            None => self.definitions.advance(&definition.id, now, self.wall_clock.latest().max(now)),
        }
        self.definitions.enqueue(&definition.id);
    }

    /// Notifies the person, once until a host is up again, that no host may run what is due.
    fn note_without_host(&mut self, definition: &Definition) {
        let id = &definition.id;
        if !self.sharing.has_no_host(definition) {
            self.without_host.remove(id);
            return;
        }
        if !self.without_host.insert(id.clone()) {
            return;
        }
        let text = format!(
            "{} is due, and no host that may run it is up: its `hosts` name {}. It waits until one of them is; `ollim-bot doctor` lists the hosts.",
            definition.title(),
            definition.hosts.join(" and ")
        );
        let (journal, message) = (self.journal.clone(), NewMessage::about(Subject::job(definition), text));
        self.note(async move { journal.message(message).await.map(drop) });
    }

    /// Waits for the outcome of a reminder that another host runs or will run. Then cleans up the file here, too.
    pub(super) fn await_record(&mut self, occurrence: Occurrence) {
        let journal = self.journal.clone();
        self.tasks_of_others.spawn(async move {
            loop {
                tokio::time::sleep(of_lease(POLL_INTERVAL)).await;
                match journal.recorded(&occurrence).await {
                    Ok(None) => {}
                    recorded => return recorded,
                }
            }
        });
    }

    /// Cleans up after a reminder that another host ran.
    pub(super) fn on_recorded_elsewhere(&mut self, recorded: Result<Option<ConcludedReminder>, JournalError>) {
        match recorded {
            Ok(Some(recorded)) => self.clean_up(recorded, false),
            Ok(None) => {}
            Err(error) => self.fail(error.into()),
        }
    }

    /// Reacts to a change of the hosts: takes over from hosts that went away, and takes the main host's part if it is this host now.
    pub(super) fn on_hosts_changed(&mut self) {
        if !self.phase.is_running() {
            return;
        }
        if self.sharing.is_something_left() {
            let now = self.clock.now();
            let may = |id: &&DefinitionId| {
                self.definitions.definition(id).is_some_and(|known| self.sharing.share(known, now) != Share::Never)
            };
            let (may_run, others): (BTreeSet<_>, BTreeSet<_>) =
                self.definitions.ids().cloned().partition(|id| may(&id));
            let known = Takeover { may_run, of_others: self.sharing.is_main().then_some(others) };
            let journal = self.journal.clone();
            self.spawn(async move { journal.take_over(known).await }, |this, left| {
                for unfinished in left? {
                    tracing::warn!(id = %unfinished.occurrence.id, run = %unfinished.run, "taken over from another host");
                    this.supersede(&unfinished.occurrence);
                    this.resume_occurrence(unfinished);
                }
                Ok(())
            });
        }
        self.sync_failures();
        self.look_at_clock_of_host();
        self.look_at_zone_of_host();
        let is_main = self.sharing.is_main();
        if is_main && !self.was_main {
            self.take_over_due();
        }
        self.was_main = is_main;
    }

    /// Notifies the person, once, if this host fires nothing because of its clock.
    fn look_at_clock_of_host(&mut self) {
        let Some((host, ahead)) = self.sharing.clock() else { return };
        let is_wrong = !self.sharing.has_correct_time();
        if self.clock_was_wrong.replace(is_wrong) == Some(is_wrong) {
            return;
        }
        let (journal, key) = (self.journal.clone(), format!("{WRONG_CLOCK} {host}"));
        if !is_wrong {
            self.note(async move { journal.set_setting(key, None).await });
            return;
        }
        let way = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
        let text = format!(
            "The clock of the host {host} is {} s {way} the server's, so nothing fires there. Set it: `timedatectl set-ntp true`.",
            ahead.num_seconds().abs()
        );
        tracing::error!("{text}");
        let since = self.clock.now().to_rfc3339();
        // The next process does not repeat it.
        self.note(async move { journal.message_once(key, since, NewMessage::of_service(text)).await.map(drop) });
    }

    /// Notifies the person, once for each pair of zones, if this host leaves jobs to others because of its time zone.
    fn look_at_zone_of_host(&mut self) {
        let zones = self.sharing.other_zone();
        if zones == self.other_zone {
            return;
        }
        self.other_zone.clone_from(&zones);
        let Some([(host, zone), (main, main_zone)]) = zones else { return };
        let text = format!(
            "The time zone of the host {host} is {zone}, that of the main host {main} is {main_zone}. A job without `timezone` fires in the \
             main host's zone, so {host} leaves such jobs to hosts with that zone. To have it run them, set `timezone: {main_zone}` in \
             its config.yaml and restart it."
        );
        tracing::warn!("{text}");
        let (journal, key) = (self.journal.clone(), format!("{OTHER_ZONE} {host} {zone} {main_zone}"));
        let since = self.clock.now().to_rfc3339();
        self.note(async move { journal.message_once(key, since, NewMessage::of_service(text)).await.map(drop) });
    }

    /// Follows a pause or resume on another host. The last state of the hosts may be older than a decision made
    /// here, so the journal is asked, which has that decision.
    pub(super) fn sync_pause(&mut self) {
        let is_known = self.sharing.is_paused().is_none_or(|paused| paused == self.gate.paused.is_some());
        if is_known || !self.phase.is_running() {
            self.pause_looked = None;
            return;
        }
        let now = Instant::now();
        if self.pause_asking || self.pause_looked.is_some_and(|looked| now < looked + PAUSE_POLL_INTERVAL) {
            return;
        }
        (self.pause_looked, self.pause_asking) = (Some(now), true);
        let (journal, decided) = (self.journal.clone(), self.decided);
        self.spawn(async move { journal.setting(PAUSED).await }, move |this, paused| {
            this.pause_asking = false;
            let paused = paused?;
            if this.decided == decided && paused.is_some() != this.gate.paused.is_some() {
                this.take_over_pause(paused);
            }
            Ok(())
        });
    }

    /// Returns when [`Self::sync_pause`] has to look again.
    pub(super) fn next_pause_sync(&self) -> Option<Instant> {
        self.pause_looked.filter(|_| !self.pause_asking).map(|looked| looked + PAUSE_POLL_INTERVAL)
    }

    fn take_over_pause(&mut self, paused: Option<String>) {
        let now = self.clock.now();
        // An unreadable time still means paused.
        match paused {
            Some(since) => self.gate.paused = Some(since.parse().unwrap_or(now)),
            None => {
                self.gate.resume(now);
                self.recheck_login();
            }
        }
    }

    /// Follows failures and recoveries of jobs on other hosts, and resumes there. This host knows its own counts
    /// before the journal reports them.
    fn sync_failures(&mut self) {
        let Some(failing) = self.sharing.failing().filter(|failing| *failing != self.failing_by_journal) else {
            return;
        };
        let before = std::mem::replace(&mut self.failing_by_journal, failing);
        let now = &self.failing_by_journal;
        let of = |all: &[ConsecutiveFailures], id: &DefinitionId| {
            let found = all.iter().find(|failing| failing.id == *id).cloned();
            found.unwrap_or_else(|| ConsecutiveFailures::none(id.clone()))
        };
        let ids: BTreeSet<_> = before.iter().chain(now).map(|failing| failing.id.clone()).collect();
        let changed = ids.into_iter().map(|id| (of(&before, &id), of(now, &id)));
        let changed: Vec<_> = changed.filter(|(before, now)| before != now).map(|(_, now)| now).collect();
        for failures in changed {
            let id = failures.id.clone();
            let is_older = failures.failures > 0 && failures.failures < self.definitions.failures(&id).failures;
            if is_older || self.active.of(&id).next().is_some() {
                continue;
            }
            if self.definitions.is_paused(&id) && failures.paused.is_none() {
                let now = self.clock.now();
                self.definitions.advance(&id, now, self.wall_clock.latest().max(now));
            }
            self.definitions.set_failures(&failures);
            self.definitions.enqueue(&id);
        }
    }

    /// Lets this host fire a definition that it had left to others, since its file has changed. Claims find existing records.
    pub(super) fn claim_again(&mut self, id: &DefinitionId) {
        if self.sharing.is_shared()
            && self.active.of(id).next().is_none()
            && let Some(entry) = self.definitions.get_mut(id)
        {
            entry.claimed = None;
        }
    }

    /// Makes occurrences due here that were left to the previous main host, from the journal's watermarks.
    fn take_over_due(&mut self) {
        tracing::info!("this host has the main session and the channels now");
        let now = self.clock.now();
        let ids: Vec<_> = self.definitions.ids().cloned().collect();
        let mut unobserved = Vec::new();
        for id in ids {
            let Some(entry) = self.definitions.get_mut(&id) else { continue };
            let definition = std::sync::Arc::clone(&entry.loaded.definition);
            if self.sharing.share(&definition, now) == Share::Never || self.active.of(&id).next().is_some() {
                continue;
            }
            // Claims find existing records.
            entry.claimed = None;
            unobserved.extend(generation(&entry.loaded).map(|generation| (definition, generation)));
            self.definitions.enqueue(&id);
        }
        let (journal, latest) = (self.journal.clone(), self.wall_clock.latest());
        self.spawn(async move { observe(&journal, latest, unobserved).await }, |this, observed| {
            for observed in observed? {
                this.definitions.forget_watermark(&observed.definition.id);
                this.set_watermark(&observed);
                this.definitions.enqueue(&observed.definition.id);
            }
            Ok(())
        });
    }
}
