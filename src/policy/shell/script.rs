//! What a line would do, as a flat list: commands, files written and read, names assigned.

use std::collections::{BTreeMap, BTreeSet};

use super::Unreadable;
use super::word::{Part, Spread, Unknown, Word, shown};

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

/// The words of a command behind a `cd` in the same line, for a grant: a relative path among them can be anywhere.
pub(in crate::policy) fn adrift(words: &[Word]) -> Vec<Word> {
    /// Programs of which every operand is a path.
    const OF_FILES: &[&str] = &[
        "cat", "chmod", "chown", "cmp", "cp", "diff", "du", "file", "head", "less", "ln", "ls", "mkdir", "more", "mv",
        "nl", "rm", "rmdir", "sort", "stat", "tail", "tee", "touch", "truncate", "wc",
    ];
    let program = words.first().and_then(Word::base_name).unwrap_or_default();
    if matches!(program, "cd" | "pushd" | "popd") {
        return words.to_vec();
    }
    let of_files = OF_FILES.contains(&program);
    let is_relative = |word: &Word| {
        let text = word.known_start();
        let path = match text.split_once('=') {
            Some((_, value)) if text.starts_with('-') => value,
            _ => text,
        };
        let is_path = path.contains(['/', '.']) || (of_files && !path.is_empty() && !path.starts_with('-'));
        is_path && !path.starts_with('/')
    };
    let loosened = |(at, word): (usize, &Word)| {
        if at == 0 || !is_relative(word) {
            return word.clone();
        }
        Word { parts: vec![Part::Unknown(Unknown { raw: word.shown(), spread: Spread::One })], quoted: true }
    };
    words.iter().enumerate().map(loosened).collect()
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
    /// Names put into a command's environment.
    pub exported: Vec<String>,
    /// Names assigned that get a plain number: each also stands in `assigned`.
    pub(super) numbers: Vec<String>,
    /// Names that arithmetic evaluates.
    pub(super) evaluated: Vec<String>,
    /// Whether `IFS` is set for a `read` alone.
    pub(super) splits_read: bool,
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
    script.settle()?;
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
        script.settle()?;
        Ok(script)
    }

    /// Checks what only the whole line tells.
    fn settle(&mut self) -> Result<(), Unreadable> {
        // As a function, `read` hands the variable on to whatever it runs.
        if self.splits_read && self.functions.iter().any(|name| name == "read") {
            self.exported.push("IFS".into());
        }
        // The value of a name in arithmetic is evaluated too, and can run commands: the line itself must set it, and
        // to nothing but numbers.
        let numbers = self.names_of_numbers();
        if let Some(name) = self.evaluated.iter().find(|name| !numbers.contains(*name)) {
            return Err(Unreadable::new(format!(
                "arithmetic with `{name}`, which the line does not set to plain numbers only (its value is evaluated \
                 too, and can run commands)"
            )));
        }
        // `[ $i -lt 3 ]` is one comparison where `$i` is a number.
        let is_test = |name: &str| matches!(name, "test" | "[");
        for command in self.commands.iter_mut().filter(|command| command.hidden.is_some()) {
            let Some(program) = command.words.first().and_then(Word::literal).filter(|name| is_test(name)) else {
                continue;
            };
            let arguments: Vec<Word> =
                command.words[1..].iter().map(|word| word.whole_if(|name| numbers.contains(name))).collect();
            if super::builtins::test(program, &arguments).is_some_and(|effect| effect.steers) {
                command.hidden = None;
                if command.role == Role::Runs {
                    command.role = Role::Steers;
                }
            }
        }
        Ok(())
    }

    /// The names that the line sets, and to nothing but numbers.
    fn names_of_numbers(&self) -> BTreeSet<String> {
        let mut set: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        // What is exported counts as set, but to no number.
        self.assigned.iter().chain(&self.exported).for_each(|name| set.entry(name).or_default().0 += 1);
        self.numbers.iter().for_each(|name| set.entry(name).or_default().1 += 1);
        // The names that the shell sets by itself (`_`, `REPLY`, `OPTARG`) do not begin with a small letter.
        let own = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
        set.into_iter()
            .filter(|(name, (all, numbers))| own(name) && all == numbers)
            .map(|(name, _)| name.into())
            .collect()
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
        self.numbers.extend(lexed.numbers.iter().cloned());
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
