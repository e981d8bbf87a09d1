//! Cleans up a reminder's file once its outcome is recorded. Removes the file of a completed reminder, and moves
//! any other to `reminders/failed/`. A start completes the cleanups that the previous process left.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::super::conclusion::failure_buttons;
use super::super::definitions::due_at;
use super::super::files::{Files, Removal};
use super::Dispatcher;
use super::pre_launch::{DELETED, OTHER_CONTENT};
use crate::agent::SkipReason;
use crate::definition::{DefinitionId, Kind, maker_in};
use crate::journal::{ConcludedReminder, NewMessage, RunState, Subject};

/// Pause before a failed cleanup is retried.
const PAUSE: Duration = Duration::from_secs(10);

/// A pending cleanup.
#[derive(Debug)]
pub(super) struct Cleanup {
    recorded: ConcludedReminder,
    /// When it is retried, if it failed. Otherwise the file has changed, and is retried once that is read.
    pub(super) retry_at: Option<Instant>,
}

/// Files to read again after their cleanup. One task reads all of them: to take in one change of 100,000 files takes as long as many.
#[derive(Debug, Default)]
pub(super) struct CleanedFiles {
    waiting: Vec<(DefinitionId, PathBuf)>,
    is_reading: bool,
}

/// The action for a file.
enum Action {
    /// Removes the file, unless its text has changed since the reminder fired.
    Remove,
    MoveToFailed(String),
    /// The file belongs to another occurrence, or to another job.
    Leave,
}

impl Dispatcher {
    /// Cleans up a reminder's file. `is_retry` says that an earlier try failed.
    pub(super) fn clean_up(&mut self, recorded: ConcludedReminder, is_retry: bool) {
        let loaded = self.definitions.get(&recorded.occurrence.id).map(|entry| &entry.loaded);
        let file = loaded.map_or(&recorded.file, |loaded| &loaded.definition.file).clone();
        // A gate that found nothing to do has completed the reminder.
        let by_gate = recorded.error.as_deref().is_some_and(|why| why.starts_with(SkipReason::BY_GATE));
        let completed = match recorded.outcome {
            RunState::Skipped => by_gate,
            outcome => outcome == RunState::Completed,
        };
        let came_back = recorded.file_was_done && (!completed || recorded.ran_early);
        let was_edited = loaded.is_some_and(|loaded| loaded.text != recorded.text);
        let action = match loaded {
            None if self.definitions.has_file(&file) => Action::Leave,
            // The routine's own file may have come back.
            None if recorded.occurrence.kind != Kind::Reminder => Action::Leave,
            Some(loaded) if due_at(&loaded.definition) != Some(recorded.occurrence.at) => Action::Leave,
            Some(_) if recorded.occurrence.kind != Kind::Reminder => Action::MoveToFailed(
                "a routine of the same id has fallen due at this time; give it a new time".to_owned(),
            ),
            Some(loaded) if completed && (was_edited || came_back) => {
                let at = recorded.occurrence.at.with_timezone(&loaded.definition.zone).to_rfc3339();
                Action::MoveToFailed(format!("it ran for {at} and was completed before this edit; give it a new time"))
            }
            _ if completed => Action::Remove,
            _ => Action::MoveToFailed(match &recorded.error {
                Some(error) => format!("{}: {error}", recorded.outcome),
                None => recorded.outcome.to_string(),
            }),
        };
        let (files, journal, done) = (Arc::clone(&self.files), self.journal.clone(), recorded.occurrence.clone());
        let how = match () {
            () if came_back => Some(Untold::CameBack),
            () if completed && was_edited => Some(Untold::EditedTooLate),
            () => None,
        };
        let maker = loaded.map_or_else(|| maker_in(&recorded.text), |loaded| loaded.definition.maker());
        let (fired, untold) = (Arc::clone(&recorded.text), untold(&recorded, how, maker));
        let (at, cleaned) = (recorded.occurrence.at, file.clone());
        let task = async move {
            let acted = tokio::task::spawn_blocking(move || act(&*files, (&file, at), &fired, action)).await;
            let (removal, moved) = acted.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
            if removal == Removal::Removed {
                fail_point!(FileDone);
                let message = untold.filter(|_| moved);
                journal.file_done(&done, message).await.map_err(io::Error::other)?;
                fail_point!(FileRecorded);
            }
            Ok(removal)
        };
        self.spawn(task, move |this, result| {
            if result.is_ok() {
                this.cleaned.waiting.push((recorded.occurrence.id.clone(), cleaned));
            }
            this.on_cleaned(recorded, result, is_retry);
            this.reread_cleaned();
            Ok(())
        });
    }

    fn on_cleaned(&mut self, recorded: ConcludedReminder, result: io::Result<Removal>, is_retry: bool) {
        let id = recorded.occurrence.id.clone();
        let retry_at = match result {
            Ok(Removal::Removed) => {
                if is_retry {
                    tracing::info!(%id, "the file of a reminder that is done was removed or moved");
                }
                // A file that was put back meanwhile fires again, to find its record.
                let entry = self.definitions.get_mut(&id);
                if let Some(entry) = entry.filter(|entry| entry.claimed == Some(recorded.occurrence.at)) {
                    entry.claimed = None;
                }
                return;
            }
            Ok(Removal::Changed) => None,
            Err(error) => {
                if !is_retry {
                    tracing::warn!(
                        %id, file = %recorded.file.display(), %error,
                        "the file of a reminder that is done cannot be removed or moved; trying again"
                    );
                }
                Some(Instant::now() + PAUSE)
            }
        };
        self.cleanups.insert(id, Cleanup { recorded, retry_at });
    }

    /// Has the files read again that were removed, moved away, or found changed. The watch on the folders sees no change if a file was put
    /// back at once.
    fn reread_cleaned(&mut self) {
        if self.cleaned.is_reading || self.cleaned.waiting.is_empty() {
            return;
        }
        self.cleaned.is_reading = true;
        let (files, cleaned) = (Arc::clone(&self.files), mem::take(&mut self.cleaned.waiting));
        self.spawn(async move { files.reread_cleaned(cleaned).await }, |this, ()| {
            this.cleaned.is_reading = false;
            this.reread_cleaned();
            Ok(())
        });
    }

    /// Retries failed cleanups whose time has come. When the service is stopping, the next process does.
    pub(super) fn clean_up_due(&mut self) {
        if self.phase.is_stopping() {
            self.cleanups.clear();
        }
        let now = Instant::now();
        let is_due = |cleanup: &Cleanup| cleanup.retry_at.is_some_and(|at| at <= now);
        let due: Vec<_> = self.cleanups.extract_if(|_, cleanup| is_due(cleanup)).collect();
        due.into_iter().for_each(|(_, cleanup)| self.clean_up(cleanup.recorded, true));
    }

    /// Retries a cleanup at once, since the definition has changed.
    pub(super) fn cleanup_again(&mut self, id: &DefinitionId) {
        if let Some(Cleanup { recorded, retry_at }) = self.cleanups.remove(id) {
            self.clean_up(recorded, retry_at.is_some());
        }
    }
}

/// Acts on the file. Returns whether a file was moved, too.
fn act(
    files: &dyn Files,
    (file, at): (&Path, DateTime<Utc>),
    fired: &str,
    action: Action,
) -> io::Result<(Removal, bool)> {
    fail_point!(try BeforeFile);
    match action {
        Action::Leave => Ok((Removal::Removed, false)),
        Action::MoveToFailed(why) => files.move_to_failed(file, at, &why).map(|moved| (Removal::Removed, moved)),
        Action::Remove => files.remove(file, fired).map(|removal| (removal, false)),
    }
}

/// Why a file is moved away although its time has a run.
#[derive(Clone, Copy)]
enum Untold {
    /// It was edited after it had fired.
    EditedTooLate,
    /// It was put back after its time had its run.
    CameBack,
}

/// Returns the message about a file that is moved away although nobody knows that it has not run as it is: it was edited too late, or it
/// was away, or a routine's, at its time, or its time was used, and came back.
fn untold(recorded: &ConcludedReminder, how: Option<Untold>, maker: Option<DefinitionId>) -> Option<NewMessage> {
    let ConcludedReminder { occurrence, outcome, error, .. } = recorded;
    let id = &occurrence.id;
    let what = match (how, error.as_deref()) {
        _ if occurrence.kind != Kind::Reminder => {
            "did not run: a routine of the same id fell due at its time".to_owned()
        }
        (Some(Untold::EditedTooLate), _) => "ran before its last edit, with the text from before".to_owned(),
        (_, Some(why @ (DELETED | OTHER_CONTENT))) if *outcome == RunState::Skipped => {
            format!("did not run: {why}, and has come back")
        }
        (Some(Untold::CameBack), _) => {
            format!("did not run: its time has had its run already, which was {outcome}")
        }
        (None, _) => return None,
    };
    let text = format!(
        "reminder {id} {what}. Its file is kept in reminders/failed/; `ollim-bot reminder retry {id}` fires it at once."
    );
    Some(NewMessage::about(Subject::job_with(id, maker), text).with_buttons(failure_buttons(Kind::Reminder)))
}
