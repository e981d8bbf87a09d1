//! The table of programs: what each is for, which of its options a rule must spell, and what it needs beside itself.
//!
//! One entry says all that the engine knows of a program; the folder has a file for each family. The code that judges
//! reads the table and names no program. Of a program that is not in the table nothing is known, so a rule that names
//! it grants what a program can do at all.

mod archives;
mod build;
mod curl;
mod files;
mod filters;
pub(crate) mod git;
mod interpreters;
mod others;
mod wrappers;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use curl::{FLAGS, FetchOptions, VALUED};

const TABLE: &[&[Program]] = &[
    filters::TABLE,
    wrappers::TABLE,
    files::TABLE,
    archives::TABLE,
    git::TABLE,
    curl::TABLE,
    interpreters::TABLE,
    build::TABLE,
    others::TABLE,
];

static BY_NAME: LazyLock<HashMap<&str, &Program>> = LazyLock::new(|| {
    let programs = TABLE.iter().copied().flatten();
    programs.flat_map(|program| program.names.iter().map(move |name| (*name, program))).collect()
});

/// Names with blanks between them, where there are many.
pub(crate) type Names = &'static str;

/// Whether a name is one of `names`.
pub(crate) fn contains(names: Names, name: &str) -> bool {
    names.split_whitespace().any(|other| other == name)
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// It brings its input into another form, and may run without a rule, where it has no power.
    Filter,
    /// It starts what its arguments say. That is judged by itself, so it may run without a rule, too.
    Wrapper,
    /// It looks at files or at the system.
    Reads,
    /// It changes files.
    Changes,
    /// It speaks with hosts that its arguments name.
    Fetches,
    /// It can run any other program, or any code: a grant of it is a grant of everything.
    Runs,
    /// What it does is not known. It is judged like [`Class::Runs`].
    Unknown,
}

/// An entry of the table: a program, or several that are used alike.
pub(crate) struct Program {
    pub names: &'static [&'static str],
    /// Its names may end in a version: `python3.11`.
    pub versioned: bool,
    pub class: Class,
    /// It changes the files that its operands name, though it is of another class than [`Class::Changes`]. A filter that does counts as
    /// that where a rule names it.
    pub writes_operands: bool,
    /// It does its work over a socket with a path on this machine.
    pub local_sockets: bool,
    /// Its first operand says what it does, so that a rule names it.
    pub subcommands: bool,
    /// The first operand of its rule is a script of a shell.
    pub shell: bool,
    /// It runs the script that its first operand names, or else its standard input.
    pub interpreter: bool,
    /// Operands such as `CC=gcc` set variables, which can be code.
    pub variables: bool,
    /// What it executes to do its own work: programs by name, or folders (from `/`).
    pub helpers: &'static [&'static str],
    /// How its arguments are read.
    pub syntax: Syntax,
    /// The options that a rule must spell, for [`Syntax::Options`].
    pub options: Options,
    /// It runs what a folder holds: all of its options but these may lead to other code.
    pub harmless: Option<&'static Harmless>,
}

/// How the arguments of a program are read.
#[derive(Clone, Copy)]
pub(crate) enum Syntax {
    /// As `getopt_long` reads them.
    Options,
    /// As those of `git`: options in front of a subcommand, see [`git`].
    Git,
    /// As those of `curl`: all options but a few must be spelled, and operands are addresses, see [`crate::fetch`].
    Fetch(&'static FetchOptions),
}

/// What an option lets a program do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It writes a file.
    Writes,
    /// It executes a program that is not judged.
    Executes,
    /// It changes what is read, or asked for.
    Steers,
    /// It changes where the program finds the code that it runs.
    Leads,
    /// It gives the program's script, in the place of one that the rule spells or beside it.
    Scripts,
}

/// An option that a rule must spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// Its letters.
    pub short: &'static str,
    /// Its long name, which stands for all its spellings.
    pub name: &'static str,
    pub effect: Effect,
}

/// How the options of a program are read.
pub(crate) struct Options {
    /// Those that a rule must spell.
    pub guarded: &'static [Guarded],
    /// Letters with a value: in a cluster, what follows is that value.
    pub values: &'static str,
    /// Long options that are harmless, though they begin a guarded one.
    pub harmless: &'static [&'static str],
    /// Its long options have one dash (`find -delete`).
    pub one_dash: bool,
    /// Its first word may be a cluster without a dash (`tar xIf`).
    pub bundled: bool,
    /// Long options with one dash behind which stands a program that it starts.
    pub starting: Names,
    /// Options behind which stand patterns: they name what is left out.
    pub patterns: &'static [&'static str],
}

/// The options of a program that runs what a folder holds which lead to no other code. None of the long ones has a value
/// in a word of its own.
pub(crate) struct Harmless {
    /// Letters that stand alone; together in a cluster if `clusters`.
    pub flags: &'static str,
    /// Letters whose value is the rest of the word, or the next one.
    pub values: &'static str,
    pub clusters: bool,
    pub long: Names,
    /// What stands behind the first operand belongs to the program that it names.
    pub until_operand: bool,
}

impl Options {
    pub const NONE: Self =
        Self { guarded: &[], values: "", harmless: &[], one_dash: false, bundled: false, starting: "", patterns: &[] };

    const fn new(guarded: &'static [Guarded], values: &'static str) -> Self {
        Self { guarded, values, ..Self::NONE }
    }
}

impl Guarded {
    /// How it is written. `one_dash`: as `find` does.
    pub fn shown(&self, one_dash: bool) -> String {
        let dashes = if self.name.len() > 1 && !one_dash { "--" } else { "-" };
        format!("{dashes}{}", self.name)
    }
}

const fn writes(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Writes }
}

const fn executes(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Executes }
}

const fn steers(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Steers }
}

const fn scripts(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Scripts }
}

impl Program {
    const UNKNOWN: Self = Self {
        names: &[],
        versioned: false,
        class: Class::Unknown,
        writes_operands: false,
        local_sockets: false,
        subcommands: false,
        shell: false,
        interpreter: false,
        variables: false,
        helpers: &[],
        syntax: Syntax::Options,
        options: Options::NONE,
        harmless: None,
    };

    const fn new(class: Class, names: &'static [&'static str]) -> Self {
        Self { names, class, ..Self::UNKNOWN }
    }

    const fn with(class: Class, names: &'static [&'static str], options: Options) -> Self {
        Self { options, ..Self::new(class, names) }
    }

    pub fn is_git(&self) -> bool {
        matches!(self.syntax, Syntax::Git)
    }

    /// Whether it may run in the shell's own domain without a rule.
    pub fn is_free(&self) -> bool {
        matches!(self.class, Class::Filter | Class::Wrapper)
    }

    /// Whether it is known to run any other program.
    pub fn runs_anything(&self) -> bool {
        matches!(self.class, Class::Runs | Class::Wrapper)
    }

    /// What it is for where a rule names it: then it has the power that it was named for.
    pub fn named_class(&self) -> Class {
        match self.class {
            Class::Filter if self.writes_operands => Class::Changes,
            Class::Filter => Class::Reads,
            Class::Wrapper | Class::Unknown => Class::Runs,
            class => class,
        }
    }
}

/// The last part of a program's path.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The entry of a name.
pub(crate) fn named(name: &str) -> &'static Program {
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let family = || BY_NAME.get(name.trim_end_matches(version)).filter(|program| program.versioned);
    BY_NAME.get(name).or_else(family).copied().unwrap_or(&Program::UNKNOWN)
}

/// The entry of a program by its base name, wherever it lies: for what is refused in doubt.
pub(crate) fn by_base_name(program: &str) -> &'static Program {
    named(base_name(program))
}

/// The entry of a program as a rule or a start names it: by its name, or by a path in the system's folders. Any other
/// path can lead to any program.
pub(crate) fn known(program: &str) -> &'static Program {
    known_as(program).map_or(&Program::UNKNOWN, named)
}

/// The name by which the table knows a program; `None` for a path outside of the system's folders.
pub(crate) fn known_as(program: &str) -> Option<&str> {
    const FOLDERS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];
    match program.rsplit_once('/') {
        None => Some(program),
        Some((folder, name)) => FOLDERS.contains(&folder).then_some(name),
    }
}

/// Whether a program is known to run any other one, also with a version in its name (`perl5.36`).
pub(crate) fn runs_anything(name: &str) -> bool {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [name, family].iter().any(|name| named(name).runs_anything())
}

/// The programs that may run in the shell's own domain without a rule, by their names: filters and wrappers.
pub fn free_programs() -> impl Iterator<Item = &'static str> {
    let free = TABLE.iter().copied().flatten().filter(|program| program.is_free());
    free.flat_map(|program| program.names.iter().copied())
}

/// The names of all programs of a class.
#[cfg(test)]
pub(crate) fn names_of(class: Class) -> impl Iterator<Item = &'static str> {
    let programs = TABLE.iter().copied().flatten().filter(move |program| program.class == class);
    programs.flat_map(|program| program.names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_the_table_once() {
        let mut names: Vec<&str> = TABLE.iter().copied().flatten().flat_map(|program| program.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(BY_NAME.len(), count);
    }

    #[test]
    fn a_path_elsewhere_can_be_any_program() {
        assert_eq!(known("/usr/bin/ls").class, Class::Reads);
        for program in ["./ls", "work/bin/ls", "/tmp/ls", "mytool", ""] {
            assert_eq!(known(program).named_class(), Class::Runs, "{program}");
        }
        let class = |name| named(name).named_class();
        assert_eq!((class("tee"), class("cat"), class("env")), (Class::Changes, Class::Reads, Class::Runs));
        assert!(runs_anything("python3.11") && runs_anything("perl5.36") && runs_anything("env"));
        assert!(!runs_anything("ls") && !runs_anything("mytool"));
    }
}
