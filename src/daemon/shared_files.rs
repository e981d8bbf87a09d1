//! Synchronizes the files of the hosts that share a journal: publishes local changes, and writes remote changes to disk.
//!
//! `state/shared.json` records the last state that this host and the journal had in common. A file that differs from it was changed here. A
//! version that is newer was changed elsewhere. If both apply, the newest version in the journal wins, and the local text is kept beside
//! the file: no text that a person wrote is lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::definition::{LARGEST_FILE, replace_file, shared};
use crate::hexadecimal::{hex, sha256};
use crate::home::Home;
use crate::journal::{Journal, JournalError, JournalReader, NewMessage, Publication, SharedFile};

/// Interval between two passes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of texts in one answer of the journal.
const PAGE: i64 = 200;

/// Maximum number of files that one commit publishes, since other hosts wait for it.
const BATCH_SIZE: usize = 50;

/// The shared files of this host.
pub(super) struct SharedFiles {
    journal: Journal,
    folder: Arc<Mutex<Folder>>,
}

impl SharedFiles {
    /// Returns `None` if no host shares the journal, or `share_files` is off.
    pub(super) async fn of(
        home: &Home,
        host: Result<String, impl Sized>,
        journal: &Journal,
        config: &Config,
    ) -> Result<Option<Self>, JournalError> {
        let (Ok(host), true, true) = (host, config.share_files, journal.is_shared()) else { return Ok(None) };
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| JournalError::Unreadable(error.to_string()))?;
        journal.name_shared_files(hex(&random)).await?;
        Ok(Some(Self { journal: journal.clone(), folder: Arc::new(Mutex::new(Folder::new(home.clone(), host))) }))
    }

    /// Synchronizes for the first time. Nothing may fire here before that. Waits for an unreachable journal.
    pub(super) async fn begin(&self) {
        loop {
            match self.pass(SystemTime::now()).await {
                Err(error) if error.may_pass() => tokio::time::sleep(POLL_INTERVAL).await,
                Err(error) => return self.warn(&error),
                Ok(()) => return,
            }
        }
    }

    /// Synchronizes at intervals. Never returns.
    pub(super) async fn follow(self) {
        let mut hindered = false;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let looked = self.pass(SystemTime::now()).await;
            if let Some(error) = looked.as_ref().err().filter(|_| !hindered) {
                self.warn(error);
            }
            hindered = looked.is_err();
        }
    }

    fn warn(&self, error: &JournalError) {
        tracing::warn!(%error, cause = error.cause(), "files are not kept equal with the other hosts; trying again");
    }

    async fn pass(&self, now: SystemTime) -> Result<(), JournalError> {
        let (history, newest) = self.read(JournalReader::history_of_shared_files).await?;
        let mut known = lock(&self.folder).known_of(&history, newest);
        let mut remote: Vec<SharedFile> = Vec::new();
        loop {
            let page = self.read(move |journal| journal.shared_files(known, PAGE)).await?;
            let Some(last) = page.last() else { break };
            known = last.version;
            remote.extend(page);
        }
        let folder = Arc::clone(&self.folder);
        let looked = blocking(move || Ok(lock(&folder).run_pass(remote, now))).await;
        let PassResult { to_publish, to_tell } = looked?;
        for text in to_tell {
            tracing::warn!("{text}");
            self.journal.message(NewMessage::of_service(text)).await?;
        }
        for some in to_publish.chunks(BATCH_SIZE) {
            let (files, hashes): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
            let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
            let host = lock(&self.folder).host.clone();
            let versions = self.journal.publish_files(host, files).await?;
            for ((path, hash), version) in paths.into_iter().zip(hashes).zip(versions) {
                // Without a version another host was faster with this file. The next pass reads its text.
                if let Some(version) = version {
                    tracing::info!(path, version, "published to the other hosts");
                    let mut folder = lock(&self.folder);
                    folder.kept.files.insert(path, SyncedFile { version, hash });
                    folder.changed = true;
                }
            }
        }
        let folder = Arc::clone(&self.folder);
        let failed = |error| JournalError::Unreadable(format!("state/shared.json: {error}"));
        blocking(move || lock(&folder).save().map_err(failed)).await
    }

    /// Reads the journal on a thread that may wait for its server.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&JournalReader) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let journal = self.journal.clone();
        blocking(move || read(&journal.reader()?)).await
    }
}

async fn blocking<T: Send + 'static>(
    does: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let done = tokio::task::spawn_blocking(does).await;
    done.unwrap_or_else(|error| Err(JournalError::Unreadable(error.to_string())))
}

fn lock(folder: &Mutex<Folder>) -> std::sync::MutexGuard<'_, Folder> {
    folder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last state that this host and the journal had in common.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SyncState {
    /// The history to which the versions belong.
    history: String,
    /// All versions up to this one are known.
    seen: i64,
    files: BTreeMap<String, SyncedFile>,
    /// The identity of each folder when it contained all of these files. Files missing in a different folder do not count as removed.
    #[serde(default)]
    folders: BTreeMap<String, (u64, u64)>,
}

/// The common state of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SyncedFile {
    /// The version, or 0 if it belongs to another history.
    version: i64,
    /// Hash of the text, or `None` if the file was removed.
    hash: Option<String>,
}

/// The action for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Publish the local state over the known version.
    Publish,
    /// Both sides are equal: record that.
    Agree,
    /// Write the journal's version to disk.
    Take,
    /// Write the journal's version to disk, and keep the local text beside it.
    TakeAndKeep,
}

/// Chooses the action. `here`: hash of the local text, or `None` without a file. `newer`: a change from elsewhere since `common`.
fn step(here: Option<&str>, common: Option<&SyncedFile>, newer: Option<&SharedFile>) -> Step {
    let is_changed_here = here != common.and_then(|common| common.hash.as_deref());
    // Without a common version it is unknown which side is older.
    let is_unknown = common.is_none_or(|common| common.version == 0);
    let Some(newer) = newer else {
        return if is_changed_here || (is_unknown && here.is_some()) { Step::Publish } else { Step::Nothing };
    };
    let is_same = here == Some(hash(&newer.text).as_str());
    match (here, newer.removed) {
        (None, true) => Step::Agree,
        (Some(_), false) if is_same => Step::Agree,
        (None, false) => Step::Take,
        _ if !is_unknown && !is_changed_here => Step::Take,
        // The removed text is the one that this host has, so removing it here loses nothing.
        (Some(_), true) if is_unknown && (is_same || !is_changed_here) => Step::Take,
        // A change wins over a removal.
        (Some(_), true) if !is_unknown => Step::Publish,
        (Some(_), _) => Step::TakeAndKeep,
    }
}

/// The result of a pass over the folder.
#[derive(Debug, Default)]
struct PassResult {
    /// Files to publish, each with its hash.
    to_publish: Vec<(Publication, Option<String>)>,
    to_tell: Vec<String>,
}

/// The local side of the synchronization.
#[derive(Debug)]
struct Folder {
    home: Home,
    host: String,
    kept: SyncState,
    /// Whether `kept` has unsaved changes.
    changed: bool,
    /// All versions up to this one have been read.
    read_to: i64,
    /// Versions that are not yet written to disk.
    newer: BTreeMap<String, SharedFile>,
    /// Hashes of the texts that were read, with the stamps of their files.
    read: HashMap<String, (shared::Stamp, String)>,
    /// Files that were missing in the last pass. Editors move a file away for a moment.
    missing: BTreeSet<String>,
    /// Paths that the person was notified of.
    told: BTreeSet<String>,
}

impl Folder {
    /// Loads the kept state. If that cannot be read, all files are compared anew.
    fn new(home: Home, host: String) -> Self {
        let kept = std::fs::read(home.shared_files()).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let kept: SyncState = kept.unwrap_or_default();
        Self {
            home,
            host,
            read_to: kept.seen,
            kept,
            changed: false,
            newer: BTreeMap::new(),
            read: HashMap::new(),
            missing: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    /// Returns the newest version that was read. Resets all common versions if the journal has another history or has forgotten
    /// versions.
    fn known_of(&mut self, history: &str, newest: i64) -> i64 {
        if self.kept.history != history || newest < self.read_to {
            self.kept.files.values_mut().for_each(|common| common.version = 0);
            (self.kept.history, self.kept.seen, self.read_to) = (history.to_owned(), 0, 0);
            self.newer.clear();
            self.changed = true;
        }
        self.read_to
    }

    fn run_pass(&mut self, remote: Vec<SharedFile>, now: SystemTime) -> PassResult {
        let mut looked = PassResult::default();
        self.read_to = remote.last().map_or(self.read_to, |file| file.version);
        let usable = |file: &SharedFile| shared::is_shared(&file.path) && file.text.len() <= LARGEST_FILE;
        self.newer.extend(remote.into_iter().filter(usable).map(|file| (file.path.clone(), file)));
        // Drop this host's own publications.
        let files = &self.kept.files;
        self.newer.retain(|path, file| files.get(path).is_none_or(|common| common.version < file.version));
        let (here, unreadable) = shared::list(&self.home);
        for (path, error) in unreadable {
            self.tell_fault(&path, &error, &mut looked);
        }
        self.compare(&here, now, &mut looked);
        let seen = self.newer.values().map(|file| file.version - 1).min().unwrap_or(self.read_to);
        self.changed |= std::mem::replace(&mut self.kept.seen, seen) != seen;
        looked
    }

    fn compare(&mut self, here: &BTreeMap<String, shared::Stamp>, now: SystemTime, looked: &mut PassResult) {
        let paths: BTreeSet<String> =
            here.keys().chain(self.kept.files.keys()).chain(self.newer.keys()).cloned().collect();
        let was_missing = self.look_for_missing();
        let others = self.other_folders(looked);
        for path in paths {
            let hash = match here.get(&path) {
                Some(stamp) if !stamp.is_settled(now) => continue,
                Some(stamp) => match self.hash_of(&path, *stamp) {
                    Ok(Some(hash)) => Some(hash),
                    // The file is no text, or was removed meanwhile.
                    Ok(None) => continue,
                    Err(error) => {
                        self.tell_fault(&path, &error, looked);
                        continue;
                    }
                },
                None if self.missing.contains(&path) => {
                    if !was_missing.contains(&path) || others.contains(shared::folder_of(&path)) {
                        continue;
                    }
                    None
                }
                // Something exists that is not synchronized: a link, or no text.
                None if self.is_common(&path) && !self.newer.contains_key(&path) => continue,
                None => None,
            };
            if let Err(error) = self.one(&path, hash, looked) {
                self.tell_fault(&path, &error, looked);
            }
        }
        self.read.retain(|path, _| here.contains_key(path));
    }

    /// Whether the file existed in the last common state.
    fn is_common(&self, path: &str) -> bool {
        self.kept.files.get(path).is_some_and(|common| common.hash.is_some())
    }

    /// Updates the set of missing files. Returns the previous set.
    fn look_for_missing(&mut self) -> BTreeSet<String> {
        let gone = |path: &&String| self.is_common(path) && shared::is_gone(&self.home, path);
        let missing = self.kept.files.keys().filter(gone).cloned().collect();
        std::mem::replace(&mut self.missing, missing)
    }

    /// Returns folders that differ from the ones that contained all files: replaced by another, linked, mounted over, or unmounted.
    fn other_folders(&mut self, looked: &mut PassResult) -> BTreeSet<String> {
        let mut others = BTreeSet::new();
        for folder in shared::folders() {
            let missing = self.missing.iter().filter(|path| shared::folder_of(path) == folder).count();
            let now = shared::identity_of(&self.home, folder);
            if let (0, Some(now)) = (missing, now) {
                self.changed |= self.kept.folders.insert(folder.to_owned(), now) != Some(now);
                self.told.remove(folder);
            } else if missing > 0 && (now.is_none() || self.kept.folders.get(folder).copied() != now) {
                let name = if folder.is_empty() { "the data folder".to_owned() } else { format!("{folder}/") };
                let why = format!(
                    "{name} on {} is not the folder that it was, so the files that are missing there ({missing}) are not removed on the \
                     other hosts. Put them back, or remove them on another host.",
                    self.host
                );
                self.tell(folder, why, looked);
                others.insert(folder.to_owned());
            }
        }
        others
    }

    fn one(&mut self, path: &str, here: Option<String>, looked: &mut PassResult) -> io::Result<()> {
        // A version that this host published right before it ended, too late to record it.
        if let Some(own) = self.newer.get(path).filter(|file| file.host == self.host)
            && self.kept.files.get(path).is_some_and(|common| common.version > 0)
        {
            let own = own.clone();
            self.agree(&own);
        }
        let (common, newer) = (self.kept.files.get(path), self.newer.get(path));
        let step = step(here.as_deref(), common, newer);
        if step == Step::Nothing {
            return Ok(());
        }
        let text = match &here {
            None => None,
            Some(known) => match shared::read(&self.home, path)?.filter(|text| hash(text) == *known) {
                Some(text) => Some(text),
                None => return Ok(()),
            },
        };
        let Some(newer) = newer.cloned().filter(|_| step != Step::Publish) else {
            let over = newer.map(|file| file.version).or(common.map(|common| common.version)).unwrap_or(0);
            looked.to_publish.push((Publication { path: path.to_owned(), text, over }, here));
            return Ok(());
        };
        if step == Step::TakeAndKeep
            && let Some(text) = &text
        {
            let what = if newer.removed { "was removed" } else { "was changed" };
            if let Some(kept) = shared::keep_beside(&self.home, path, &self.host, text)? {
                looked.to_tell.push(format!(
                    "{path} {what} on {}, and had another text on {} meanwhile. What was done on {} counts, on all hosts; the other text is kept \
                     on {} as {kept}. Compare the two, write what you want into {path}, and remove the other.",
                    newer.host, self.host, newer.host, self.host
                ));
            }
        }
        let written = match (step, newer.removed, &text) {
            (Step::Agree, ..) | (_, true, None) => true,
            (_, true, Some(text)) => shared::take_away(&self.home, path, text)?,
            (_, false, old) => shared::put(&self.home, path, old.as_deref(), &newer.text)?,
        };
        // A file that was changed at this very moment is handled in the next pass.
        if written {
            self.agree(&newer);
            self.told.remove(path);
            self.missing.remove(path);
        }
        Ok(())
    }

    /// Records the version as the common state.
    fn agree(&mut self, file: &SharedFile) {
        let hash = (!file.removed).then(|| hash(&file.text));
        self.kept.files.insert(file.path.clone(), SyncedFile { version: file.version, hash });
        self.newer.remove(&file.path);
        self.changed = true;
    }

    fn hash_of(&mut self, path: &str, stamp: shared::Stamp) -> io::Result<Option<String>> {
        if let Some((known, hash)) = self.read.get(path)
            && *known == stamp
        {
            return Ok(Some(hash.clone()));
        }
        let Some(text) = shared::read(&self.home, path)? else { return Ok(None) };
        let hash = hash(&text);
        self.read.insert(path.to_owned(), (stamp, hash.clone()));
        Ok(Some(hash))
    }

    fn tell_fault(&mut self, path: &str, error: &io::Error, looked: &mut PassResult) {
        self.tell(path, format!("{path} is not kept equal with the other hosts: {error}"), looked);
    }

    fn tell(&mut self, path: &str, why: String, looked: &mut PassResult) {
        if self.told.insert(path.to_owned()) {
            looked.to_tell.push(why);
        }
    }

    fn save(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.changed) {
            replace_file(&self.home.shared_files(), &serde_json::to_vec(&self.kept)?)?;
        }
        Ok(())
    }
}

fn hash(text: &str) -> String {
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests;
