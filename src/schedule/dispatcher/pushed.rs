//! Definitions that only the journal's database has. They are here while they are nearly due, or while something of theirs is open.

use super::super::command::Loaded;
use super::super::sharing::REMOVAL;
use super::Dispatcher;
use crate::definition::{DefinitionId, Kind};
use crate::journal::{ConsecutiveFailures, EventKind, Occurrence};

impl Dispatcher {
    /// Adds or replaces definitions of the database, unless a file has the same id.
    pub(super) fn load(&mut self, all: Vec<Loaded>) {
        let mut unobserved = Vec::new();
        for loaded in all {
            let id = loaded.definition.id.clone();
            match self.definitions.get(&id).map(|entry| &entry.loaded) {
                Some(known) if !known.definition.is_pushed() => continue,
                Some(known) if known.text == loaded.text && known.definition == loaded.definition => continue,
                Some(_) => self.journal.record_apart(Some(&id), EventKind::DefinitionChanged),
                // The database has no pause of what is nearly due: it was resumed, or pushed again.
                None if self.definitions.is_paused(&id) => {
                    self.definitions.set_failures(&ConsecutiveFailures::none(id));
                }
                None => {}
            }
            unobserved.extend(self.take_in(loaded));
        }
        self.observe_all(&unobserved);
    }

    /// Drops those definitions of which nothing is open. Returns those that are gone from here.
    pub(super) fn unload(&mut self, mut ids: Vec<DefinitionId>) -> Vec<DefinitionId> {
        ids.retain(|id| {
            let Some(entry) = self.definitions.get(id) else { return true };
            let definition = &entry.loaded.definition;
            if !definition.is_pushed() {
                // A file has the id by now.
                return true;
            }
            // The journal's answer is still to come.
            let is_new = definition.kind() == Kind::Routine && definition.enabled && entry.watermark.is_none();
            let is_in_use = is_new
                || self.definitions.claiming.contains(id)
                || self.active.of(id).next().is_some()
                || self.cleanups.contains_key(id);
            if !is_in_use {
                self.definitions.remove(id);
            }
            !is_in_use
        });
        ids
    }

    /// Returns whether this host leaves the removal of a reminder to the host that ran it. If that one goes away first, the main host has
    /// it brought here again after [`REMOVAL`]. No host has a file.
    pub(super) fn is_removed_elsewhere(&self, occurrence: &Occurrence) -> bool {
        let is_pushed = self.definitions.definition(&occurrence.id).is_some_and(|known| known.is_pushed());
        let is_overdue = occurrence.at + REMOVAL <= self.clock.now();
        self.sharing.is_shared() && is_pushed && !(self.sharing.is_main() && is_overdue)
    }

    /// Removes definitions that the database has no longer.
    pub(super) fn unpush(&mut self, ids: &[DefinitionId]) {
        for id in ids {
            if self.definitions.definition(id).is_some_and(|known| known.is_pushed()) {
                self.journal.record_apart(Some(id), EventKind::DefinitionRemoved);
                self.remove(id);
            }
        }
    }
}
