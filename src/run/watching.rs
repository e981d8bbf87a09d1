//! Watches of the folders that routines follow (`watch`). They notify the schedule of changes.
//!
//! Every job may watch a folder of `work/`. A folder elsewhere requires that the job's rules let it read the folder's files. That is
//! checked when the watch begins, and for each changed file ([`Sight`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};

pub use super::folder_watch::FolderLocation;
use super::folder_watch::{Changes, FolderWatch, QUIET, WatchEnd, links_on};
use super::sandbox::literal_prefix;
use super::setup::Setup;
use super::spawn::Spawner;
use crate::config::{McpServer, McpTransport};
use crate::definition::{DefinitionId, WatchedFolder};
use crate::home::Home;
use crate::journal::{Journal, JournalReader, NewMessage, Subject};
use crate::policy::{Policy, ToolCall, ToolPattern, Verdict};
use crate::schedule::{Burst, LiveDefinitions, Schedule};

/// Interval at which a folder that cannot be watched is tried again.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The journal's key for the problems of which the person was notified.
const SETTING: &str = "unwatched";

/// The reason why a folder cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchError {
    /// The folder does not exist.
    Missing(PathBuf),
    /// Another reason, as a sentence without its full stop.
    Other(String),
}

impl std::fmt::Display for WatchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(folder) => write!(f, "{} is not there", folder.display()),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// What the runs of a job may read outside of `work/`.
#[derive(Debug)]
pub struct Sight {
    policy: Policy,
    home: Home,
    /// The trees in the home in which the job's rules name paths.
    named: Vec<PathBuf>,
    /// The person's home, which is closed to a rule without a path, as to the job's client.
    user_home: PathBuf,
    /// The data folder, which is closed outside of `work`.
    root: PathBuf,
    work: PathBuf,
}

impl Sight {
    /// Returns what the runs with this setup see.
    #[must_use]
    pub fn of(setup: &Setup, home: &Home) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let user_home = setup.policy.path_roots().user_home.clone();
        let rules = setup.granted.iter().filter_map(ToolPattern::specifier);
        let named = rules.map(|rule| real(literal_prefix(rule, &home.work(), &user_home))).collect::<Vec<_>>();
        let [user_home, root, work] = [user_home, home.root().to_owned(), home.work()].map(real);
        // A rule for all of the home, or for more, opens nothing of it.
        let named = named.into_iter().filter(|tree| tree.starts_with(&user_home) && *tree != user_home).collect();
        Self { policy: setup.policy.clone(), home: home.clone(), named, user_home, root, work }
    }

    /// Returns whether the job may read a file. The path is absolute and without symlinks.
    fn sees(&self, file: &Path) -> bool {
        let is_closed = file.starts_with(&self.root) && !file.starts_with(&self.work);
        let is_named = || self.named.iter().any(|tree| file.starts_with(tree));
        !is_closed
            && (!file.starts_with(&self.user_home) || file.starts_with(&self.work) || is_named())
            && granted(&self.policy, "Read", "file_path", file, &self.home).is_some()
    }

    /// Returns what the job sees of changes below `folder`; `None` if that is nothing.
    fn of_changes(&self, changes: Changes, folder: &WatchedFolder, place: &FolderLocation) -> Option<Burst> {
        match folder {
            WatchedFolder::OfWork(_) => Some(changes.into_burst()),
            WatchedFolder::Absolute(_) => {
                let root = place.base.join(&place.below);
                changes.only(|file| self.sees(&root.join(file))).map(Changes::into_burst)
            }
        }
    }
}

/// Returns the location of a definition's watched folder, as its runs see it.
///
/// # Errors
/// [`WatchError`] if the folder does not exist, is not a folder, is behind a symlink in `work/`, or may not be read by the job.
pub fn place(folder: &WatchedFolder, sight: &Sight) -> Result<FolderLocation, WatchError> {
    let shown = match folder {
        WatchedFolder::OfWork(path) => Path::new("work").join(path),
        WatchedFolder::Absolute(path) => path.clone(),
    };
    let failed = |error: ErrorKind, why: String| match error {
        ErrorKind::NotFound => WatchError::Missing(shown.clone()),
        ErrorKind::NotADirectory => WatchError::Other(format!("{} is no folder", shown.display())),
        _ => WatchError::Other(format!("{} cannot be opened: {why}", shown.display())),
    };
    let real = |path: &Path| path.canonicalize().map_err(|error| failed(error.kind(), error.to_string()));
    let place = match folder {
        WatchedFolder::OfWork(path) => {
            let work = sight.home.work();
            FolderLocation { base: real(&work)?, below: path.clone(), links: links_on(&work), skipped: None }
        }
        WatchedFolder::Absolute(path) => {
            let links = links_on(path);
            let real = real(path)?;
            if !sight.sees(&real.join("any-file")) {
                let shown = shown.display();
                return Err(WatchError::Other(format!(
                    "its rules do not let it read {shown}; `Read(/{shown}/**)` would"
                )));
            }
            let below = real.strip_prefix("/").unwrap_or(&real).to_owned();
            let skipped = sight.root.strip_prefix(&real).ok().map(Path::to_owned);
            FolderLocation { base: "/".into(), below, links, skipped }
        }
    };
    match place.open() {
        Ok(_) => Ok(place),
        Err(Errno::LOOP) => {
            Err(WatchError::Other(format!("there is a link on the way to {}, which is not followed", shown.display())))
        }
        Err(error) => {
            let error = std::io::Error::from(error);
            Err(failed(error.kind(), error.to_string()))
        }
    }
}

/// Returns the problem of each routine that cannot see changes, as the service recorded it last.
#[must_use]
pub fn unwatched(journal: &JournalReader) -> BTreeMap<DefinitionId, String> {
    read(journal.setting(SETTING).ok().flatten())
}

fn read(stored: Option<String>) -> BTreeMap<DefinitionId, String> {
    stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns the rule by which a policy lets a job write into a folder, with a file tool, a program, or a server that is a program;
/// `None` if no rule does.
#[must_use]
pub fn writes_into(place: &FolderLocation, policy: &Policy, home: &Home, servers: &[McpServer]) -> Option<String> {
    let folder = place.base.join(&place.below);
    let work = home.work();
    let work = work.canonicalize().unwrap_or(work);
    let by_tool = |tool: &'static str| {
        // The files in the folder that rules name, and any other file.
        let named = policy.granting(tool).filter_map(|rule| rule.specifier().map(|file| file.replace('*', "any-file")));
        let named = named.map(|file| match file.strip_prefix("//") {
            Some(absolute) => Path::new("/").join(absolute),
            None => work.join(file.trim_start_matches("./")),
        });
        let files = std::iter::once(folder.join("any-file")).chain(named.filter(|file| file.starts_with(&folder)));
        let mut rules = files.filter_map(|file| granted(policy, tool, "file_path", &file, home));
        rules.next()
    };
    let by_program = || policy.writing_rule().filter(|_| folder.starts_with(&work)).map(ToString::to_string);
    let by_server = || {
        let mut granted = servers.iter().filter(|server| policy.may_have_of_server(&server.name));
        granted.find(|server| server_writes(server, &folder, home)).map(|server| format!("mcp__{}", server.name))
    };
    ["Edit", "Write"].into_iter().find_map(by_tool).or_else(by_program).or_else(by_server)
}

/// Returns whether a server's settings let it write into a folder, or into one below it.
fn server_writes(server: &McpServer, folder: &Path, home: &Home) -> bool {
    let McpTransport::Command { writes, .. } = &server.transport else { return false };
    let own = home.mcp_server(&server.name);
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    writes.iter().chain([&own]).map(real).any(|written| folder.starts_with(&written) || written.starts_with(folder))
}

/// Returns the rule by which a policy lets a tool access a file.
fn granted(policy: &Policy, tool: &str, key: &str, file: &Path, home: &Home) -> Option<String> {
    let input = json!({ key: file, "content": "", "old_string": "a", "new_string": "b" });
    let call = ToolCall { tool: tool.into(), input, cwd: home.work(), agent_type: None };
    let decision = policy.decide(&call);
    (decision.verdict == Verdict::Allow).then(|| decision.rule.unwrap_or_else(|| tool.to_owned()))
}

/// The watches of all routines.
#[derive(Clone)]
pub struct FolderWatches {
    /// The data folder.
    home: Home,
    /// The present definitions.
    definitions: LiveDefinitions,
    /// The schedule that is notified of changes.
    schedule: Schedule,
    /// The journal, for messages about problems.
    journal: Journal,
    /// The spawner, which knows what each job may read.
    spawner: Arc<Spawner>,
    /// The problem of each routine of which the person was notified.
    told: Arc<Mutex<BTreeMap<DefinitionId, String>>>,
    /// Made routines of which the person was notified.
    told_of_made: Arc<Mutex<BTreeSet<DefinitionId>>>,
}

impl FolderWatches {
    /// Creates the watches. They start with [`Self::run`].
    #[must_use]
    pub fn new(
        home: Home,
        definitions: LiveDefinitions,
        schedule: Schedule,
        journal: Journal,
        spawner: Arc<Spawner>,
    ) -> Self {
        Self { home, definitions, schedule, journal, spawner, told: Arc::default(), told_of_made: Arc::default() }
    }

    /// Runs the watches until the future is dropped.
    pub async fn run(self) {
        *self.told.lock().await = read(self.journal.setting(SETTING).await.ok().flatten());
        let mut changes = self.definitions.changes();
        let mut tasks = JoinSet::new();
        let mut watched: HashMap<DefinitionId, (WatchedFolder, AbortHandle)> = HashMap::new();
        loop {
            changes.mark_unchanged();
            let wanted = self.definitions.watching().await;
            watched.retain(|id, (folder, task)| {
                let stays = wanted.get(id) == Some(folder) && !task.is_finished();
                if !stays {
                    task.abort();
                }
                stays
            });
            for (id, folder) in wanted {
                watched.entry(id).or_insert_with_key(|id| {
                    let task = tasks.spawn(self.clone().follow(id.clone(), folder.clone()));
                    (folder, task)
                });
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    /// Watches the folder of one routine.
    async fn follow(self, id: DefinitionId, folder: WatchedFolder) {
        // Files that exist when the service starts are not new.
        let mut is_new = false;
        loop {
            let opened = self.open(&id, &folder, is_new).await;
            let (place, mut watch) = match opened {
                Ok(opened) => opened,
                Err(why) => {
                    is_new |= matches!(why, WatchError::Missing(_));
                    self.notify_person(&id, Some(&why)).await;
                    tokio::time::sleep(POLL_INTERVAL).await;
                    continue;
                }
            };
            let too_many =
                || WatchError::Other(format!("{folder} has too many folders, or too deep ones, so not all are seen"));
            self.notify_person(&id, watch.has_too_many.then(too_many).as_ref()).await;
            is_new = loop {
                let burst = watch.next_burst().await;
                self.notify_person(&id, watch.has_too_many.then(too_many).as_ref()).await;
                match burst {
                    // The job's rights and the path's target are checked again.
                    Ok(changes) => match self.seen(&id, &folder, &place, changes, watch.has_ended()).await {
                        Ok(burst) => burst.into_iter().for_each(|burst| self.schedule.changed(id.clone(), burst)),
                        // The changes are looked for again at the folder's present location.
                        Err(_) => break true,
                    },
                    Err(end) => break end == WatchEnd::Gone,
                }
            };
            if is_new {
                // A folder that is replaced repeatedly triggers no more occurrences than one whose files change.
                tokio::time::sleep(QUIET).await;
            }
        }
    }

    async fn open(
        &self,
        id: &DefinitionId,
        folder: &WatchedFolder,
        are_new: bool,
    ) -> Result<(FolderLocation, FolderWatch), WatchError> {
        let place = self.place(id, folder).await?;
        let looked = place.clone();
        let opened = tokio::task::spawn_blocking(move || FolderWatch::open(&looked, QUIET, are_new)).await;
        let opened = opened.unwrap_or_else(|error| Err(error.into()));
        opened.map(|watch| (place, watch)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => WatchError::Missing(format!("{folder}").into()),
            _ => WatchError::Other(format!("{folder} cannot be watched: {error}")),
        })
    }

    /// Returns the present location of the folder, if the job may read it.
    async fn place(&self, id: &DefinitionId, folder: &WatchedFolder) -> Result<FolderLocation, WatchError> {
        let folder = folder.clone();
        self.with_sight(id, move |sight| place(&folder, sight)).await
    }

    /// Returns what the job sees of changes. `is_last`: the folder may be gone.
    ///
    /// # Errors
    /// [`WatchError`] if the folder is no longer at its location.
    async fn seen(
        &self,
        id: &DefinitionId,
        folder: &WatchedFolder,
        found: &FolderLocation,
        changes: Changes,
        is_last: bool,
    ) -> Result<Option<Burst>, WatchError> {
        let (folder, found) = (folder.clone(), found.clone());
        self.with_sight(id, move |sight| {
            if !is_last && place(&folder, sight)? != found {
                return Err(WatchError::Missing(found.base.join(found.below)));
            }
            Ok(sight.of_changes(changes, &folder, &found))
        })
        .await
    }

    /// Calls a function with what the job sees at present, on a blocking thread.
    async fn with_sight<T: Send + 'static>(
        &self,
        id: &DefinitionId,
        look: impl FnOnce(&Sight) -> Result<T, WatchError> + Send + 'static,
    ) -> Result<T, WatchError> {
        let gone = || WatchError::Other("its file is gone".to_owned());
        let definition = self.definitions.of(id).await.ok_or_else(gone)?;
        let (spawner, home) = (self.spawner.clone(), self.home.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let setup = spawner.setup(&definition, None).map_err(|why| WatchError::Other(why.to_string()))?;
            look(&Sight::of(&setup, &home))
        });
        looked.await.unwrap_or_else(|error| Err(WatchError::Other(error.to_string())))
    }

    /// Notifies the person of a problem of a routine's watch, once for each problem, even over restarts. A folder that does not exist yet
    /// is not reported; `status` shows it. A folder that a run chose is not named and reported once only, so that its name is no message.
    async fn notify_person(&self, id: &DefinitionId, why: Option<&WatchError>) {
        let now = why.filter(|why| !matches!(why, WatchError::Missing(_))).map(ToString::to_string);
        let mut told = self.told.lock().await;
        if told.get(id) == now.as_ref() {
            return;
        }
        tracing::info!(%id, why = now, "what keeps a routine from seeing changes");
        let Some(definition) = self.definitions.of(id).await else { return };
        let is_made = definition.is_made_by_run();
        // Of a made routine, once as long as the service runs: its job could bring the problem back at will.
        let is_told = !is_made || !told.contains_key(id) && self.told_of_made.lock().await.insert(id.clone());
        let message = match &now {
            Some(why) if is_told => {
                let why = if is_made { String::new() } else { format!(": {why}") };
                let text = format!("routine {id} sees no changes{why}. `ollim-bot check {id}` says what to do.");
                self.journal.message(NewMessage::about(Subject::job(&definition), text)).await.map(drop)
            }
            Some(_) | None => Ok(()),
        };
        match now {
            Some(why) => told.insert(id.clone(), why),
            None => told.remove(id),
        };
        let kept = serde_json::to_string(&*told).ok();
        if let Err(error) = message.and(self.journal.set_setting(SETTING, kept).await) {
            tracing::warn!(%error, "what keeps a routine from seeing changes could not be recorded");
        }
    }
}
