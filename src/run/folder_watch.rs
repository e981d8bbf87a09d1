//! A watch of a folder and all folders below it, which returns changes in bursts.
//!
//! Each folder is opened from the trusted base, without following symlinks: a job that can write there cannot lead the watch
//! out of it. Nothing is polled.
//!
//! Each watch has its own kernel queue (an inotify instance). A job that floods its folder loses only its own changes.

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

/// Time without a change after which a burst is over.
pub(super) const QUIET: Duration = Duration::from_secs(2);

/// Maximum time from the first change of a burst to its end.
const LONGEST: Duration = Duration::from_secs(30);

/// Maximum number of folders that one routine watches.
const MAX_FOLDERS: usize = 2000;

/// Maximum number of a burst's files that are remembered by name, and that a prompt names.
const MAX_REMEMBERED: usize = 10_000;
const NAMED: usize = 50;

/// Maximum number of symlinks that the kernel follows on one path.
const MAX_LINKS: usize = 40;

/// Maximum length of a file name in a prompt, in characters.
const LONGEST_NAME: usize = 200;

const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The events of the folders above. They matter only if these folders, or the entries that lead to the watched one, are removed or
/// moved. (The kernel does not report the removal of an open folder, such as the watched one.)
const ABOVE: WatchFlags = WatchFlags::DELETE
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The events by which a folder itself is no longer at its location.
const ITSELF: ReadFlags = ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT);

/// The location of a folder, below a trusted folder that nobody can replace by a symlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderLocation {
    /// The path of the trusted folder, without symlinks.
    pub base: PathBuf,
    /// The path from there.
    pub below: PathBuf,
    /// The symlinks on the person's path to the folder. If one changes, that path leads elsewhere.
    pub links: Vec<PathBuf>,
    /// A folder below this one that is not watched, as a path relative to it.
    pub skipped: Option<PathBuf>,
}

/// Returns the symlinks on an absolute path, each as a path without symlinks.
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
            Ok(target) if links.len() < MAX_LINKS => {
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

impl FolderLocation {
    /// Opens the folder.
    ///
    /// # Errors
    /// [`Errno::LOOP`] if the path contains a symlink.
    pub fn open(&self) -> Result<OwnedFd, Errno> {
        let base =
            rustix::fs::openat(CWD, &self.base, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        beneath(&base, &self.below)
    }
}

/// The reason why a watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchEnd {
    /// The folder is no longer at its location.
    Gone,
    /// The kernel dropped events, so that changes and new folders may have been missed.
    Lost,
}

/// The changes of one burst.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    began: Instant,
    /// Paths relative to the root, at most [`MAX_REMEMBERED`]; `more` counts the rest.
    files: BTreeSet<PathBuf>,
    more: usize,
    /// Whether the kernel dropped events.
    lost: bool,
}

impl Changes {
    /// Leaves out the files that are not `seen`. Returns `None` if nothing is left. If something is left out, the files that were not
    /// remembered are not counted either.
    pub(super) fn only(mut self, seen: impl Fn(&Path) -> bool) -> Option<Self> {
        let all = self.files.len();
        self.files.retain(|file| seen(file));
        if self.files.len() < all {
            self.more = 0;
        }
        (self.lost || self.more > 0 || !self.files.is_empty()).then_some(self)
    }

    /// Returns the occasion for a run: the first files by name, and how many there are besides.
    pub(super) fn into_burst(self) -> Burst {
        let Self { began, files, more, lost } = self;
        let more = more + files.len().saturating_sub(NAMED);
        let files = files.iter().take(NAMED).map(|file| name(file)).collect();
        Burst { began, occasion: Occasion::Changed { files, more, lost } }
    }
}

/// The watch of a folder.
#[derive(Debug)]
pub(super) struct FolderWatch {
    inotify: AsyncFd<OwnedFd>,
    reads: Folders,
    /// Events that were not handled yet.
    events: VecDeque<FolderEvent>,
    /// New folders to read, and the read of one of them in progress.
    unread: VecDeque<PathBuf>,
    reading: Option<JoinHandle<io::Result<ScanResult>>>,
    /// The watched folders, as paths relative to the root.
    folders: HashMap<i32, PathBuf>,
    /// The folders above and the folders of symlinks, each with the names of its entries that lead to the watched folder.
    above: HashMap<i32, Vec<OsString>>,
    /// Whether there are more, or deeper, folders than can be watched.
    pub(super) has_too_many: bool,
    quiet: Duration,
    files: BTreeSet<PathBuf>,
    more: usize,
    /// The times of the first and the last change that were not returned yet.
    since: Option<(Instant, Instant)>,
    end: Option<WatchEnd>,
}

impl FolderWatch {
    /// Starts a watch. `are_new` says that existing files count as changed.
    ///
    /// # Errors
    /// An error if the folder does not exist, or the kernel allows no more watches. Blocks while it reads folders.
    pub(super) fn open(place: &FolderLocation, quiet: Duration, are_new: bool) -> io::Result<Self> {
        let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let inotify = registered(opened.map_err(|error| limited(error, Errno::MFILE, "instances"))?)?;
        let root = place.open()?;
        let mut above: HashMap<i32, Vec<OsString>> = HashMap::new();
        let ways = place.below.ancestors().map(|way| place.base.join(way)).filter(|way| *way != place.base);
        for way in ways.chain(place.links.iter().cloned()) {
            let (Some(folder), Some(name)) = (way.parent(), way.file_name()) else { continue };
            let opened = match folder.strip_prefix(&place.base) {
                Ok(below) => FolderLocation { below: below.to_owned(), ..place.clone() }.open(),
                Err(_) => FolderLocation { base: folder.to_owned(), below: PathBuf::new(), ..place.clone() }.open(),
            };
            let watch = |folder: OwnedFd| inotify::add_watch(inotify.get_ref(), by_number(&folder), ABOVE).ok();
            // A folder that cannot be read cannot be watched either. Its way is checked again at the next burst.
            if let Some(watch) = opened.ok().and_then(watch) {
                above.entry(watch).or_default().push(name.to_owned());
            }
        }
        let (inotify_of_reads, skipped) = (Arc::new(inotify.get_ref().try_clone()?), place.skipped.clone());
        let reads = Folders { root: Arc::new(root), inotify: inotify_of_reads, skipped };
        let mut watch = Self {
            reads,
            events: VecDeque::new(),
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
        let added = watch.reads.add(Path::new(""), MAX_FOLDERS)?;
        watch.add_entries(added, are_new);
        Ok(watch)
    }

    /// Waits for the next burst. Cancel safe.
    ///
    /// # Errors
    /// [`WatchEnd`] if no further burst can come.
    pub(super) async fn next_burst(&mut self) -> Result<Changes, WatchEnd> {
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
            if let Some(event) = self.events.pop_front() {
                self.take(event);
                // A job can make many events that take long. Others have their turn between two of them.
                tokio::task::yield_now().await;
                continue;
            }
            let due = self.since.map(|(first, last)| (first + LONGEST).min(last + self.quiet));
            match (due, self.end) {
                (Some(due), _) if due <= Instant::now() => return Ok(self.take_changes()),
                (None, Some(end)) => return Err(end),
                _ => {}
            }
            tokio::select! {
                events = folder_events(&self.inotify) => self.events.extend(events),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// Returns whether the watch has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    fn take_changes(&mut self) -> Changes {
        Changes {
            began: self.since.take().map_or_else(Instant::now, |(first, _)| first),
            files: std::mem::take(&mut self.files),
            more: std::mem::take(&mut self.more),
            lost: self.end == Some(WatchEnd::Lost),
        }
    }

    fn take(&mut self, event: FolderEvent) {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.note();
            self.end = Some(WatchEnd::Lost);
            return;
        }
        if let Some(names) = self.above.get(&event.watch) {
            let leads_here = event.name.as_deref().is_some_and(|name| names.iter().any(|one| name == Path::new(one)));
            if leads_here || event.what.intersects(ITSELF) {
                self.end = self.end.or(Some(WatchEnd::Gone));
            }
            // The folder of a symlink may itself be a watched one.
            if !self.folders.contains_key(&event.watch) {
                return;
            }
        }
        // The event may be of a folder that is no longer watched.
        let Some(folder) = self.folders.get(&event.watch).cloned() else { return };
        if event.what.contains(ReadFlags::IGNORED) {
            self.folders.remove(&event.watch);
        }
        if event.what.intersects(ITSELF) && folder.as_os_str().is_empty() {
            self.end = self.end.or(Some(WatchEnd::Gone));
        }
        let Some(name) = event.name else { return };
        let path = folder.join(name);
        if !event.what.contains(ReadFlags::ISDIR) {
            return self.note_file(path);
        }
        if event.what.contains(ReadFlags::MOVED_FROM) {
            self.unwatch(&path);
            self.note_file(path);
        } else if event.what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            self.unread.push_back(path);
        }
    }

    /// Reads a new folder on a blocking thread.
    fn read(&mut self, folder: PathBuf) {
        let (folders, room) = (self.reads.clone(), MAX_FOLDERS.saturating_sub(self.folders.len()));
        self.reading = Some(tokio::task::spawn_blocking(move || folders.add(&folder, room)));
    }

    /// Adds the result of reading a new folder. All its files count as changed.
    fn read_is(&mut self, read: io::Result<ScanResult>) {
        match read {
            Ok(added) => self.add_entries(added, true),
            Err(error) => {
                tracing::warn!(%error, "a new folder cannot be watched");
                self.has_too_many = true;
            }
        }
    }

    fn add_entries(&mut self, added: ScanResult, are_new: bool) {
        self.folders.extend(added.folders);
        self.has_too_many |= added.has_too_many;
        if are_new {
            self.more += added.more;
            added.files.into_iter().for_each(|file| self.note_file(file));
        }
    }

    /// Stops watching a folder that was moved away, since its new location is unknown.
    fn unwatch(&mut self, folder: &Path) {
        // Of bytes, since paths are compared part by part, which takes long for deep ones.
        let folder = folder.as_os_str().as_bytes();
        let is_below = |path: &PathBuf| {
            let rest = path.as_os_str().as_bytes().strip_prefix(folder);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let moved: Vec<i32> = self.folders.iter().filter(|(_, path)| is_below(path)).map(|(watch, _)| *watch).collect();
        for watch in moved {
            self.folders.remove(&watch);
            // This fails if the kernel has already removed the watch.
            let _ = inotify::remove_watch(self.inotify.get_ref(), watch);
        }
    }

    fn note_file(&mut self, path: PathBuf) {
        self.note();
        if self.files.len() < MAX_REMEMBERED {
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

/// A reader of folders that also adds the kernel's watches.
#[derive(Clone, Debug)]
struct Folders {
    root: Arc<OwnedFd>,
    /// The inotify instance of the watch.
    inotify: Arc<OwnedFd>,
    /// A folder that is not watched.
    skipped: Option<PathBuf>,
}

/// The result of reading a folder.
#[derive(Debug, Default)]
struct ScanResult {
    folders: Vec<(i32, PathBuf)>,
    /// The files, at most [`MAX_REMEMBERED`]; `more` counts the rest.
    files: Vec<PathBuf>,
    more: usize,
    has_too_many: bool,
}

impl Folders {
    /// Watches a folder and all folders below it, at most `room`.
    fn add(&self, from: &Path, room: usize) -> io::Result<ScanResult> {
        let (mut added, mut left) = (ScanResult::default(), vec![from.to_owned()]);
        while let Some(folder) = left.pop() {
            if self.skipped.as_ref() == Some(&folder) {
                continue;
            }
            if added.folders.len() >= room {
                added.has_too_many = true;
                return Ok(added);
            }
            let opened = match beneath(&self.root, &folder) {
                Ok(opened) => opened,
                // The folder was removed or replaced by a symlink meanwhile, or we may not read it.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) if !folder.as_os_str().is_empty() => {
                    continue;
                }
                // A path is opened in one step, and the kernel refuses those over 4,095 bytes. Any job could make such folders, and
                // must not blind the watch of another by them.
                Err(Errno::NAMETOOLONG) if !folder.as_os_str().is_empty() => {
                    added.has_too_many = true;
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
                    _ if added.files.len() < MAX_REMEMBERED => added.files.push(path),
                    _ => added.more += 1,
                }
            }
        }
        Ok(added)
    }
}

/// Opens a folder below another one, without following symlinks.
fn beneath(root: &OwnedFd, folder: &Path) -> Result<OwnedFd, Errno> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, folder, how, Mode::empty(), resolve)
}

/// Explains an inotify error: if it is `full` because the user's limit is reached, the error names the limit and the remedy.
fn limited(error: Errno, full: Errno, what: &str) -> io::Error {
    let setting = format!("fs.inotify.max_user_{what}");
    let limit = std::fs::read_to_string(format!("/proc/sys/{}", setting.replace('.', "/")));
    let limit: u64 = limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or_default();
    // The kernel returns the same error if the process has too many open files.
    let has_files = || rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_ok();
    if error != full || !has_files() {
        return error.into();
    }
    io::Error::other(format!(
        "the kernel allows this user no more inotify {what} ({setting} is {limit}); `sudo sysctl {setting}={}` allows more",
        limit.max(128) * 8
    ))
}

/// Returns a path to an open folder that stays valid if the folder is renamed or replaced.
fn by_number(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

/// Returns a path as a prompt shows it.
fn name(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
