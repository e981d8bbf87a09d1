//! Cleans up a reminder's file once its outcome is recorded: removes that of a completed one, moves any other to
//! `reminders/failed/`. A cleanup that the previous process did not finish is done at the start.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::definitions::due_at;
use super::super::files::{Files, Removal};
use super::{Dispatcher, Event};
use crate::definition::DefinitionId;
use crate::journal::{Recorded, RunState};

/// The pause before a cleanup that failed is tried again: twice as long each time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Reminders whose outcome is recorded and whose file still has to be cleaned up.
#[derive(Debug, Default)]
pub(super) struct Cleanups(HashMap<DefinitionId, Waiting>);

/// A cleanup that is not under way.
#[derive(Debug)]
struct Waiting {
    recorded: Recorded,
    retry: Option<Retry>,
}

/// A cleanup that failed is tried again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Cleanups {
    /// When the next one is tried again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().filter_map(|waiting| Some(waiting.retry?.at)).min()
    }
}

/// What became of a file.
pub(super) struct Cleaned {
    recorded: Recorded,
    /// The pause before this try, if it was not the first.
    pause: Option<Duration>,
    result: io::Result<Left>,
}

/// Whether something is left to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The file has changed, and the dispatcher has not been told yet.
    WaitForEdit,
}

/// What is to be done with a file.
enum Action {
    /// Unless its text has changed since it fired.
    Remove,
    MoveToFailed(String),
    /// It belongs to another occurrence, or to another job.
    Leave,
}

impl Dispatcher {
    /// Cleans up a reminder's file. `pause` is the pause before this try, if it is not the first.
    pub(super) fn clean_up(&mut self, recorded: Recorded, pause: Option<Duration>) {
        let loaded = self.definitions.get(&recorded.occurrence.id).map(|entry| &entry.loaded);
        let file = loaded.map_or(&recorded.file, |loaded| &loaded.definition.file).clone();
        let completed = recorded.outcome == RunState::Completed;
        let action = match loaded {
            None if self.definitions.has_file(&file) => Action::Leave,
            Some(loaded) if due_at(&loaded.definition) != Some(recorded.occurrence.at) => Action::Leave,
            Some(loaded) if completed && loaded.text != recorded.text => {
                let at = recorded.occurrence.at.with_timezone(&loaded.definition.zone).to_rfc3339();
                Action::MoveToFailed(format!("it ran for {at} and was completed before this edit; give it a new time"))
            }
            _ if completed => Action::Remove,
            _ => Action::MoveToFailed(match &recorded.error {
                Some(error) => format!("{}: {error}", recorded.outcome),
                None => recorded.outcome.to_string(),
            }),
        };
        let (files, journal) = (Arc::clone(&self.files), self.journal.clone());
        self.tasks.spawn(async move {
            let fired = Arc::clone(&recorded.text);
            let done = tokio::task::spawn_blocking(move || act(&*files, &file, &fired, action)).await;
            let mut result = done.unwrap_or_else(|panic| Err(io::Error::other(panic)));
            if matches!(result, Ok(Left::Nothing)) {
                fail_point!(FileDone);
                result =
                    journal.file_done(&recorded.occurrence).await.map_err(io::Error::other).map(|()| Left::Nothing);
                fail_point!(FileRecorded);
            }
            Event::Cleaned(Cleaned { recorded, pause, result })
        });
    }

    pub(super) fn on_cleaned(&mut self, cleaned: Cleaned) {
        let Cleaned { recorded, pause, result } = cleaned;
        let id = recorded.occurrence.id.clone();
        let retry = match result {
            Ok(Left::Nothing) => {
                if pause.is_some() {
                    tracing::info!(%id, "the file of a reminder that is done was removed or moved");
                }
                return;
            }
            // The watch on the folders reports the edit.
            Ok(Left::WaitForEdit) => None,
            Err(error) => {
                if pause.is_none() {
                    tracing::warn!(
                        %id, file = %recorded.file.display(), %error,
                        "the file of a reminder that is done cannot be removed or moved; trying again"
                    );
                }
                let pause = pause.map_or(FIRST_PAUSE, |last| (last * 2).min(LONGEST_PAUSE));
                Some(Retry { at: Instant::now() + pause, pause })
            }
        };
        self.cleanups.0.insert(id, Waiting { recorded, retry });
    }

    /// Tries those again whose time has come.
    pub(super) fn clean_up_due(&mut self) {
        let now = Instant::now();
        if self.phase.is_stopping() {
            self.cleanups.0.clear();
        }
        let is_due = |waiting: &Waiting| waiting.retry.is_some_and(|retry| retry.at <= now);
        let due: Vec<_> =
            self.cleanups.0.extract_if(|_, waiting| is_due(waiting)).map(|(_, waiting)| waiting).collect();
        for Waiting { recorded, retry } in due {
            self.clean_up(recorded, retry.map(|retry| retry.pause));
        }
    }

    /// A definition has changed: what waits for that is tried again at once.
    pub(super) fn cleanup_again(&mut self, id: &DefinitionId) {
        if let Some(Waiting { recorded, retry }) = self.cleanups.0.remove(id) {
            self.clean_up(recorded, retry.map(|retry| retry.pause));
        }
    }
}

fn act(files: &dyn Files, file: &Path, fired: &str, action: Action) -> io::Result<Left> {
    fail_point!(try BeforeFile);
    match action {
        Action::Leave => Ok(Left::Nothing),
        Action::MoveToFailed(why) => files.move_to_failed(file, &why).map(|()| Left::Nothing),
        Action::Remove => match files.remove(file, fired)? {
            Removal::Removed => Ok(Left::Nothing),
            Removal::Changed => Ok(Left::WaitForEdit),
        },
    }
}
