//! Other programs: those that can run any other program, and those that work over a local socket. Builtins of the
//! shell that run other programs are here, too.

use super::{Class, CommandOperands, HarmlessOptions, Options, Program, executes, steers};

const fn runs(names: &'static [&'static str]) -> Program {
    Program::new(Class::Runs, names)
}

const fn with_subcommands(names: &'static [&'static str]) -> Program {
    Program { subcommands: true, ..runs(names) }
}

/// A program of which a star stands for the `harmless` options only.
const fn closed(names: &'static [&'static str], harmless: &'static HarmlessOptions) -> Program {
    Program { closed: true, harmless: Some(harmless), ..over_socket(names) }
}

const fn over_socket(names: &'static [&'static str]) -> Program {
    Program { local_sockets: true, ..Program::new(Class::Unknown, names) }
}

pub(super) const TABLE: &[Program] = &[
    runs(&["at", "batch", "builtin", "busybox", "bwrap", "chroot", "crontab", "doas", "eval", "exec", "flock"]),
    runs(&["rename", "script", "socat", "source", "strace", "su", "sudo", "taskset"]),
    runs(&["systemd-run", "toybox", "unshare"]),
    // Commands such as `.shell` write and run in a database that is only read.
    Program { held_by_both: Some(("-readonly", "-safe")), ..runs(&["sqlite3"]) },
    Program { joins_from: Some(0), ..runs(&["parallel", "watch"]) },
    // Editors and debuggers.
    runs(&["ed", "emacs", "ex", "gdb", "nvim", "vi", "vim"]),
    with_subcommands(&["apt", "gh", "kubectl"]),
    runs(&["apt-get", "nix", "nix-shell"]),
    Program {
        writes_operands: true,
        instructed_by: "-f --files-from --exclude-from --include-from --filter",
        ..runs(&["rsync"])
    },
    Program { local_sockets: true, ..runs(&["docker-compose", "screen"]) },
    Program { local_sockets: true, joins_from: Some(1), ..runs(&["ssh"]) },
    Program { local_sockets: true, commands: CommandOperands::Separated, options: TMUX, ..runs(&["tmux"]) },
    Program { local_sockets: true, ..with_subcommands(&["docker", "podman"]) },
    Program { subcommands: true, ..Program::new(Class::Unknown, &["brew"]) },
    Program { subcommands: true, ..closed(&["systemctl"], &SYSTEMCTL) },
    closed(&["gpg", "gpg2"], &GPG),
    closed(&["journalctl"], &JOURNALCTL),
    over_socket(&["busctl", "dbus-send", "gdbus", "loginctl", "mysql", "notify-send", "pactl"]),
    over_socket(&["playerctl", "psql", "redis-cli", "ssh-add", "xdg-open"]),
];

const TMUX: Options =
    Options::new(&[executes("c", "c"), executes("f", "f"), executes("F", "F"), steers("L", "L"), steers("S", "S")], "");

const SYSTEMCTL: HarmlessOptions = HarmlessOptions {
    flags: "alqr0123456789",
    values: "nopt",
    clusters: true,
    long: "all failed full help lines no-legend no-pager no-wall output plain property quiet show-types state system type user \
        value version",
    until_operand: false,
};

const GPG: HarmlessOptions = HarmlessOptions {
    flags: "aqv",
    values: "",
    clusters: true,
    long: "armor batch no-tty quiet verbose with-colons with-fingerprint",
    until_operand: false,
};

const JOURNALCTL: HarmlessOptions = HarmlessOptions {
    flags: "abefkmqrx",
    values: "gnopStuU",
    clusters: true,
    long: "all boot catalog dmesg facility follow full grep help identifier lines list-boots no-full no-hostname no-pager \
        no-tail output output-fields pager-end priority quiet reverse since system unit until user user-unit utc version",
    until_operand: false,
};
