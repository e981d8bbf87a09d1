//! Build tools and package managers: they run the code in a folder.

use super::{Anywhere, Class, CommandOperands, HarmlessOptions, Options, Program, leads};

const fn runs(names: &'static [&'static str]) -> Program {
    Program::new(Class::Runs, names)
}

/// A tool whose options lead to other code, except the `harmless` ones. `values`: see [`Options::values`].
const fn tool(names: &'static [&'static str], harmless: &'static HarmlessOptions, values: &'static str) -> Program {
    Program { harmless: Some(harmless), options: Options::new(&[], values), ..runs(names) }
}

pub(super) const TABLE: &[Program] = &[
    Program { variables: true, ..tool(&["gmake", "make"], &MAKE, "CEfIjloOW") },
    tool(&["npx"], &NPX, "Cw"),
    Program {
        subcommands: true,
        doing_more: &[("audit", "fix")],
        options: Options { anywhere: SILENT, ..Options::new(&[], "Cw") },
        ..tool(&["npm"], &NPM, "Cw")
    },
    // Behind a script's name their options are the script's.
    Program { subcommands: true, ..tool(&["pnpm", "yarn"], &NPM, "Cw") },
    Program { subcommands: true, ..tool(&["cargo"], &CARGO, "CFjpZ") },
    Program { subcommands: true, options: Options::ONE_DASH, ..runs(&["go"]) },
    Program { subcommands: true, ..runs(&["pip", "pip3", "poetry", "uv"]) },
    Program {
        versioned: true,
        options: COMPILER,
        commands: CommandOperands::Listed,
        ..runs(&["c++", "cc", "clang", "clang++", "g++", "gcc"])
    },
    // Properties, whose names are no letters.
    Program { options: Options::new(&[], "DP"), ..runs(&["gradle"]) },
    Program { options: Options::new(&[], "D"), ..runs(&["mvn"]) },
    runs(&["bunx", "just", "pipx", "pytest", "uvx"]),
];

/// Options by which a compiler runs another program, or loads a library into itself.
const COMPILER: Options = Options {
    guarded: &[
        leads("", "wrapper"),
        leads("", "B"),
        leads("", "specs"),
        leads("", "fplugin"),
        leads("", "fpass-plugin"),
        leads("", "fmodule"),
        leads("", "iplugindir"),
        leads("", "fuse-ld"),
        leads("", "ld-path"),
        leads("", "gcc-toolchain"),
        leads("", "config"),
        leads("", "Wa,"),
        leads("", "Wl,"),
        leads("", "Wp,"),
        leads("", "X"),
        leads("", "mllvm"),
        leads("", "ccc-"),
    ],
    values: "ox",
    one_dash: true,
    // `gcc` reads `--NAME` as `-fNAME` if it does not know it, and `clang` has names for the paths of its programs.
    two_dashes: Some(
        "compile debug define-macro help include-directory language optimize output param preprocess shared static std \
            target-help undefine-macro verbose version",
    ),
    ..Options::NONE
};

const NPX: HarmlessOptions = HarmlessOptions {
    flags: "dhqsvy",
    values: "",
    clusters: false,
    long: "help no-audit no-fund offline prefer-offline quiet silent version yes",
    until_operand: true,
    ..HarmlessOptions::NONE
};

/// npm takes its own options in every position in front of `--`.
const SILENT: Anywhere = Anywhere { flags: "s", switches: "silent", printing: ("s", "silent"), ..Anywhere::NONE };

/// npm accepts any number of dashes as two, and treats clusters as names.
const NPM: HarmlessOptions = HarmlessOptions {
    flags: "dhqsvwy",
    values: "",
    clusters: false,
    long: "color dry-run foreground-scripts help if-present include-workspace-root json loglevel \
        no-audit no-color no-fund offline omit prefer-offline quiet silent verbose version workspace workspaces yes",
    ..HarmlessOptions::NONE
};

const MAKE: HarmlessOptions = HarmlessOptions {
    flags: "BdhknpqrRsSvw0123456789",
    values: "jl",
    clusters: true,
    long: "always-make debug dry-run help jobs just-print keep-going load-average no-builtin-rules \
        no-print-directory output-sync print-data-base print-directory question quiet recon silent trace \
        version warn-undefined-variables",
    switches: "always-make debug dry-run just-print keep-going no-builtin-rules no-print-directory print-directory question quiet \
        silent trace warn-undefined-variables",
    reordering: "-j -k --jobs --keep-going",
    unordered: "all bench benchmark build check clean coverage doc docs format fmt lint test tests",
    ..HarmlessOptions::NONE
};

const CARGO: HarmlessOptions = HarmlessOptions {
    flags: "hqrvV",
    values: "Fjp",
    clusters: true,
    long: "all all-features all-targets bench benches bin bins check color doc example examples exclude features \
        frozen help jobs keep-going lib list locked message-format no-default-features no-deps no-fail-fast no-run \
        offline package profile quiet release test tests verbose version workspace",
    behind: Some(("clippy fix rustc rustdoc", "-C -L -Z -l -o --codegen --emit --extern --out-dir --sysroot @")),
    ..HarmlessOptions::NONE
};
