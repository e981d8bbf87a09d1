//! Reads a Bash command line into everything that it would run, write, read and assign.
//!
//! The line is cut up by our own `lexer`, checked against the tokenizer of `brush-parser`, and put together by its
//! grammar; words are resolved by us. What always holds: a line that is not understood whole is [`Unreadable`], and a
//! command whose program or behaviour cannot be seen before it runs is marked [`Command::hidden`]. It knows nothing
//! of patterns and decides nothing.

mod arithmetic;
mod builtins;
mod expansion;
mod find;
mod grammar;
mod interpreters;
mod lexer;
mod options;
mod own;
mod parameter;
mod read_only;
mod runners;
mod script;
mod sed;
mod walk;
mod word;
mod wrappers;

pub(super) use builtins::is_name;
pub(super) use options::git_without_globals;
pub(super) use own::{canonical as own_command, uses_home_flag};
pub(super) use read_only::is_read_only;
pub(super) use runners::handed_on;
pub(super) use script::{Command, Role, Script, Target, adrift, read};
pub(super) use word::{Word, symbols, symbols_loose};

/// Why a line cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable(String);

impl Unreadable {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// What stood in the way, for a sentence.
    pub(super) fn why(&self) -> &str {
        &self.0
    }
}
