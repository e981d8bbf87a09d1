//! Watches a folder outside of the data folder that may appear and disappear: the person's own agents.
//!
//! Watches the folder itself while it exists, and the two folders above it for the entry on its path, so that its creation is noticed.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use rustix::io::Errno;

use super::{DEEPEST, Event, IN_ROOT, ITSELF, watch, watch_tree};

/// Number of watched folders above it: `.claude` and its parent.
const ABOVE: usize = 2;

#[derive(Debug)]
pub(super) struct OutsideWatch {
    folder: Option<PathBuf>,
    /// The watches on the folder and its subfolders.
    inside: Vec<i32>,
    /// The watches on the folders above it, each with the name of its entry on the path.
    above: Vec<(i32, OsString)>,
}

impl OutsideWatch {
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_owned), inside: Vec::new(), above: Vec::new() }
    }

    /// Sets every watch again. The kernel keeps one watch for a folder, however often it is requested. The watches in
    /// `own` serve other purposes too, so they are kept.
    pub(super) fn arm(&mut self, fd: &OwnedFd, own: &[i32]) -> Result<(), Errno> {
        let above = self.above.drain(..).map(|(watch, _)| watch);
        for old in self.inside.drain(..).chain(above).filter(|watch| !own.contains(watch)) {
            // The watch may have ended with its folder.
            let _ = inotify::remove_watch(fd, old);
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        // From the top down: a folder that appears in between is noticed from above.
        let mut steps: Vec<&Path> = folder.ancestors().take(ABOVE + 1).collect();
        steps.reverse();
        for step in steps.windows(2) {
            let Some(name) = step[1].file_name() else { continue };
            self.above.extend(watch(fd, step[0], IN_ROOT)?.map(|watch| (watch, name.to_owned())));
        }
        watch_tree(fd, folder, DEEPEST, &mut self.inside)
    }

    /// Whether agents may have changed with this event.
    pub(super) fn concerns(&self, event: &Event) -> bool {
        self.inside.contains(&event.watch)
            || self.above.iter().any(|(watch, name)| {
                *watch == event.watch
                    && (event.what.intersects(ITSELF) || event.name.as_ref().is_some_and(|one| one.as_os_str() == name))
            })
    }
}
