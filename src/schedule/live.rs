//! The definitions in force: what the files say, as the schedule knows it.
//!
//! The watch of the folders begins before the first reading, so nothing falls in between; a full re-reading now and then is the
//! safety net. Whoever writes a definition through here knows afterwards that the schedule has it. Problems go to a channel of
//! their own: their receiver records them, and a journal that cannot be written must not keep an edit from counting.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Timelike as _, Utc};
use chrono_tz::Tz;
use tokio::sync::{Mutex, mpsc, watch};

use super::command::{Loaded, Schedule};
use crate::definition::{
    self, Change, Changed, Defaults, Definition, DefinitionError, DefinitionId, Draft, FieldValue, Problem, Store,
    Watch, WatchedFolder, Written,
};

/// All problems of a file; none: it was mended, or is gone.
pub type ProblemsOfFile = (PathBuf, Vec<Problem>);

/// The definitions of a data folder, kept in step with its files and with the schedule. Clones share them.
#[derive(Clone, Debug)]
pub struct LiveDefinitions {
    store: Arc<Mutex<Store>>,
    schedule: Schedule,
    problems: mpsc::UnboundedSender<ProblemsOfFile>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl LiveDefinitions {
    /// Nothing is handed to the schedule before [`Self::start`]. The receiver gets the problems of each file that changes.
    #[must_use]
    pub fn new(store: Store, schedule: Schedule) -> (Self, mpsc::UnboundedReceiver<ProblemsOfFile>) {
        let (problems, receiver) = mpsc::unbounded_channel();
        (Self { store: Arc::new(Mutex::new(store)), schedule, problems, changes: watch::Sender::default() }, receiver)
    }

    /// Hands all definitions to the schedule, with the sessions that the previous process left. Returns all problems.
    pub async fn start(&self, sessions: Vec<Loaded>) -> Vec<Problem> {
        let (mut loaded, problems) = self.with_store(|store| (all(store), store.problems())).await;
        tracing::info!(definitions = loaded.len(), "definitions read");
        loaded.extend(sessions);
        self.schedule.replace(loaded);
        self.changes.send_modify(|count| *count += 1);
        problems
    }

    /// Wakes whoever waits for a change of a definition.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The definition in force of an identity.
    pub async fn of(&self, id: &DefinitionId) -> Option<Arc<Definition>> {
        self.store.lock().await.get(id).cloned()
    }

    /// All definitions and problems, as they are in force. Blocks.
    #[must_use]
    pub fn loaded(&self) -> definition::Loaded {
        self.store.blocking_lock().loaded()
    }

    /// The enabled routines that watch folders, and which.
    pub async fn watching(&self) -> HashMap<DefinitionId, WatchedFolder> {
        let watches = |definition: &Arc<Definition>| Some((definition.id.clone(), definition.watches()?.clone()));
        self.with_store(move |store| store.definitions().filter(|one| one.enabled).filter_map(watches).collect()).await
    }

    /// The webhooks, disabled ones too.
    pub async fn hooks(&self) -> Vec<Arc<Definition>> {
        self.store.lock().await.definitions().filter(|definition| definition.hook().is_some()).cloned().collect()
    }

    /// Follows the watch until the future is dropped.
    pub async fn follow(self, mut watch: Watch) {
        loop {
            match watch.next().await {
                Changed::Files(paths) => self.reread_files(paths).await,
                Changed::Everything => self.reread().await,
            }
        }
    }

    /// Reads these files again.
    pub async fn reread_files(&self, paths: Vec<PathBuf>) {
        let changes = self.with_store(move |store| store.refresh(&paths)).await;
        self.take(changes).await;
    }

    /// Reads a definition's file again, and tells the schedule what holds for the definition even if nothing has changed:
    /// another task that found the change may not have told it yet.
    pub async fn reread_one(&self, id: &DefinitionId, file: PathBuf) {
        self.reread_files(vec![file]).await;
        self.announce(id).await;
    }

    /// Reads everything again.
    pub async fn reread(&self) {
        let changes = self.with_store(Store::reload).await;
        self.take(changes).await;
    }

    /// Reads everything again, with other defaults for what files do not say.
    pub async fn reread_with(&self, defaults: Defaults) {
        let changes = self.with_store(|store| store.reload_with(defaults)).await;
        self.take(changes).await;
    }

    /// The zone of definitions that name none.
    pub async fn zone(&self) -> Tz {
        self.store.lock().await.defaults().zone
    }

    /// Writes a chain's next check into a new file.
    ///
    /// # Errors
    /// As [`definition::create_link`]. The file may be in its place nevertheless, where only its folder could not be made durable.
    pub async fn create(&self, draft: Draft) -> Result<Written, DefinitionError> {
        let written = self.write(move |store| definition::create_link(store.home(), &draft, store.defaults())).await;
        match &written {
            Ok(written) => self.reread_files(vec![written.definition.file.clone()]).await,
            // There may be a file of an unknown name.
            Err(_) => self.reread().await,
        }
        written
    }

    /// Gives a reminder that has not fired another time. `false`: its file is no longer there.
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

    /// A definition for which `wanted` holds, as the files say now. A file that was renamed a moment ago is found.
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

    /// Tells how things are now, not how they were when the change was found: if two tasks read the folders at once, the
    /// later state is the true one.
    async fn take(&self, changes: Vec<Change>) {
        let some = !changes.is_empty();
        for change in changes {
            match change {
                Change::Upsert(definition) => self.announce(&definition.id).await,
                Change::Removed(id) => self.announce(&id).await,
                Change::Problems { file, problems } => {
                    if problems.is_empty() {
                        self.schedule.look_again(file.clone());
                    }
                    // Nobody listens any more when the service is ending.
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

    /// Works on the files, on a thread that may block.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, DefinitionError> + Send + 'static,
    ) -> Result<T, DefinitionError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store.blocking_lock())).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Reading many files takes its time: not on a thread that others wait for.
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

    /// A data folder without definitions, which nobody watches.
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
