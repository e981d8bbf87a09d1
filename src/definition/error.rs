//! What can go wrong with the files as a whole, and with writing one.

use std::io;
use std::path::{Path, PathBuf};

use super::Problem;

/// Why definitions could not be read or written. A file that is not valid is a [`Problem`], not one of these.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// There is no data folder.
    #[error("there is no data folder at {}: make one with `ollim-bot init`", root.display())]
    NoHome {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// What was to be written would not be valid. Nothing was written.
    #[error("{}", first_of(problems))]
    Invalid {
        /// Every error, at least one. Positions are those of the text that was not written.
        problems: Vec<Problem>,
    },
    /// The file is not there (any more).
    #[error("{} is not there", file.display())]
    NotFound {
        /// Relative to the data folder.
        file: PathBuf,
    },
    /// There is such a file already, and it stays as it is.
    #[error("{} is there already: remove or rename it first", file.display())]
    Exists {
        /// Relative to the data folder.
        file: PathBuf,
    },
    /// A new definition cannot have this name. Nothing was written.
    #[error("`{name}` {what}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        what: &'static str,
    },
    /// Somebody else changed the file meanwhile. Their change stands.
    #[error("{} was changed by somebody else meanwhile: try again", file.display())]
    Changed {
        /// Relative to the data folder.
        file: PathBuf,
    },
    /// The frontmatter is written in a way that cannot be changed without touching what a person wrote.
    #[error("cannot set `{field}` in {} without rewriting what stands there: edit the file by hand", file.display())]
    Edit {
        /// Relative to the data folder.
        file: PathBuf,
        /// The field that was to be set.
        field: String,
    },
    /// Whoever asked may not have it so. Nothing was written.
    #[error("{why}")]
    Refused {
        /// A sentence.
        why: String,
    },
    /// The path is not one of a definition.
    #[error("{} is not a definition's file: those are routines/NAME.md and reminders/NAME.md", file.display())]
    NotADefinition {
        /// The path.
        file: PathBuf,
    },
    /// A skill that a job names is missing, or its file cannot be used.
    #[error("skill {} cannot be used: {message} ({hint})", super::problem::quoted(name))]
    Skill {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
        /// What to do now.
        hint: String,
    },
    /// The disk said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: "write", "remove", …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gave no random numbers for a new identity.
    #[error("cannot make a new id: {0}")]
    Random(String),
    /// The file watcher could not be set up.
    #[error("cannot watch {}: {source}{}", path.display(), limit_hint(source))]
    Watch {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DefinitionError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

fn first_of(problems: &[Problem]) -> String {
    match problems.first() {
        Some(Problem { message, hint: Some(hint), .. }) => format!("{message} ({hint})"),
        Some(Problem { message, hint: None, .. }) => message.clone(),
        None => "not valid".into(),
    }
}

/// The kernel's limits on watching have names that no error message says.
fn limit_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => " (too many watches: raise `sysctl fs.inotify.max_user_watches`)",
        _ if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            " (too many watchers: raise `sysctl fs.inotify.max_user_instances`)"
        }
        _ => "",
    }
}
