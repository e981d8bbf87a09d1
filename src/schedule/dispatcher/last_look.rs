//! The last look at what is about to be launched: the definition as it is known, and then its file. An edit that nobody has
//! told of yet counts: with a narrower policy, the older one must not run.

use std::sync::Arc;
use std::time::Duration;

use super::super::files::{Files, Look};
use super::super::open::{Cause, Stage};
use super::definitions::due_at;
use super::{Dispatcher, Event};
use crate::definition::{Definition, Kind};
use crate::journal::JournalError;

/// A file that has just changed may be half written: an editor is done with it after this long.
const WRITTEN: Duration = Duration::from_millis(50);

/// One that is not there may be on its way to another name. After this long, whoever follows the folders has told of that:
/// it is longer than they wait for them to be quiet.
const MOVED: Duration = Duration::from_millis(300);

/// A file that never stops changing is launched as it was read last, the moment before, after so many times.
const EDITS_AT_MOST: u32 = 8;

/// Whether the file of a missing definition is there.
pub(super) struct Found {
    number: u64,
    there: bool,
}

/// What the last look at a definition says.
pub(super) enum Verdict {
    Launch(Arc<Definition>, Arc<str>),
    Close(&'static str),
    Missing,
}

impl Dispatcher {
    /// The definition that counts is that of this moment.
    pub(super) fn last_look(&self, number: u64) -> Verdict {
        let Some(open) = self.open.get(number) else { return Verdict::Missing };
        let Some(entry) = self.definitions.get(&open.occurrence.id) else { return Verdict::Missing };
        let definition = &entry.loaded.definition;
        if definition.kind() != open.occurrence.kind {
            return Verdict::Close("its file now says something else");
        }
        if definition.kind() == Kind::Reminder && due_at(definition) != Some(open.occurrence.at) {
            return Verdict::Close("its time was changed");
        }
        if !definition.enabled && !open.by_hand {
            return Verdict::Close("disabled: it was disabled before it could run");
        }
        Verdict::Launch(Arc::clone(definition), Arc::clone(&entry.loaded.text))
    }

    /// What looks at the file of an open occurrence just before its launch is recorded, and says whether it may be
    /// launched as it was read. If not, the schedule has been told what it says now.
    pub(super) fn look_at_file(
        &self,
        number: u64,
        definition: &Arc<Definition>,
        text: &Arc<str>,
    ) -> impl Future<Output = bool> + Send + use<> {
        let settled = self.open.get(number).is_some_and(|open| open.edits >= EDITS_AT_MOST);
        // A spawned agent has no file.
        let needless = settled || definition.kind() == Kind::Session;
        let (files, definition, text) = (Arc::clone(&self.files), Arc::clone(definition), Arc::clone(text));
        async move { needless || is_as_read(&files, &definition, &text).await }
    }

    /// Back to waiting, for another last look.
    pub(super) fn on_changed(&mut self, number: u64) {
        // What its file says was told before this was.
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command);
        }
        let Some(open) = self.open.get_mut(number) else { return };
        let Stage::Going { cause, .. } = open.stage else { return };
        open.edits += 1;
        let unfired = open.fired.take();
        self.recent.retain(|(_, launched)| unfired.as_ref().is_none_or(|unfired| !Arc::ptr_eq(launched, unfired)));
        self.open.set_stage(number, Stage::Waiting);
        match cause {
            Some(Cause::Person) => self.close_by_hand(number),
            Some(Cause::Overlap) => self.close_superseded(number),
            // What only waits is left to the next life.
            Some(Cause::Stopping) | None => {}
        }
    }

    pub(super) fn look_for_file(&mut self, number: u64) {
        let Some(open) = self.open.get(number) else { return };
        let (files, file) = (Arc::clone(&self.files), open.file.clone());
        self.open.set_stage(number, Stage::Missing { parked: false });
        self.tasks.spawn_blocking(move || Event::Found(Found { number, there: files.is_there(&file) }));
    }

    /// A file that is there but not valid is waited for; one that was deleted ends its occurrence.
    pub(super) fn on_found(&mut self, found: &Found) -> Result<(), JournalError> {
        let Some(open) = self.open.get(found.number) else { return Ok(()) };
        if !matches!(open.stage, Stage::Missing { .. }) {
            return Ok(());
        }
        if self.definitions.contains_key(&open.occurrence.id) {
            self.open.set_stage(found.number, Stage::Waiting);
        } else if found.there && self.is_somebodys(&open.file) {
            self.close_unlaunched(found.number, "its file now says something else");
        } else if found.there {
            tracing::warn!(id = %open.occurrence.id, "it waits until its file is valid again");
            self.open.set_stage(found.number, Stage::Missing { parked: true });
        } else {
            self.close_unlaunched(found.number, "its file was deleted before it could run");
        }
        Ok(())
    }
}

/// Whether a definition's file says just now what was read from it. If not, the schedule is told what it says as soon as
/// that can be known.
async fn is_as_read(files: &Arc<dyn Files>, definition: &Definition, text: &Arc<str>) -> bool {
    let pause = match look(files, definition, text).await {
        Look::AsRead => return true,
        Look::Changed => WRITTEN,
        Look::Gone => MOVED,
    };
    tokio::time::sleep(pause).await;
    // It may be as it was; but a person may have paused everything meanwhile.
    files.reread(&definition.id, &definition.file).await;
    false
}

async fn look(files: &Arc<dyn Files>, definition: &Definition, text: &Arc<str>) -> Look {
    let (files, file, text) = (Arc::clone(files), definition.file.clone(), Arc::clone(text));
    tokio::task::spawn_blocking(move || files.look(&file, &text)).await.unwrap_or(Look::Changed)
}
