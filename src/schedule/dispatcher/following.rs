//! Follows the definitions: inserts and removes them, and asks the journal for the watermark of each.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::super::active::{ActiveOccurrence, Stage};
use super::super::command::Loaded;
use super::super::definitions::{InsertEffects, Observed, due_at};
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{ConsecutiveFailures, EventKind, Journal, JournalError, ObservedGeneration, Occurrence};

/// Maximum number of definitions in one request to the journal, so that 100,000 need little memory.
const BATCH: usize = 5000;

/// Generations of definitions to ask the journal about.
pub(super) type Unobserved = Vec<(Arc<Definition>, ObservedGeneration)>;

/// Asks the journal for the watermark of each. `latest`: the latest time that the clock has shown.
pub(super) async fn observe(
    journal: &Journal,
    latest: DateTime<Utc>,
    unobserved: Unobserved,
) -> Result<Vec<Observed>, JournalError> {
    let mut observed = Vec::with_capacity(unobserved.len());
    for batch in unobserved.chunks(BATCH) {
        observed.extend(observe_batch(journal, latest, batch).await?);
    }
    Ok(observed)
}

/// Like [`observe`]. Asks before it returns, so that the claim of one of these comes after.
fn observe_batch(
    journal: &Journal,
    latest: DateTime<Utc>,
    batch: &[(Arc<Definition>, ObservedGeneration)],
) -> impl Future<Output = Result<Vec<Observed>, JournalError>> + Send + use<> {
    let (definitions, generations): (Vec<Arc<Definition>>, Vec<_>) = batch.iter().cloned().unzip();
    fail_point!(BeforeSight);
    let watermarks = journal.observe(generations.into(), latest);
    let journal = journal.clone();
    async move {
        let watermarks = watermarks.await?;
        fail_point!(Sighted);
        let mut observed = Vec::with_capacity(definitions.len());
        for (definition, accounted_until) in definitions.into_iter().zip(watermarks) {
            let last_due = match definition.jitter() {
                Some(_) => journal.last_due(&definition.id).await?,
                None => None,
            };
            observed.push(Observed { definition, accounted_until, last_due });
        }
        Ok(observed)
    }
}

impl Dispatcher {
    pub(super) fn replace(&mut self, all: Vec<Loaded>) {
        let present: HashSet<DefinitionId> = all.iter().map(|loaded| loaded.definition.id.clone()).collect();
        let gone: Vec<_> = self.definitions.ids().filter(|id| !present.contains(*id)).cloned().collect();
        for id in gone {
            self.remove(&id);
        }
        for loaded in all {
            self.upsert(loaded);
        }
    }

    pub(super) fn upsert(&mut self, loaded: Loaded) {
        let (id, at, now) = (loaded.definition.id.clone(), due_at(&loaded.definition), self.clock.now());
        // A routine whose file is back was due in the meantime, too.
        let is_back = self.definitions.get(&id).is_none();
        let unobserved = self.take_in(loaded);
        if let Some(entry) = self.definitions.get_mut(&id) {
            entry.late_file = Some(now).filter(|now| at.map_or(is_back, |at| at < *now));
        }
        self.observe_all(unobserved.as_slice());
    }

    /// Has the journal say from when on occurrences of these definitions count.
    pub(super) fn observe_all(&mut self, unobserved: &[(Arc<Definition>, ObservedGeneration)]) {
        // A larger one is not enqueued at once on a server.
        let size = if self.sharing.is_shared() { ObservedGeneration::AT_ONCE } else { BATCH };
        for batch in unobserved.chunks(size) {
            let observed = observe_batch(&self.journal, self.wall_clock.latest(), batch);
            self.spawn(observed, |this, observed| {
                for observed in observed? {
                    this.set_watermark(&observed);
                    this.definitions.enqueue(&observed.definition.id);
                }
                Ok(())
            });
        }
    }

    /// Inserts or replaces a definition. Returns its generation if the caller has to ask the journal about it.
    pub(super) fn take_in(&mut self, loaded: Loaded) -> Option<(Arc<Definition>, ObservedGeneration)> {
        let definition = Arc::clone(&loaded.definition);
        let id = &definition.id;
        let due = |definition: &Definition| due_at(definition).filter(|_| definition.kind() == Kind::Reminder);
        if let (Some(from), Some(to)) = (self.definitions.definition(id).and_then(|old| due(old)), due(&definition))
            && from != to
        {
            self.journal.record_apart(Some(id), EventKind::DueMoved { from, to });
        }
        let is_edited = self.definitions.get(id).is_some_and(|entry| entry.loaded.text != loaded.text);
        let InsertEffects { unobserved, enabled_again, mended } = self.definitions.insert(loaded);
        if is_edited {
            self.claim_again(id);
        }
        if mended {
            self.end_pause(id);
        }
        if enabled_again {
            self.enabled_again(id);
        }
        self.definitions.enqueue(id);
        self.recheck_where(|active| active.occurrence.id == *id);
        self.recheck_edited(id);
        self.cleanup_again(id);
        unobserved.map(|generation| (Arc::clone(&definition), generation))
    }

    pub(super) fn set_watermark(&mut self, observed: &Observed) {
        let now = self.clock.now();
        self.definitions.set_watermark(observed, now, self.wall_clock.latest().max(now));
    }

    /// Removes a definition whose file is gone or not valid.
    pub(super) fn remove(&mut self, id: &DefinitionId) {
        if let Some(entry) = self.definitions.remove(id) {
            self.recheck_edited(id);
            let removed_early = self.removed_early(&entry.loaded.definition);
            let (files, id) = (Arc::clone(&self.files), id.clone());
            // A file that exists but is not valid keeps its watermark: once corrected, it is the same definition.
            let exists = tokio::task::spawn_blocking(move || files.is_there(&entry.loaded.definition.file));
            self.spawn(exists, |this, exists| {
                if !exists.unwrap_or(true) {
                    this.forget_removed(vec![id]);
                    if let Some(occurrence) = removed_early {
                        let journal = this.journal.clone();
                        this.note(async move { journal.file_gone(occurrence).await });
                    }
                }
                Ok(())
            });
        }
    }

    /// Returns the occurrence of a reminder whose file is gone before its time, if another host may have run it.
    fn removed_early(&self, definition: &Definition) -> Option<Occurrence> {
        let at = due_at(definition).filter(|at| self.sharing.is_shared() && *at > self.clock.now())?;
        let is_file = definition.kind() == Kind::Reminder && !definition.is_pushed();
        is_file.then(|| Occurrence { id: definition.id.clone(), kind: Kind::Reminder, at })
    }

    pub(super) fn forget_removed(&mut self, mut ids: Vec<DefinitionId>) {
        if self.others_have_files {
            return;
        }
        // Some may have come back.
        ids.retain(|id| self.definitions.get(id).is_none());
        if !ids.is_empty() {
            let journal = self.journal.clone();
            self.note(async move { journal.record_removed(ids).await });
        }
    }

    /// Ends a routine's suppression after too many failures: it was resumed, edited, or works again. It has no backlog.
    pub(super) fn end_pause(&mut self, id: &DefinitionId) {
        let ended = self.pause_ended(id);
        self.note(ended);
    }

    /// Like [`Self::end_pause`]. The caller has to run the returned future, which records it.
    pub(super) fn pause_ended(
        &mut self,
        id: &DefinitionId,
    ) -> impl Future<Output = Result<(), JournalError>> + Send + use<> {
        let now = self.clock.now();
        let latest = self.wall_clock.latest().max(now);
        let none = ConsecutiveFailures::none(id.clone());
        self.definitions.set_failures(&none);
        self.definitions.advance(id, now, latest);
        self.definitions.enqueue(id);
        let (journal, id) = (self.journal.clone(), id.clone());
        async move {
            // In this order: after a crash in between, the routine is still suppressed instead of having a backlog.
            journal.set_watermark(id, latest).await?;
            journal.set_consecutive_failures(none).await
        }
    }

    /// Makes occurrences that wait for this file, or for a file in this folder, check it again.
    pub(super) fn recheck(&mut self, file: &Path) {
        self.recheck_where(|active| active.file.starts_with(file));
    }

    fn recheck_where(&mut self, concerns: impl Fn(&ActiveOccurrence) -> bool) {
        for number in self.active.numbers(|active| matches!(active.stage, Stage::FileInvalid) && concerns(active)) {
            self.active.set_stage(number, Stage::Waiting { reread: false });
        }
    }
}
