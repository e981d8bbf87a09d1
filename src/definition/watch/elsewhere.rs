//! A folder outside the data folder that may come and go: the person's own agents.
//!
//! The folder itself is watched where it is, and the two above it for the one way down: so it is found when it comes.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use rustix::io::Errno;

use super::{DEEPEST, Event, IN_ROOT, ITSELF, watch, watch_tree};

/// How many folders above it are watched: `.claude` and the one that it is in.
const ABOVE: usize = 2;

#[derive(Debug)]
pub(super) struct Elsewhere {
    folder: Option<PathBuf>,
    /// On the folder and those in it.
    inside: Vec<i32>,
    /// On those above it, each with the one name in it that leads on.
    above: Vec<(i32, OsString)>,
}

impl Elsewhere {
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_owned), inside: Vec::new(), above: Vec::new() }
    }

    /// Sets every watch anew. The kernel has one watch for a folder, however often it is asked: those in `own` are
    /// somebody else's too, and stay.
    pub(super) fn arm(&mut self, fd: &OwnedFd, own: &[i32]) -> Result<(), Errno> {
        let above = self.above.drain(..).map(|(watch, _)| watch);
        for old in self.inside.drain(..).chain(above).filter(|watch| !own.contains(watch)) {
            // It may be gone by itself.
            let _ = inotify::remove_watch(fd, old);
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        // From the top: what comes in between is seen from above.
        let mut steps: Vec<&Path> = folder.ancestors().take(ABOVE + 1).collect();
        steps.reverse();
        for step in steps.windows(2) {
            let Some(name) = step[1].file_name() else { continue };
            self.above.extend(watch(fd, step[0], IN_ROOT)?.map(|watch| (watch, name.to_owned())));
        }
        watch_tree(fd, folder, DEEPEST, &mut self.inside)
    }

    /// Whether agents may be others after this.
    pub(super) fn concerns(&self, event: &Event) -> bool {
        self.inside.contains(&event.watch)
            || self.above.iter().any(|(watch, name)| {
                *watch == event.watch
                    && (event.what.intersects(ITSELF) || event.name.as_ref().is_some_and(|one| one.as_os_str() == name))
            })
    }
}
