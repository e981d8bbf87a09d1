//! Other programs: those that can run any other program, and those that work over a local socket. Builtins of the
//! shell that run other programs are here, too.

use super::{
    Anywhere, Class, CommandOperands, ContainerOptions, GuardedOption, HarmlessOptions, Options, Program,
    ScriptOperands, alters, destroys, executes, leads, scripts, steers, writes,
};

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
    runs(&["at", "batch", "crontab", "eval", "rename", "script", "socat", "source", "su"]),
    starts(&["builtin", "busybox", "bwrap", "chroot", "doas", "exec", "flock", "nsenter", "setarch", "setpriv"]),
    starts(&["strace", "sudo", "systemd-run", "taskset", "toybox", "unshare"]),
    // Commands such as `.trace` write a file whatever the options are.
    Program {
        looks: "-readonly --readonly",
        held_by_both: Some(("readonly", "safe")),
        options: DATABASE_FILE,
        ..runs(&["sqlite3"])
    },
    Program { options: DATABASE_FILE, ..runs(&["duckdb"]) },
    Program { joins_from: Some(0), ..starts(&["parallel", "watch"]) },
    runs(&["ed", "gdb"]),
    Program {
        closed: true,
        harmless: Some(&EDITOR),
        commands: CommandOperands::Added,
        ..runs(&["emacs", "ex", "nvim", "vi", "vim"])
    },
    Program { options: APT, ..with_subcommands(&["apt"]) },
    with_subcommands(&["gh"]),
    Program {
        starts: Some("exec run"),
        commands: CommandOperands::Fetched,
        options: KUBECTL,
        ..with_subcommands(&["kubectl"])
    },
    Program { options: APT, ..runs(&["apt-get"]) },
    runs(&["nix", "nix-shell"]),
    Program {
        writes_operands: true,
        instructed_by: "-f --files-from --exclude-from --include-from --filter",
        options: RSYNC,
        ..runs(&["rsync"])
    },
    Program { options: SCP, ..Program::new(Class::Unknown, &["scp", "sftp"]) },
    Program { local_sockets: true, starts: Some("exec run"), container: Some(&CONTAINER), ..runs(&["docker-compose"]) },
    Program { local_sockets: true, ..starts(&["screen"]) },
    Program { local_sockets: true, joins_from: Some(1), options: SSH, ..starts(&["ssh"]) },
    Program {
        local_sockets: true,
        commands: CommandOperands::Separated,
        // All others but the one that the rule names.
        doing_more: &[
            ("kill-pane", "-a"),
            ("kill-session", "-a"),
            ("kill-window", "-a"),
            ("killp", "-a"),
            ("killw", "-a"),
        ],
        options: TMUX,
        ..runs(&["tmux"])
    },
    Program {
        local_sockets: true,
        starts: Some("exec run"),
        container: Some(&CONTAINER),
        ..with_subcommands(&["docker"])
    },
    Program {
        local_sockets: true,
        starts: Some("exec run"),
        container: Some(&CONTAINER),
        options: PODMAN,
        ..with_subcommands(&["podman"])
    },
    Program { subcommands: true, ..Program::new(Class::Unknown, &["brew"]) },
    Program::with(Class::Unknown, &["packer", "terraform", "tofu"], Options::ONE_DASH),
    Program { subcommands: true, ..closed(&["systemctl"], &SYSTEMCTL) },
    closed(&["gpg", "gpg2"], &GPG),
    Program { commands: CommandOperands::Alternatives, ..closed(&["journalctl"], &JOURNALCTL) },
    Program {
        subcommands: true,
        commands: CommandOperands::Located,
        doing_more: &[("s_client", ":")],
        options: OPENSSL,
        ..Program::new(Class::Unknown, &["openssl"])
    },
    Program { looks: "-B -F -L -l", options: SSH_KEYGEN, ..Program::new(Class::Unknown, &["ssh-keygen"]) },
    over_socket(&["busctl", "dbus-send", "gdbus", "loginctl", "notify-send", "pactl"]),
    over_socket(&["playerctl", "redis-cli", "ssh-add", "xdg-open"]),
    Program { commands: CommandOperands::Connections, options: PSQL, ..over_socket(&["psql"]) },
    postgres(&["pg_dump", "pg_dumpall", "pg_restore"], "dfFhnNpSTU"),
    postgres(&["clusterdb", "createdb", "dropdb", "reindexdb", "vacuumdb"], "hpU"),
    postgres(&["pg_basebackup", "pg_isready", "pgbench"], "hpU"),
    Program { options: MYSQL, ..over_socket(&["mariadb", "mysql"]) },
    Program::with(Class::Unknown, &["mariadb-admin", "mariadb-dump", "mysqladmin", "mysqldump"], MYSQL_TOOL),
];

/// A tool of PostgreSQL. `values`: see [`Options::values`].
const fn postgres(names: &'static [&'static str], values: &'static str) -> Program {
    Program {
        commands: CommandOperands::Connections,
        ..Program::with(Class::Unknown, names, Options::new(POSTGRES, values))
    }
}

/// A program that starts the command in its arguments.
const fn starts(names: &'static [&'static str]) -> Program {
    Program { starts: Some(""), ..runs(names) }
}

const CONTAINER: ContainerOptions = ContainerOptions {
    subcommands: "create run",
    groups: "compose container",
    valued: "-c -f -H -l -p --ansi --cgroup-manager --config --connection --conmon --context --env-file --events-backend --file --hooks-dir \
        --host --identity --imagestore --log-level --module --network-config-dir --out --parallel --profile --progress \
        --project-directory --project-name --root --runroot --runtime --ssh --storage-driver --storage-opt --tlscacert --tlscert \
        --tlskey --tmpdir --url --volumepath",
    switches: "-D -h -r -v --all-resources --compatibility --debug --dry-run --help --no-ansi --noout --remote --syslog --tls --tlsverify \
        --transient-store --verbose --version",
    flags: "dPiqtT",
    values: "acehlmpuvw",
    own_switches: "build detach disable-content-trust env-host help http-proxy init interactive no-TTY no-deps no-healthcheck no-hostname \
        no-hosts oom-kill-disable passwd privileged publish-all quiet quiet-build quiet-pull read-only read-only-tmpfs remove-orphans \
        replace rm rmi rootfs service-ports sig-proxy tls-verify tty unsetenv-all use-aliases use-api-socket",
    own_valued: "add-host annotation attach blkio-weight cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-shares \
        cpus cpuset-cpus cpuset-mems device device-cgroup-rule dns dns-option dns-search entrypoint env env-file expose gpus group-add \
        health-cmd health-interval health-retries health-timeout hostname ip ip6 ipc label label-file link log-driver log-opt \
        mac-address memory memory-reservation memory-swap mount name network network-alias oom-score-adj pid pids-limit platform \
        publish restart runtime security-opt shm-size stop-signal stop-timeout sysctl tmpfs ulimit user userns uts volume \
        volumes-from workdir",
    harmless: "-d -e -i -q -t -T -w --detach --env --help --init --interactive --name --no-deps --quiet --read-only --rm --tty --workdir",
};

/// Programs that it runs, and files that name some. It takes these options behind any subcommand.
const PODMAN: Options = Options {
    guarded: &[
        destroys("", "conmon"),
        destroys("", "hooks-dir"),
        destroys("", "module"),
        destroys("", "network-cmd-path"),
        destroys("", "runtime"),
    ],
    harmless: &["net", "network"],
    ..Options::NONE
};

/// A setting names programs that it runs, folders, and whether it only simulates.
const APT: Options = Options::new(&[leads("o", "option"), leads("c", "config-file")], "acot");

/// A file of settings names programs that it runs. Other options lead to another cluster, or to another user of it.
const KUBECTL: Options = Options {
    guarded: &[
        leads("", "kubeconfig"),
        leads("s", "server"),
        leads("", "cluster"),
        leads("", "context"),
        leads("", "user"),
        leads("", "username"),
        leads("", "password"),
        leads("", "token"),
        leads("", "as"),
        leads("", "as-group"),
        leads("", "as-uid"),
        leads("", "tls-server-name"),
        leads("", "insecure-skip-tls-verify"),
        leads("", "certificate-authority"),
        leads("", "client-certificate"),
        leads("", "client-key"),
        leads("", "cache-dir"),
        leads("", "profile-output"),
        leads("", "raw"),
        // Its resources may be anywhere, and git fetches them.
        leads("k", "kustomize"),
        leads("", "kuberc"),
        leads("", "as-user-extra"),
    ],
    values: "ckLlnos",
    harmless: &["client"],
    loose_names: true,
    anywhere: Anywhere { values: "n", valued: "namespace", ..Anywhere::NONE },
    ..Options::NONE
};

const RSYNC: Options = Options {
    guarded: &[
        leads("e", "rsh"),
        leads("", "rsync-path"),
        leads("M", "remote-option"),
        leads("", "config"),
        leads("", "daemon"),
        leads("", "early-input"),
        leads("", "server"),
        leads("", "password-file"),
        leads("", "files-from"),
        leads("", "read-batch"),
        leads("", "compare-dest"),
        leads("", "copy-dest"),
        leads("", "link-dest"),
        leads("T", "temp-dir"),
        leads("", "backup-dir"),
        leads("", "partial-dir"),
        leads("", "write-devices"),
        writes("", "log-file"),
        writes("", "write-batch"),
        writes("", "only-write-batch"),
        destroys("", "remove-source-files"),
        destroys("", "remove-sent-files"),
        destroys("", "force"),
        destroys("", "delete-missing-args"),
        destroys("", "del"),
        destroys("", "delete"),
        destroys("", "delete-after"),
        destroys("", "delete-before"),
        destroys("", "delete-delay"),
        destroys("", "delete-during"),
        destroys("", "delete-excluded"),
    ],
    values: "BfTM@e",
    harmless: &["backup", "partial"],
    ..Options::NONE
};

const SCP: Options = Options::new(
    &[leads("S", "S"), leads("o", "o"), leads("F", "F"), leads("D", "D"), leads("J", "J"), leads("b", "b")],
    "bcDFiJloPRSsX",
);

/// Options by which `ssh` runs a program here, loads a library, writes a file, or connects elsewhere.
const SSH: Options = Options::new(
    &[
        leads("F", "F"),
        leads("o", "o"),
        leads("E", "E"),
        leads("J", "J"),
        leads("I", "I"),
        leads("i", "i"),
        leads("l", "l"),
        leads("D", "D"),
        leads("L", "L"),
        leads("R", "R"),
        leads("W", "W"),
        leads("w", "w"),
        leads("S", "S"),
        leads("B", "B"),
        leads("b", "b"),
        // Another port is another server.
        leads("p", "p"),
        leads("P", "P"),
        leads("O", "O"),
        leads("s", "s"),
        // The other machine may use the agent, the screen and the ticket of this one.
        leads("A", "A"),
        leads("K", "K"),
        leads("X", "X"),
        leads("Y", "Y"),
    ],
    "BbcDEeFIiJLlmOopPQRSWw",
);

/// Commands of its own run programs and write files, so each option that gives one, or a file of them, is a script.
const DATABASE_FILE: Options = Options {
    guarded: &[scripts("", "cmd"), scripts("c", "c"), scripts("", "f"), scripts("", "init"), scripts("A", "A")],
    harmless: &["column", "csv"],
    one_dash: true,
    scripts: ScriptOperands::BehindFirst(
        "cmd init separator nullvalue newline maxsize mmap vfs heap escape c f file s storage-version",
    ),
    ..Options::NONE
};

/// Options by which a tool of PostgreSQL connects elsewhere, or as another user.
const POSTGRES: &[GuardedOption] = &[
    leads("h", "host"),
    leads("p", "port"),
    leads("U", "username"),
    leads("d", "dbname"),
    leads("", "maintenance-db"),
    leads("", "role"),
];

const PSQL: Options = Options {
    scripts: ScriptOperands::None,
    ..Options::new(
        &[
            scripts("c", "command"),
            scripts("f", "file"),
            // Behind a `|` is a command.
            scripts("o", "output"),
            scripts("L", "log-file"),
            alters("v", "set"),
            alters("", "variable"),
            alters("P", "pset"),
            leads("h", "host"),
            leads("p", "port"),
            leads("U", "username"),
            leads("d", "dbname"),
        ],
        "cdfFhLopPRTUv",
    )
};

const MYSQL: Options = Options {
    attached: "p",
    loose_names: true,
    scripts: ScriptOperands::None,
    ..Options::new(
        &[
            scripts("e", "execute"),
            scripts("", "init-command"),
            scripts("", "init-command-add"),
            scripts("", "tee"),
            scripts("", "pager"),
            alters("", "delimiter"),
            leads("D", "database"),
            leads("h", "host"),
            leads("P", "port"),
            leads("S", "socket"),
            leads("u", "user"),
            leads("", "protocol"),
            leads("", "dns-srv-name"),
            leads("", "defaults-file"),
            leads("", "defaults-extra-file"),
            leads("", "defaults-group-suffix"),
            leads("", "login-path"),
            leads("", "plugin-dir"),
            // Files that the server may ask for.
            leads("", "load-data-local-dir"),
            leads("", "local-infile"),
        ],
        "DPSehu",
    )
};

/// A tool of MySQL.
const MYSQL_TOOL: Options = Options {
    attached: "p",
    loose_names: true,
    ..Options::new(
        &[
            leads("h", "host"),
            leads("P", "port"),
            leads("S", "socket"),
            leads("u", "user"),
            leads("", "protocol"),
            leads("", "defaults-file"),
            leads("", "defaults-extra-file"),
            leads("", "defaults-group-suffix"),
            leads("", "login-path"),
            leads("", "plugin-dir"),
        ],
        "PShu",
    )
};

/// Any other option may give commands, or a file of them.
const EDITOR: HarmlessOptions = HarmlessOptions {
    flags: "nRyebZq",
    values: "",
    clusters: true,
    long: "batch quick no-init-file no-site-file clean noplugin headless",
    switches: "batch quick no-init-file no-site-file clean noplugin headless",
    ..HarmlessOptions::NONE
};

/// Libraries that a call loads, files that it writes, and hosts to which it connects.
const OPENSSL: Options = Options {
    guarded: &[
        leads("", "engine"),
        leads("", "provider"),
        leads("", "config"),
        leads("", "ssl_client_engine"),
        writes("", "out"),
        writes("", "keyout"),
        writes("", "writerand"),
        writes("", "CAcreateserial"),
        writes("", "CAserial"),
        writes("", "cacertsout"),
        writes("", "certout"),
        writes("", "chainout"),
        writes("", "crlout"),
        writes("", "extracertsout"),
        writes("", "newkeyout"),
        writes("", "rspout"),
        writes("", "certsout"),
        writes("", "keylogfile"),
        writes("", "msgfile"),
        writes("", "reqout"),
        writes("", "respout"),
        writes("", "sess_out"),
        leads("", "proxy"),
        leads("", "connect"),
        leads("", "host"),
        leads("", "path"),
        leads("", "port"),
        leads("", "server"),
        leads("", "unix"),
        leads("", "url"),
        // Its address stands in the certificate.
        leads("", "crl_download"),
    ],
    harmless: &["outform", "serverinfo", "servername", "serverpref"],
    one_dash: true,
    ..Options::NONE
};

const SSH_KEYGEN: Options = Options::new(&[executes("D", "D"), executes("w", "w")], "abCDEeFfGIiJjKMmNnOPRrSsTtVWwYZz");

const TMUX: Options = Options::new(
    &[executes("c", "c"), executes("f", "f"), executes("F", "F"), steers("L", "L"), steers("S", "S")],
    "t",
);

const SYSTEMCTL: HarmlessOptions = HarmlessOptions {
    flags: "alqr0123456789",
    values: "nopt",
    clusters: true,
    long: "all failed full help lines no-legend no-pager no-wall output plain property quiet show-types state system type user \
        value version",
    switches: "all failed full no-legend no-pager no-wall plain quiet show-types system user value",
    ..HarmlessOptions::NONE
};

const GPG: HarmlessOptions = HarmlessOptions {
    flags: "aqv",
    values: "",
    clusters: true,
    long: "armor batch no-tty quiet verbose with-colons with-fingerprint",
    switches: "armor batch no-tty quiet verbose with-colons",
    ..HarmlessOptions::NONE
};

const JOURNALCTL: HarmlessOptions = HarmlessOptions {
    flags: "abefkmqrx",
    values: "gnopStuU",
    clusters: true,
    long: "all boot catalog dmesg facility follow full grep help identifier lines list-boots no-full no-hostname no-pager \
        no-tail output output-fields pager-end priority quiet reverse since system unit until user user-unit utc version",
    switches: "all catalog dmesg follow full no-full no-hostname no-pager no-tail pager-end quiet reverse system user utc",
    ..HarmlessOptions::NONE
};
