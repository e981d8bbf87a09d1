//! What happens to a reminder's file once its outcome is recorded: a completed one's is removed, any other is moved to
//! `reminders/failed/`. Found undone at a start, it is done then.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::files::{Files, Removal};
use super::definitions::due_at;
use super::{Dispatcher, Event};
use crate::journal::{Recorded, RunState};

/// How long until a file that could not be dealt with is tried again: twice as long each time, up to the longest.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// What became of a file.
pub(super) struct Cleaned {
    recorded: Recorded,
    result: io::Result<Left>,
}

/// Whether something is left to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The file has changed and the dispatcher has not heard of it yet.
    WaitForEdit,
}

/// What is to be done with a file.
enum Deed {
    /// There is no valid definition: whatever stands there was changed, or is gone.
    RemoveIfAsFired,
    Remove,
    MoveToFailed(String),
    /// It is another occurrence's now, or another job's.
    Leave,
}

impl Dispatcher {
    /// Deals with a reminder's file. Its occurrence has its outcome on the disk.
    pub(super) fn clean_up(&mut self, recorded: Recorded) {
        let id = &recorded.occurrence.id;
        let why = match (&recorded.outcome, &recorded.error) {
            (outcome, Some(error)) => format!("{outcome}: {error}"),
            (outcome, None) => outcome.to_string(),
        };
        let mut file = recorded.file.clone();
        let deed = match self.definitions.get(id).map(|entry| &entry.loaded) {
            None if self.is_somebodys(&file) => Deed::Leave,
            None if recorded.outcome == RunState::Completed => Deed::RemoveIfAsFired,
            None => Deed::MoveToFailed(why),
            Some(loaded) if due_at(&loaded.definition) != Some(recorded.occurrence.at) => Deed::Leave,
            Some(loaded) => {
                file.clone_from(&loaded.definition.file);
                if recorded.outcome != RunState::Completed {
                    Deed::MoveToFailed(why)
                } else if loaded.text == recorded.text {
                    Deed::Remove
                } else {
                    let at = recorded.occurrence.at.with_timezone(&loaded.definition.zone);
                    Deed::MoveToFailed(format!(
                        "it ran for {} and was completed before this edit; give it a new time",
                        at.to_rfc3339()
                    ))
                }
            }
        };
        let (files, journal) = (Arc::clone(&self.files), self.journal.clone());
        self.tasks.spawn(async move {
            let fired = Arc::clone(&recorded.text);
            let done = tokio::task::spawn_blocking(move || act(&*files, &file, &fired, deed)).await;
            let mut result = done.unwrap_or_else(|panic| Err(io::Error::other(panic)));
            if matches!(result, Ok(Left::Nothing)) {
                fail_point!(FileDone);
                result =
                    journal.file_done(&recorded.occurrence).await.map_err(io::Error::other).map(|()| Left::Nothing);
                fail_point!(FileRecorded);
            }
            Event::Cleaned(Cleaned { recorded, result })
        });
    }

    pub(super) fn on_cleaned(&mut self, cleaned: Cleaned) {
        let Cleaned { recorded, result } = cleaned;
        let id = recorded.occurrence.id.clone();
        match result {
            Ok(Left::Nothing) => {
                if self.stuck.remove(&id).is_some() {
                    tracing::info!(%id, "the file of a reminder that is done was removed or moved");
                }
            }
            // Whoever follows the files will tell; it is looked at again then.
            Ok(Left::WaitForEdit) => {
                self.uncleaned.insert(id, recorded);
            }
            Err(error) => {
                let pause = match self.stuck.get(&id) {
                    Some(last) => (*last * 2).min(LONGEST),
                    None => {
                        tracing::warn!(
                            %id, file = %recorded.file.display(), %error,
                            "the file of a reminder that is done cannot be removed or moved; trying again"
                        );
                        AGAIN
                    }
                };
                self.stuck.insert(id.clone(), pause);
                self.cleanups.insert((Instant::now() + pause, id.clone()));
                self.uncleaned.insert(id, recorded);
            }
        }
    }

    /// Tries again what could not be done.
    pub(super) fn clean_up_due(&mut self) {
        let now = Instant::now();
        while self.cleanups.first().is_some_and(|(at, _)| *at <= now) {
            let again = self.cleanups.pop_first().and_then(|(_, id)| self.uncleaned.remove(&id));
            if let Some(recorded) = again.filter(|_| self.stopping.is_none()) {
                self.clean_up(recorded);
            }
        }
    }
}

fn act(files: &dyn Files, file: &Path, fired: &str, deed: Deed) -> io::Result<Left> {
    fail_point!(try BeforeFile);
    match deed {
        Deed::Leave => Ok(Left::Nothing),
        Deed::MoveToFailed(why) => files.move_to_failed(file, &why).map(|()| Left::Nothing),
        Deed::Remove | Deed::RemoveIfAsFired => match files.remove(file, fired)? {
            Removal::Removed => Ok(Left::Nothing),
            Removal::Changed => Ok(Left::WaitForEdit),
        },
    }
}
