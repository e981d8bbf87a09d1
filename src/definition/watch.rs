//! Tells which definition files changed, as soon as they do.
//!
//! One watch on the data folder (for its folders coming, going and being replaced), one on each of those with
//! definitions, one on each of skills/ and agents/ and on every folder in them; and those that [`elsewhere`] sets for the
//! person's own agents.
//! What always holds: a watch is set before "everything may have changed" is told, so that whoever then reads the
//! folders misses nothing; events that were lost are told as that too. Nothing is polled, save while the data folder
//! or one of these is missing.
//!
//! inotify(7) is asked for changes alone. (The `notify` crate also asks to be told of every file that is opened, our
//! own reading included: 45 % more work in reading 100,000 files, measured.)

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
use elsewhere::Elsewhere;

/// What may have changed. Files are read to find out; a notice may be of nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// These files (relative to the data folder) were written, moved, made or removed. `skills` and `agents`
    /// stand for whatever is in those folders.
    Files(Vec<PathBuf>),
    /// Anything: a folder was replaced, or events were lost.
    Everything,
}

/// A file is read when nothing has happened to the folders for so long: an editor is then done with it.
const QUIET: Duration = Duration::from_millis(40);
/// ... but never later than this after the first event.
const LATEST: Duration = Duration::from_millis(250);
/// How often a data folder that is gone is looked for.
const LOST: Duration = Duration::from_millis(500);

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
/// The watched folder itself is no longer where it was.
const ITSELF: ReadFlags =
    ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT).union(ReadFlags::IGNORED);

/// How deep agents are looked for in folders of their folder.
const DEEPEST: usize = 8;

/// Follows the folders of definitions of a data folder.
#[derive(Debug)]
pub struct Watch {
    home: Home,
    inotify: AsyncFd<OwnedFd>,
    /// The watch on the data folder; `None` while it is gone.
    root: Option<i32>,
    /// Which folder is watched there, by device and inode.
    identity: Option<(u64, u64)>,
    /// The watches on the folders of [`Kind::WITH_FILES`]; `None` for one that is not there.
    folders: [Option<i32>; Kind::WITH_FILES.len()],
    /// The watches on each of [`named`] and on the folders in it.
    named: [Vec<i32>; 2],
    /// Agents that definitions name and that are not in the data folder.
    elsewhere: Elsewhere,
    files: BTreeSet<PathBuf>,
    everything: bool,
    /// The first and the last event that is not told yet.
    since: Option<(Instant, Instant)>,
}

/// The folders of what definitions name, relative to the data folder.
fn named() -> [PathBuf; 2] {
    [skill::folder(), agent::folder()]
}

/// One event of the kernel.
#[derive(Debug)]
pub(crate) struct Event {
    /// The watched folder.
    pub(crate) watch: i32,
    /// What has happened.
    pub(crate) what: ReadFlags,
    /// To what in it.
    pub(crate) name: Option<PathBuf>,
}

impl Watch {
    /// Starts watching; `agents` is a folder with more of them, there or not, outside the data folder. What happens
    /// from now on is told by [`Watch::next`]; read the folders after this. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`DefinitionError::NoHome`]; [`DefinitionError::Watch`] when the kernel allows no (more) watches.
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
            elsewhere: Elsewhere::new(agents.filter(|folder| *folder != home.agents())),
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

    /// Waits for the next change. Changes that come close together are told together. May be dropped and called
    /// again; nothing is lost by it.
    pub async fn next(&mut self) -> Changed {
        loop {
            let due = self.since.map(|(first, last)| (first + LATEST).min(last + QUIET));
            if due.is_some_and(|due| due <= Instant::now()) {
                self.since = None;
                let files = mem::take(&mut self.files);
                if mem::take(&mut self.everything) {
                    return Changed::Everything;
                }
                return Changed::Files(files.into_iter().collect());
            }
            tokio::select! {
                events = events(&self.inotify) => events.into_iter().for_each(|event| self.take(event)),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                () = sleep(LOST), if self.is_incomplete() => {
                    if self.root.is_none() || self.identity != identity(self.home.root()) {
                        self.look_again();
                    }
                }
            }
        }
    }

    /// Whether the data folder, or one of those of definitions in it, is not there. The kernel does not tell of the end of a folder
    /// as long as a file that was in it is open: when they are gone, their folder may be so too.
    fn is_incomplete(&self) -> bool {
        self.root.is_none() || self.folders.contains(&None)
    }

    /// Sets every watch anew.
    fn arm(&mut self) -> Result<(), Errno> {
        let fd = self.inotify.get_ref();
        for old in self.folders.iter_mut().chain([&mut self.root]).filter_map(Option::take) {
            // It may be gone by itself.
            let _ = inotify::remove_watch(fd, old);
        }
        // Looked up first: should another folder come in between, that is seen at the next look.
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

    /// Sets the watches on agents that are elsewhere anew.
    fn arm_elsewhere(&mut self) {
        let own: Vec<i32> =
            self.root.iter().chain(self.folders.iter().flatten()).chain(self.named.iter().flatten()).copied().collect();
        if let Err(error) = self.elsewhere.arm(self.inotify.get_ref(), &own) {
            tracing::warn!(%error, "your own agents cannot be watched: edits are seen late");
        }
    }

    /// Sets the watches on one of [`named`] and the folders in it anew.
    fn arm_named(&mut self, which: usize) -> Result<(), Errno> {
        let fd = self.inotify.get_ref();
        for old in self.named[which].drain(..) {
            // It may be gone by itself.
            let _ = inotify::remove_watch(fd, old);
        }
        watch_tree(fd, &self.home.root().join(&named()[which]), DEEPEST, &mut self.named[which])
    }

    /// Skills or agents have changed: who names them is read again.
    fn take_named(&mut self, which: usize) {
        self.note();
        let folder = &named()[which];
        self.files.insert(folder.clone());
        if let Err(error) = self.arm_named(which) {
            tracing::warn!(%error, "{}/ cannot be watched: edits are seen late", folder.display());
        }
    }

    /// [`arm`](Self::arm), and told as "everything". Where it fails, it is tried again after a while.
    fn look_again(&mut self) {
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
        // Their parents may be folders of ours too: the event goes on.
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
                self.look_again();
            } else if let Some(which) = named().iter().position(|folder| event.name.as_ref() == Some(folder)) {
                self.take_named(which);
            }
            return;
        }
        if let Some(which) = self.named.iter().position(|watches| watches.contains(&event.watch)) {
            self.take_named(which);
            return;
        }
        // Events of a watch that was taken away meanwhile are of no folder of ours.
        let Some(folder) = self.folders.iter().position(|watch| *watch == Some(event.watch)) else { return };
        if event.what.intersects(ITSELF) {
            self.look_again();
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

/// `AsyncFd::new` is deprecated because a type's descriptor could change while it is registered. An `OwnedFd`'s cannot,
/// and its successor is `unsafe`, which this crate forbids.
#[allow(deprecated)]
pub(crate) fn registered(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(folder).ok().map(|about| (about.dev(), about.ino()))
}

/// Watches a folder. `None`: there is no such folder.
fn watch(fd: &OwnedFd, folder: &Path, what: WatchFlags) -> Result<Option<i32>, Errno> {
    match inotify::add_watch(fd, folder, what) {
        Ok(watch) => Ok(Some(watch)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Watches a folder and those in it, as far down as agents are looked for.
fn watch_tree(fd: &OwnedFd, folder: &Path, deeper: usize, watches: &mut Vec<i32>) -> Result<(), Errno> {
    let Some(watched) = watch(fd, folder, IN_FOLDER)? else { return Ok(()) };
    watches.push(watched);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && deeper > 0 => watch_tree(fd, &entry.path(), deeper - 1, watches)?,
            // It could lead round in circles.
            Ok(kind) if kind.is_symlink() => watches.extend(watch(fd, &entry.path(), IN_FOLDER)?),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for events and takes all there are.
pub(crate) async fn events(inotify: &AsyncFd<OwnedFd>) -> Vec<Event> {
    let Ok(mut ready) = inotify.readable().await else {
        // The runtime is going down.
        return std::future::pending().await;
    };
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut reader = Reader::new(inotify.get_ref(), &mut buffer);
    let mut events = Vec::new();
    // Ends with "no more for now", after which readiness is waited for again.
    while let Ok(event) = reader.next() {
        let name = event.file_name().map(|name| PathBuf::from(OsStr::from_bytes(name.to_bytes())));
        events.push(Event { watch: event.wd(), what: event.events(), name });
    }
    ready.clear_ready();
    events
}

#[cfg(test)]
mod tests;
