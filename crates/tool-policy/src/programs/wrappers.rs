//! Wrappers: they start the program in their arguments, which is judged itself.

use super::{Class, Names, Program};

pub(super) const TABLE: &[Program] = &[
    Program { interpreter: true, shell: true, ..Program::new(Class::Wrapper, &["bash", "dash", "sh"]) },
    Program::new(Class::Wrapper, &["command", "nohup", "setsid"]),
    valued(&["env"], "-C -S -u --chdir --split-string --unset"),
    valued(&["ionice"], "-P -c -n -p -u --class --classdata"),
    valued(&["nice"], "-n --adjustment"),
    valued(&["stdbuf"], "-e -i -o --error --input --output"),
    valued(&["time"], "-f -o --format --output"),
    valued(&["timeout"], "-k -s --kill-after --signal"),
    valued(&["xargs"], "-E -I -L -P -a -d -n -s --arg-file --delimiter --max-args --max-chars --max-procs"),
];

/// A wrapper with options that have a value.
const fn valued(names: &'static [&'static str], texts: Names) -> Program {
    Program { texts, ..Program::new(Class::Wrapper, names) }
}
