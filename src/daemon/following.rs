//! Follows the folders: what a file now says goes to the schedule, what is wrong with one is said.
//!
//! The watch begins before the first reading, so that nothing falls in between; a full re-reading now and then is
//! the net beneath it. What is wrong is said by a task of its own, since that is recorded: a journal that cannot be
//! written must not keep an edit from counting when it can be again.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use super::problems::Problems;
use crate::definition::{Change, Changed, Defaults, Definition, DefinitionId, Problem, Store, Watch};
use crate::schedule::{Loaded, Schedule};

/// The definitions as they are, shared with whoever asks for one.
pub type Definitions = Arc<Mutex<Store>>;

/// What takes changes of files to those that act on them.
#[derive(Clone)]
pub struct Following {
    definitions: Definitions,
    schedule: Schedule,
    /// All problems of a file, to whoever says them.
    problems: mpsc::UnboundedSender<(PathBuf, Vec<Problem>)>,
}

impl Following {
    /// Hands all definitions to the schedule, for the first time, with the sessions that an earlier life has left, and
    /// says what is wrong with others.
    pub async fn start(
        definitions: Definitions,
        sessions: Vec<Loaded>,
        schedule: Schedule,
        problems: Problems,
    ) -> Self {
        let (sender, mut found) = mpsc::unbounded_channel::<(PathBuf, Vec<Problem>)>();
        let following = Self { definitions, schedule, problems: sender };
        let (mut loaded, wrong) = following.with_store(|store| (all(store), store.problems())).await;
        tracing::info!(definitions = loaded.len(), "definitions read");
        loaded.extend(sessions);
        following.schedule.replace(loaded);
        problems.all(wrong).await;
        tokio::spawn(async move {
            while let Some((file, wrong)) = found.recv().await {
                problems.of_file(&file, wrong).await;
            }
        });
        following
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

    /// Reads a definition's file again, and tells the schedule what holds for the definition though it be no news: who
    /// found the change may not have told of it yet.
    pub async fn reread_one(&self, id: &DefinitionId, file: PathBuf) {
        self.reread_files(vec![file]).await;
        self.say(id).await;
    }

    /// Reads everything again.
    pub async fn reread(&self) {
        let changes = self.with_store(|store| store.reload()).await;
        self.take(changes).await;
    }

    /// Reads everything again, with other defaults for what files do not say.
    pub async fn reread_with(&self, defaults: Defaults) {
        let changes = self.with_store(|store| store.reload_with(defaults)).await;
        self.take(changes).await;
    }

    /// A definition in force for which `wanted` holds, as its file was read last.
    pub async fn find(&self, wanted: impl Fn(&Definition) -> bool + Send + 'static) -> Option<Arc<Definition>> {
        self.with_store(move |store| store.definitions().find(|definition| wanted(definition)).cloned()).await
    }

    /// Says how things are now, not how they were when the change was found: of two that look at the folders at once,
    /// the later word is the true one.
    async fn take(&self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Upsert(definition) => self.say(&definition.id).await,
                Change::Removed(id) => self.say(&id).await,
                Change::Problems { file, problems } => {
                    if problems.is_empty() {
                        self.schedule.look_again(file.clone());
                    }
                    // Nobody listens any more when the service is ending.
                    drop(self.problems.send((file, problems)));
                }
            }
        }
    }

    async fn say(&self, id: &DefinitionId) {
        tracing::debug!(%id, "its file has changed");
        let store = self.definitions.lock().await;
        match loaded(&store, id) {
            Some(loaded) => self.schedule.upsert(loaded),
            None => self.schedule.remove(id.clone()),
        }
    }

    /// Reading many files takes its time: not on a thread that others wait for.
    async fn with_store<T: Send + 'static + Default>(&self, work: impl FnOnce(&mut Store) -> T + Send + 'static) -> T {
        let definitions = Arc::clone(&self.definitions);
        blocking(move || work(&mut definitions.blocking_lock())).await.unwrap_or_default()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(%error, "reading the definitions failed; they are read again later");
            None
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
