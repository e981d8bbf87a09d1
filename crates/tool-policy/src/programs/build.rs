//! Build tools and package managers: they run the code in a folder.

use super::{
    Anywhere, BehindAt, Class, CommandOperands, HarmlessOptions, Names, Options, OptionsEnd, PACKAGES, Program, closed,
};

const fn runs(names: &'static [&'static str]) -> Program {
    Program::new(Class::Runs, names)
}

/// A tool whose options lead to other code, except the `harmless` ones. `values`: see [`Options::values`].
const fn tool(names: &'static [&'static str], harmless: &'static HarmlessOptions, values: &'static str) -> Program {
    Program { harmless: Some(harmless), options: Options::new(&[], values), ..runs(names) }
}

/// The same with the other names that npm and its like have for them.
const MODULES: Names =
    "add get i in install install-test it link ln pack r rb rebuild remove rm un uninstall unlink up update upgrade";

/// What `pnpm` does in each package of a workspace, if it is told to.
const OF_WORKSPACES: &[(&str, Names)] = &[
    ("remove", RECURSIVE),
    ("rm", RECURSIVE),
    ("un", RECURSIVE),
    ("uninstall", RECURSIVE),
    ("up", RECURSIVE),
    ("update", RECURSIVE),
    ("upgrade", RECURSIVE),
];

const RECURSIVE: Names = "-r --recursive";

/// Subcommands that pass further operands to a script, or only show something.
const SCRIPTS: Names = "audit bin config explain find fund help home info list ll login logout ls outdated ping prefix root rum run \
    run-script s search show start stop t test tst urn v version view whoami why";

/// Subcommands that show or pack what they get. From an address they send a request there, or run its code.
const BY_NAME: Names = "bugs docs home info issues pack repo show v view";

const fn pnpm(names: &'static [&'static str], valued: Names, anywhere_by: &'static [(Names, Anywhere)]) -> Program {
    Program {
        subcommands: true,
        groups: "cache config env npm owner plugin set store token version workspace workspaces",
        starts: Some("create dlx exec"),
        package_options: "-p --package",
        by_name: BY_NAME,
        alike: MODULES,
        unlike: SCRIPTS,
        commanded: "explore",
        doing_more: OF_WORKSPACES,
        commands: CommandOperands::Specifiers,
        anywhere_by,
        // For npm `-w` has a value.
        options: Options { valued, ..Options::new(&[], "C") },
        harmless: Some(&PNPM),
        ..runs(names)
    }
}

const fn project(names: &'static [&'static str], behind_at: &'static [(Names, BehindAt)]) -> Program {
    Program {
        subcommands: true,
        groups: "auth cache env pip python self source tool",
        starts: Some("run"),
        package_options: "-w --with --with-editable",
        alike: PACKAGES,
        unlike: "build check compile config env export format freeze help info init list lock outdated search show tree venv version",
        commands: CommandOperands::Specifiers,
        behind_at,
        options: Options { valued: "directory extra group index-url project python with", ..Options::NONE },
        ..closed(Class::Runs, names, &UV)
    }
}

const fn runner(names: &'static [&'static str], behind_at: &'static [(Names, BehindAt)]) -> Program {
    Program {
        starts: Some(""),
        commands: CommandOperands::Specifiers,
        package_options: "-p -w --from --package --with --with-editable",
        behind_at,
        ..closed(Class::Runs, names, &RUNNER)
    }
}

pub(super) const TABLE: &[Program] = &[
    Program {
        variables: true,
        options: Options { attached: "O", ..Options::new(&[], "CEfIjloW") },
        harmless: Some(&MAKE),
        ..runs(&["gmake", "make"])
    },
    Program {
        starts: Some(""),
        closed: true,
        commands: CommandOperands::Specifiers,
        package_options: "-p --package",
        ..tool(&["npx"], &NPX, "Cw")
    },
    Program {
        subcommands: true,
        groups: "access cache config dist-tag hook org owner pkg profile team token trust",
        starts: Some("create exec init innit x"),
        package_options: "--diff --package",
        by_name: BY_NAME,
        doing_more: &[("audit", "fix")],
        alike: MODULES,
        unlike: SCRIPTS,
        commanded: "explore",
        commands: CommandOperands::Specifiers,
        anywhere_by: &[(MODULES, OF_NPM)],
        options: Options {
            anywhere: SILENT,
            valued: "cache depth loglevel omit otp prefix registry tag userconfig workspace",
            ..Options::new(&[], "Cw")
        },
        harmless: Some(&NPM),
        ..runs(&["npm"])
    },
    // Behind a script's name their options are the script's.
    pnpm(&["pnpm"], "F dir filter loglevel registry", &[(MODULES, OF_MODULES)]),
    pnpm(&["yarn"], "cwd registry", &[("add", OF_YARN_ADD), (MODULES, OF_YARN)]),
    Program {
        subcommands: true,
        alike: PACKAGES,
        unlike: "b bench build c check clean clippy config d doc fix fmt help llvm-cov metadata miri nextest r run rustc rustdoc search t test \
            tree verify-project version",
        anywhere_by: &[(PACKAGES, OF_CRATES)],
        leading: true,
        valued_by: &[("binstall install", "--version --vers")],
        options: Options { valued: "features jobs", ..Options::new(&[], "CFjpZ") },
        ..tool(&["cargo"], &CARGO, "")
    },
    Program {
        subcommands: true,
        groups: "mod telemetry tool work",
        alike: "download get install run",
        unlike: "bug build clean cover doc edit env fix fmt generate graph help init list pprof sync test tidy trace use vendor verify \
            version vet why",
        options: Options { valued: "C gcflags ldflags mod o tags", ..Options::ONE_DASH },
        host_of: Some("download get install run"),
        commands: CommandOperands::Sources,
        ..closed(Class::Runs, &["go"], &GO)
    },
    Program {
        subcommands: true,
        groups: "cache config index",
        versioned: true,
        alike: PACKAGES,
        unlike: "check config debug freeze hash help index inspect list search show",
        commands: CommandOperands::Specifiers,
        behind_at: &[("", BehindAt::Place)],
        anywhere_by: &[("uninstall", Anywhere { flags: "qvy", switches: "quiet verbose yes", ..Anywhere::NONE })],
        options: Options {
            anywhere: Anywhere {
                flags: "qUv",
                switches: "disable-pip-version-check no-cache-dir no-color no-deps no-input pre quiet upgrade user verbose",
                printing: ("q", "quiet"),
                ..Anywhere::NONE
            },
            valued: "exclude format only-binary progress-bar retries timeout upgrade-strategy",
            ..Options::new(&[], "fi")
        },
        ..closed(Class::Runs, &["pip", "pip3"], &PIP)
    },
    // The package manager, in a version, is the command behind it.
    runner(&["corepack"], &[]),
    // For `uv tool` alone a version is no folder.
    project(&["uv"], &[("tool", BehindAt::Version), ("", BehindAt::Place)]),
    project(&["poetry"], &[("", BehindAt::Constraint)]),
    Program {
        versioned: true,
        options: Options { values: "ox", ..Options::ONE_DASH },
        commands: CommandOperands::Listed,
        ..closed(Class::Runs, &["c++", "cc", "clang", "clang++", "g++", "gcc"], &COMPILER)
    },
    // Properties, whose names are no letters.
    Program {
        options: Options {
            valued: "build-file exclude-task init-script project-dir settings-file",
            ..Options::new(&[], "DPbcgIpx")
        },
        ..closed(Class::Runs, &["gradle"], &GRADLE)
    },
    Program {
        lists: "-P -pl --activate-profiles --projects",
        options: Options { valued: "file settings", ..Options::new(&[], "DPfslT") },
        ..closed(Class::Runs, &["mvn"], &MAVEN)
    },
    Program {
        commands: CommandOperands::Tests,
        options: Options {
            anywhere: Anywhere {
                flags: "lqsvx",
                switches: "exitfirst quiet verbose",
                printing: ("q", "quiet"),
                ..Anywhere::NONE
            },
            ..Options::NONE
        },
        ..closed(Class::Runs, &["pytest"], &PYTEST)
    },
    Program {
        options: Options { valued: "justfile", ..Options::new(&[], "df") },
        ..closed(Class::Runs, &["just"], &JUST)
    },
    runner(&["bunx"], &[]),
    runner(&["uvx"], &[("", BehindAt::Version)]),
    Program {
        subcommands: true,
        starts: Some("run"),
        alike: PACKAGES,
        unlike: "completions ensurepath environment help list",
        commands: CommandOperands::Specifiers,
        package_options: "--preinstall --spec --with",
        anywhere_by: &[(PACKAGES, OF_PIPX)],
        behind_at: &[("run", BehindAt::MaybeFile), ("", BehindAt::Version)],
        ..closed(Class::Runs, &["pipx"], &PIPX)
    },
];

/// Any other option may run a program, load a library, or write a file.
const COMPILER: HarmlessOptions = HarmlessOptions {
    long: "C E M MD MG MM MMD MP O P S ansi c compile debug dM g h help include isysroot isystem iquote idirafter l no-pie nodefaultlibs \
        nostartfiles nostdinc nostdlib o optimize output param pedantic pedantic-errors pg pie pipe preprocess pthread \
        rdynamic s shared static static-libgcc static-libstdc++ target-help traditional-cpp undef v verbose version w x I D U L",
    begin: "std= D I L MQ MT O U g1 g2 g3 g0 ggdb gdwarf isystem iquote march= mcpu= mtune= mabi= mcmodel= mfloat-abi= mfpu= xc Werror= \
        Wno-error= Wformat= Wstack-usage= Wframe-larger-than= Wimplicit-fallthrough= Wstrict-overflow= fsanitize= fvisibility= \
        fmax-errors= fdiagnostics-color= fcf-protection= ftemplate-depth= fconstexpr-depth= fno-sanitize= fsanitize-recover= flto= \
        fstack-limit-",
    begin_plain: "W f l m",
    never: "fcallgraph-info fcompare-debug fcrash-diagnostics fdump fmodule fplugin fpass-plugin fprofile fsave ftime-trace ld-path load mllvm mlinker",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Behind a package that is run, the words are its own.
const GO: HarmlessOptions = HarmlessOptions {
    long: "a asan bench benchmem benchtime count cover coverpkg covermode cpu f failfast fullpath h help json list m msan n parallel p race run \
        short shuffle skip t timeout trimpath u v versions work x",
    switches: "a asan benchmem cover failfast fullpath h help json m msan n race short trimpath u v versions work x",
    end: OptionsEnd::Passed("run"),
    ..HarmlessOptions::NONE
};

/// A package is code, so that an index, or a file of packages, adds nothing to what a call may install, unless the rule names packages.
const PIP: HarmlessOptions = HarmlessOptions {
    flags: "hIqUvV",
    values: "cert",
    clusters: true,
    long: "break-system-packages constraint disable-pip-version-check dry-run editable exclude force-reinstall \
        format help ignore-installed local no-build-isolation no-cache-dir no-color no-deps no-index no-input \
        no-warn-script-location not-required only-binary outdated pre prefer-binary progress-bar quiet require-hashes require-virtualenv \
        requirement retries target timeout upgrade upgrade-strategy uptodate user verbose version yes",
    bare: "break-system-packages disable-pip-version-check dry-run force-reinstall help ignore-installed local no-build-isolation \
        no-cache-dir no-color no-deps no-index no-input no-warn-script-location not-required outdated pre prefer-binary quiet \
        require-hashes require-virtualenv upgrade uptodate user verbose version y yes",
    within: &[
        ("uninstall", "y", ""),
        // What only shows packages would send their names there.
        ("download install wheel", "fi", "extra-index-url find-links index-url trusted-host"),
    ],
    adding: "-c -e -f -i -r -t --constraint --editable --extra-index-url --find-links --index-url --requirement --target --trusted-host",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const UV: HarmlessOptions = HarmlessOptions {
    flags: "hnqvV",
    clusters: true,
    long: "all-extras all-groups dev dry-run extra format frozen group help json locked no-ansi no-cache no-color no-dev no-interaction \
        no-progress no-root no-sync offline only only-dev outdated quiet sync upgrade verbose version without",
    switches: "all-extras all-groups dev dry-run frozen help json locked no-ansi no-cache no-color no-dev no-interaction no-progress no-root \
        no-sync offline only-dev outdated quiet sync upgrade verbose version",
    bare: "D U active break-system-packages no-deps raw-sources refresh reinstall system workspace",
    end: OptionsEnd::Passed("run"),
    ..HarmlessOptions::NONE
};

const GRADLE: HarmlessOptions = HarmlessOptions {
    flags: "adhimqsSvw",
    clusters: true,
    long: "all build-cache configuration-cache console continue daemon debug dry-run full-stacktrace help info no-build-cache \
        no-configuration-cache no-daemon no-parallel offline parallel quiet refresh-dependencies rerun-tasks stacktrace tests version warn \
        warning-mode",
    switches: "all build-cache configuration-cache continue daemon debug dry-run full-stacktrace help info no-build-cache \
        no-configuration-cache no-daemon no-parallel offline parallel quiet refresh-dependencies rerun-tasks stacktrace version warn",
    reordering: "--continue",
    unordered: "assemble build check classes lint test",
    targets: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const MAVEN: HarmlessOptions = HarmlessOptions {
    flags: "BCehNoqUVvX",
    long: "DskipITs DskipTests Dit.test Dmaven.test.skip Dtest also-make am amd batch-mode debug errors fail-at-end fail-fast fae ff help no-transfer-progress non-recursive ntp offline pl projects quiet show-version \
        update-snapshots version",
    switches: "DskipITs DskipTests Dit.test Dmaven.test.skip Dtest also-make am amd batch-mode debug errors fae fail-at-end fail-fast ff help no-transfer-progress \
        non-recursive ntp offline quiet show-version update-snapshots version",
    reordering: "-DskipITs -DskipTests -Dmaven.test.skip",
    unordered: "clean compile package test test-compile validate verify",
    targets: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const PYTEST: HarmlessOptions = HarmlessOptions {
    flags: "hlqsvxV",
    values: "kmnr",
    clusters: true,
    long: "capture co collect-only color cov durations durations-min exitfirst failed-first ff help keyword last-failed lf markers maxfail \
        new-first nf no-cov no-header no-summary numprocesses quiet runxfail setup-plan show-capture showlocals stepwise sw tb timeout \
        verbose verbosity version",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const JUST: HarmlessOptions = HarmlessOptions {
    flags: "hlnqvV",
    clusters: true,
    long: "color dry-run evaluate help list no-color quiet summary unsorted variables verbose version",
    switches: "dry-run evaluate help list no-color quiet summary unsorted variables verbose version",
    targets: true,
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// The words behind the program that they run are that program's.
const RUNNER: HarmlessOptions = HarmlessOptions {
    flags: "hqv",
    clusters: true,
    long: "help quiet verbose version",
    end: OptionsEnd::Operand(1),
    ..HarmlessOptions::NONE
};

const PIPX: HarmlessOptions = HarmlessOptions {
    bare: "f force global include-deps quiet system-site-packages verbose",
    end: OptionsEnd::Passed("run"),
    ..RUNNER
};

/// npx takes the word behind an option that it does not know for the value of that option.
const NPX: HarmlessOptions = HarmlessOptions {
    flags: "y",
    perhaps_valued: "dhqsv",
    long: "help offline prefer-offline quiet silent version yes",
    switches: "offline prefer-offline yes",
    end: OptionsEnd::Operand(1),
    ..HarmlessOptions::NONE
};

/// npm takes its own options in every position in front of `--`.
const SILENT: Anywhere = Anywhere { flags: "s", switches: "silent", printing: ("s", "silent"), ..Anywhere::NONE };

/// Behind a package, too, they say how it is saved, or what is printed.
const OF_MODULES: Anywhere = Anywhere {
    flags: "DEs",
    switches: "no-audit no-fund offline prefer-offline quiet save-dev save-exact silent",
    ..SILENT
};

const OF_NPM: Anywhere = Anywhere {
    flags: "DESs",
    switches: "no-audit no-fund no-progress offline prefer-offline quiet save save-dev save-exact save-prod silent",
    ..SILENT
};

/// Yarn takes the word behind an option that it does not know as the option's value.
const OF_YARN: Anywhere = Anywhere { switches: "frozen-lockfile offline silent", ..SILENT };

const OF_YARN_ADD: Anywhere = Anywhere { flags: "DEs", switches: "dev exact frozen-lockfile offline silent", ..SILENT };

const OF_CRATES: Anywhere = Anywhere {
    flags: "qv",
    switches: "all-features build dev dry-run frozen locked no-default-features offline optional quiet verbose",
    ..Anywhere::NONE
};

const OF_PIPX: Anywhere = Anywhere { flags: "qv", switches: "quiet verbose", ..Anywhere::NONE };

/// Options by which a call changes another project, or each one. One dash is two for npm.
const PROJECTS: Names = "-include-workspace-root -recursive -w -workspace -workspaces --include-workspace-root --recursive --workspace \
    --workspaces";

/// Subcommands that only show something.
const SHOWING: Names = "audit bin explain find fund help home info la list ll ls outdated ping prefix query root s search se show v view why";

/// npm accepts any number of dashes as two, and treats clusters as names.
const NPM: HarmlessOptions = HarmlessOptions {
    flags: "DEdhqsvwy",
    values: "",
    clusters: false,
    long: "color depth dry-run foreground-scripts help if-present include-workspace-root json loglevel \
        no-audit no-color no-fund offline omit prefer-offline quiet save-dev save-exact silent verbose version workspace workspaces yes",
    within: &[
        ("ci clean-install i in install", "S", "legacy-peer-deps no-progress production save save-prod"),
        ("audit", "", "audit-level"),
        (MODULES, "S", "no-progress save save-prod"),
    ],
    // A package behind `npm init` is run.
    operands: &[("init innit", 1)],
    adding: PROJECTS,
    adding_but_to: Some(SHOWING),
    bare: "B O P S dry-run f force foreground-scripts g global help if-present ignore-scripts include-workspace-root json legacy-peer-deps \
        no-audit no-bin-links no-color no-fund no-package-lock no-save offline package-lock-only prefer-offline production quiet save save-bundle \
        save-dev save-exact save-optional save-peer save-prod silent strict-peer-deps verbose version workspaces yes",
    ..HarmlessOptions::NONE
};

const PNPM: HarmlessOptions = HarmlessOptions {
    long: "color depth dev dry-run exact foreground-scripts frozen-lockfile help if-present ignore-scripts immutable include-workspace-root \
        json loglevel no-audit no-color no-frozen-lockfile no-fund offline omit prefer-offline prod production quiet recursive save-dev \
        save-exact silent verbose version watch workspace workspaces yes",
    bare: "O P W dev exact force frozen-lockfile g global ignore-scripts no-audit no-color no-frozen-lockfile no-fund optional peer prod \
        production save-dev save-exact save-optional save-peer save-prod yes",
    end: OptionsEnd::Passed("dlx exec run"),
    ..NPM
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
        offline package profile quiet release target test tests verbose version workspace",
    bare: "all all-features all-targets benches bins build debug dev doc examples f force frozen help keep-going lib locked \
        no-default-features no-deps no-fail-fast no-run offline optional quiet recursive release tests verbose version workspace",
    within: &[("add remove rm", "", "build dev dry-run optional"), ("search", "", "limit"), ("update", "", "dry-run")],
    adding: "-p --package",
    behind: Some((
        "bench clippy fix fmt rustc rustdoc test",
        "--config-path --logfile --test-run -C -L -Z -l -o --codegen --emit --extern --out-dir --print --sysroot @",
    )),
    ..HarmlessOptions::NONE
};
