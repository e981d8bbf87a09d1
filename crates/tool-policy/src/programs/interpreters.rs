//! Interpreters: they run the script in their first operand, or code from an option or from standard input.

use super::{
    Anywhere, Class, CommandOperands, HarmlessOptions, Names, Options, OptionsEnd, Program, closed, executes, writes,
};

const fn interpreter(names: &'static [&'static str], options: Options) -> Program {
    Program { interpreter: true, options, ..Program::new(Class::Runs, names) }
}

/// An interpreter of which a rule must spell all options that are not harmless.
const fn strict(names: &'static [&'static str], harmless: &'static HarmlessOptions) -> Program {
    Program { harmless: Some(harmless), ..interpreter(names, Options::NONE) }
}

/// Harmless flags and long options of an interpreter. None has a value.
const fn only(flags: &'static str, long: Names) -> HarmlessOptions {
    HarmlessOptions { flags, long, clusters: !flags.is_empty(), end: OptionsEnd::Operand(1), ..HarmlessOptions::NONE }
}

/// Letters of an interpreter that only change what it prints.
const fn printing(flags: &'static str, options: Options) -> Options {
    Options { anywhere: Anywhere { flags, printing: (flags, ""), ..Anywhere::NONE }, ..options }
}

const NODE: Options = Options {
    loose_names: true,
    code: "eval print",
    valued: "allow-fs-read allow-fs-write build-snapshot-config conditions cpu-prof-dir cpu-prof-interval cpu-prof-name \
        debug-port diagnostic-dir disable-proto disable-warning dns-result-order env-file env-file-if-exists eval \
        experimental-default-type experimental-loader experimental-policy experimental-sea-config heap-prof-dir \
        heap-prof-interval heap-prof-name heapsnapshot-near-heap-limit heapsnapshot-signal icu-data-dir import input-type \
        inspect-port inspect-publish-uid loader localstorage-file max-http-header-size \
        network-family-autoselection-attempt-timeout openssl-config policy-integrity print redirect-warnings report-dir \
        report-directory report-filename report-signal require run secure-heap secure-heap-min snapshot-blob stack-trace-limit \
        test-concurrency test-coverage-branches test-coverage-exclude test-coverage-functions test-coverage-include \
        test-coverage-lines test-isolation test-name-pattern test-reporter test-reporter-destination test-shard \
        test-skip-pattern test-timeout title tls-cipher-list tls-keylog trace-event-categories trace-event-file-pattern \
        trace-require-module unhandled-rejections use-largepages v8-pool-size watch-path",
    ..Options::new(
        &[
            executes("e", "eval"),
            executes("p", "print"),
            executes("r", "require"),
            executes("", "import"),
            executes("", "loader"),
            executes("", "experimental-loader"),
            executes("i", "interactive"),
            executes("", "env-file"),
            executes("", "env-file-if-exists"),
            executes("", "openssl-config"),
        ],
        "Cepr",
    )
};

/// Behind a script that is run, the words are its own.
const RUNTIME: HarmlessOptions = HarmlessOptions {
    adding: "--filter",
    flags: "hqv",
    clusters: true,
    long: "bail cached-only check coverage filter frozen help ignore json no-check no-lock quiet silent timeout todo version",
    bare: "A D E d allow-all allow-env allow-ffi allow-hrtime allow-import allow-net allow-read allow-run allow-sys allow-write cached-only \
        dev exact f force frozen frozen-lockfile g global help ignore-scripts json no-check no-lock no-prompt no-save optional \
        production quiet silent todo version",
    end: OptionsEnd::Passed("run task x"),
    ..HarmlessOptions::NONE
};

const RUNTIME_PACKAGES: Names = "a add cache i install link r remove rm trust uninstall unlink up update upgrade";

const DENO_VALUED: Names = "cert config conditions ext import-map lock log-level location preload v8-flags";

const fn runtime(names: &'static [&'static str], options: Options) -> Program {
    Program {
        subcommands: true,
        starts: Some("c create x"),
        package_options: "-p --package",
        alike: RUNTIME_PACKAGES,
        unlike: "bench build check compile completions coverage doc eval exec fmt help info init jupyter lint list lsp outdated pm repl run \
            serve task test types upgrade why",
        commands: CommandOperands::Specifiers,
        options,
        ..closed(Class::Runs, names, &RUNTIME)
    }
}

const fn php(options: Options) -> Program {
    Program { versioned: true, quotes_by_any_mark: true, ..interpreter(&["php"], options) }
}

pub(super) const TABLE: &[Program] = &[
    Program {
        versioned: true,
        ..interpreter(
            &["pypy", "python", "python2", "python3"],
            printing(
                "uB",
                Options {
                    code: "c m",
                    naming_code: "-m",
                    valued: "check-hash-based-pycs",
                    // With `-v` alone it traces modules and reads its code from standard input.
                    ..Options::new(
                        &[executes("c", "c"), executes("m", "m"), executes("i", "i"), executes("v", "v")],
                        "cmWX",
                    )
                },
            ),
        )
    },
    Program {
        versioned: true,
        quotes_by_any_mark: true,
        commands: CommandOperands::Opened,
        ..interpreter(
            &["perl"],
            printing(
                "w",
                Options {
                    attached: "FVx",
                    code: "e",
                    ..Options::new(
                        &[
                            executes("eE", "e"),
                            executes("mM", "M"),
                            executes("x", "x"),
                            executes("d", "d"),
                            // Its text becomes code.
                            executes("F", "F"),
                            writes("i", "i"),
                        ],
                        "eEImM",
                    )
                },
            ),
        )
    },
    php(Options {
        code: "run process-code process-begin process-end",
        script_files: "fF",
        valued: "bindpath define docroot file php-ini process-begin process-code process-end process-file run server timing \
                zend-extension",
        ..Options::new(
            &[
                executes("r", "run"),
                executes("R", "process-code"),
                executes("B", "process-begin"),
                executes("E", "process-end"),
                executes("d", "define"),
                executes("a", "interactive"),
                // Settings and a library, which bring code, and a server that runs it.
                executes("c", "php-ini"),
                executes("z", "zend-extension"),
                executes("S", "server"),
            ],
            "rRBEcdfFStTz",
        )
    }),
    Program {
        versioned: true,
        quotes_by_any_mark: true,
        commands: CommandOperands::Opened,
        ..interpreter(
            &["ruby"],
            Options {
                attached: "Fx",
                code: "e",
                valued: "backtrace-limit crash-report disable dump enable encoding external-encoding internal-encoding parser",
                ..Options::new(&[executes("e", "e"), executes("r", "require"), executes("x", "x")], "eErI")
            },
        )
    },
    interpreter(&["node"], NODE),
    runtime(&["bun"], NODE),
    runtime(&["deno"], Options { valued: DENO_VALUED, ..Options::new(&[], "cL") }),
    Program {
        versioned: true,
        loads_from_folder: true,
        ..interpreter(
            &["lua", "luajit"],
            Options {
                attached: "O",
                code: "e",
                code_first: true,
                ..Options::new(
                    &[
                        executes("e", "e"),
                        executes("l", "l"),
                        executes("i", "i"),
                        // LuaJIT loads a module for these, and `-b` writes a file.
                        executes("j", "j"),
                        executes("b", "b"),
                    ],
                    "ejl",
                )
            },
        )
    },
    // `-i` reads commands, and a debugger (`-D`) too.
    interpreter(
        &["expect"],
        Options {
            script_files: "bf",
            code: "c",
            code_first: true,
            ..Options::new(&[executes("c", "c"), executes("i", "i"), executes("D", "D")], "bcDf")
        },
    ),
    Program { groups: "watch", ..interpreter(&["tsx"], NODE) },
    // Only these options need not be spelled. All others are code, or lead to some.
    strict(&["R"], &only("qs", "help no-echo no-restore no-save quiet slave vanilla version")),
    strict(&["Rscript"], &only("", "help vanilla verbose version")),
    strict(&["fish"], &only("hNPv", "help no-config private version")),
    strict(&["julia"], &only("hqv", "help quiet version")),
    strict(&["jshell", "osascript", "tclsh"], &only("", "help version")),
    Program { commands: CommandOperands::Added, ..strict(&["ksh", "zsh"], &only("efnuvx", "help version")) },
    // It never reads code from standard input. `@FILE` has more words.
    Program {
        commands: CommandOperands::Listed,
        lists: "-cp -p --class-path -classpath --classpath --module-path --patch-module --upgrade-module-path",
        harmless: Some(&only("", "help version")),
        ..Program::with(
            Class::Runs,
            &["java"],
            Options { naming_code: "-jar", valued: "cp class-path classpath module-path p", ..Options::ONE_DASH },
        )
    },
];
