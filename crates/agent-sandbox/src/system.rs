//! System folders and files that programs need. Any of them may be missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::stamped::{Stamped, stamp};

/// Libraries, and files that every program reads at its start.
const LIBRARIES: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/terminfo",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/share/locale",
    "/usr/share/terminfo",
    "/usr/share/zoneinfo",
];

/// Further files that programs read: their data, the names of users and hosts, the state of the machine. Of `/etc` only files that are
/// world-readable on every system: a service that runs as root would otherwise show its jobs the others.
const DATA: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/default/locale",
    "/etc/environment",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitattributes",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/lsb-release",
    "/etc/machine-id",
    "/etc/magic",
    "/etc/mailcap",
    "/etc/man_db.conf",
    "/etc/manpath.config",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/etc/wgetrc",
    "/etc/xdg",
    "/gnu/store",
    "/nix/store",
    "/opt",
    "/proc",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/usr/games",
    "/usr/include",
    "/usr/local/etc",
    "/usr/local/include",
    "/usr/local/share",
    "/usr/share",
    "/usr/src",
    "/var/lib/dpkg",
];

/// Folders that contain programs.
const PROGRAMS: &[&str] = &["/bin", "/sbin", "/usr", "/opt", "/nix/store", "/gnu/store", "/lib", "/lib32", "/lib64"];

/// Dynamic loaders, which start dynamically linked programs.
const LOADERS: &[&str] = &[
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Returns the paths that every started program may read.
#[must_use]
pub fn libraries() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, LIBRARIES)
}

/// Returns the paths that programs granted by a rule may read.
#[must_use]
pub fn data() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, &[LIBRARIES, DATA].concat())
}

/// Returns the trees that contain programs.
#[must_use]
pub fn programs() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, PROGRAMS)
}

/// Returns the loaders, which the kernel executes with each program.
#[must_use]
pub fn loaders() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, LOADERS)
}

/// Returns the devices that discard what is written to them.
#[must_use]
pub fn sinks() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, &["/dev/null", "/dev/zero", "/dev/full"])
}

/// Returns the devices that give random numbers.
#[must_use]
pub fn sources() -> Vec<PathBuf> {
    static FOUND: Present = Present::new();
    present(&FOUND, &["/dev/random", "/dev/urandom"])
}

/// The existing paths of one list.
type Present = Stamped<Vec<PathBuf>>;

/// Returns the existing paths, sorted, without symlinks or duplicates. Their links are followed anew if one of the paths has changed,
/// or leads elsewhere.
fn present(found: &Present, paths: &[&str]) -> Vec<PathBuf> {
    found.get(stamp(paths, ""), || {
        let existing: BTreeSet<PathBuf> = paths.iter().filter_map(|path| Path::new(path).canonicalize().ok()).collect();
        existing.into_iter().collect()
    })
}
