//! Keeps the files of the hosts that share a journal equal: what changes here is published, what changed elsewhere is written here.
//!
//! `state/shared.json` holds what both had in common last. A file that differs from it was changed here, and a version that is newer than it
//! was changed elsewhere. Where both are so the newest in the journal counts, and what was written here is kept beside the file: no text that
//! somebody has written gets lost.

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

/// How often both sides are looked at.
const LOOKS: Duration = Duration::from_secs(2);

/// How many texts one answer of the journal has at most.
const PAGE: i64 = 200;

/// How many files one commit publishes at most: other hosts wait for it.
const TOGETHER: usize = 50;

/// The files of this host.
pub(super) struct SharedFiles {
    journal: Journal,
    folder: Arc<Mutex<Folder>>,
}

impl SharedFiles {
    /// `None`: nobody shares the journal, or `share_files` is off.
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

    /// Makes them equal for the first time: before that nothing is to fire here. A journal that is away is waited for.
    pub(super) async fn begin(&self) {
        loop {
            match self.pass(SystemTime::now()).await {
                Err(error) if error.may_pass() => tokio::time::sleep(LOOKS).await,
                Err(error) => return self.warn(&error),
                Ok(()) => return,
            }
        }
    }

    /// Keeps them equal for good.
    pub(super) async fn follow(self) {
        let mut hindered = false;
        loop {
            tokio::time::sleep(LOOKS).await;
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
        let looked = blocking(move || Ok(lock(&folder).look(remote, now))).await;
        let Looked { to_publish, to_tell } = looked?;
        for text in to_tell {
            tracing::warn!("{text}");
            self.journal.message(NewMessage::of_service(text)).await?;
        }
        for some in to_publish.chunks(TOGETHER) {
            let (files, hashes): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
            let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
            let host = lock(&self.folder).host.clone();
            let versions = self.journal.publish_files(host, files).await?;
            for ((path, hash), version) in paths.into_iter().zip(hashes).zip(versions) {
                // Of one that another host was first with, the next look learns what it says.
                if let Some(version) = version {
                    tracing::info!(path, version, "published to the other hosts");
                    let mut folder = lock(&self.folder);
                    folder.kept.files.insert(path, Common { version, hash });
                    folder.changed = true;
                }
            }
        }
        let folder = Arc::clone(&self.folder);
        let failed = |error| JournalError::Unreadable(format!("state/shared.json: {error}"));
        blocking(move || lock(&folder).save().map_err(failed)).await
    }

    /// Reads the journal, by a thread that may wait for its server.
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

/// What this host and the journal had in common last.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// In which its versions count.
    history: String,
    /// All versions up to this one are known.
    seen: i64,
    files: BTreeMap<String, Common>,
    /// Each folder, when all of these files were in it. A file that is missing in another one is not taken for removed.
    #[serde(default)]
    folders: BTreeMap<String, (u64, u64)>,
}

/// Of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Common {
    /// 0: of another history.
    version: i64,
    /// Of the text; `None`: it was removed.
    hash: Option<String>,
}

/// What comes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// What is here is published over the version that is known.
    Publish,
    /// Both are the same.
    Agree,
    /// What is in the journal is written here.
    Take,
    /// The same, and what was written here is kept beside it.
    TakeAndKeep,
}

/// `here`: the hash of the text here; `None`: there is no file. `newer`: what was changed elsewhere since they had `common`.
fn step(here: Option<&str>, common: Option<&Common>, newer: Option<&SharedFile>) -> Step {
    let is_changed_here = here != common.and_then(|common| common.hash.as_deref());
    // Nobody knows which of the two is older then.
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
        // What was removed since has the text that this host had.
        (Some(_), true) if is_unknown && (is_same || !is_changed_here) => Step::Take,
        // A change counts more than a removal.
        (Some(_), true) if !is_unknown => Step::Publish,
        (Some(_), _) => Step::TakeAndKeep,
    }
}

/// What a look at the folder led to.
#[derive(Debug, Default)]
struct Looked {
    /// With the hash of each.
    to_publish: Vec<(Publication, Option<String>)>,
    to_tell: Vec<String>,
}

/// This host's side.
#[derive(Debug)]
struct Folder {
    home: Home,
    host: String,
    kept: Kept,
    /// Whether it is to be saved.
    changed: bool,
    /// All versions up to this one have been read.
    read_to: i64,
    /// Versions that are not written here yet.
    newer: BTreeMap<String, SharedFile>,
    /// The hashes of texts that were read.
    read: HashMap<String, (shared::Stamp, String)>,
    /// Files that were not there at the last look. Editors take a file away for a moment.
    missing: BTreeSet<String>,
    /// What a person has been told of.
    told: BTreeSet<String>,
}

impl Folder {
    /// Where what is kept cannot be read, all files are compared anew.
    fn new(home: Home, host: String) -> Self {
        let kept = std::fs::read(home.shared_files()).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let kept: Kept = kept.unwrap_or_default();
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

    /// The newest version that has been read. What was common in another history has no version in this one; nor has anything where versions
    /// were forgotten.
    fn known_of(&mut self, history: &str, newest: i64) -> i64 {
        if self.kept.history != history || newest < self.read_to {
            self.kept.files.values_mut().for_each(|common| common.version = 0);
            (self.kept.history, self.kept.seen, self.read_to) = (history.to_owned(), 0, 0);
            self.newer.clear();
            self.changed = true;
        }
        self.read_to
    }

    fn look(&mut self, remote: Vec<SharedFile>, now: SystemTime) -> Looked {
        let mut looked = Looked::default();
        self.read_to = remote.last().map_or(self.read_to, |file| file.version);
        let usable = |file: &SharedFile| shared::is_shared(&file.path) && file.text.len() <= LARGEST_FILE;
        self.newer.extend(remote.into_iter().filter(usable).map(|file| (file.path.clone(), file)));
        // Of its own publications it knows already.
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

    fn compare(&mut self, here: &BTreeMap<String, shared::Stamp>, now: SystemTime, looked: &mut Looked) {
        let paths: BTreeSet<String> =
            here.keys().chain(self.kept.files.keys()).chain(self.newer.keys()).cloned().collect();
        let was_missing = self.look_for_missing();
        let others = self.other_folders(looked);
        for path in paths {
            let hash = match here.get(&path) {
                Some(stamp) if !stamp.is_settled(now) => continue,
                Some(stamp) => match self.hash_of(&path, *stamp) {
                    Ok(Some(hash)) => Some(hash),
                    // It is no text, or has gone meanwhile.
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
                // Something is there that is not kept equal: a link, or more than a text.
                None if self.is_common(&path) && !self.newer.contains_key(&path) => continue,
                None => None,
            };
            if let Err(error) = self.one(&path, hash, looked) {
                self.tell_fault(&path, &error, looked);
            }
        }
        self.read.retain(|path, _| here.contains_key(path));
    }

    /// Whether it was here, as elsewhere, last.
    fn is_common(&self, path: &str) -> bool {
        self.kept.files.get(path).is_some_and(|common| common.hash.is_some())
    }

    /// Finds what is missing now. Returns what was before.
    fn look_for_missing(&mut self) -> BTreeSet<String> {
        let gone = |path: &&String| self.is_common(path) && shared::is_gone(&self.home, path);
        let missing = self.kept.files.keys().filter(gone).cloned().collect();
        std::mem::replace(&mut self.missing, missing)
    }

    /// Folders that are not those in which all files were: another one was moved, linked or mounted into the place, or is not mounted.
    fn other_folders(&mut self, looked: &mut Looked) -> BTreeSet<String> {
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

    fn one(&mut self, path: &str, here: Option<String>, looked: &mut Looked) -> io::Result<()> {
        // What this host published before it ended, and had no time to keep.
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
        // One that was changed in this moment is looked at again.
        if written {
            self.agree(&newer);
            self.told.remove(path);
            self.missing.remove(path);
        }
        Ok(())
    }

    /// This host and the journal have it in common now.
    fn agree(&mut self, file: &SharedFile) {
        let hash = (!file.removed).then(|| hash(&file.text));
        self.kept.files.insert(file.path.clone(), Common { version: file.version, hash });
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

    fn tell_fault(&mut self, path: &str, error: &io::Error, looked: &mut Looked) {
        self.tell(path, format!("{path} is not kept equal with the other hosts: {error}"), looked);
    }

    fn tell(&mut self, path: &str, why: String, looked: &mut Looked) {
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
