//! Domains: the rights of a process, enforced by the kernel (Landlock for files, TCP, signals and other processes).
//!
//! Landlock only grants, and only whole trees. A domain therefore lists its grants, and everything else is out of reach. A process
//! cannot leave its domain, and every descendant inherits it. Root's privileges would bypass it, so they are given up with it
//! ([`privileges`]). System calls that Landlock does not cover (sockets, namespaces, io_uring) are refused by [`seccomp`].
//!
//! Source: <https://docs.kernel.org/userspace-api/landlock.html>.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use serde::{Deserialize, Serialize};

use crate::{privileges, seccomp};

/// The newest kernel interface whose rights were tested with the real client.
const TRIED: ABI = ABI::V8;

/// The rights of a process tree. All paths are absolute. A path grants nothing if it does not exist when the domain is entered,
/// or if it contains a symlink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// Hidden places: everything outside of them may be read, as the person's file tools in a client need. If empty, only the places
    /// that the other fields name are readable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PathBuf>,
    /// Trees or files that may be read.
    pub read: Vec<PathBuf>,
    /// Folders whose trees may be listed, but whose files may not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<PathBuf>,
    /// Folders in whose trees further folders may be made, but no files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nest: Vec<PathBuf>,
    /// Trees or files that may be read and changed. Nothing else may be changed.
    pub write: Vec<PathBuf>,
    /// Trees or files that may be read and executed.
    pub execute: Vec<PathBuf>,
    /// Whether no socket with a path may be made, in any of these.
    #[serde(default)]
    pub no_listening: bool,
    /// Whether no symlink may be made or moved, in any of these.
    #[serde(default)]
    pub no_symlinks: bool,
    /// Network access.
    pub network: Network,
    /// Permission to change attributes of files.
    #[serde(default)]
    pub attributes: Attributes,
    /// Whether to refuse to start if the kernel cannot enforce the whole domain.
    pub required: bool,
}

impl Domain {
    /// Returns whether this domain grants nothing that `other` does not. A listed path that does not exist now grants nothing.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let is_gone = |path: &PathBuf| path.symlink_metadata().is_err();
        let within = |own: &[PathBuf], others: &[PathBuf]| {
            let others: BTreeSet<&PathBuf> = others.iter().collect();
            own.iter().all(|path| others.contains(path) || is_gone(path))
        };
        let rest = |of: &Self| (of.network, of.attributes, of.required, of.no_listening, of.no_symlinks);
        let left_out: BTreeSet<&PathBuf> = self.beside.iter().collect();
        let reads_beside = self.beside.is_empty()
            || !other.beside.is_empty() && other.beside.iter().all(|path| left_out.contains(path));
        rest(self) == rest(other)
            && reads_beside
            && within(&self.read, &other.read)
            && within(&self.list, &other.list)
            && within(&self.nest, &other.nest)
            && within(&self.write, &other.write)
            && within(&self.execute, &other.execute)
    }
}

/// The sockets that a process may open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// No sockets.
    #[default]
    None,
    /// Sockets with a path on this machine.
    Local,
    /// The internet. Of sockets with a path only those that preserve message boundaries, as the broker's does. The others lead to docker,
    /// tmux, D-Bus and the like, which act outside of any domain and which Landlock does not restrict.
    Internet,
    /// The internet and every socket with a path.
    All,
}

/// Permission to change mode, owner, times and extended attributes of files. Landlock has no such right, so it is all or
/// nothing: with it a process can change them on every file that the user owns. A process without it also shares no memory or
/// queue with other processes of the user, and does not set their priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attributes {
    /// Every file.
    #[default]
    All,
    /// No file.
    None,
}

/// The extent to which the running kernel enforces a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// The whole domain.
    Whole,
    /// Access to files, but not all rights that newer kernels support (signals to processes outside, for one), or root's
    /// privileges can come back.
    Partly,
    /// Nothing: the kernel has no Landlock, or it is disabled.
    Not,
}

/// Reasons why a domain could not be entered.
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
    /// The kernel enforces less than the domain requires.
    #[error("this kernel does not hold the whole sandbox (Landlock: {0:?}), and `require_sandbox` is set")]
    NotWhole(SandboxStatus),
}

impl Domain {
    /// Enters the domain with the calling thread and its descendants, and gives up root's privileges. Further domains can be
    /// entered inside it. Must be called in a process with one thread.
    ///
    /// # Errors
    /// [`DomainError`]; the process must then end.
    pub fn enter(&self) -> Result<SandboxStatus, DomainError> {
        let more = Self { required: self.required, ..Self::default() };
        PreparedDomain::new(self)?.restrict(&more)
    }

    /// Enters the domain as [`Self::enter`] does, but allows no further domain.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub(crate) fn enter_last(&self) -> Result<SandboxStatus, DomainError> {
        let status = self.enter()?;
        seccomp::no_more_domains()?;
        Ok(status)
    }

    /// Adds a rule for each path.
    fn add_to(&self, ruleset: RulesetCreated) -> Result<RulesetCreated, RulesetError> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let beside = match self.beside.as_slice() {
            [] => Vec::new(),
            hidden => without(&["/".into()], &hidden.iter().map(|path| resolved(path)).collect::<Vec<_>>()),
        };
        let refusals = [(self.no_listening, AccessFs::MakeSock), (self.no_symlinks, AccessFs::MakeSym)];
        let refused: BitFlags<AccessFs> =
            refusals.iter().filter(|(is_set, _)| *is_set).map(|(_, right)| *right).collect();
        ruleset
            .add_rules(beneath(&beside, read))?
            .add_rules(beneath(&self.read, read))?
            .add_rules(beneath(&self.list, AccessFs::ReadDir.into()))?
            .add_rules(beneath(&self.nest, AccessFs::MakeDir | AccessFs::ReadDir))?
            .add_rules(beneath(&self.write, AccessFs::from_all(TRIED) & !(refused | AccessFs::Execute)))?
            .add_rules(beneath(&self.execute, read | AccessFs::Execute))
    }
}

/// A prepared domain of a process that continues until more is known: root's privileges are given up, the filters of system calls are
/// in force, and the rules for files are in the kernel. The rules apply once the domain is entered.
pub(crate) struct PreparedDomain {
    rules: RulesetCreated,
    /// Whether no privilege of root's can come back.
    unprivileged: bool,
}

impl PreparedDomain {
    /// Prepares the calling thread, as [`Domain::enter`] does.
    pub(crate) fn new(domain: &Domain) -> Result<Self, DomainError> {
        let unprivileged = privileges::drop_all()?;
        seccomp::apply(domain.network, domain.attributes)?;
        Ok(Self { rules: domain.add_to(ruleset(domain.network)?)?, unprivileged })
    }

    /// Enters the domain as the last one, with the additional files of `more`. Of its other fields only `required` counts:
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

/// Creates a set of rules that grants nothing yet.
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

/// Returns how much of a domain this kernel enforces, tried once on a thread of its own.
#[must_use]
pub fn probe() -> SandboxStatus {
    static FOUND: OnceLock<SandboxStatus> = OnceLock::new();
    *FOUND.get_or_init(tried)
}

fn tried() -> SandboxStatus {
    let tried = std::thread::spawn(|| ruleset(Network::None).and_then(restrict).unwrap_or(SandboxStatus::Not));
    tried.join().unwrap_or(SandboxStatus::Not)
}

/// Yields one rule for each existing path. A path that contains a symlink grants nothing: otherwise a process that may replace
/// the link could choose the rights of the next process. Rights that only apply to folders are left out for files.
fn beneath(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    paths.iter().filter_map(move |path| {
        let handle =
            openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let folder = FileType::from_raw_mode(fstat(&handle).ok()?.st_mode) == FileType::Directory;
        let access = if folder { access } else { access & AccessFs::from_file(TRIED) };
        // A right to list a file leaves no right at all, which the kernel rejects.
        (!access.is_empty()).then(|| Ok(PathBeneath::new(handle, access)))
    })
}

/// Resolves the symlinks of a path. Returns the path unchanged if it does not exist. Only for paths that no job can have made.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Returns the shortest list of trees and files that contains everything of `trees` except `hidden` and symlinks. All paths must be
/// free of symlinks. The list is a snapshot: later additions next to a hidden place are not in it.
///
/// A rule of the kernel belongs to a folder, and not to its path. So a folder that contains a hidden place is not granted at another
/// path either, where a second mount shows it.
#[must_use]
pub fn without(trees: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let inode = |path: &Path| {
        let facts = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
        Some((facts.dev(), facts.ino()))
    };
    let places = || hidden.iter().map(PathBuf::as_path).filter(|path| is_hidable(path));
    let above: BTreeSet<&Path> = places().flat_map(|path| path.ancestors().skip(1)).collect();
    let above: BTreeSet<(u64, u64)> = above.into_iter().filter_map(inode).collect();
    let own: BTreeSet<(u64, u64)> = places().filter_map(inode).collect();
    let known = |path: &Path| {
        let inode = inode(path)?;
        if own.contains(&inode) { Some(Place::Hidden) } else { above.contains(&inode).then_some(Place::Above) }
    };
    beside(trees, hidden, &known, &entries)
}

/// Returns whether a place can be hidden. Nothing could run under a hidden `/`, which is the home folder of some services.
fn is_hidable(path: &Path) -> bool {
    path.parent().is_some()
}

/// How a folder is related to a hidden place that its path does not show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Hidden,
    Above,
}

/// Returns the shortest list of trees that contains everything of `trees` outside of the hidden ones. `entries` lists a folder
/// without symlinks, whose targets need their own grant. A folder that cannot be listed grants nothing. A hidden `/` is ignored.
/// `known` tells of a folder at another path.
fn beside(
    trees: &[PathBuf],
    hidden: &[PathBuf],
    known: &dyn Fn(&Path) -> Option<Place>,
    entries: &dyn Fn(&Path) -> io::Result<Vec<Entry>>,
) -> Vec<PathBuf> {
    let hidden: Vec<&Path> = hidden.iter().map(PathBuf::as_path).filter(|path| is_hidable(path)).collect();
    let mut granted = Vec::new();
    let mut open: Vec<Entry> = trees.iter().map(|tree| (tree.clone(), true)).collect();
    while let Some((path, may_be_folder)) = open.pop() {
        if hidden.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        let is_above = hidden.iter().any(|hidden| hidden.starts_with(&path));
        let elsewhere = || may_be_folder.then(|| known(&path)).flatten();
        match if is_above { Some(Place::Above) } else { elsewhere() } {
            Some(Place::Above) => open.extend(entries(&path).unwrap_or_default()),
            Some(Place::Hidden) => {}
            None => granted.push(path),
        }
    }
    granted.sort();
    granted
}

/// A path in a folder, and whether it may be a folder.
type Entry = (PathBuf, bool);

fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    Ok(entries
        .filter_map(|entry| Some((entry.path(), entry.file_type().ok().filter(|kind| !kind.is_symlink())?.is_dir())))
        // A domain is sent as JSON, which has no other text. Such a file is not granted.
        .filter(|(path, _)| path.to_str().is_some())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_hides_no_other_file() {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let name = |bytes: &[u8]| folder.path().join(std::ffi::OsStr::from_bytes(bytes));
        for bytes in [&b"caf\xe9.txt"[..], b"plain"] {
            std::fs::write(name(bytes), "").unwrap();
        }
        let granted = without(&[folder.path().to_owned()], &[name(b"hidden")]);
        assert_eq!(granted, [name(b"plain")]);
        serde_json::to_string(&granted).unwrap();
    }

    /// A small file system. Every path ending in `/` is a folder.
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

    fn listed(folder: &Path) -> io::Result<Vec<Entry>> {
        let mut names: Vec<PathBuf> = TREE
            .iter()
            .filter_map(|path| Path::new(path).strip_prefix(folder).ok()?.components().next().map(|c| folder.join(c)))
            .collect();
        names.dedup();
        Ok(names.into_iter().map(|name| (name, true)).collect())
    }

    #[track_caller]
    fn check(hidden: &[&str], expect: &[&str]) {
        let hidden: Vec<PathBuf> = hidden.iter().map(PathBuf::from).collect();
        let expect: Vec<PathBuf> = expect.iter().map(PathBuf::from).collect();
        assert_eq!(beside(&["/".into()], &hidden, &|_| None, &listed), expect);
    }

    #[test]
    fn a_home_folder_that_is_the_root_hides_nothing() {
        let root = [PathBuf::from("/")];
        assert_eq!(without(&root, &root), root);
        let folder = tempfile::tempdir().unwrap();
        let folder = [folder.path().canonicalize().unwrap()];
        assert_eq!(without(&folder, &root), folder);
    }

    /// `/opt` is the folder above the hidden one at another path, and `/usr` the hidden one itself.
    #[test]
    fn a_second_mount_shows_nothing_that_is_hidden() {
        let known = |path: &Path| match path.to_str().unwrap() {
            "/opt" => Some(Place::Above),
            "/usr" | "/opt/app" => Some(Place::Hidden),
            _ => None,
        };
        let granted = beside(&["/".into()], &["/home/ann".into()], &known, &listed);
        let expect = ["/bin", "/etc", "/home/bob", "/root", "/tmp"].map(PathBuf::from);
        assert_eq!(granted, expect);
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
            // The folder does not exist, so it grants nothing.
            (reading(&["/no/such/folder"]), reading(&[]), true),
            (Domain { write: paths(&["/usr"]), ..Domain::default() }, reading(&["/usr"]), false),
            (Domain { execute: paths(&["/usr"]), ..Domain::default() }, reading(&["/usr"]), false),
            (Domain { list: paths(&["/usr"]), ..Domain::default() }, reading(&[]), false),
            (Domain { nest: paths(&["/usr"]), ..Domain::default() }, reading(&[]), false),
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
        // One hidden path within another, and one that does not exist.
        check(&["/home", "/home/ann"], &["/bin", "/etc", "/opt", "/root", "/tmp", "/usr"]);
        check(&["/usr/no/such"], &["/bin", "/etc", "/home", "/opt", "/root", "/tmp"]);
        // A home of `/`, as in some containers.
        check(&["/", "/tmp/bot"], &["/bin", "/etc", "/home", "/opt", "/root", "/tmp/a", "/usr"]);
    }

    /// Landlock's rules take kernel memory that no limit counts.
    #[test]
    fn in_the_last_domain_there_is_no_landlock() {
        // A domain belongs to a thread and its descendants.
        let within = |enter: fn(&Domain) -> Result<SandboxStatus, DomainError>| {
            let entering = std::thread::spawn(move || (enter(&Domain::default()).unwrap(), tried()));
            entering.join().unwrap()
        };
        let (status, further) = within(Domain::enter);
        assert_eq!(further, status, "a client starts shells, which enter theirs");
        let (status, further) = within(Domain::enter_last);
        assert_eq!((status, further), (tried(), SandboxStatus::Not));
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
