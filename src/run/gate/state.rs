//! The state that a gate keeps between runs: `$OLLIM_STATE`.
//!
//! A gate works on a copy in its run's folder. The copy replaces the kept state if the occurrence was completed, or skipped by the
//! gate. After any other end the next gate finds the earlier state, so that it reports the same news again. Until the journal
//! knows the run's end, the copy waits beside the kept state under the run's name. So a crash at any moment loses nothing.
//!
//! A gate may create anything in its folder. Nothing is followed, and only a limited number of small files and folders is kept.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agent_sandbox::leftovers;

use crate::definition::Definition;
use crate::hexadecimal::hex;
use crate::home::Home;
use crate::journal::RunId;

/// Maximum size of a job's state, in bytes, and maximum number of its files and folders.
const MAX_BYTES: u64 = 16 << 20;
const MAX_FILES: u32 = 1000;

/// Maximum depth of folders.
const DEEPEST: u32 = 16;

/// The name of the kept state, and the prefix of a waiting copy's name.
const KEPT: &str = "kept";
const WAITING: &str = "after-";

/// The state of one job's gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptState(PathBuf);

impl KeptState {
    /// Returns the state of a job, by its id and the id of the job that made it; in a chain by the id of the first reminder. So no job can
    /// make another one that takes over a gate's state.
    pub fn of(home: &Home, definition: &Definition) -> Self {
        Self::named(home, &definition.lineage())
    }

    fn named(home: &Home, name: &str) -> Self {
        // An id is arbitrary text, and may be longer than a file name.
        let hex = hex(name.as_bytes());
        let mut folder = home.gates();
        folder.extend(hex.as_bytes().chunks(200).map(std::ffi::OsStr::from_bytes));
        Self(folder)
    }

    /// Returns the states that were last written before `before`.
    pub fn old(home: &Home, before: SystemTime) -> Vec<Self> {
        let mut found = Vec::new();
        let mut folders = vec![home.gates()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_kept = name == KEPT || name.as_bytes().starts_with(WAITING.as_bytes());
                let is_old =
                    || folder.metadata().and_then(|facts| facts.modified()).is_ok_and(|written| written < before);
                if !is_kept {
                    folders.push(entry.path());
                } else if is_old() && !found.contains(&folder) {
                    found.push(folder.clone());
                }
            }
        }
        found.into_iter().map(Self).collect()
    }

    /// Removes the state and all waiting copies.
    ///
    /// # Errors
    /// An error if something cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // The folder also contains the states of longer ids.
            if entry.file_name() == KEPT || entry.file_name().as_bytes().starts_with(WAITING.as_bytes()) {
                leftovers::remove(&entry.path())?;
            }
        }
        // This fails, as it should, if the folder contains another id's state.
        let _not_empty = fs::remove_dir(&self.0);
        Ok(())
    }

    /// Returns the runs whose copies are waiting.
    pub fn waiting(&self) -> Vec<RunId> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| Some(RunId::new(name.to_str()?.strip_prefix(WAITING)?))).collect()
    }

    /// Replaces the kept state with the copy of a run.
    pub fn promote(&self, run: &RunId) -> io::Result<()> {
        // After a crash between the two steps the copy is still waiting.
        leftovers::remove(&self.0.join(KEPT))?;
        fs::rename(self.copy_of(run), self.0.join(KEPT))
    }

    /// Removes the copy of a run.
    pub fn discard(&self, run: &RunId) -> io::Result<()> {
        leftovers::remove(&self.copy_of(run))
    }

    /// Creates `folder` with the kept state or, given `after`, with the copy of that run.
    pub fn copy_into(&self, folder: &Path, after: Option<&RunId>) -> io::Result<()> {
        own_folder(folder)?;
        let from = after.map_or_else(|| self.0.join(KEPT), |run| self.copy_of(run));
        match from.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Copy::default().folder(&from, Some(folder), 0),
        }
    }

    /// Moves `folder`, which nobody writes to any more, to the copy of this run.
    ///
    /// # Errors
    /// An error if it contains something that may not be kept ([`Self::look_at`]). It is not kept then.
    pub fn take(&self, folder: &Path, run: &RunId) -> io::Result<()> {
        Self::look_at(folder)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        self.discard(run)?;
        fs::rename(folder, self.copy_of(run))
    }

    /// Checks that `folder` could be kept.
    ///
    /// # Errors
    /// An error if it exceeds a limit, or contains anything but files and folders.
    pub fn look_at(folder: &Path) -> io::Result<()> {
        if !folder.symlink_metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no folder any more"));
        }
        Copy::default().folder(folder, None, 0)
    }

    fn copy_of(&self, run: &RunId) -> PathBuf {
        self.0.join(format!("{WAITING}{run}"))
    }
}

fn own_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// The amount that was copied so far.
#[derive(Default)]
struct Copy {
    bytes: u64,
    files: u32,
}

impl Copy {
    /// Copies the content of `from`. Without `to`, only checks it.
    fn folder(&mut self, from: &Path, to: Option<&Path>, depth: u32) -> io::Result<()> {
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if depth > DEEPEST {
            return refuse(format!("it has more than {DEEPEST} folders within each other"));
        }
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (path, to) = (entry.path(), to.map(|to| to.join(entry.file_name())));
            let facts = path.symlink_metadata()?;
            self.files += 1;
            self.bytes = self.bytes.saturating_add(facts.len());
            if self.files > MAX_FILES || self.bytes > MAX_BYTES {
                return refuse(format!("it holds more than {MAX_FILES} files or {} MiB", MAX_BYTES >> 20));
            }
            if facts.is_dir() {
                to.as_deref().map_or(Ok(()), own_folder)?;
                self.folder(&path, to.as_deref(), depth + 1)?;
            } else if facts.is_file() && facts.nlink() > 1 && to.is_none() {
                return refuse("it holds a file with a second name, which may be changed from there".into());
            } else if facts.is_file() {
                to.map_or(Ok(0), |to| fs::copy(&path, to))?;
            } else {
                return refuse("it holds a link, or something else that is no file".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Defaults, Kind, parse};

    fn read(state: &KeptState, folder: &Path) -> Option<String> {
        let _gone = fs::remove_dir_all(folder);
        state.copy_into(folder, None).unwrap();
        fs::read_to_string(folder.join("sub/seen")).ok()
    }

    #[test]
    fn a_copy_is_kept_when_it_is_promoted() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::new(root.path());
        let state = KeptState::named(&home, &"a/../b\u{e9}".repeat(60));
        let (copy, first, second) = (root.path().join("copy"), RunId::new("00000001"), RunId::new("00000002"));
        assert_eq!(read(&state, &copy), None);
        let write = |text: &str| {
            fs::create_dir_all(copy.join("sub")).unwrap();
            fs::write(copy.join("sub/seen"), text).unwrap();
        };
        write("one");
        state.take(&copy, &first).unwrap();
        assert_eq!((state.waiting(), read(&state, &copy)), (vec![first.clone()], None));
        state.promote(&first).unwrap();
        assert_eq!(read(&state, &copy).as_deref(), Some("one"));
        write("two");
        state.take(&copy, &second).unwrap();
        state.discard(&second).unwrap();
        assert_eq!((state.waiting(), read(&state, &copy).as_deref()), (vec![], Some("one")));
        // Another job's state is separate, even if its id has the same beginning.
        let other = KeptState::named(&home, &"a/../b\u{e9}".repeat(59));
        assert_eq!(read(&other, &copy), None);
    }

    #[test]
    fn a_job_that_a_job_made_does_not_take_over_what_anothers_gate_has_kept() {
        let home = Home::new("/d");
        let of = |fields: &str| {
            let text = format!("---\nid: mail\nrun_at: 2030-01-01T00:00:00Z\n{fields}background: true\n---\nGo.\n");
            let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
            let parsed = parse(Kind::Reminder, Path::new("reminders/mail.md"), text.as_bytes(), &defaults);
            KeptState::of(&home, &parsed.definition.unwrap())
        };
        assert_eq!(of(""), of("max_chain: 2\n"));
        assert_ne!(of(""), of("created_by: other\n"));
        assert_ne!(of("created_by: other\n"), of("created_by: another\n"));
    }

    #[test]
    fn what_was_not_written_for_long_is_found_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::new(root.path());
        // The folder of the longer id is inside that of the shorter one.
        let (short, long) = (KeptState::named(&home, &"x".repeat(100)), KeptState::named(&home, &"x".repeat(150)));
        for (state, run) in [(&short, RunId::new("00000001")), (&long, RunId::new("00000002"))] {
            let copy = root.path().join("copy");
            fs::create_dir(&copy).unwrap();
            state.take(&copy, &run).unwrap();
            state.promote(&run).unwrap();
        }
        let now = SystemTime::now();
        assert_eq!(KeptState::old(&home, now - std::time::Duration::from_secs(3600)), []);
        assert_eq!(KeptState::old(&home, now + std::time::Duration::from_secs(3600)).len(), 2);
        short.remove().unwrap();
        assert_eq!(KeptState::old(&home, now + std::time::Duration::from_secs(3600)), std::slice::from_ref(&long));
        long.remove().unwrap();
        assert_eq!(KeptState::old(&home, now + std::time::Duration::from_secs(3600)), []);
    }

    #[test]
    fn what_leads_elsewhere_or_is_too_much_is_not_kept() {
        let root = tempfile::tempdir().unwrap();
        let state = KeptState::named(&Home::new(root.path()), "x");
        let run = RunId::new("00000001");
        let refused = |make: &dyn Fn(&Path)| {
            let folder = root.path().join("copy");
            let _gone = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            make(&folder);
            let error = state.take(&folder, &run).unwrap_err().to_string();
            assert_eq!(state.waiting(), [], "{error}");
            error
        };
        assert!(
            refused(&|folder| std::os::unix::fs::symlink("/etc/passwd", folder.join("x")).unwrap()).contains("link")
        );
        assert!(
            refused(&|folder| fs::File::create(folder.join("x")).unwrap().set_len(MAX_BYTES + 1).unwrap())
                .contains("MiB")
        );
        let twice = |folder: &Path| fs::hard_link(root.path().join("other"), folder.join("x")).unwrap();
        fs::write(root.path().join("other"), "x").unwrap();
        assert!(refused(&twice).contains("second name"));
        let many = |folder: &Path| (0..=MAX_FILES).for_each(|n| fs::write(folder.join(n.to_string()), "").unwrap());
        assert!(refused(&many).contains("1000 files"));
        let deep = |folder: &Path| fs::create_dir_all(folder.join("d/".repeat(20))).unwrap();
        assert!(refused(&deep).contains("folders within"));
        let folder = root.path().join("copy");
        fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/etc", &folder).unwrap();
        assert!(state.take(&folder, &run).is_err());
        assert!(Path::new("/etc/passwd").exists());
    }
}
