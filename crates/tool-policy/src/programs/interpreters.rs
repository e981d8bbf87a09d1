//! Interpreters: they run the script in their first operand, or code from an option or from standard input.

use super::{Anywhere, Class, CommandOperands, Options, Program, executes, writes};

const fn interpreter(names: &'static [&'static str], options: Options) -> Program {
    Program { interpreter: true, options, ..Program::new(Class::Runs, names) }
}

/// Letters of an interpreter that only change what it prints.
const fn printing(flags: &'static str, options: Options) -> Options {
    Options { anywhere: Anywhere { flags, printing: (flags, ""), ..Anywhere::NONE }, ..options }
}

const NODE: Options = Options::new(
    &[
        executes("e", "eval"),
        executes("p", "print"),
        executes("r", "require"),
        executes("", "import"),
        executes("", "loader"),
        executes("", "experimental-loader"),
        executes("i", "interactive"),
    ],
    "epr",
);

pub(super) const TABLE: &[Program] = &[
    Program {
        versioned: true,
        ..interpreter(
            &["pypy", "python", "python2", "python3"],
            printing(
                "u",
                // With `-v` alone it traces modules and reads its code from standard input.
                Options::new(&[executes("c", "c"), executes("m", "m"), executes("i", "i"), executes("v", "v")], "cmWX"),
            ),
        )
    },
    Program {
        commands: CommandOperands::Opened,
        ..interpreter(
            &["perl"],
            printing(
                "w",
                Options::new(
                    &[
                        executes("eE", "e"),
                        executes("mM", "M"),
                        executes("x", "x"),
                        executes("d", "d"),
                        // Its text becomes code.
                        executes("F", "F"),
                        writes("i", "i"),
                    ],
                    "eEFImMVx",
                ),
            ),
        )
    },
    interpreter(
        &["php"],
        Options::new(
            &[
                executes("r", "run"),
                executes("R", "process-code"),
                executes("B", "process-begin"),
                executes("E", "process-end"),
                executes("d", "define"),
                executes("a", "interactive"),
            ],
            "rRBEdfFSt",
        ),
    ),
    Program {
        commands: CommandOperands::Opened,
        ..interpreter(
            &["ruby"],
            Options::new(&[executes("e", "e"), executes("r", "require"), executes("x", "x")], "eErFIx"),
        )
    },
    interpreter(&["node"], NODE),
    Program { subcommands: true, ..Program::with(Class::Runs, &["bun", "deno"], NODE) },
    Program {
        versioned: true,
        loads_from_folder: true,
        ..interpreter(
            &["lua", "luajit"],
            Options {
                attached: "O",
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
            ..Options::new(&[executes("c", "c"), executes("i", "i"), executes("D", "D")], "bcDf")
        },
    ),
    Program::new(Class::Runs, &["R", "Rscript", "fish", "java", "jshell", "julia", "ksh", "tclsh"]),
    Program::new(Class::Runs, &["osascript", "tsx", "zsh"]),
];
