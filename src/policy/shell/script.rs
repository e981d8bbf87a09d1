//! What a line would do, as a flat list: commands, files written and read, names assigned.

use super::Unreadable;
use super::word::{Word, shown};

/// How deep substitutions, `sh -c` and their like may stand in each other.
const MAX_DEPTH: usize = 24;
/// How much is read for one line, everything counted again where it is read again (`eval` in `eval`).
const MAX_WORK: usize = 128 * 1024;
/// How many commands one line may hold, all substitutions together.
const MAX_COMMANDS: usize = 4096;

/// How a command counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Role {
    /// It runs, and needs a grant of its own.
    Runs,
    /// It only runs another command, which stands in the list as well: `timeout 5 …`. Needs no grant of its own.
    Wraps,
    /// It steers the line and touches nothing outside it: `true`, `exit`. Needs no grant of its own.
    Steers,
    /// It may be run by another one. For denials only.
    May,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Command {
    /// Program and arguments.
    pub words: Vec<Word>,
    /// How it counts.
    pub role: Role,
    /// What cannot be seen of it before it runs, as the end of a sentence. Such a command never matches a grant.
    pub hidden: Option<String>,
}

impl Command {
    /// For showing.
    pub fn shown(&self) -> String {
        shown(&self.words)
    }
}

/// A file that a redirection names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Target {
    /// The path as written; `None` where it is not known before running.
    pub path: Option<String>,
    /// For showing.
    pub shown: String,
}

/// Everything that a line would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policy) struct Script {
    /// In the order in which they stand.
    pub commands: Vec<Command>,
    /// Files opened for writing.
    pub writes: Vec<Target>,
    /// Files opened for reading.
    pub reads: Vec<Target>,
    /// Names assigned, unset or bound in any way.
    pub assigned: Vec<String>,
    /// Those of `assigned` that got a number, once for each time.
    pub(super) numbers: Vec<String>,
    /// Names whose values are evaluated as arithmetic.
    pub(super) evaluated: Vec<String>,
    /// Names put into a command's environment.
    pub exported: Vec<String>,
    /// Functions defined.
    pub functions: Vec<String>,
    /// Whether the working folder changes on the way: relative paths are then unknown.
    pub moves: bool,
    /// Bytes read so far.
    work: usize,
}

/// Reads a line.
pub(in crate::policy) fn read(line: &str) -> Result<Script, Unreadable> {
    let mut script = Script::default();
    script.add_line(line, 0)?;
    // A name that arithmetic evaluates is set in the line, and to numbers only. Names in capitals can be set by the
    // shell itself (`REPLY`, `OLDPWD`, `BASH_REMATCH`), and so can `_`.
    let times = |names: &[String], name: &str| names.iter().filter(|other| *other == name).count();
    for name in &script.evaluated {
        let bound = times(&script.assigned, name) + times(&script.exported, name);
        let by_itself = !name.bytes().any(|b| b.is_ascii_lowercase());
        if by_itself || bound == 0 || bound != times(&script.numbers, name) {
            let why = format!("arithmetic evaluates `{name}`, which the line does not set to plain numbers only");
            return Err(Unreadable::new(why));
        }
    }
    // A name that the line itself defines is not what it seems to be.
    for command in &mut script.commands {
        if let Some(name) = command.words.first().and_then(Word::literal)
            && script.functions.iter().any(|function| function == name)
        {
            command.hidden = Some(format!("`{name}` is defined as a function in the same line"));
        }
    }
    if script.moves {
        for target in script.writes.iter_mut().chain(&mut script.reads) {
            if target.path.as_deref().is_some_and(|path| !path.starts_with(['/', '~'])) {
                target.path = None;
            }
        }
        for command in &mut script.commands {
            let relative = |name: &str| name.contains('/') && !name.starts_with(['/', '~']);
            if command.words.first().and_then(Word::literal).is_some_and(relative) {
                command.hidden = Some("a relative path after `cd` names an unknown program".into());
            }
        }
    }
    Ok(script)
}

impl Script {
    /// One command whose words are known, with what it runs in turn.
    pub fn of(words: Vec<Word>) -> Result<Self, Unreadable> {
        let mut script = Self::default();
        super::wrappers::add(&mut script, words, Role::Runs, 0)?;
        Ok(script)
    }

    /// Adds what `line` does, `depth` substitutions down.
    pub(super) fn add_line(&mut self, line: &str, depth: usize) -> Result<(), Unreadable> {
        if depth > MAX_DEPTH {
            return Err(Unreadable::new("substitutions nested too deep"));
        }
        self.work += line.len();
        if self.work > MAX_WORK {
            return Err(Unreadable::new("its parts are evaluated over and over"));
        }
        let lexed = super::lexer::lex(line)?;
        let program = super::grammar::parse(line, &lexed)?;
        super::walk::program(self, &program, &lexed, depth)?;
        self.assigned.extend(lexed.assigned.iter().cloned());
        self.evaluated.extend(lexed.evaluated.iter().cloned());
        for script in &lexed.scripts {
            self.add_line(script, depth + 1)?;
        }
        Ok(())
    }

    /// Adds what `line` does, as something that runs under `role`.
    pub(super) fn add_as(&mut self, line: &str, role: Role, depth: usize) -> Result<(), Unreadable> {
        let first = self.commands.len();
        self.add_line(line, depth)?;
        if role == Role::May {
            for command in &mut self.commands[first..] {
                command.role = Role::May;
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, command: Command) -> Result<(), Unreadable> {
        if self.commands.len() >= MAX_COMMANDS {
            return Err(Unreadable::new("more than 4096 commands"));
        }
        self.commands.push(command);
        Ok(())
    }
}
