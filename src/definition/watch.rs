//! Reports changed definition files as soon as they change.
//!
//! Watched folders: the data folder (its folders may appear, disappear or be replaced), each folder of definitions,
//! `skills/` and `agents/` with every folder in them, and those that [`elsewhere`] adds for the person's own agents.
//! Invariants: a watch is set before [`PossibleChange::Everything`] is returned, so a caller that reads the folders afterwards
//! misses nothing; lost events also yield [`PossibleChange::Everything`]. Nothing is polled, except while the data folder or a
//! folder of definitions is missing.
//!
//! inotify(7) reports changes only. The `notify` crate also subscribes to every opened file, including our own reads:
//! 45 % more work when reading 100,000 files (measured).

mod elsewhere;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::mem::{self, MaybeUninit};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, sleep_until};

use super::{DefinitionError, Kind, agent, read, skill};
use crate::home::Home;
use elsewhere::OutsideWatch;

/// A possible change. The caller reads the files to find out, and may find nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PossibleChange {
    /// These files (relative to the data folder) were written, moved, created or removed. `skills` and `agents` stand
    /// for everything in those folders.
    Files(Vec<PathBuf>),
    /// Anything may have changed: a folder was replaced, or events were lost.
    Everything,
}

/// Time without events after which files are read: an editor has then finished writing.
const QUIET: Duration = Duration::from_millis(40);
/// Maximum delay after the first event, however many follow.
const MAX_DELAY: Duration = Duration::from_millis(250);
/// Interval at which a missing folder is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

const IN_FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
const IN_ROOT: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// Events of the watched folder itself: it is no longer at its path.
const ITSELF: ReadFlags =
    ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT).union(ReadFlags::IGNORED);

/// Maximum depth of watched subfolders.
const DEEPEST: usize = 8;

/// Follows the definition folders of a data folder.
#[derive(Debug)]
pub struct Watch {
    home: Home,
    inotify: AsyncFd<OwnedFd>,
    /// The watch on the data folder; `None` while it is missing.
    root: Option<i32>,
    /// Device and inode of the watched data folder.
    identity: Option<(u64, u64)>,
    /// The watches on the folders of [`Kind::WITH_FILES`]; `None` for a missing folder.
    folders: [Option<i32>; Kind::WITH_FILES.len()],
    /// The watches on each folder of [`named`] and on its subfolders.
    named: [Vec<i32>; 2],
    /// The watches on agents outside of the data folder.
    elsewhere: OutsideWatch,
    files: BTreeSet<PathBuf>,
    everything: bool,
    /// The times of the first and the last event not yet reported.
    since: Option<(Instant, Instant)>,
}

/// Returns the folders of skills and agents, which definitions name. Paths are relative to the data folder.
fn named() -> [PathBuf; 2] {
    [skill::folder(), agent::folder()]
}

/// One inotify event.
#[derive(Debug)]
pub(crate) struct Event {
    /// The watched folder.
    pub(crate) watch: i32,
    /// The kind of change.
    pub(crate) what: ReadFlags,
    /// The changed entry of the folder; `None` for the folder itself.
    pub(crate) name: Option<PathBuf>,
}

impl Watch {
    /// Starts watching. `agents` is another folder of agents, outside of the data folder; it need not exist. [`Watch::next`]
    /// returns all changes from now on, so read the folders after this call. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`DefinitionError::NoHome`]; [`DefinitionError::Watch`] if the kernel allows no (more) watches.
    pub fn start(home: &Home, agents: Option<&Path>) -> Result<Self, DefinitionError> {
        let failed = |source: std::io::Error| DefinitionError::Watch { path: home.root().to_owned(), source };
        let inotify =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
        let inotify = registered(inotify).map_err(failed)?;
        let mut watch = Self {
            home: home.clone(),
            inotify,
            root: None,
            identity: None,
            folders: Default::default(),
            named: Default::default(),
            elsewhere: OutsideWatch::new(agents.filter(|folder| *folder != home.agents())),
            files: BTreeSet::new(),
            everything: false,
            since: None,
        };
        watch.arm().map_err(|error| failed(error.into()))?;
        if watch.root.is_none() {
            return Err(DefinitionError::NoHome { root: home.root().to_owned() });
        }
        Ok(watch)
    }

    /// Waits for the next change. Changes in quick succession are reported together. Cancel safe: a dropped call loses
    /// no change.
    pub async fn next(&mut self) -> PossibleChange {
        loop {
            let due = self.since.map(|(first, last)| (first + MAX_DELAY).min(last + QUIET));
            if due.is_some_and(|due| due <= Instant::now()) {
                self.since = None;
                let files = mem::take(&mut self.files);
                if mem::take(&mut self.everything) {
                    return PossibleChange::Everything;
                }
                return PossibleChange::Files(files.into_iter().collect());
            }
            tokio::select! {
                events = events(&self.inotify) => events.into_iter().for_each(|event| self.take(event)),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                () = sleep(POLL_INTERVAL), if self.is_incomplete() => {
                    if self.root.is_none() || self.identity != identity(self.home.root()) {
                        self.recheck();
                    }
                }
            }
        }
    }

    /// Whether the data folder or a folder of definitions is missing. While a file in a deleted folder is open, the
    /// kernel does not report the deletion. So if the definition folders are missing, the data folder may be too.
    fn is_incomplete(&self) -> bool {
        self.root.is_none() || self.folders.contains(&None)
    }

    /// Sets every watch again.
    fn arm(&mut self) -> Result<(), Errno> {
        let fd = self.inotify.get_ref();
        for old in self.folders.iter_mut().chain([&mut self.root]).filter_map(Option::take) {
            // The watch may have ended with its folder.
            let _ = inotify::remove_watch(fd, old);
        }
        // Looked up before the watch is set: if another folder replaces it in between, the next comparison notices.
        self.identity = identity(self.home.root());
        self.root = watch(fd, self.home.root(), IN_ROOT)?;
        for (kind, folder) in Kind::WITH_FILES.iter().zip(&mut self.folders) {
            if read::is_inside(&self.home, *kind) {
                *folder = watch(fd, &self.home.root().join(read::folder_of(*kind)), IN_FOLDER)?;
            }
        }
        (0..self.named.len()).try_for_each(|which| self.arm_named(which))?;
        self.arm_elsewhere();
        Ok(())
    }

    /// Sets the watches on agents elsewhere again.
    fn arm_elsewhere(&mut self) {
        let own: Vec<i32> =
            self.root.iter().chain(self.folders.iter().flatten()).chain(self.named.iter().flatten()).copied().collect();
        if let Err(error) = self.elsewhere.arm(self.inotify.get_ref(), &own) {
            tracing::warn!(%error, "your own agents cannot be watched: edits are seen late");
        }
    }

    /// Sets the watches on a folder of [`named`] and its subfolders again.
    fn arm_named(&mut self, which: usize) -> Result<(), Errno> {
        let fd = self.inotify.get_ref();
        for old in self.named[which].drain(..) {
            // The watch may have ended with its folder.
            let _ = inotify::remove_watch(fd, old);
        }
        watch_tree(fd, &self.home.root().join(&named()[which]), DEEPEST, &mut self.named[which])
    }

    /// Records that skills or agents changed, so that the definitions that name them are read again.
    fn take_named(&mut self, which: usize) {
        self.note();
        let folder = &named()[which];
        self.files.insert(folder.clone());
        if let Err(error) = self.arm_named(which) {
            tracing::warn!(%error, "{}/ cannot be watched: edits are seen late", folder.display());
        }
    }

    /// Calls [`arm`](Self::arm) and reports [`PossibleChange::Everything`]. After an error, [`next`](Self::next) retries it later.
    fn recheck(&mut self) {
        if let Err(error) = self.arm() {
            tracing::warn!(%error, "the definitions cannot be watched: edits are seen late");
            self.root = None;
        }
        if self.root.is_some() {
            self.note();
            self.everything = true;
        }
    }

    fn take(&mut self, event: Event) {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            tracing::info!("so much has changed that some of it was lost to us: everything is read again");
            self.note();
            self.everything = true;
            return;
        }
        // No return: the event may also concern a parent that is one of our folders.
        if self.elsewhere.concerns(&event) {
            self.note();
            self.files.insert(agent::folder());
            self.arm_elsewhere();
        }
        let ours = |name: &Path| Kind::WITH_FILES.iter().any(|kind| read::folder_of(*kind) == name);
        if self.root == Some(event.watch) {
            let replaced = event.name.as_deref().is_some_and(ours);
            if replaced || event.what.intersects(ITSELF) {
                self.note();
                self.everything = true;
                self.recheck();
            } else if let Some(which) = named().iter().position(|folder| event.name.as_ref() == Some(folder)) {
                self.take_named(which);
            }
            return;
        }
        if let Some(which) = self.named.iter().position(|watches| watches.contains(&event.watch)) {
            self.take_named(which);
            return;
        }
        // An event of a removed watch concerns none of our folders.
        let Some(folder) = self.folders.iter().position(|watch| *watch == Some(event.watch)) else { return };
        if event.what.intersects(ITSELF) {
            self.recheck();
        } else if let Some(name) = event.name {
            let file = read::folder_of(Kind::WITH_FILES[folder]).join(name);
            if let Some(file) = read::relative(&self.home, &file) {
                self.note();
                self.files.insert(file);
            }
        }
    }

    fn note(&mut self) {
        let now = Instant::now();
        self.since = Some((self.since.map_or(now, |(first, _)| first), now));
    }
}

/// Registers a descriptor with tokio. `AsyncFd::new` is deprecated because a type's descriptor could change while it is
/// registered. That of an `OwnedFd` cannot, and the successor is `unsafe`, which this crate forbids.
#[allow(deprecated)]
pub(crate) fn registered(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).ok().map(|about| (about.dev(), about.ino()))
}

/// Watches a folder. Returns `None` if there is no such folder.
fn watch(fd: &OwnedFd, folder: &Path, what: WatchFlags) -> Result<Option<i32>, Errno> {
    match inotify::add_watch(fd, folder, what) {
        Ok(watch) => Ok(Some(watch)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Watches a folder and its subfolders, at most `deeper` levels down.
fn watch_tree(fd: &OwnedFd, folder: &Path, deeper: usize, watches: &mut Vec<i32>) -> Result<(), Errno> {
    let Some(watched) = watch(fd, folder, IN_FOLDER)? else { return Ok(()) };
    watches.push(watched);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && deeper > 0 => watch_tree(fd, &entry.path(), deeper - 1, watches)?,
            // Not followed further: a symlink could lead in circles.
            Ok(kind) if kind.is_symlink() => watches.extend(watch(fd, &entry.path(), IN_FOLDER)?),
            _ => {}
        }
    }
    Ok(())
}

/// Number of events from which no more are read at once. A process can make new ones faster than they are read.
const MAX_EVENTS: usize = 1024;

/// Waits for events and returns those that are available.
pub(crate) async fn events(inotify: &AsyncFd<OwnedFd>) -> Vec<Event> {
    let Ok(mut ready) = inotify.readable().await else {
        // The runtime is shutting down.
        return std::future::pending().await;
    };
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = Reader::new(inotify.get_ref(), &mut buffer);
    let mut events = Vec::new();
    // Ends when no event is left. Clearing readiness makes the next call wait.
    while let Ok(event) = reader.next() {
        let name = event.file_name().map(|name| PathBuf::from(OsStr::from_bytes(name.to_bytes())));
        events.push(Event { watch: event.wd(), what: event.events(), name });
        // What the reader has taken from the kernel would be lost with it.
        if events.len() >= MAX_EVENTS && reader.is_buffer_empty() {
            // More may be there: without clearing readiness the next call does not wait.
            return events;
        }
    }
    ready.clear_ready();
    events
}

#[cfg(test)]
mod tests;
