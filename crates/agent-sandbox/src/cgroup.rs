//! A control group for each run, if a subtree is delegated to the service (cgroups(7), version 2).
//!
//! systemd delegates one to a unit with `Delegate=yes` and marks its folder by an extended attribute. Without the mark nothing is
//! touched, since the tree belongs to others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, getxattr};

use crate::limits::Limits;

/// The group for the service's own processes, as a group with child groups may not contain processes itself.
const SERVICE: &str = "service";

/// The prefix of the names of runs' groups.
const RUN: &str = "run-";

/// The period of a group's processor quota, in microseconds.
const PERIOD: f64 = 100_000.0;

/// A delegated subtree of control groups.
#[derive(Clone, Debug)]
pub struct DelegatedCgroup {
    folder: PathBuf,
    controllers: Vec<String>,
}

impl DelegatedCgroup {
    /// Takes the subtree delegated to the calling process, and moves the process into a child group. Removes groups that an earlier
    /// service left. To be called once.
    ///
    /// # Errors
    /// If there is none, a sentence with the reason.
    pub fn take() -> Result<Self, String> {
        let own = own_folder().map_err(|error| format!("this process's control group was not found: {error}"))?;
        let own = own.ok_or("cgroup v2 is not in use here")?;
        // `DelegateSubgroup=` of systemd has already moved the service into a child group.
        let above = own.parent().filter(|above| is_delegated(above));
        let (folder, aside) = match above {
            Some(above) => (above.to_path_buf(), true),
            None if is_delegated(&own) => (own, false),
            None => return Err("no control group is delegated to the service (systemd: `Delegate=yes`)".into()),
        };
        let taken = Self::of(folder, aside);
        let taken =
            taken.map_err(|error| format!("the control group delegated to the service cannot be used: {error}"))?;
        match taken.controllers.is_empty() {
            true => {
                Err("the control group delegated to the service limits neither memory, nor processes, nor processors"
                    .into())
            }
            false => Ok(taken),
        }
    }

    fn of(folder: PathBuf, aside: bool) -> io::Result<Self> {
        if !aside {
            let service = folder.join(SERVICE);
            make(&service)?;
            fs::write(service.join("cgroup.procs"), "0")?;
        }
        let offered = fs::read_to_string(folder.join("cgroup.controllers"))?;
        let mut controllers = Vec::new();
        for name in ["memory", "pids", "cpu"] {
            if offered.split_whitespace().any(|offered| offered == name) {
                fs::write(folder.join("cgroup.subtree_control"), format!("+{name}"))?;
                controllers.push(name.to_owned());
            }
        }
        for entry in fs::read_dir(&folder)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(RUN) {
                // A group that still has processes stays until they end.
                let _ = fs::remove_dir(entry.path());
            }
        }
        Ok(Self { folder, controllers })
    }

    /// Returns the available controllers, of `memory`, `pids` and `cpu`.
    #[must_use]
    pub fn controllers(&self) -> &[String] {
        &self.controllers
    }

    /// Creates the group of a run.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn group(&self, run: &str, limits: &Limits) -> io::Result<Group> {
        let folder = self.folder.join(format!("{RUN}{run}"));
        make(&folder)?;
        let group = Group { folder };
        let period = PERIOD;
        let cpu = limits.cpus.map_or("max".into(), |cpus| format!("{:.0} {period:.0}", cpus * period));
        for (controller, file, value) in [
            ("memory", "memory.max", limits.memory.to_string()),
            ("memory", "memory.swap.max", "0".into()),
            ("pids", "pids.max", limits.processes.to_string()),
            ("cpu", "cpu.max", cpu),
        ] {
            let path = group.folder.join(file);
            // A kernel without swap lacks the file for swap.
            if self.controllers.iter().any(|name| name == controller) && path.exists() {
                fs::write(path, value)?;
            }
        }
        Ok(group)
    }
}

/// The control group of one run, removed on drop. Its processes must have ended by then.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// Returns the folder of the group.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            tracing::warn!(%error, "the control group {} was not removed; the next start does it", self.folder.display());
        }
    }
}

/// Moves processes into a group. A pid of 0 means the calling process.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn enter(folder: &Path, pids: &[u32]) -> io::Result<()> {
    pids.iter().try_for_each(|pid| fs::write(folder.join("cgroup.procs"), pid.to_string()))
}

/// Returns how many processes of the group were killed because its memory ran out.
pub(crate) fn ended_for_memory(folder: &Path) -> u64 {
    let events = fs::read_to_string(folder.join("memory.events")).unwrap_or_default();
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
    count.unwrap_or_default()
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Returns the calling process's group in the version 2 tree, or `None` without such a tree.
fn own_folder() -> io::Result<Option<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    Ok(folder_of(&mounts, &groups))
}

/// Parses `/proc/self/mountinfo` (proc(5)) and `/proc/self/cgroup` (cgroups(7)).
fn folder_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (kind.split(' ').next() == Some("cgroup2"))
            .then(|| Path::new(group).strip_prefix(root).ok())
            .flatten()
            .map(|below| Path::new(point).join(below))
    })
}

/// Returns whether systemd has marked the folder as delegated and the process may write to it.
fn is_delegated(folder: &Path) -> bool {
    let marked = |name: &str| {
        let mut value = [0; 8];
        getxattr(folder, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    (marked("user.delegate") || marked("trusted.delegate"))
        && ["cgroup.procs", "cgroup.subtree_control"]
            .iter()
            .all(|file| access(folder.join(file), Access::WRITE_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_among_all_mounts() {
        let hybrid = "25 1 0:22 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      40 1 0:30 / /sys/fs/cgroup/unified rw,relatime shared:5 - cgroup2 cgroup2 rw\n";
        let check = |mounts: &str, groups: &str, expect: Option<&str>| {
            assert_eq!(folder_of(mounts, groups), expect.map(PathBuf::from), "{groups}");
        };
        check(hybrid, "8:pids:/x\n0::/user.slice/a.service\n", Some("/sys/fs/cgroup/unified/user.slice/a.service"));
        check(hybrid, "8:pids:/x\n", None);
        check("25 1 0:22 / /sys/fs/cgroup rw - cgroup cgroup rw,pids\n", "0::/a\n", None);
        // A container sees only a part of the tree.
        let part = "40 1 0:30 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        check(part, "0::/pod/a\n", Some("/sys/fs/cgroup/a"));
        check(part, "0::/other\n", None);
    }

    /// Checks the written values in a folder that only looks like a group.
    #[test]
    fn a_runs_group_has_its_limits() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        fs::write(root.join("cgroup.controllers"), "cpuset cpu memory pids\n").unwrap();
        fs::create_dir(root.join("run-left")).unwrap();
        let delegated = DelegatedCgroup::of(root.clone(), false).unwrap();
        assert_eq!(delegated.controllers(), ["memory", "pids", "cpu"]);
        assert_eq!(fs::read_to_string(root.join("service/cgroup.procs")).unwrap(), "0");
        assert!(!root.join("run-left").exists());
        let run = root.join("run-1");
        fs::create_dir(&run).unwrap();
        for file in ["memory.max", "pids.max", "cpu.max"] {
            fs::write(run.join(file), "").unwrap();
        }
        let limits = Limits { memory: 1024, processes: 7, disk: 1, cpus: Some(1.5) };
        let group = delegated.group("1", &limits).unwrap();
        let read = |file: &str| fs::read_to_string(group.folder().join(file)).unwrap();
        assert_eq!(
            (read("memory.max"), read("pids.max"), read("cpu.max")),
            ("1024".into(), "7".into(), "150000 100000".into())
        );
        fs::write(run.join("memory.events"), "low 0\noom 4\noom_kill 3\n").unwrap();
        assert_eq!(ended_for_memory(&run), 3);
    }
}
