//! Programs that reach another machine: a shell there, and copies of files.

use super::{Anywhere, Class, CommandOperands, HarmlessOptions, Options, OptionsEnd, Program, closed, writes};

/// A program that connects to the host in its first operand. `values`: see [`Options::values`].
const fn connects(names: &'static [&'static str], harmless: &'static HarmlessOptions, values: &'static str) -> Program {
    Program {
        host_of: Some(""),
        commands: CommandOperands::Hosts,
        options: Options::new(&[], values),
        ..closed(Class::Unknown, names, harmless)
    }
}

pub(super) const TABLE: &[Program] = &[
    Program {
        writes_operands: true,
        commands: CommandOperands::Remote,
        instructed_by: "-f --files-from --exclude-from --include-from --filter",
        options: Options::new(
            &[writes("", "log-file"), writes("", "write-batch"), writes("", "only-write-batch")],
            "BfTM@e",
        ),
        ..closed(Class::Runs, &["rsync"], &RSYNC)
    },
    Program {
        commands: CommandOperands::Remote,
        host_options: "-J -o",
        options: Options::new(&[], "bcDFiJloPRSsX"),
        ..closed(Class::Unknown, &["scp"], &SCP)
    },
    Program {
        commands: CommandOperands::Remote,
        host_of: Some(""),
        host_options: "-J -o",
        options: Options::new(&[], "bcDFiJloPRSsX"),
        ..closed(Class::Unknown, &["sftp"], &SCP)
    },
    Program {
        local_sockets: true,
        joins_from: Some(1),
        starts_elsewhere: true,
        host_options: "-D -J -L -R -W -o",
        host_of: Some(""),
        starts: Some(""),
        options: Options::new(&[], "BbcDEeFIiJLlmOopPQRSWw"),
        own_operand: true,
        ..closed(Class::Runs, &["ssh"], &SSH)
    },
    connects(&["ftp"], &FTP, "NPqrsT"),
    connects(&["lftp"], &LFTP, "cefpu"),
    // Its options give the programs that it runs here and there.
    Program { starts: Some(""), own_operand: true, starts_elsewhere: true, ..connects(&["mosh"], &MOSH, "p") },
    // Those of other letters have a value in some versions only.
    Program {
        host_options: "-x --proxy",
        options: Options {
            anywhere: Anywhere { flags: "vz", values: "w", printing: ("vz", ""), ..Anywhere::NONE },
            ..Options::new(&[], "ipqswxX")
        },
        ..connects(&["nc", "ncat", "netcat"], &NC, "")
    },
    connects(&["telnet"], &TELNET, "beklnSX"),
    connects(&["rdesktop"], &RDESKTOP, "acdgknprsTuxX"),
    Program { host_options: "-o", ..connects(&["ssh-copy-id"], &SSH_COPY_ID, "FiopPt") },
    Program { host_options: "-I -L --ip-address --list", ..connects(&["smbclient"], &SMBCLIENT, "ABcDIiLmMnOpRsTtUW") },
    Program { host_options: "-c --connect --proxy", ..connects(&["wscat"], &WEBSOCKET, "cHnPpsx") },
    connects(&["websocat"], &WEBSOCKET, ""),
    Program {
        host_options: "--host",
        options: Options { valued: "eval file host password port username", ..Options::new(&[], "fpu") },
        ..connects(&["mongosh"], &MONGOSH, "")
    },
    // A further operand is a host, too.
    Program { commands: CommandOperands::OneHost, ..connects(&["nmap"], &NMAP, "p") },
    Program { subcommands: true, commands: CommandOperands::Remote, ..closed(Class::Unknown, &["rclone"], &RCLONE) },
];

/// Another option gives it folders of this machine, or a program for the other one.
const RDESKTOP: HarmlessOptions = HarmlessOptions {
    flags: "CDEfNPvz",
    clusters: true,
    operands: &[("", 1)],
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option leads elsewhere, runs a program, or sends another key.
const SSH_COPY_ID: HarmlessOptions =
    HarmlessOptions { flags: "nx", values: "p", clusters: true, operands: &[("", 1)], ..FTP };

/// The second operand is a password. By another option it gives commands, of which one may run here.
const SMBCLIENT: HarmlessOptions = HarmlessOptions {
    flags: "EgkNqVt",
    clusters: true,
    long: "grepable no-pass quiet",
    switches: "grepable no-pass quiet",
    operands: &[("", 1)],
    gives_operand: "-L --list",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// A second operand of `websocat` may be a program or a file.
const WEBSOCKET: HarmlessOptions = HarmlessOptions { operands: &[("", 1)], ..HarmlessOptions::ONLY_OPERANDS };

/// A second operand is a file of code.
const MONGOSH: HarmlessOptions = HarmlessOptions {
    long: "json norc quiet verbose version",
    switches: "norc quiet verbose version",
    operands: &[("", 1)],
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option runs a script, writes a file, reads hosts from one, or sends by way of others.
const NMAP: HarmlessOptions = HarmlessOptions {
    values: "p",
    long: "4 6 F O Pn T0 T1 T2 T3 T4 T5 n open r reason sS sT sU sV sn v vv vvv",
    // `-p80`
    begin: "p0 p1 p2 p3 p4 p5 p6 p7 p8 p9 p-",
    switches: "4 6 F O Pn T0 T1 T2 T3 T4 T5 n open r reason sS sT sU sV sn v vv vvv",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option leads to other settings, which name the remotes, or writes a file.
const RCLONE: HarmlessOptions = HarmlessOptions {
    flags: "LMPnquvx",
    clusters: true,
    long: "checksum dry-run human-readable ignore-existing max-depth progress quiet recursive size-only stats stats-one-line transfers \
        update verbose",
    switches: "checksum dry-run human-readable ignore-existing progress quiet recursive size-only stats-one-line update verbose",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// A further operand may be a place on another host.
const FTP: HarmlessOptions = HarmlessOptions {
    flags: "46Adeginpv",
    clusters: true,
    operands: &[("", 1)],
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Its other options give commands, a file of them, or a user.
const LFTP: HarmlessOptions = HarmlessOptions {
    flags: "d",
    values: "p",
    clusters: true,
    operands: &[("", 1)],
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Behind `--` are the host and a command's words.
const MOSH: HarmlessOptions =
    HarmlessOptions { flags: "46a", values: "p", clusters: true, long: "no-init predict", ..HarmlessOptions::NONE };

/// By another option it runs a program, listens, writes a file, or goes by a further host.
const NC: HarmlessOptions = HarmlessOptions {
    flags: "46nuvz",
    values: "iw",
    clusters: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const TELNET: HarmlessOptions =
    HarmlessOptions { flags: "468EKL", clusters: true, end: OptionsEnd::Nowhere, ..HarmlessOptions::NONE };

/// Every other option may run a program here or there, lead to other files, or delete some.
const RSYNC: HarmlessOptions = HarmlessOptions {
    flags: "8aAbcCdDEgGhHiIjklLmnNoOpPqrStuUvVWxXyz0123456789",
    clusters: true,
    long: "acls archive backup bwlimit checksum compress compress-level contimeout copy-links cvs-exclude dirs dry-run exclude \
        executability existing fuzzy group hard-links help human-readable ignore-existing ignore-times include info inplace \
        itemize-changes keep-dirlinks links list-only max-size min-size modify-window no-compress no-group no-inc-recursive \
        no-motd no-owner no-perms no-times numeric-ids omit-dir-times one-file-system out-format owner partial perms \
        progress protect-args prune-empty-dirs quiet recursive relative safe-links size-only sparse stats timeout times update \
        verbose version whole-file xattrs",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const SCP: HarmlessOptions =
    HarmlessOptions { flags: "46apqrv", clusters: true, end: OptionsEnd::Nowhere, ..HarmlessOptions::NONE };

/// By another option `ssh` runs a program here, loads a library, writes a file, connects elsewhere, or lets the other machine use the agent
/// and the screen of this one.
const SSH: HarmlessOptions =
    HarmlessOptions { flags: "46aCknqTtVvx", clusters: true, end: OptionsEnd::Nowhere, ..HarmlessOptions::NONE };
