//! Wrappers: they start the program in their arguments, which is judged itself.

use super::{Class, Program};

pub(super) const TABLE: &[Program] = &[
    Program { interpreter: true, shell: true, ..Program::new(Class::Wrapper, &["bash", "dash", "sh"]) },
    Program::new(Class::Wrapper, &["command", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "time", "timeout"]),
    Program::new(Class::Wrapper, &["xargs"]),
];
