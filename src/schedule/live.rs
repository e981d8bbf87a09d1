//! The definitions in force: the content of the files, as the schedule knows it.
//!
//! The watch of the folders begins before the first read, so no change is missed. A periodic full re-read is the
//! safety net. When a write through this module returns, the schedule has the definition. Problems have a separate
//! channel: the receiver records them, and a journal that cannot be written must not delay an edit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Timelike as _, Utc};
use chrono_tz::Tz;
use tokio::sync::{Mutex, mpsc, watch};

use super::command::{Loaded, Schedule};
use crate::definition::{
    self, Change, Defaults, Definition, DefinitionError, DefinitionId, Draft, FieldValue, PossibleChange, Problem,
    Store, Watch, WatchedFolder, WrittenFile,
};

/// All problems of a file; empty if it was corrected, or is gone.
pub type ProblemsOfFile = (PathBuf, Vec<Problem>);

/// The error of a file whose id is known, and which is not in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file of `{0}` has an error")]
pub struct NotInForce(DefinitionId);

/// The definitions of a data folder, kept in sync with its files and with the schedule. Clones share them.
#[derive(Clone, Debug)]
pub struct LiveDefinitions {
    store: Arc<Mutex<Store>>,
    schedule: Schedule,
    problems: mpsc::UnboundedSender<ProblemsOfFile>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl LiveDefinitions {
    /// Sends nothing to the schedule before [`Self::start`]. The receiver gets the problems of each file that changes.
    #[must_use]
    pub fn new(store: Store, schedule: Schedule) -> (Self, mpsc::UnboundedReceiver<ProblemsOfFile>) {
        let (problems, receiver) = mpsc::unbounded_channel();
        (Self { store: Arc::new(Mutex::new(store)), schedule, problems, changes: watch::Sender::default() }, receiver)
    }

    /// Reports all problems of a definition that has no file. An empty list means that it was put right.
    pub fn report(&self, path: PathBuf, problems: Vec<Problem>) {
        // The receiver is gone once the service ends.
        let _ended = self.problems.send((path, problems));
    }

    /// Sends all definitions to the schedule, with the sessions that the previous process left. Returns all problems.
    pub async fn start(&self, sessions: Vec<Loaded>) -> Vec<Problem> {
        let (mut loaded, problems) = self.with_store(|store| (all(store), store.problems())).await;
        tracing::info!(definitions = loaded.len(), "definitions read");
        loaded.extend(sessions);
        self.schedule.replace(loaded);
        self.changes.send_modify(|count| *count += 1);
        problems
    }

    /// Returns a counter that changes when a definition changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the definition in force with this id.
    pub async fn of(&self, id: &DefinitionId) -> Option<Arc<Definition>> {
        self.store.lock().await.get(id).cloned()
    }

    /// Returns the definition in force with this id, after its file has been read again; `None` if no file has the id.
    ///
    /// # Errors
    /// [`NotInForce`] if a file has the id and is not in force.
    pub async fn fresh(&self, id: &DefinitionId) -> Result<Option<Arc<Definition>>, NotInForce> {
        if let Some(found) = self.of(id).await {
            self.reread_files(vec![found.file.clone()]).await;
        }
        // A file with an error may be gone, or put right, since it was read.
        if self.is_claimed_in_vain(id).await {
            self.reread().await;
        }
        let store = self.store.lock().await;
        match store.get(id) {
            None if store.is_claimed(id) => Err(NotInForce(id.clone())),
            found => Ok(found.cloned()),
        }
    }

    /// Returns the makers of all files that jobs have made, also of those with an error.
    pub async fn makers(&self) -> Vec<DefinitionId> {
        self.with_store(|store| store.makers()).await
    }

    /// Returns the waiting check of the chain that began with this reminder.
    pub async fn waiting_check(&self, id: &DefinitionId) -> Option<DefinitionId> {
        let id = id.clone();
        self.with_store(move |store| store.definitions().find(|one| one.is_check_of(&id)).map(|one| one.id.clone()))
            .await
    }

    async fn is_claimed_in_vain(&self, id: &DefinitionId) -> bool {
        let store = self.store.lock().await;
        store.get(id).is_none() && store.is_claimed(id)
    }

    /// Returns all definitions in force and all problems. Blocks the thread.
    #[must_use]
    pub fn loaded(&self) -> definition::Loaded {
        self.store.blocking_lock().loaded()
    }

    /// Returns the enabled routines that watch folders, with the folders.
    pub async fn watching(&self) -> HashMap<DefinitionId, WatchedFolder> {
        let watches = |definition: &Arc<Definition>| Some((definition.id.clone(), definition.watches()?.clone()));
        self.with_store(move |store| store.definitions().filter(|one| one.enabled).filter_map(watches).collect()).await
    }

    /// Returns the webhooks, disabled ones included.
    pub async fn hooks(&self) -> Vec<Arc<Definition>> {
        self.store.lock().await.definitions().filter(|definition| definition.hook().is_some()).cloned().collect()
    }

    /// Follows the watch until the future is dropped.
    pub async fn follow(self, mut watch: Watch) {
        loop {
            match watch.next().await {
                PossibleChange::Files(paths) => self.reread_files(paths).await,
                PossibleChange::Everything => self.reread().await,
            }
        }
    }

    /// Reads these files again.
    pub async fn reread_files(&self, paths: Vec<PathBuf>) {
        let changes = self.with_store(move |store| store.refresh(&paths)).await;
        self.take(changes).await;
    }

    /// Reads a definition's file again, and sends the current definition to the schedule even if nothing has
    /// changed. Another task that found the change may not have sent it yet.
    pub async fn reread_one(&self, id: &DefinitionId, file: PathBuf) {
        self.reread_each(vec![(id.clone(), file)]).await;
    }

    /// Like [`Self::reread_one`], for several definitions.
    pub async fn reread_each(&self, definitions: Vec<(DefinitionId, PathBuf)>) {
        if definitions.is_empty() {
            return;
        }
        let (ids, files): (Vec<_>, Vec<_>) = definitions.into_iter().unzip();
        self.reread_files(files).await;
        for id in ids {
            self.announce(&id).await;
        }
    }

    /// Reads everything again.
    pub async fn reread(&self) {
        let changes = self.with_store(Store::reload).await;
        self.take(changes).await;
    }

    /// Reads everything again for the sake of one definition, like [`Self::reread_one`].
    pub async fn reread_for(&self, id: &DefinitionId) {
        self.reread().await;
        if self.of(id).await.is_some() {
            self.announce(id).await;
        }
    }

    /// Reads everything again, with other defaults for missing fields.
    pub async fn reread_with(&self, defaults: Defaults) {
        let changes = self.with_store(|store| store.reload_with(defaults)).await;
        self.take(changes).await;
    }

    /// Returns the zone of definitions that name none.
    pub async fn zone(&self) -> Tz {
        self.store.lock().await.defaults().zone
    }

    /// Returns the values for fields that a definition lacks.
    pub async fn defaults(&self) -> Defaults {
        self.store.lock().await.defaults().clone()
    }

    /// As [`Self::defaults`], outside of asynchronous code.
    pub(crate) fn blocking_defaults(&self) -> Defaults {
        self.store.blocking_lock().defaults().clone()
    }

    /// Writes the next check of a chain into a new file.
    ///
    /// # Errors
    /// As [`definition::create_link`]. The file may exist nevertheless, if only its folder could not be synced.
    pub async fn create(&self, draft: Draft) -> Result<WrittenFile, DefinitionError> {
        let written = self.write(move |store| definition::create_link(store.home(), &draft, store.defaults())).await;
        match &written {
            Ok(written) => self.reread_files(vec![written.definition.file.clone()]).await,
            // There may be a file whose name is unknown.
            Err(_) => self.reread().await,
        }
        written
    }

    /// Gives a reminder that has not fired a new time. Returns `false` if its file is gone.
    ///
    /// # Errors
    /// As [`definition::set_field`].
    pub async fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, DefinitionError> {
        let named = file.to_owned();
        let moved = self.write(move |store| {
            let at = at.with_nanosecond(0).unwrap_or(at).with_timezone(&store.defaults().zone);
            let value = Some(FieldValue::Text(at.to_rfc3339()));
            definition::set_field(store.home(), &named, "run_at", value, store.defaults())
        });
        let moved = moved.await;
        self.reread_files(vec![file.to_owned()]).await;
        match moved {
            Ok(_) => Ok(true),
            Err(DefinitionError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns a definition that satisfies `wanted`, by the current files. Finds a file that was just renamed.
    pub async fn find(&self, wanted: impl Fn(&Definition) -> bool + Clone + Send + 'static) -> Option<Arc<Definition>> {
        let known = self.find_known(wanted.clone()).await?;
        self.reread_files(vec![known.file.clone()]).await;
        match self.find_known(wanted.clone()).await {
            Some(found) => Some(found),
            None => {
                self.reread().await;
                self.find_known(wanted).await
            }
        }
    }

    async fn find_known(&self, wanted: impl Fn(&Definition) -> bool + Send + 'static) -> Option<Arc<Definition>> {
        self.with_store(move |store| store.definitions().find(|definition| wanted(definition)).cloned()).await
    }

    /// Sends the current state, not the state when the change was found. If two tasks read the folders at once,
    /// the later state is the true one.
    async fn take(&self, changes: Vec<Change>) {
        let some = !changes.is_empty();
        for change in changes {
            match change {
                Change::Upsert(definition) => self.announce(&definition.id).await,
                Change::Removed(id) => self.announce(&id).await,
                Change::Problems { file, problems } => {
                    if problems.is_empty() {
                        self.schedule.recheck(file.clone());
                    }
                    // There is no receiver any more when the service is ending.
                    drop(self.problems.send((file, problems)));
                }
            }
        }
        if some {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    async fn announce(&self, id: &DefinitionId) {
        tracing::debug!(%id, "its file has changed");
        let store = self.store.lock().await;
        match loaded(&store, id) {
            Some(loaded) => self.schedule.upsert(loaded),
            None => self.schedule.remove(id.clone()),
        }
    }

    /// Runs work on the files, on a blocking thread.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, DefinitionError> + Send + 'static,
    ) -> Result<T, DefinitionError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store.blocking_lock())).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Runs work on a blocking thread, since reading many files takes time.
    async fn with_store<T: Send + 'static + Default>(&self, work: impl FnOnce(&mut Store) -> T + Send + 'static) -> T {
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || work(&mut store.blocking_lock())).await {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "reading the definitions failed; they are read again later");
                T::default()
            }
        }
    }
}

fn all(store: &Store) -> Vec<Loaded> {
    let all = store.with_texts();
    all.map(|(definition, text)| Loaded { definition: Arc::clone(definition), text: Arc::clone(text) }).collect()
}

fn loaded(store: &Store, id: &DefinitionId) -> Option<Loaded> {
    Some(Loaded { definition: Arc::clone(store.get(id)?), text: Arc::clone(store.text(id)?) })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use chrono::TimeZone as _;

    use super::super::command::{Command, Inbox};
    use super::*;
    use crate::definition::When;
    use crate::home::Home;

    /// Makes a data folder without definitions and without a watch.
    pub(crate) fn scene() -> (tempfile::TempDir, LiveDefinitions, Inbox) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        fs::create_dir(home.reminders()).unwrap();
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let (schedule, inbox) = Schedule::channel(1);
        let (definitions, _) = LiveDefinitions::new(Store::open(&home, defaults).unwrap(), schedule);
        (folder, definitions, inbox)
    }

    fn heard(inbox: &mut Inbox) -> Vec<String> {
        std::iter::from_fn(|| inbox.commands.try_recv().ok())
            .filter_map(|command| match command {
                Command::Upsert(loaded) => {
                    Some(format!("{} at {:?}", loaded.definition.id, loaded.definition.trigger.run_at()))
                }
                Command::Remove(id) => Some(format!("{id} is gone")),
                _ => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn the_schedule_has_what_was_written_when_the_writer_hears_of_it() {
        let (folder, definitions, mut inbox) = scene();
        let at = |minute| Utc.with_ymd_and_hms(2100, 1, 1, 0, minute, 0).unwrap();
        let draft = Draft { id: Some(DefinitionId::new("tea")), ..Draft::new(When::At(at(0).fixed_offset()), "Tea.") };
        let file = definitions.create(draft).await.unwrap().definition.file;
        assert_eq!(heard(&mut inbox), [format!("tea at {:?}", Some(at(0)))]);
        assert!(definitions.move_to(&file, at(30)).await.unwrap());
        assert_eq!(heard(&mut inbox), [format!("tea at {:?}", Some(at(30)))]);
        fs::remove_file(folder.path().join(&file)).unwrap();
        assert!(!definitions.move_to(&file, at(40)).await.unwrap());
        assert_eq!(heard(&mut inbox), ["tea is gone"]);
    }
}
