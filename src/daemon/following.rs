//! Follows the folders: what a file now says goes to the schedule, what is wrong with one is said.
//!
//! The watch begins before the first reading, so that nothing falls in between; a full re-reading now and then is
//! the net beneath it.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::problems::Problems;
use crate::definition::{Change, Changed, Definition, Store, Watch};
use crate::home::Home;
use crate::schedule::{Loaded, Schedule};

/// The definitions as they are, shared with whoever asks for one.
pub type Definitions = Arc<Mutex<Store>>;

/// What takes changes of files to those that act on them.
#[derive(Clone)]
pub struct Following {
    home: Home,
    definitions: Definitions,
    schedule: Schedule,
    problems: Problems,
}

impl Following {
    /// Hands all definitions to the schedule, for the first time, and says what is wrong with others.
    pub async fn start(home: Home, definitions: Definitions, schedule: Schedule, problems: Problems) -> Self {
        let following = Self { home, definitions, schedule, problems };
        let (loaded, wrong) = following.with_store(|home, store| (all(home, store), store.problems())).await;
        tracing::info!(definitions = loaded.len(), "definitions read");
        following.schedule.replace(loaded);
        following.problems.all(wrong).await;
        following
    }

    /// Follows the watch until the future is dropped.
    pub async fn follow(self, mut watch: Watch) {
        loop {
            match watch.next().await {
                Changed::Files(paths) => {
                    let changes = self.with_store(move |_, store| store.refresh(&paths)).await;
                    self.take(changes).await;
                }
                Changed::Everything => self.reread().await,
            }
        }
    }

    /// Reads everything again.
    pub async fn reread(&self) {
        let changes = self.with_store(|_, store| store.reload()).await;
        self.take(changes).await;
    }

    async fn take(&self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Upsert(definition) => {
                    let home = self.home.clone();
                    let loaded = blocking(move || loaded(&home, definition)).await;
                    if let Some(Some(loaded)) = loaded {
                        self.schedule.upsert(loaded);
                    }
                }
                Change::Removed(id) => self.schedule.remove(id),
                Change::Problems { file, problems } => self.problems.of_file(&file, problems).await,
            }
        }
    }

    /// Reading many files takes its time: not on a thread that others wait for.
    async fn with_store<T: Send + 'static + Default>(
        &self,
        work: impl FnOnce(&Home, &mut Store) -> T + Send + 'static,
    ) -> T {
        let (home, definitions) = (self.home.clone(), Arc::clone(&self.definitions));
        blocking(move || work(&home, &mut definitions.blocking_lock())).await.unwrap_or_default()
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

fn all(home: &Home, store: &Store) -> Vec<Loaded> {
    store.definitions().filter_map(|definition| loaded(home, Arc::clone(definition))).collect()
}

/// `None`: the file has gone meanwhile; the watch tells of it.
fn loaded(home: &Home, definition: Arc<Definition>) -> Option<Loaded> {
    let text = std::fs::read_to_string(home.root().join(&definition.file)).ok()?;
    Some(Loaded { definition, text: text.into() })
}
