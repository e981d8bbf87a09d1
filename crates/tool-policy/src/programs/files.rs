//! Programs that read files and the state of the system, and programs that change files.

use crate::expression::Expression;

use super::{Class, Options, Program, destroys, executes, steers, writes};

const fn reads(names: &'static [&'static str]) -> Program {
    Program::new(Class::Reads, names)
}

const fn changes(names: &'static [&'static str]) -> Program {
    Program::new(Class::Changes, names)
}

const PAGER: Options = Options::new(
    &[
        writes("o", "log-file"),
        writes("O", "LOG-FILE"),
        steers("k", "lesskey-file"),
        steers("", "lesskey-content"),
        steers("", "lesskey-src"),
    ],
    // Options can continue behind a number, and behind a text that ends in `$`.
    "",
);

/// Settings that change what a later test means (`-daystart`, `-regextype`) are not among them.
const FIND: Expression = Expression {
    plain: "a and d depth empty executable false ignore_readdir_race ls mount nogroup noignore_readdir_race noleaf not nouser nowarn o or \
        print print0 prune quit readable true warn writable xdev",
    valued: "amin anewer atime cmin cnewer context ctime fstype gid group ilname iname inum ipath iregex iwholename links lname \
        maxdepth mindepth mmin mtime name newer neweraa neweraB newerac neweram newerat newerBa newerBB newerBc newerBm newerBt newerca newercB newercc newercm newerct newerma newermB newermc newermm newermt path perm printf regex samefile size type uid used \
        user wholename xtype",
    leading: "H L P O0 O1 O2 O3",
};

pub(super) const TABLE: &[Program] = &[
    reads(&["df", "du", "findmnt", "free", "locate", "ls", "lsblk", "pgrep", "ps", "size", "stat", "strings"]),
    reads(&["uptime", "vdir"]),
    // A file of settings may name a pager.
    Program { options: Options::new(&[executes("", "pager"), executes("", "ackrc")], ""), ..reads(&["ack", "ag"]) },
    Program {
        options: Options::new(&[executes("x", "exec"), executes("X", "exec-batch")], "detEcSoj"),
        ..reads(&["fd", "fdfind"])
    },
    Program {
        options: Options::new(
            &[writes("C", "compile"), executes("z", "uncompress"), executes("Z", "uncompress-noreport")],
            "efFmP",
        ),
        ..reads(&["file"])
    },
    // A program that `-exec` starts by name is judged itself.
    Program {
        instructed_by: "-files0-from",
        options: Options {
            starting: "exec execdir ok okdir",
            guarded: &[
                writes("", "delete"),
                writes("", "fprint"),
                writes("", "fprint0"),
                writes("", "fprintf"),
                writes("", "fls"),
                steers("", "files0-from"),
            ],
            expression: Some(&FIND),
            ..Options::NONE
        },
        ..reads(&["find"])
    },
    Program { helpers: &["sh"], options: PAGER, ..reads(&["less"]) },
    Program { options: PAGER, ..reads(&["more"]) },
    Program {
        helpers: &[
            "/usr/lib/man-db",
            "/usr/libexec/man-db",
            "sh",
            "less",
            "cat",
            "col",
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
        options: Options::new(
            &[
                // The file names the programs that format a page.
                executes("C", "config-file"),
                executes("P", "pager"),
                // The value may contain further options of the pager.
                executes("r", "prompt"),
                executes("H", "html"),
                executes("X", "gxditview"),
                executes("p", "preprocessor"),
            ],
            "CRLmMSserEp",
        ),
        ..reads(&["man"])
    },
    Program {
        options: Options::new(
            &[executes("", "pre"), executes("", "hostname-bin"), executes("z", "search-zip")],
            "efgmABCtTrdMjE",
        ),
        ..reads(&["rg"])
    },
    Program { options: Options::new(&[writes("o", "output")], ""), ..reads(&["tree"]) },
    changes(&["mkdir", "mkfifo", "rm", "rmdir", "touch", "truncate", "unlink"]),
    Program { options: Options::new(&[destroys("u", "remove")], "ns"), ..changes(&["shred"]) },
    // A mode may look like an option, and takes the place of the one that a rule names.
    Program {
        options: Options::new(&[destroys("rwxXstugoa,+=01234567", "mode"), destroys("", "reference")], ""),
        ..changes(&["chmod"])
    },
    Program { options: Options::new(&[destroys("", "reference")], ""), ..changes(&["chgrp", "chown"]) },
    Program { brings: Some(""), ..changes(&["dd", "link"]) },
    // Options that put the name of a file together.
    Program {
        options: Options::new(&[writes("S", "suffix"), destroys("t", "target-directory")], "tS"),
        brings: Some(""),
        ..changes(&["cp", "ln", "mv"])
    },
    Program { options: Options::new(&[writes("b", "suffix-format")], "bfn"), brings: Some(""), ..changes(&["csplit"]) },
    Program {
        instructed_by: "-i --input",
        options: Options::new(
            &[
                writes("B", "prefix"),
                writes("Y", "basename-prefix"),
                writes("z", "suffix"),
                writes("o", "output"),
                writes("r", "reject-file"),
            ],
            "BdDFgiopVrxYz",
        ),
        ..changes(&["patch"])
    },
    Program {
        options: Options::new(
            &[executes("", "strip-program"), writes("S", "suffix"), destroys("t", "target-directory")],
            "gmoStT",
        ),
        brings: Some(""),
        ..changes(&["install"])
    },
    Program { options: Options::new(&[executes("", "filter")], "abClnt"), brings: Some(""), ..changes(&["split"]) },
];
