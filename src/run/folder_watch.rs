//! Follows a folder and all that is below it. What changes is given in bursts.
//!
//! Each folder is opened from the trusted one on, and no link is followed on the way: who can write there cannot lead the watch
//! out of it. Nothing is polled.
//!
//! Each watch has a queue of the kernel's of its own (an instance of inotify): a job that floods its folder loses its own changes, and no
//! other job loses any.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::definition::{FolderEvent, folder_events, registered};
use crate::journal::Occasion;
use crate::schedule::Burst;

/// A burst is over when nothing has happened for so long.
pub(super) const QUIET: Duration = Duration::from_secs(2);

/// ... but never later than this after its first change.
const LONGEST: Duration = Duration::from_secs(30);

/// Folders that one routine watches.
const MOST_FOLDERS: usize = 2000;

/// Files of a burst that are remembered by name, and those that a prompt names.
const REMEMBERED: usize = 10_000;
const NAMED: usize = 50;

/// Links that the kernel follows on one path.
const MOST_LINKS: usize = 40;

/// Characters of a name that a prompt has.
const LONGEST_NAME: usize = 200;

const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Of the folders above it only matters whether they, and what leads to it, go. (The kernel does not tell of the end of a folder that is
/// open, as the watched one is.)
const ABOVE: WatchFlags = WatchFlags::DELETE
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The folder itself is no longer where it was.
const ITSELF: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// Where a folder is: below one that nobody replaces by a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Trusted, without links.
    pub base: PathBuf,
    /// From there on.
    pub below: PathBuf,
    /// The links by which the person's path leads there: turned, it leads elsewhere.
    pub links: Vec<PathBuf>,
}

/// The links on an absolute path, each by a path without links.
pub(super) fn links_on(path: &Path) -> Vec<PathBuf> {
    let parts = |path: &Path| -> VecDeque<OsString> {
        let named = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
        path.components().filter(named).map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut links, mut real, mut left) = (Vec::new(), PathBuf::from("/"), parts(path));
    while let Some(part) = left.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(part);
        match next.read_link() {
            Ok(target) if links.len() < MOST_LINKS => {
                if target.is_absolute() {
                    real = "/".into();
                }
                let mut first = parts(&target);
                first.append(&mut left);
                left = first;
                links.push(next);
            }
            _ => real = next,
        }
    }
    links
}

impl Place {
    /// Opens it.
    ///
    /// # Errors
    /// [`Errno::LOOP`] where a link is on the way.
    pub fn open(&self) -> Result<OwnedFd, Errno> {
        let base =
            rustix::fs::openat(CWD, &self.base, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        beneath(&base, &self.below)
    }
}

/// Why a watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The folder is not there any more.
    Gone,
    /// Changes were lost, and new folders with them.
    Lost,
}

/// A folder that is watched.
#[derive(Debug)]
pub(super) struct FolderWatch {
    inotify: AsyncFd<OwnedFd>,
    reads: Folders,
    /// Folders that are new, and the one of them that is being read.
    unread: VecDeque<PathBuf>,
    reading: Option<JoinHandle<io::Result<Added>>>,
    /// The watched folders, relative to the root.
    folders: HashMap<i32, PathBuf>,
    /// Those above it and those with a link to it, each with the names that lead on to it.
    above: HashMap<i32, Vec<OsString>>,
    /// There are more folders than can be watched.
    pub(super) has_too_many: bool,
    quiet: Duration,
    files: BTreeSet<PathBuf>,
    more: usize,
    /// The first and the last change that is not told yet.
    since: Option<(Instant, Instant)>,
    end: Option<End>,
}

impl FolderWatch {
    /// Begins to watch. `are_new`: what is there already counts as changed.
    ///
    /// # Errors
    /// When there is no such folder, or the kernel allows no (more) watches. Reads folders: not for a thread that serves others.
    pub(super) fn open(place: &Place, quiet: Duration, are_new: bool) -> io::Result<Self> {
        let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let inotify = registered(opened.map_err(|error| limited(error, Errno::MFILE, "instances"))?)?;
        let root = place.open()?;
        let mut above: HashMap<i32, Vec<OsString>> = HashMap::new();
        let ways = place.below.ancestors().map(|way| place.base.join(way)).filter(|way| *way != place.base);
        for way in ways.chain(place.links.iter().cloned()) {
            let (Some(folder), Some(name)) = (way.parent(), way.file_name()) else { continue };
            let opened = match folder.strip_prefix(&place.base) {
                Ok(below) => Place { below: below.to_owned(), ..place.clone() }.open(),
                Err(_) => Place { base: folder.to_owned(), below: PathBuf::new(), links: Vec::new() }.open(),
            };
            let watch = |folder: OwnedFd| inotify::add_watch(inotify.get_ref(), by_number(&folder), ABOVE).ok();
            // One that cannot be read cannot be watched either; it is looked at when something changes.
            if let Some(watch) = opened.ok().and_then(watch) {
                above.entry(watch).or_default().push(name.to_owned());
            }
        }
        let reads = Folders { root: Arc::new(root), inotify: Arc::new(inotify.get_ref().try_clone()?) };
        let mut watch = Self {
            reads,
            unread: VecDeque::new(),
            reading: None,
            inotify,
            folders: HashMap::new(),
            above,
            has_too_many: false,
            quiet,
            files: BTreeSet::new(),
            more: 0,
            since: None,
            end: None,
        };
        let added = watch.reads.add(Path::new(""), MOST_FOLDERS)?;
        watch.take_in(added, are_new);
        Ok(watch)
    }

    /// Waits for the next burst. May be dropped and called again.
    ///
    /// # Errors
    /// [`End`]: there is nothing more to come.
    pub(super) async fn burst(&mut self) -> Result<Burst, End> {
        loop {
            if let Some(reading) = &mut self.reading {
                let read = reading.await.unwrap_or_else(|error| Err(error.into()));
                self.reading = None;
                self.read_is(read);
                continue;
            }
            if let Some(folder) = self.unread.pop_front() {
                self.read(folder);
                continue;
            }
            let due = self.since.map(|(first, last)| (first + LONGEST).min(last + self.quiet));
            match (due, self.end) {
                (Some(due), _) if due <= Instant::now() => return Ok(self.take_burst()),
                (None, Some(end)) => return Err(end),
                _ => {}
            }
            tokio::select! {
                events = folder_events(&self.inotify) => events.into_iter().for_each(|event| self.take(event)),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// Whether there is nothing more to come.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn take_burst(&mut self) -> Burst {
        let began = self.since.take().map_or_else(Instant::now, |(first, _)| first);
        let files = std::mem::take(&mut self.files);
        let more = std::mem::take(&mut self.more) + files.len().saturating_sub(NAMED);
        let files = files.iter().take(NAMED).map(|file| name(file)).collect();
        Burst { began, occasion: Occasion::Changed { files, more, lost: self.end == Some(End::Lost) } }
    }

    fn take(&mut self, event: FolderEvent) {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.note();
            self.end = Some(End::Lost);
            return;
        }
        if let Some(names) = self.above.get(&event.watch) {
            let leads_here = event.name.as_deref().is_some_and(|name| names.iter().any(|one| name == Path::new(one)));
            if leads_here || event.what.intersects(ITSELF) {
                self.end = self.end.or(Some(End::Gone));
            }
            // A link to it may lie in it.
            if !self.folders.contains_key(&event.watch) {
                return;
            }
        }
        // Events of a folder that was let go meanwhile.
        let Some(folder) = self.folders.get(&event.watch).cloned() else { return };
        if event.what.contains(ReadFlags::IGNORED) {
            self.folders.remove(&event.watch);
        }
        if event.what.intersects(ITSELF) && folder.as_os_str().is_empty() {
            self.end = self.end.or(Some(End::Gone));
        }
        let Some(name) = event.name else { return };
        let path = folder.join(name);
        if !event.what.contains(ReadFlags::ISDIR) {
            return self.note_file(path);
        }
        if event.what.contains(ReadFlags::MOVED_FROM) {
            self.let_go(&path);
            self.note_file(path);
        } else if event.what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.unread.push_back(path);
        }
    }

    /// Reads a folder that is new on a thread that serves nobody else.
    fn read(&mut self, folder: PathBuf) {
        let (folders, room) = (self.reads.clone(), MOST_FOLDERS.saturating_sub(self.folders.len()));
        self.reading = Some(tokio::task::spawn_blocking(move || folders.add(&folder, room)));
    }

    /// Takes in what was read of a new folder. All that is in it counts as changed.
    fn read_is(&mut self, read: io::Result<Added>) {
        match read {
            Ok(added) => self.take_in(added, true),
            Err(error) => {
                tracing::warn!(%error, "a new folder cannot be watched");
                self.has_too_many = true;
            }
        }
    }

    fn take_in(&mut self, added: Added, are_new: bool) {
        self.folders.extend(added.folders);
        self.has_too_many |= added.has_too_many;
        if are_new {
            self.more += added.more;
            added.files.into_iter().for_each(|file| self.note_file(file));
        }
    }

    /// A folder was moved away: it may be anywhere now.
    fn let_go(&mut self, folder: &Path) {
        let moved: Vec<i32> =
            self.folders.iter().filter(|(_, path)| path.starts_with(folder)).map(|(watch, _)| *watch).collect();
        for watch in moved {
            self.folders.remove(&watch);
            // It may be gone by itself.
            let _ = inotify::remove_watch(self.inotify.get_ref(), watch);
        }
    }

    fn note_file(&mut self, path: PathBuf) {
        self.note();
        if self.files.len() < REMEMBERED {
            self.files.insert(path);
        } else if !self.files.contains(&path) {
            self.more += 1;
        }
    }

    fn note(&mut self) {
        let now = Instant::now();
        self.since = Some((self.since.map_or(now, |(first, _)| first), now));
    }
}

/// What reads folders, and has the kernel tell of them.
#[derive(Clone, Debug)]
struct Folders {
    root: Arc<OwnedFd>,
    /// The same queue as the watch's.
    inotify: Arc<OwnedFd>,
}

/// What was found in a folder.
#[derive(Debug, Default)]
struct Added {
    folders: Vec<(i32, PathBuf)>,
    /// At most [`REMEMBERED`]; the rest is counted.
    files: Vec<PathBuf>,
    more: usize,
    has_too_many: bool,
}

impl Folders {
    /// Watches a folder and all below it, at most so many.
    fn add(&self, from: &Path, room: usize) -> io::Result<Added> {
        let (mut added, mut left) = (Added::default(), vec![from.to_owned()]);
        while let Some(folder) = left.pop() {
            if added.folders.len() >= room {
                added.has_too_many = true;
                return Ok(added);
            }
            let opened = match beneath(&self.root, &folder) {
                Ok(opened) => opened,
                // It is gone again, or a link by now, or not ours to read.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) if !folder.as_os_str().is_empty() => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let watch = inotify::add_watch(&*self.inotify, by_number(&opened), CHANGES)
                .map_err(|error| limited(error, Errno::NOSPC, "watches"))?;
            added.folders.push((watch, folder.clone()));
            for entry in Dir::read_from(&opened)?.flatten() {
                let bytes = entry.file_name().to_bytes();
                if matches!(bytes, b"." | b"..") {
                    continue;
                }
                let path = folder.join(OsStr::from_bytes(bytes));
                let kind = match entry.file_type() {
                    FileType::Unknown => statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                        .map_or(FileType::Unknown, |about| FileType::from_raw_mode(about.st_mode)),
                    kind => kind,
                };
                match kind {
                    FileType::Directory => left.push(path),
                    _ if added.files.len() < REMEMBERED => added.files.push(path),
                    _ => added.more += 1,
                }
            }
        }
        Ok(added)
    }
}

/// Opens a folder below another one; no link is followed on the way.
fn beneath(root: &OwnedFd, folder: &Path) -> Result<OwnedFd, Errno> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, folder, how, Mode::empty(), resolve)
}

/// What an error of the kernel's means that says `full` where the user has all that there are to have, and what to do about it.
fn limited(error: Errno, full: Errno, what: &str) -> io::Error {
    let setting = format!("fs.inotify.max_user_{what}");
    let limit = std::fs::read_to_string(format!("/proc/sys/{}", setting.replace('.', "/")));
    let limit: u64 = limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or_default();
    // The same error as that of a process that has too many files open.
    let has_files = || rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_ok();
    if error != full || !has_files() {
        return error.into();
    }
    io::Error::other(format!(
        "the kernel allows this user no more inotify {what} ({setting} is {limit}); `sudo sysctl {setting}={}` allows more",
        limit.max(128) * 8
    ))
}

/// The way to what is open, whatever its name leads to by now.
fn by_number(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

/// A path as a prompt has it.
fn name(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
