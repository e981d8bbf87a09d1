//! Domains: what a process may reach, held by the kernel (Landlock for files, TCP, signals and other processes).
//!
//! Landlock only grants, whole trees at a time. A domain therefore names what it grants; everything else is out of reach. It
//! cannot be left again, and every descendant has it. Root's privileges would lead around it, so they are given up with it
//! ([`privileges`]). What Landlock does not cover (sockets, namespaces, io_uring) is refused by [`seccomp`].
//!
//! Source: <https://docs.kernel.org/userspace-api/landlock.html>.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};

use crate::{privileges, seccomp};

/// The newest kernel interface whose rights were tried with the real client.
const TRIED: ABI = ABI::V8;

/// What a process tree may reach. All paths are absolute. A path that does not exist when the domain is entered grants
/// nothing, and neither does one with a symlink in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Everything outside of these places may be read: for a client, which has the person's file tools. Empty: nothing is
    /// readable but what the other fields name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PathBuf>,
    /// Trees or files that may be read.
    pub read: Vec<PathBuf>,
    /// Folders whose trees may be listed; the files in them may not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<PathBuf>,
    /// Trees or files that may be read and changed. Nothing else may be changed, wherever it is.
    pub write: Vec<PathBuf>,
    /// Trees or files that may be read and executed.
    pub execute: Vec<PathBuf>,
    /// The network.
    pub network: Network,
    /// Which attributes of files may be changed.
    #[serde(default)]
    pub attributes: Attributes,
    /// Do not start at all where the kernel cannot hold the whole domain.
    pub required: bool,
}

impl Domain {
    /// Whether it reaches nothing that `other` does not, as the files are now: what is listed and gone reaches nothing.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let is_gone = |path: &PathBuf| path.symlink_metadata().is_err();
        let within = |own: &[PathBuf], others: &[PathBuf]| {
            let others: BTreeSet<&PathBuf> = others.iter().collect();
            own.iter().all(|path| others.contains(path) || is_gone(path))
        };
        let rest = |of: &Self| (of.network, of.attributes, of.required);
        let left_out: BTreeSet<&PathBuf> = self.beside.iter().collect();
        let reads_beside = self.beside.is_empty()
            || !other.beside.is_empty() && other.beside.iter().all(|path| left_out.contains(path));
        rest(self) == rest(other)
            && reads_beside
            && within(&self.read, &other.read)
            && within(&self.list, &other.list)
            && within(&self.write, &other.write)
            && within(&self.execute, &other.execute)
    }
}

/// Which sockets a process may open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None at all.
    #[default]
    None,
    /// Sockets with a path on this machine.
    Local,
    /// The internet. Of sockets with a path only those that keep messages apart, which the broker has: behind the others stand
    /// docker, tmux, D-Bus and the like, which act outside of any domain, and which Landlock does not hold back.
    Internet,
    /// The internet and every socket with a path.
    All,
}

/// Of which files a process may change mode, owner, times and extended attributes. Landlock knows no such right, so it is all or
/// nothing: by a path they can be changed of every file that the user owns. What may not change all of them shares no memory or
/// queue with other processes of the user either, and does not set their priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attributes {
    /// Those of every file.
    #[default]
    All,
    /// None.
    None,
}

/// How much of a domain the running kernel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// All of it.
    Whole,
    /// Files are held, but not all that newer kernels can do (signals to processes outside, for one), or root's
    /// privileges can come back.
    Partly,
    /// Nothing: the kernel has no Landlock, or it is off.
    Not,
}

/// Why a domain could not be entered.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// Landlock refused.
    #[error("the kernel sandbox could not be entered: {0}")]
    Refused(#[from] RulesetError),
    /// Root's privileges could not be given up.
    #[error("root's privileges could not be given up in the kernel sandbox: {0}")]
    Privileged(#[from] rustix::io::Errno),
    /// The filter of system calls could not be set.
    #[error("the filter of system calls could not be set: {0}")]
    Filter(#[from] seccomp::FilterError),
    /// It holds less than the job requires.
    #[error("this kernel does not hold the whole sandbox (Landlock: {0:?}), and `require_sandbox` is set")]
    NotWhole(SandboxStatus),
}

impl Domain {
    /// Enters the domain with the calling thread and all that it starts, and gives up root's privileges. Within it further domains
    /// can be entered. Must be called in a process of one thread.
    ///
    /// # Errors
    /// [`DomainError`]; the process must then not go on.
    pub fn enter(&self) -> Result<SandboxStatus, DomainError> {
        let more = Self { required: self.required, ..Self::default() };
        Prepared::new(self)?.restrict(&more)
    }

    /// The same, where no further domain is entered.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(crate) fn enter_last(&self) -> Result<SandboxStatus, DomainError> {
        let status = self.enter()?;
        seccomp::no_more_domains()?;
        Ok(status)
    }

    /// Adds a rule for each place.
    fn add_to(&self, ruleset: RulesetCreated) -> Result<RulesetCreated, RulesetError> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let beside = match self.beside.as_slice() {
            [] => Vec::new(),
            hidden => without(&["/".into()], &hidden.iter().map(|path| resolved(path)).collect::<Vec<_>>()),
        };
        ruleset
            .add_rules(beneath(&beside, read))?
            .add_rules(beneath(&self.read, read))?
            .add_rules(beneath(&self.list, AccessFs::ReadDir.into()))?
            .add_rules(beneath(&self.write, AccessFs::from_all(TRIED) & !AccessFs::Execute))?
            .add_rules(beneath(&self.execute, read | AccessFs::Execute))
    }
}

/// A domain whose process goes on until more is known: root's privileges are given up, the filters of system calls hold, and the
/// rules for files are in the kernel. They hold once the domain is entered.
pub(crate) struct Prepared {
    rules: RulesetCreated,
    /// None of root's privileges can come back.
    unprivileged: bool,
}

impl Prepared {
    /// Prepares the calling thread, as [`Domain::enter`] does.
    pub(crate) fn new(domain: &Domain) -> Result<Self, DomainError> {
        let unprivileged = privileges::drop_all()?;
        seccomp::apply(domain.network, domain.attributes)?;
        Ok(Self { rules: domain.add_to(ruleset(domain.network)?)?, unprivileged })
    }

    /// Enters the domain, with the files that `more` names besides, as the last one. Of its other fields only `required` counts:
    /// network and attributes are those that were prepared.
    pub(crate) fn enter_last(self, more: &Domain) -> Result<SandboxStatus, DomainError> {
        let status = self.restrict(more)?;
        seccomp::no_more_domains()?;
        Ok(status)
    }

    fn restrict(self, more: &Domain) -> Result<SandboxStatus, DomainError> {
        let mut status = restrict(more.add_to(self.rules)?)?;
        if !self.unprivileged && status == SandboxStatus::Whole {
            status = SandboxStatus::Partly;
        }
        if more.required && status != SandboxStatus::Whole {
            return Err(DomainError::NotWhole(status));
        }
        Ok(status)
    }
}

/// A set of rules that grants nothing yet.
fn ruleset(network: Network) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(TRIED))?
        .scope(Scope::from_all(TRIED))?;
    match network {
        Network::Internet | Network::All => ruleset.create(),
        Network::None | Network::Local => ruleset.handle_access(AccessNet::from_all(TRIED))?.create(),
    }
}

fn restrict(rules: RulesetCreated) -> Result<SandboxStatus, RulesetError> {
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => SandboxStatus::Whole,
        RulesetStatus::PartiallyEnforced => SandboxStatus::Partly,
        RulesetStatus::NotEnforced => SandboxStatus::Not,
    })
}

/// How much of a domain this kernel would hold: tried on a thread that does nothing else and ends.
#[must_use]
pub fn probe() -> SandboxStatus {
    let tried = std::thread::spawn(|| ruleset(Network::None).and_then(restrict).unwrap_or(SandboxStatus::Not));
    tried.join().unwrap_or(SandboxStatus::Not)
}

/// One rule for each path that is there. A path with a symlink anywhere in it grants nothing: whoever may write where the
/// link stands would choose what the next process may reach. Rights that only folders have are left out for files.
fn beneath(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    paths.iter().filter_map(move |path| {
        let handle =
            openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let folder = FileType::from_raw_mode(fstat(&handle).ok()?.st_mode) == FileType::Directory;
        let access = if folder { access } else { access & AccessFs::from_file(TRIED) };
        // A file of which only listing is granted has no right left, which is an error for the kernel.
        (!access.is_empty()).then(|| Ok(PathBeneath::new(handle, access)))
    })
}

/// The path without symlinks; as it is where it does not exist. For paths that no job can have made.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The shortest list of trees and files that holds everything of `trees` but what is hidden, symlinks left out. All paths are
/// without symlinks. It is taken now: what appears next to a hidden place later is not in it.
#[must_use]
pub fn without(trees: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    beside(trees, hidden, &entries)
}

/// The shortest list of trees that holds everything of `trees` outside the hidden ones. `entries` names what is in a folder,
/// symlinks left out: what they lead to is granted where it is, or not at all. A folder that cannot be listed
/// gives nothing. A hidden `/` is passed over, since nothing could run under it.
fn beside(trees: &[PathBuf], hidden: &[PathBuf], entries: &dyn Fn(&Path) -> io::Result<Vec<PathBuf>>) -> Vec<PathBuf> {
    let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).filter(|path| path.parent().is_some()).collect();
    let mut granted = Vec::new();
    let mut open = trees.to_vec();
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
        assert_eq!(beside(&["/".into()], &hidden, &listed), expect);
    }

    #[test]
    fn a_domain_is_within_another_that_reaches_all_that_it_does_and_maybe_more() {
        let paths = |list: &[&str]| -> Vec<PathBuf> { list.iter().map(PathBuf::from).collect() };
        let reading = |list: &[&str]| Domain { read: paths(list), ..Domain::default() };
        let beside = |list: &[&str]| Domain { beside: paths(list), ..Domain::default() };
        let online = Domain { network: Network::Internet, ..Domain::default() };
        for (own, other, expect) in [
            (reading(&["/usr"]), reading(&["/etc", "/usr"]), true),
            (reading(&["/etc", "/usr"]), reading(&["/usr"]), false),
            // It is not there, so nobody reaches it.
            (reading(&["/no/such/folder"]), reading(&[]), true),
            (Domain { write: paths(&["/usr"]), ..Domain::default() }, reading(&["/usr"]), false),
            (Domain { execute: paths(&["/usr"]), ..Domain::default() }, reading(&["/usr"]), false),
            (Domain { list: paths(&["/usr"]), ..Domain::default() }, reading(&[]), false),
            (beside(&["/a", "/b"]), beside(&["/a"]), true),
            (beside(&["/a"]), beside(&["/a", "/b"]), false),
            (beside(&["/a"]), reading(&["/usr"]), false),
            (reading(&[]), beside(&["/a"]), true),
            (online.clone(), Domain::default(), false),
            (Domain::default(), online, false),
        ] {
            assert_eq!(own.is_within(&other), expect, "{own:?} within {other:?}");
        }
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

    /// What Landlock is told is memory that nobody counts.
    #[test]
    fn in_the_last_domain_there_is_no_landlock() {
        // A domain belongs to a thread and what it starts.
        let within = |enter: fn(&Domain) -> Result<SandboxStatus, DomainError>| {
            let entering = std::thread::spawn(move || (enter(&Domain::default()).unwrap(), probe()));
            entering.join().unwrap()
        };
        let (status, further) = within(Domain::enter);
        assert_eq!(further, status, "a client starts shells, which enter theirs");
        let (status, further) = within(Domain::enter_last);
        assert_eq!((status, further), (probe(), SandboxStatus::Not));
    }

    #[test]
    fn a_link_does_not_lead_around_a_domain() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        std::fs::create_dir(root.join("open")).unwrap();
        std::os::unix::fs::symlink(root.join("secret"), root.join("way-in")).unwrap();
        let granted = without(&["/".into()], &[root.join("secret")]);
        assert!(granted.contains(&root.join("open")), "{granted:?}");
        assert!(
            !granted.iter().any(|path| path.starts_with(root.join("way-in")) || root.starts_with(path)),
            "{granted:?}"
        );
    }
}
