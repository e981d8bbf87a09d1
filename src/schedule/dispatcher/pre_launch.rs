//! The pre-launch check: the known definition, then its file. It finds edits that are not reported yet, so that a
//! job never runs under an older, wider policy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::active::{Cause, Priority, Stage};
use super::super::definitions::due_at;
use super::super::files::Files;
use super::Dispatcher;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::DelayCause;

/// Wait before a file that has just changed is read again. It may be half written, or about to be renamed; within
/// this time the watch on the folders reports its new name.
const SETTLES: Duration = Duration::from_millis(300);

/// Time after which a file that is away counts as deleted and not as being replaced. The journal's watermarks have the same.
const REPLACED: Duration = Duration::from_secs(10);

/// Pause between two looks for a file that is away.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Why an occurrence was not begun. Nobody is notified of these at once: they follow from what a person does to the file.
pub(super) const OTHER_CONTENT: &str = "its file now says something else";
pub(super) const DELETED: &str = "its file was deleted before it could run";

/// The verdict of the known definition on a launch.
pub(super) enum Verdict {
    Launch(Arc<Definition>, Arc<str>),
    Close(&'static str),
    Missing,
}

impl Dispatcher {
    pub(super) fn verdict(&self, number: u64) -> Verdict {
        let Some(active) = self.active.get(number) else { return Verdict::Missing };
        let Some(entry) = self.definitions.get(&active.occurrence.id) else { return Verdict::Missing };
        let definition = &entry.loaded.definition;
        if definition.kind() != active.occurrence.kind {
            return Verdict::Close(OTHER_CONTENT);
        }
        if definition.kind() == Kind::Reminder && due_at(definition) != Some(active.occurrence.at) {
            return Verdict::Close("its time was changed");
        }
        if !definition.enabled && active.priority != Priority::ByHand {
            return Verdict::Close("disabled: it was disabled before it could run");
        }
        Verdict::Launch(Arc::clone(definition), Arc::clone(&entry.loaded.text))
    }

    /// Returns a future that says whether the file still holds `text`. If not, the future has the file read again,
    /// so that the schedule knows its new content.
    pub(super) fn pre_launch_check(
        &self,
        number: u64,
        definition: &Arc<Definition>,
        text: &Arc<str>,
    ) -> impl Future<Output = bool> + Send + use<> {
        let reread =
            self.active.get(number).is_some_and(|active| matches!(active.stage, Stage::Waiting { reread: true }));
        // A spawned agent has no file.
        let checked = reread || definition.kind() == Kind::Session;
        let (files, definition, text) = (Arc::clone(&self.files), Arc::clone(definition), Arc::clone(text));
        async move {
            if checked {
                return true;
            }
            let (looks, file) = (Arc::clone(&files), definition.file.clone());
            let unchanged =
                tokio::task::spawn_blocking(move || looks.is_unchanged(&file, &text)).await.unwrap_or(false);
            if !unchanged {
                tokio::time::sleep(SETTLES).await;
                files.reread(&definition.id, &definition.file).await;
            }
            unchanged
        }
    }

    /// Launches the new content of a file that was read again, without another check: a file that keeps changing
    /// must not keep its job from running.
    pub(super) fn on_file_changed(&mut self, number: u64) {
        // The new content was reported before this event.
        self.handle_waiting();
        let Some(running) = self.active.get(number).and_then(|active| active.running()) else { return };
        let cause = running.cause;
        self.recent.retract(&running.definition);
        self.waits_again(number, cause, true);
        self.launch_waiting();
        if self.active.get(number).is_some_and(|active| matches!(active.stage, Stage::Waiting { .. })) {
            // The occurrence has to wait, so the file may change again.
            self.active.set_stage(number, Stage::Waiting { reread: false });
        }
    }

    /// Makes an occurrence that was not begun wait as before, unless it was ended meanwhile.
    pub(super) fn waits_again(&mut self, number: u64, cause: Option<Cause>, reread: bool) {
        self.active.set_stage(number, Stage::Waiting { reread });
        match cause {
            Some(Cause::Person) => self.close_by_hand(number),
            Some(Cause::Overlap) => self.close_superseded(number),
            // Waiting occurrences are left to the next process.
            Some(Cause::Stopping) | None => self.close_refused(number),
        }
    }

    pub(super) fn find_file(&mut self, number: u64) {
        let Some(active) = self.active.get(number) else { return };
        let (files, file, id) = (Arc::clone(&self.files), active.file.clone(), active.occurrence.id.clone());
        self.active.set_stage(number, Stage::FindingFile);
        self.spawn(async move { is_there_soon(&files, &id, &file).await }, move |this, exists| {
            this.on_file_found(number, exists);
            Ok(())
        });
    }

    /// Makes an occurrence wait for a file that exists but is not valid. Closes one whose file was deleted.
    fn on_file_found(&mut self, number: u64, exists: bool) {
        let Some(active) = self.active.get(number) else { return };
        if !matches!(active.stage, Stage::FindingFile) {
            return;
        }
        if self.definitions.get(&active.occurrence.id).is_some() {
            self.active.set_stage(number, Stage::Waiting { reread: false });
        } else if exists && self.definitions.has_file(&active.file) {
            self.close_idle(number, OTHER_CONTENT);
        } else if exists {
            tracing::warn!(id = %active.occurrence.id, "it waits until its file is valid again");
            self.note_delay(number, DelayCause::FileInvalid);
            self.active.set_stage(number, Stage::FileInvalid);
        } else {
            self.close_idle(number, DELETED);
        }
    }
}

/// Returns whether the file is there, or comes back within [`REPLACED`]. It is read before this returns.
async fn is_there_soon(files: &Arc<dyn Files>, id: &DefinitionId, file: &Path) -> bool {
    let begin = Instant::now();
    loop {
        let (looks, looked_at) = (Arc::clone(files), file.to_owned());
        // A task that cannot look does not say that the file is gone.
        let is_there = tokio::task::spawn_blocking(move || looks.is_there(&looked_at)).await.unwrap_or(true);
        if is_there && begin.elapsed() > BETWEEN_LOOKS {
            files.reread(id, file).await;
        }
        if is_there || begin.elapsed() >= REPLACED {
            return is_there;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
