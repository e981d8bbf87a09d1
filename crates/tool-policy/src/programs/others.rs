//! Other programs: those that can run any other program, and those that work over a local socket. Builtins of the
//! shell that run other programs are here, too.

use super::{Class, Program};

const fn runs(names: &'static [&'static str]) -> Program {
    Program::new(Class::Runs, names)
}

const fn with_subcommands(names: &'static [&'static str]) -> Program {
    Program { subcommands: true, ..runs(names) }
}

const fn over_socket(names: &'static [&'static str]) -> Program {
    Program { local_sockets: true, ..Program::new(Class::Unknown, names) }
}

pub(super) const TABLE: &[Program] = &[
    runs(&["at", "batch", "builtin", "busybox", "bwrap", "chroot", "crontab", "doas", "eval", "exec", "flock"]),
    runs(&["parallel", "rename", "script", "socat", "source", "sqlite3", "strace", "su", "sudo", "taskset"]),
    runs(&["systemd-run", "toybox", "unshare", "watch"]),
    // Editors and debuggers.
    runs(&["ed", "emacs", "ex", "gdb", "nvim", "vi", "vim"]),
    with_subcommands(&["apt", "gh", "kubectl"]),
    runs(&["apt-get", "nix", "nix-shell"]),
    Program { writes_operands: true, ..runs(&["rsync"]) },
    Program { local_sockets: true, ..runs(&["docker-compose", "screen", "ssh", "tmux"]) },
    Program { local_sockets: true, ..with_subcommands(&["docker", "podman"]) },
    Program { subcommands: true, ..Program::new(Class::Unknown, &["brew"]) },
    Program { subcommands: true, ..over_socket(&["systemctl"]) },
    over_socket(&["busctl", "dbus-send", "gdbus", "gpg", "journalctl", "loginctl", "mysql", "notify-send", "pactl"]),
    over_socket(&["playerctl", "psql", "redis-cli", "ssh-add", "xdg-open"]),
];
