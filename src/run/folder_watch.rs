//! Follows a folder and all that is below it. What changes is given in bursts.
//!
//! Each folder is opened from the trusted one on, and no link is followed on the way: who can write there cannot lead the watch
//! out of it. Nothing is polled.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
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
    root: OwnedFd,
    inotify: AsyncFd<OwnedFd>,
    /// The watched folders, relative to the root.
    folders: HashMap<i32, PathBuf>,
    /// Those above it, each with the name that leads on to it.
    above: HashMap<i32, OsString>,
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
        let mut above = HashMap::new();
        let parents = place.below.ancestors().skip(1).zip(place.below.ancestors().filter_map(Path::file_name));
        for (folder, name) in parents {
            let opened = Place { base: place.base.clone(), below: folder.to_owned() }.open();
            let watch = |folder: OwnedFd| inotify::add_watch(inotify.get_ref(), by_number(&folder), ABOVE).ok();
            // One that cannot be read cannot be watched either; it is looked at when something changes.
            above.extend(opened.ok().and_then(watch).map(|watch| (watch, name.to_owned())));
        }
        let mut watch = Self {
            root,
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
        watch.add(Path::new(""), are_new)?;
        Ok(watch)
    }

    /// Waits for the next burst. May be dropped and called again.
    ///
    /// # Errors
    /// [`End`]: there is nothing more to come.
    pub(super) async fn burst(&mut self) -> Result<Burst, End> {
        loop {
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
        if let Some(name) = self.above.get(&event.watch) {
            let leads_here = event.name.as_deref() == Some(Path::new(name));
            if leads_here || event.what.intersects(ITSELF) {
                self.end = self.end.or(Some(End::Gone));
            }
            return;
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
        } else if event.what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO)
            && let Err(error) = self.add(&path, true)
        {
            tracing::warn!(%error, "a new folder cannot be watched");
            self.has_too_many = true;
        }
    }

    /// Watches a folder and all below it. `are_new`: the files in them count as changed.
    fn add(&mut self, from: &Path, are_new: bool) -> io::Result<()> {
        let mut left = vec![from.to_owned()];
        while let Some(folder) = left.pop() {
            if self.folders.len() >= MOST_FOLDERS {
                self.has_too_many = true;
                return Ok(());
            }
            let opened = match beneath(&self.root, &folder) {
                Ok(opened) => opened,
                // It is gone again, or a link by now, or not ours to read.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) if !folder.as_os_str().is_empty() => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let watch = inotify::add_watch(self.inotify.get_ref(), by_number(&opened), CHANGES)
                .map_err(|error| limited(error, Errno::NOSPC, "watches"))?;
            self.folders.insert(watch, folder.clone());
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
                    _ if are_new => self.note_file(path),
                    _ => {}
                }
            }
        }
        Ok(())
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
