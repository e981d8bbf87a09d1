//! The kernel's wall (Landlock) around a client's process tree.
//!
//! Landlock only grants, whole trees at a time. So "everything but the person's home and the data folder" is
//! the list of everything beside the way to them ([`beside`]), taken when the wall is raised: what appears next
//! to a hidden place later is out of sight too. The wall cannot be taken down again, and every descendant has it.
//! Path sockets are not held by it, nor is the network. Root's privileges would lead around it, so they are given up with
//! it ([`privileges`]).
//!
//! Source: <https://docs.kernel.org/userspace-api/landlock.html>.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};

use super::privileges;

/// The newest kernel interface whose rights were tried with the real client.
const TRIED: ABI = ABI::V8;

/// What a process tree may reach. All paths are absolute. What does not exist when the wall is raised gives nothing, and
/// neither does a path in `read` or `write` that has a symlink in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Out of sight with everything in them, save what `read` and `write` name: the person's home, the data folder.
    pub hidden: Vec<PathBuf>,
    /// Readable (and executable) trees or files within the hidden places.
    pub read: Vec<PathBuf>,
    /// Trees or files that may be read and changed. Nothing else may be changed, wherever it is.
    pub write: Vec<PathBuf>,
    /// Do not start at all where the kernel cannot hold the whole wall.
    pub required: bool,
}

/// How much of a wall the running kernel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// All of it.
    Whole,
    /// Files are held, but not all that newer kernels can do (signals to processes outside, for one), or root's
    /// privileges can come back.
    Partly,
    /// Nothing: the kernel has no Landlock, or it is off.
    Not,
}

/// Why a wall could not be raised.
#[derive(Debug, thiserror::Error)]
pub(super) enum WallError {
    /// The kernel refused.
    #[error("the kernel wall could not be raised: {0}")]
    Refused(#[from] RulesetError),
    /// Root's privileges could not be given up.
    #[error("root's privileges could not be given up behind the kernel wall: {0}")]
    Privileged(#[from] rustix::io::Errno),
    /// It holds less than the job requires.
    #[error("this kernel does not hold the whole wall (Landlock: {0:?}), and `require_sandbox` is set")]
    NotWhole(Held),
}

impl Wall {
    /// Raises the wall around the calling thread and what it starts, and gives up root's privileges. Must be called in a process of one thread.
    ///
    /// # Errors
    /// [`WallError`]; the process must then not go on.
    pub(super) fn raise(&self) -> Result<Held, WallError> {
        let hidden: Vec<PathBuf> = self.hidden.iter().map(|path| resolved(path)).collect();
        let mut read = beside(&hidden, &entries);
        read.extend(self.read.iter().cloned());
        let mut held = restrict(&read, &self.write)?;
        if !privileges::drop_all()? && held == Held::Whole {
            held = Held::Partly;
        }
        if self.required && held != Held::Whole {
            return Err(WallError::NotWhole(held));
        }
        Ok(held)
    }
}

/// How much of a wall this kernel would hold: tried on a thread that does nothing else and ends.
#[must_use]
pub fn probe() -> Held {
    std::thread::spawn(|| restrict(&[], &[]).unwrap_or(Held::Not)).join().unwrap_or(Held::Not)
}

fn restrict(read: &[PathBuf], write: &[PathBuf]) -> Result<Held, RulesetError> {
    let all = AccessFs::from_all(TRIED);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(TRIED))?
        .create()?
        .add_rules(beneath(read, AccessFs::from_read(TRIED)))?
        .add_rules(beneath(write, all))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Held::Whole,
        RulesetStatus::PartiallyEnforced => Held::Partly,
        RulesetStatus::NotEnforced => Held::Not,
    })
}

/// One rule for each path that is there. A path with a symlink anywhere in it gives nothing: whoever may write where the
/// link stands would choose what the next run may reach. Rights that only folders have are left out for files.
fn beneath(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    paths.iter().filter_map(move |path| {
        let handle =
            openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let folder = FileType::from_raw_mode(fstat(&handle).ok()?.st_mode) == FileType::Directory;
        let access = if folder { access } else { access & AccessFs::from_file(TRIED) };
        Some(Ok(PathBeneath::new(handle, access)))
    })
}

/// The path without symlinks; as it is where it does not exist. For paths that no fork can have made.
pub(super) fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The shortest list of trees that holds everything outside the hidden ones. `entries` names what is in a folder,
/// symlinks left out: what they lead to is granted where it is, or not at all. A folder that cannot be listed
/// gives nothing. A hidden `/` is passed over, since nothing could run under it.
fn beside(hidden: &[PathBuf], entries: &dyn Fn(&Path) -> io::Result<Vec<PathBuf>>) -> Vec<PathBuf> {
    let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).filter(|path| path.parent().is_some()).collect();
    let mut granted = Vec::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(path) = open.pop() {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            open.extend(entries(&path).unwrap_or_default());
        } else {
            granted.push(path);
        }
    }
    granted.sort();
    granted
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    Ok(entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect())
}

/// What a client's own command needs to be readable: its file, and where it is a script of an npm package, the package.
pub(super) fn files_of_command(command: &Path) -> Vec<PathBuf> {
    let command = resolved(command);
    let package = command.ancestors().skip(1).find(|path| {
        let above = |path: &Path| path.parent().and_then(Path::file_name).map(OsStr::to_os_string);
        let scope =
            path.parent().and_then(Path::file_name).is_some_and(|name| name.as_encoded_bytes().starts_with(b"@"));
        let folder = if scope { path.parent().and_then(above) } else { above(path) };
        folder.as_deref() == Some(OsStr::new("node_modules"))
    });
    let package = package.map(Path::to_path_buf);
    std::iter::once(command).chain(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small file system: every path ending in `/` is a folder.
    const TREE: &[&str] = &[
        "/bin",
        "/etc",
        "/home/ann/notes",
        "/home/bob",
        "/opt/app",
        "/root",
        "/tmp/a",
        "/tmp/bot/state",
        "/tmp/bot/work",
        "/usr",
    ];

    fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names: Vec<PathBuf> = TREE
            .iter()
            .filter_map(|path| Path::new(path).strip_prefix(folder).ok()?.components().next().map(|c| folder.join(c)))
            .collect();
        names.dedup();
        Ok(names)
    }

    #[track_caller]
    fn check(hidden: &[&str], expect: &[&str]) {
        let hidden: Vec<PathBuf> = hidden.iter().map(PathBuf::from).collect();
        let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
        assert_eq!(beside(&hidden, &listed), expect);
    }

    #[test]
    fn everything_beside_the_hidden_places_is_granted() {
        check(&[], &["/"]);
        check(&["/root"], &["/bin", "/etc", "/home", "/opt", "/tmp", "/usr"]);
        check(&["/home/ann"], &["/bin", "/etc", "/home/bob", "/opt", "/root", "/tmp", "/usr"]);
        check(&["/root", "/tmp/bot"], &["/bin", "/etc", "/home", "/opt", "/tmp/a", "/usr"]);
        // One within the other, and one that is not there.
        check(&["/home", "/home/ann"], &["/bin", "/etc", "/opt", "/root", "/tmp", "/usr"]);
        check(&["/usr/no/such"], &["/bin", "/etc", "/home", "/opt", "/root", "/tmp"]);
        // A home of `/`, as some containers have it.
        check(&["/", "/tmp/bot"], &["/bin", "/etc", "/home", "/opt", "/root", "/tmp/a", "/usr"]);
    }

    #[test]
    fn a_link_does_not_lead_around_the_wall() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        std::fs::create_dir(root.join("open")).unwrap();
        std::os::unix::fs::symlink(root.join("secret"), root.join("way-in")).unwrap();
        let granted = beside(&[root.join("secret")], &entries);
        assert!(granted.contains(&root.join("open")), "{granted:?}");
        assert!(
            !granted.iter().any(|path| path.starts_with(root.join("way-in")) || root.starts_with(path)),
            "{granted:?}"
        );
    }

    #[test]
    fn an_npm_package_is_readable_and_a_lone_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in ["node_modules/@a/cc/bin/x", "node_modules/cc/cli.js", "claude"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let check = |file: &str, expect: &[&str]| {
            let expect: Vec<PathBuf> = expect.iter().map(|path| root.join(path)).collect();
            assert_eq!(files_of_command(&root.join(file)), expect);
        };
        check("node_modules/@a/cc/bin/x", &["node_modules/@a/cc/bin/x", "node_modules/@a/cc"]);
        check("node_modules/cc/cli.js", &["node_modules/cc/cli.js", "node_modules/cc"]);
        check("claude", &["claude"]);
    }
}
