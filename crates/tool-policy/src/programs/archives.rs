//! Programs that pack and unpack archives.

use super::{Class, Names, Options, Program, executes, writes};

const fn changes(names: &'static [&'static str]) -> Program {
    Program::new(Class::Changes, names)
}

/// Programs that the wrapper scripts of `gzip` and the like execute.
const SCRIPT: &[&str] = &["sh", "gzip", "bzip2", "xz", "zstd", "grep", "sed", "cat", "expr"];

/// Options of `gzip` and its like that list, test, or write to standard output.
const LOOKS: Names = "-c -l -t --list --test --stdout --to-stdout";

pub(super) const TABLE: &[Program] = &[
    Program {
        looks: LOOKS,
        options: Options::new(&[], "CFMST"),
        ..changes(&["bunzip2", "bzip2", "gzip", "unxz", "xz"])
    },
    Program { looks: "-l -p -t -v -z -Z", options: Options::new(&[], "dPx"), brings: Some(""), ..changes(&["unzip"]) },
    Program { looks: LOOKS, options: Options::new(&[writes("", "rm")], "DMTo"), ..changes(&["unzstd", "zstd"]) },
    Program { looks: LOOKS, helpers: SCRIPT, ..changes(&["gunzip"]) },
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
                executes("", "set-mtime-command"),
                // A name that is put together.
                writes("", "transform"),
                writes("", "xform"),
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
        looks: "-t --list",
        brings: Some("-x --extract --get"),
        // Lines of such a file may be options.
        instructed_by: "-T --files-from",
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
