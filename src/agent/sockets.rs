//! Path sockets that lead out of the sandbox. Landlock (up to ABI 8) does not prevent a connection to one, and the server
//! behind it acts with the rights of the user who started it.
//!
//! Checks only well-known sockets, each with a connection that is closed at once. Nothing is sent.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::Serialize;

/// A socket that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathSocket {
    /// The server that listens: `tmux`, `docker`, …
    pub what: &'static str,
    /// The path of the socket.
    pub path: PathBuf,
}

/// Returns the well-known sockets that accept this user. `variable` looks up an environment variable that may name one.
#[must_use]
pub fn answering<'a>(variable: impl Fn(&str) -> Option<&'a str>, home: &Path) -> Vec<PathSocket> {
    let mut found: Vec<PathSocket> = Vec::new();
    for (what, path) in candidates(variable, home) {
        // `/var/run` is `/run` on most machines.
        let same = |known: &PathSocket| known.path.canonicalize().ok() == path.canonicalize().ok();
        if answers(&path) && !found.iter().any(same) {
            found.push(PathSocket { what, path });
        }
    }
    found
}

fn candidates<'a>(variable: impl Fn(&str) -> Option<&'a str>, home: &Path) -> Vec<(&'static str, PathBuf)> {
    let user = rustix::process::getuid().as_raw();
    let runtime = variable("XDG_RUNTIME_DIR").map_or_else(|| format!("/run/user/{user}").into(), PathBuf::from);
    let mut all: Vec<(&'static str, PathBuf)> = [
        ("docker", "/run/docker.sock"),
        ("docker", "/var/run/docker.sock"),
        ("podman", "/run/podman/podman.sock"),
        ("containerd", "/run/containerd/containerd.sock"),
        ("libvirt", "/run/libvirt/libvirt-sock"),
        ("lxd", "/var/lib/lxd/unix.socket"),
        ("lxd", "/var/snap/lxd/common/lxd/unix.socket"),
        ("incus", "/var/lib/incus/unix.socket"),
        ("snapd", "/run/snapd.socket"),
        ("D-Bus (system)", "/run/dbus/system_bus_socket"),
        ("systemd", "/run/systemd/private"),
        ("X11", "/tmp/.X11-unix/X0"),
    ]
    .map(|(what, path)| (what, PathBuf::from(path)))
    .to_vec();
    for (what, name) in [
        ("D-Bus (session)", "bus"),
        ("systemd (user)", "systemd/private"),
        ("docker", "docker.sock"),
        ("podman", "podman/podman.sock"),
        ("gpg-agent", "gnupg/S.gpg-agent"),
        ("ssh-agent", "ssh-agent.socket"),
        ("Wayland", "wayland-0"),
        ("Wayland", "wayland-1"),
        ("PipeWire", "pipewire-0"),
    ] {
        all.push((what, runtime.join(name)));
    }
    all.push(("gpg-agent", home.join(".gnupg/S.gpg-agent")));
    let named = [
        ("ssh-agent", variable("SSH_AUTH_SOCK")),
        // `/tmp/tmux-1000/default,4711,0`
        ("tmux", variable("TMUX").and_then(|text| text.split(',').next())),
        ("docker", variable("DOCKER_HOST").and_then(|text| text.strip_prefix("unix://"))),
        ("D-Bus (session)", variable("DBUS_SESSION_BUS_ADDRESS").and_then(bus_path)),
    ];
    all.extend(named.into_iter().filter_map(|(what, path)| Some((what, PathBuf::from(path?)))));
    let tmux = PathBuf::from(variable("TMUX_TMPDIR").unwrap_or("/tmp")).join(format!("tmux-{user}"));
    for (what, folder) in [("tmux", tmux), ("screen", home.join(".screen"))] {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.extend(names.map(|entry| (what, entry.path())));
    }
    all
}

/// Returns the path in an address such as `unix:path=/run/user/1000/bus,guid=…`.
fn bus_path(address: &str) -> Option<&str> {
    address.split(';').find_map(|one| one.strip_prefix("unix:")?.split(',').find_map(|pair| pair.strip_prefix("path=")))
}

fn answers(path: &Path) -> bool {
    let asked = || -> Result<(), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    // A full queue or a socket of another type also means that a server listens.
    matches!(asked(), Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS | Errno::PROTOTYPE))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_what_answers_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tmux");
        let listener = UnixListener::bind(&path).unwrap();
        let text = format!("{},4711,0", path.display());
        let ask = || answering(|name| (name == "TMUX").then_some(text.as_str()), folder.path());
        let ours = |found: &PathSocket| found.path == path;
        assert_eq!(
            ask().into_iter().filter(ours).collect::<Vec<_>>(),
            [PathSocket { what: "tmux", path: path.clone() }]
        );
        // The socket's file stays, but no server listens.
        drop(listener);
        assert!(path.exists() && !ask().iter().any(ours));
        // A regular file is not a socket.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(!ask().iter().any(ours));
    }

    #[test]
    fn a_bus_is_found_in_its_address() {
        assert_eq!(bus_path("unix:path=/run/user/1/bus"), Some("/run/user/1/bus"));
        assert_eq!(bus_path("tcp:host=x;unix:guid=1,path=/b"), Some("/b"));
        assert_eq!(bus_path("unix:abstract=/tmp/x"), None);
    }
}
