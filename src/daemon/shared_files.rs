//! Keeps the files of the hosts that share a journal equal: what changes here is published, what changed elsewhere is written here.
//!
//! `state/shared.json` holds what both had in common last. A file that differs from it was changed here, and a version that is newer than it
//! was changed elsewhere. Where both are so the newest in the journal counts, and what was written here is kept beside the file: no text that
//! somebody has written gets lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ring::digest;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::definition::{LARGEST_FILE, replace_file, shared};
use crate::home::Home;
use crate::journal::{Journal, JournalError, JournalReader, NewMessage, Publication, SharedFile};

/// How often both sides are looked at.
const LOOKS: Duration = Duration::from_secs(2);

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

    /// Keeps them equal for good.
    pub(super) async fn follow(self) {
        loop {
            tokio::time::sleep(LOOKS).await;
            self.look().await;
        }
    }

    /// Makes them equal. What hinders it is told once.
    pub(super) async fn look(&self) {
        if let Err(error) = self.pass(SystemTime::now()).await {
            tracing::warn!(%error, "files were not kept equal with the other hosts; trying again");
        }
    }

    async fn pass(&self, now: SystemTime) -> Result<(), JournalError> {
        let history = self.journal.read(JournalReader::history_of_shared_files).await?;
        let known = lock(&self.folder).known_of(&history);
        let remote = self.journal.read(|journal| journal.shared_files(known)).await?;
        let folder = Arc::clone(&self.folder);
        let looked = tokio::task::spawn_blocking(move || lock(&folder).look(remote, now)).await;
        let Looked { to_publish, to_tell } = looked.map_err(|error| JournalError::Unreadable(error.to_string()))?;
        for text in to_tell {
            tracing::warn!("{text}");
            self.journal.message(NewMessage::of_service(text)).await?;
        }
        if !to_publish.is_empty() {
            let (files, hashes): (Vec<_>, Vec<_>) = to_publish.into_iter().unzip();
            let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
            let versions = self.journal.publish_files(files).await?;
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
        lock(&self.folder).save().map_err(|error| JournalError::Unreadable(format!("state/shared.json: {error}")))
    }
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
}

/// Of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Common {
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
    let Some(newer) = newer else { return if is_changed_here { Step::Publish } else { Step::Nothing } };
    let theirs = hash(&newer.text);
    let is_same = here == Some(theirs.as_str());
    match (here, newer.removed) {
        (None, true) => Step::Agree,
        (Some(_), false) if is_same => Step::Agree,
        _ if !is_changed_here => Step::Take,
        // A folder that is older than the journal has what was removed since.
        (Some(_), true) if is_same && common.is_none() => Step::Take,
        // A change counts more than a removal.
        (None, false) => Step::Take,
        (Some(_), true) => Step::Publish,
        (Some(_), false) => Step::TakeAndKeep,
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
        let kept = kept.unwrap_or_default();
        Self {
            home,
            host,
            kept,
            changed: false,
            newer: BTreeMap::new(),
            read: HashMap::new(),
            missing: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    /// The newest version that is known. What was common in another history does not count.
    fn known_of(&mut self, history: &str) -> i64 {
        if self.kept.history != history {
            self.kept = Kept { history: history.to_owned(), ..Kept::default() };
            self.newer.clear();
        }
        self.kept.seen
    }

    fn look(&mut self, remote: Vec<SharedFile>, now: SystemTime) -> Looked {
        let mut looked = Looked::default();
        let newest = remote.last().map_or(self.kept.seen, |file| file.version);
        let usable = |file: &SharedFile| shared::is_shared(&file.path) && file.text.len() <= LARGEST_FILE;
        self.newer.extend(remote.into_iter().filter(usable).map(|file| (file.path.clone(), file)));
        // Of its own publications it knows already.
        let files = &self.kept.files;
        self.newer.retain(|path, file| files.get(path).is_none_or(|common| common.version < file.version));
        match shared::list(&self.home) {
            Ok(here) => {
                self.told.remove("");
                self.compare(&here, now, &mut looked);
            }
            Err(error) => {
                let why = format!("Files are not kept equal with the other hosts here ({}): {error}", self.host);
                self.tell("", why, &mut looked);
            }
        }
        let seen = self.newer.values().map(|file| file.version - 1).min().unwrap_or(newest);
        self.changed |= std::mem::replace(&mut self.kept.seen, seen) != seen;
        looked
    }

    fn compare(&mut self, here: &BTreeMap<String, shared::Stamp>, now: SystemTime, looked: &mut Looked) {
        let paths: BTreeSet<String> =
            here.keys().chain(self.kept.files.keys()).chain(self.newer.keys()).cloned().collect();
        let was_missing = std::mem::take(&mut self.missing);
        for path in paths {
            let hash = match here.get(&path) {
                Some(stamp) if !stamp.is_settled(now) => continue,
                Some(stamp) => match self.hash_of(&path, *stamp) {
                    Ok(Some(hash)) => Some(hash),
                    // It is no text, or has gone meanwhile.
                    Ok(None) => continue,
                    Err(error) => {
                        self.tell(&path, format!("{path} is not kept equal with the other hosts: {error}"), looked);
                        continue;
                    }
                },
                None if self.kept.files.get(&path).is_some_and(|common| common.hash.is_some()) => {
                    self.missing.insert(path.clone());
                    if !was_missing.contains(&path) || !self.home.root().join(shared::folder_of(&path)).is_dir() {
                        continue;
                    }
                    None
                }
                None => None,
            };
            if let Err(error) = self.one(&path, hash, looked) {
                self.tell(&path, format!("{path} is not kept equal with the other hosts: {error}"), looked);
            }
        }
        self.read.retain(|path, _| here.contains_key(path));
    }

    fn one(&mut self, path: &str, here: Option<String>, looked: &mut Looked) -> io::Result<()> {
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
            let kept = shared::keep_beside(&self.home, path, &self.host, text)?;
            looked.to_tell.push(format!(
                "{path} was changed on two hosts at once. What {} wrote counts, on all of them; what was written on {} is kept there as {kept}. \
                 Compare the two, write what you want into {path}, and remove the other.",
                newer.host, self.host
            ));
        }
        let written = match (step, newer.removed, &text) {
            (Step::Agree, ..) | (_, true, None) => true,
            (_, true, Some(text)) => shared::take_away(&self.home, path, text)?,
            (_, false, old) => shared::put(&self.home, path, old.as_deref(), &newer.text)?,
        };
        // One that was changed in this moment is looked at again.
        if written {
            let hash = (!newer.removed).then(|| hash(&newer.text));
            self.kept.files.insert(path.to_owned(), Common { version: newer.version, hash });
            self.newer.remove(path);
            self.told.remove(path);
            self.missing.remove(path);
            self.changed = true;
        }
        Ok(())
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
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
