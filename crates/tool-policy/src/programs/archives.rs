//! Programs that pack and unpack archives.

use super::{Class, Options, Program, executes, writes};

const fn changes(names: &'static [&'static str]) -> Program {
    Program::new(Class::Changes, names)
}

/// Programs that the wrapper scripts of `gzip` and the like execute.
const SCRIPT: &[&str] = &["sh", "gzip", "bzip2", "xz", "zstd", "grep", "sed", "cat", "expr"];

pub(super) const TABLE: &[Program] = &[
    changes(&["bunzip2", "bzip2", "gzip", "unxz", "unzip", "xz"]),
    Program { options: Options::new(&[writes("", "rm")], "DMTo"), ..changes(&["unzstd", "zstd"]) },
    Program { helpers: SCRIPT, ..changes(&["gunzip"]) },
    Program { helpers: SCRIPT, ..Program::new(Class::Reads, &["bzcat", "xzcat", "zcat", "zgrep", "zstdcat"]) },
    Program {
        helpers: &["gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress"],
        options: Options {
            guarded: &[
                executes("", "to-command"),
                executes("", "checkpoint-action"),
                executes("I", "use-compress-program"),
                executes("", "rsh-command"),
                executes("F", "info-script"),
                executes("", "new-volume-script"),
                executes("", "rmt-command"),
                writes("", "remove-files"),
                writes("", "recursive-unlink"),
                writes("", "index-file"),
                writes("g", "listed-incremental"),
                writes("", "volno-file"),
                // Continues in another archive when the first is full.
                writes("M", "multi-volume"),
            ],
            values: "fCbTXKNgHVLIF",
            bundled: true,
            patterns: &["--exclude"],
            ..Options::NONE
        },
        ..changes(&["tar"])
    },
    Program {
        options: Options {
            guarded: &[
                writes("m", "move"),
                // Applies to entries of the archive.
                writes("d", "delete"),
                writes("S", "filesync"),
                writes("O", "output-file"),
                // `-lf`, followed by the file's name.
                writes("l", "logfile-path"),
                executes("T", "test"),
                executes("", "unzip-command"),
                executes("", "TT"),
            ],
            // `-n` takes a value, but `-nw` takes none.
            values: "bt",
            patterns: &["-x", "--exclude"],
            ..Options::NONE
        },
        ..changes(&["zip"])
    },
];
