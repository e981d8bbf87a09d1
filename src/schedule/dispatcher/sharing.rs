//! What this host does where several share the work: it leaves things to others, and takes over what a host left that went away.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tokio::time::Duration;

use super::super::definitions::{due_at, generation};
use super::super::sharing::Share;
use super::Dispatcher;
use super::following::observe;
use crate::definition::{Definition, Kind};
use crate::failpoints::of_lease;
use crate::journal::{JournalError, Occurrence, Recorded};

/// How often this host looks whether another one has ended a reminder.
const LOOKS: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// A definition is due that only other hosts may run.
    pub(super) fn leave_to_others(&mut self, definition: &Definition, now: DateTime<Utc>) {
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

    /// Waits until a reminder that another host runs, or will run, has its outcome. Then the file here goes, too.
    pub(super) fn await_record(&mut self, occurrence: Occurrence) {
        let journal = self.journal.clone();
        self.tasks_of_others.spawn(async move {
            loop {
                tokio::time::sleep(of_lease(LOOKS)).await;
                match journal.recorded(&occurrence).await {
                    Ok(None) => {}
                    recorded => return recorded,
                }
            }
        });
    }

    /// A reminder has its outcome that another host ran.
    pub(super) fn on_recorded_elsewhere(&mut self, recorded: Result<Option<Recorded>, JournalError>) {
        match recorded {
            Ok(Some(recorded)) => self.clean_up(recorded, false),
            Ok(None) => {}
            Err(error) => self.fail(error.into()),
        }
    }

    /// The hosts have changed: what those left that went away is taken over, and what this host may run now falls due here.
    pub(super) fn look_at_hosts(&mut self) {
        if !self.phase.is_running() {
            return;
        }
        if self.sharing.is_something_left() {
            let known: BTreeSet<_> = self.definitions.ids().cloned().collect();
            let journal = self.journal.clone();
            self.spawn(async move { journal.take_over(known).await }, |this, left| {
                for unfinished in left? {
                    tracing::warn!(id = %unfinished.occurrence.id, run = %unfinished.run, "taken over from a host that went away");
                    this.supersede(&unfinished.occurrence);
                    this.take_up(unfinished);
                }
                Ok(())
            });
        }
        let is_main = self.sharing.is_main();
        if is_main && !self.was_main {
            self.take_part();
        }
        self.was_main = is_main;
    }

    /// This host has the main session now: what was left to the one that had it falls due here, from where the journal says.
    fn take_part(&mut self) {
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
            // What has a record is found to have one.
            entry.claimed = None;
            unobserved.extend(generation(&definition).map(|generation| (definition, generation)));
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
