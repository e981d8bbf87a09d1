//! The one table of programs: what each is for, and what it needs beside itself.
//!
//! A program that stands in none of the lists is [`Class::Runs`]: what it does is not known, so a rule that names it
//! grants what a program can do at all.

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It brings its input into another form, and may run without a rule, where it has no power.
    Filter,
    /// It starts what its arguments say. That is judged by itself, so it may run without a rule, too.
    Wrapper,
    /// It looks at files or at the system.
    Reads,
    /// It changes files.
    Changes,
    /// It speaks with hosts that its arguments name.
    Fetches,
    /// It runs what it is told, or what it does is not known.
    Runs,
}

const FILTERS: &[&str] = &[
    "[",
    "arch",
    "awk",
    "base32",
    "base64",
    "basename",
    "cal",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "diff",
    "dirname",
    "echo",
    "egrep",
    "expand",
    "expr",
    "factor",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "gawk",
    "getconf",
    "grep",
    "groups",
    "head",
    "hexdump",
    "hostname",
    "iconv",
    "id",
    "join",
    "jq",
    "locale",
    "logname",
    "mawk",
    "md5sum",
    "nawk",
    "nl",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "pr",
    "printenv",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "sed",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shuf",
    "sleep",
    "sort",
    "sum",
    "tac",
    "tail",
    "tee",
    "test",
    "tput",
    "tr",
    "true",
    "tsort",
    "tty",
    "uname",
    "unexpand",
    "uniq",
    "wc",
    "which",
    "whoami",
    "xxd",
    "yes",
    "yq",
];

const WRAPPERS: &[&str] = &[
    "bash", "command", "dash", "env", "ionice", "nice", "nohup", "setsid", "sh", "stdbuf", "time", "timeout", "xargs",
];

const READS: &[&str] = &[
    "ack", "ag", "bzcat", "df", "du", "fd", "fdfind", "file", "find", "findmnt", "free", "less", "locate", "ls",
    "lsblk", "man", "more", "pgrep", "ps", "rg", "size", "stat", "strings", "tree", "uptime", "vdir", "xzcat", "zcat",
    "zgrep", "zstdcat",
];

const CHANGES: &[&str] = &[
    "bunzip2", "bzip2", "chgrp", "chmod", "chown", "cp", "csplit", "dd", "git", "gunzip", "gzip", "install", "link",
    "ln", "mkdir", "mkfifo", "mktemp", "mv", "patch", "rm", "rmdir", "shred", "split", "tar", "touch", "truncate",
    "unlink", "unxz", "unzip", "unzstd", "xz", "zip", "zstd",
];

const FETCHES: &[&str] = &["curl", "dig", "host", "nslookup", "ping", "wget"];

/// Programs by which any other program, or any code, can be run: a grant of them is a grant of everything. Words of
/// the shell that do so stand here, too.
pub(super) const RUNS: &[&str] = &[
    "R",
    "Rscript",
    "apt",
    "apt-get",
    "at",
    "batch",
    "builtin",
    "bun",
    "bunx",
    "busybox",
    "bwrap",
    "cargo",
    "cc",
    "chroot",
    "crontab",
    "deno",
    "doas",
    "docker",
    "docker-compose",
    "ed",
    "emacs",
    "eval",
    "ex",
    "exec",
    "expect",
    "fish",
    "flock",
    "gcc",
    "gdb",
    "gh",
    "go",
    "gradle",
    "java",
    "jshell",
    "julia",
    "just",
    "ksh",
    "kubectl",
    "lua",
    "make",
    "mvn",
    "nix",
    "nix-shell",
    "node",
    "npm",
    "npx",
    "nvim",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pip",
    "pip3",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "pytest",
    "python",
    "python2",
    "python3",
    "rename",
    "rsync",
    "ruby",
    "screen",
    "script",
    "socat",
    "source",
    "sqlite3",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "tmux",
    "toybox",
    "tsx",
    "unshare",
    "uv",
    "uvx",
    "vi",
    "vim",
    "watch",
    "yarn",
    "zsh",
];

/// Programs that do their work over a socket with a path on this machine.
const LOCAL_SOCKETS: &[&str] = &[
    "busctl",
    "dbus-send",
    "docker",
    "docker-compose",
    "gdbus",
    "gpg",
    "journalctl",
    "loginctl",
    "mysql",
    "notify-send",
    "pactl",
    "playerctl",
    "podman",
    "psql",
    "redis-cli",
    "screen",
    "ssh",
    "ssh-add",
    "systemctl",
    "tmux",
    "xdg-open",
];

/// Programs whose first operand says what they do, so that a rule names it.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "brew",
    "bun",
    "cargo",
    "docker",
    "gh",
    "git",
    "go",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "systemctl",
    "uv",
    "yarn",
];

const GIT_HELPERS: &[&str] = &[
    "/usr/lib/git-core",
    "/usr/libexec/git-core",
    "/usr/local/libexec/git-core",
    "/usr/share/git-core",
    "git",
    "sh",
    "basename",
    "cat",
    "cut",
    "dirname",
    "expr",
    "grep",
    "head",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sed",
    "sort",
    "tail",
    "tr",
    "uname",
    "wc",
];

const COMPRESSORS: &[&str] = &["gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress"];

/// What a program executes to do its own work: programs, or folders with such.
pub(super) fn helpers(name: &str) -> &'static [&'static str] {
    match name {
        "git" => GIT_HELPERS,
        "tar" => COMPRESSORS,
        "zcat" | "zgrep" | "bzcat" | "xzcat" | "zstdcat" | "gunzip" => {
            &["sh", "gzip", "bzip2", "xz", "zstd", "grep", "sed", "cat", "expr"]
        }
        "egrep" | "fgrep" => &["sh", "grep"],
        "less" | "which" => &["sh"],
        "man" => &[
            "/usr/lib/man-db",
            "/usr/libexec/man-db",
            "sh",
            "less",
            "cat",
            "groff",
            "grotty",
            "nroff",
            "troff",
            "preconv",
            "tbl",
            "eqn",
            "refer",
            "pic",
            "locale",
            "manpath",
            "gzip",
            "bzip2",
            "xz",
            "zstd",
        ],
        "sort" | "zip" | "unzip" | "patch" => &[],
        _ => &[],
    }
}

/// What a program is for. `None`: it stands in no list.
pub(super) fn listed(name: &str) -> Option<Class> {
    [
        (FILTERS, Class::Filter),
        (WRAPPERS, Class::Wrapper),
        (READS, Class::Reads),
        (CHANGES, Class::Changes),
        (FETCHES, Class::Fetches),
        (RUNS, Class::Runs),
    ]
    .into_iter()
    .find_map(|(names, class)| names.contains(&name).then_some(class))
}

/// The last part of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The name by which the table knows a program: its own, or that of a path in the system's folders. Any other path
/// can lead to any program.
pub(super) fn known_as(program: &str) -> Option<&str> {
    const FOLDERS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];
    match program.rsplit_once('/') {
        None => Some(program),
        Some((folder, name)) => FOLDERS.contains(&folder).then_some(name),
    }
}

/// What a program is for, given as a rule or a start names it.
pub(super) fn class(program: &str) -> Class {
    known_as(program).and_then(listed).unwrap_or(Class::Runs)
}

/// What a program is for where a rule names it: then it has the power that it was named for.
pub(super) fn named_class(program: &str) -> Class {
    match class(program) {
        Class::Filter if base_name(program) == "tee" => Class::Changes,
        Class::Filter => Class::Reads,
        Class::Wrapper => Class::Runs,
        class => class,
    }
}

/// The programs that may run in the shell's own domain without a rule: filters and wrappers.
pub fn free_programs() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().chain(WRAPPERS).copied()
}

/// Whether a program is known to run any other one, also with a version in its name (`python3.11`).
pub(super) fn runs_anything(name: &str) -> bool {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [name, family].iter().any(|name| matches!(listed(name), Some(Class::Runs | Class::Wrapper)))
}

/// Whether a program does its work over a socket with a path on this machine.
pub(super) fn uses_local_sockets(name: &str) -> bool {
    LOCAL_SOCKETS.contains(&name)
}

/// Whether a rule for the program names what it does by its next word.
pub(super) fn has_subcommands(name: &str) -> bool {
    WITH_SUBCOMMANDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_stands_in_one_list_once() {
        let lists = [FILTERS, WRAPPERS, READS, CHANGES, FETCHES, RUNS];
        let mut all: Vec<&str> = lists.concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for list in lists {
            assert!(list.is_sorted(), "{list:?}");
        }
    }

    #[test]
    fn a_path_elsewhere_can_be_any_program() {
        assert_eq!(class("/usr/bin/ls"), Class::Reads);
        for program in ["./ls", "work/bin/ls", "/tmp/ls", "mytool", ""] {
            assert_eq!(class(program), Class::Runs, "{program}");
        }
        assert_eq!(
            (named_class("tee"), named_class("cat"), named_class("env")),
            (Class::Changes, Class::Reads, Class::Runs)
        );
        assert!(
            runs_anything("python3.11") && runs_anything("env") && !runs_anything("ls") && !runs_anything("mytool")
        );
    }
}
