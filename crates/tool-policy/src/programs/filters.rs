//! Filters, which transform their input.

use super::{Anywhere, Class, Options, Program, alters, executes, instructed, scripts, writes};

const fn filter(names: &'static [&'static str]) -> Program {
    Program::new(Class::Filter, names)
}

const fn with(names: &'static [&'static str], options: Options) -> Program {
    Program::with(Class::Filter, names, options)
}

pub(super) const TABLE: &[Program] = &[
    filter(&["[", "arch", "b2sum", "base32", "base64", "basename", "basenc", "cal", "cat", "cksum", "clear", "cmp"]),
    filter(&["col", "colrm", "column", "comm", "cut", "envsubst"]),
    filter(&["date", "diff", "dirname", "echo", "expand", "expr", "factor", "false", "fmt", "fold", "getconf"]),
    filter(&["grep", "groups", "head", "hexdump", "hostname", "iconv", "id", "join", "locale", "logname"]),
    filter(&["md5sum", "nl", "nproc", "numfmt", "od", "paste", "pr", "printenv", "printf", "pwd", "readlink"]),
    filter(&["realpath", "rev", "seq", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "sleep"]),
    filter(&["sum", "tac", "tail", "test", "tput", "tr", "true", "tsort", "tty", "uname", "unexpand", "uniq", "wc"]),
    filter(&["whoami", "xxd", "yes"]),
    // Wrapper scripts of grep.
    Program { helpers: &["sh", "grep"], ..filter(&["egrep", "fgrep"]) },
    Program { helpers: &["sh"], ..filter(&["which"]) },
    Program { writes_operands: true, ..filter(&["mktemp", "tee"]) },
    Program {
        script_acts: true,
        ..instructed(
            "-f -E -i --file --exec --include",
            with(
                &["awk", "gawk", "mawk", "nawk"],
                Options::new(
                    &[
                        writes("i", "include"),
                        executes("l", "load"),
                        writes("o", "pretty-print"),
                        writes("d", "dump-variables"),
                        writes("p", "profile"),
                        scripts("f", "file"),
                        scripts("e", "source"),
                        scripts("E", "exec"),
                        // Debugger commands change the effect of a script.
                        scripts("D", "debug"),
                        // `-W NAME` gives any other option by its long name.
                        executes("W", "W"),
                    ],
                    "FvfeEW",
                ),
            ),
        )
    },
    Program {
        script_acts: true,
        quotes_by_any_mark: true,
        ..instructed(
            "-f --file",
            with(
                &["gsed", "sed"],
                Options {
                    anywhere: Anywhere { flags: "Enrsuz", ..Anywhere::NONE },
                    valued: "line-length",
                    ..Options::new(
                        &[
                            writes("i", "in-place"),
                            scripts("e", "expression"),
                            scripts("f", "file"),
                            // With `-i` the file then holds what the script prints by a command.
                            alters("n", "quiet"),
                            alters("", "silent"),
                            alters("", "debug"),
                            // Other lines, and other expressions.
                            alters("z", "null-data"),
                            alters("", "zero-terminated"),
                            alters("Er", "regexp-extended"),
                            alters("", "posix"),
                        ],
                        "efl",
                    )
                },
            ),
        )
    },
    instructed(
        "-f --from-file",
        with(&["jq"], Options::new(&[scripts("f", "from-file"), alters("L", "library-path")], "")),
    ),
    Program { brings: Some("-o --output"), ..with(&["shuf"], Options::new(&[writes("o", "output")], "in")) },
    Program {
        brings: Some("-o --output"),
        ..with(
            &["sort"],
            Options {
                anywhere: Anywhere {
                    flags: "bdfghinMrRsuVz",
                    switches: "numeric-sort reverse stable unique version-sort",
                    ..Anywhere::NONE
                },
                ..Options::new(
                    &[writes("o", "output"), executes("", "compress-program"), writes("T", "temporary-directory")],
                    "kSt",
                )
            },
        )
    },
    instructed(
        "--from-file",
        with(
            &["yq"],
            Options::new(
                &[
                    writes("i", "inplace"),
                    writes("s", "split-exp"),
                    scripts("", "expression"),
                    scripts("", "from-file"),
                    // It leaves only that part, or writes it as well.
                    alters("f", "front-matter"),
                ],
                "oIp",
            ),
        ),
    ),
];
