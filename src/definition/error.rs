//! Errors of the files as a whole, and of writing a file.

use std::io;
use std::path::{Path, PathBuf};

use super::Problem;

/// The reason why definitions could not be read or written. An invalid file is a [`Problem`] instead.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// There is no data folder.
    #[error("there is no data folder at {}: make one with `ollim-bot init`", root.display())]
    NoHome {
        /// The path at which it was expected.
        root: PathBuf,
    },
    /// The new text would not be valid. Nothing was written.
    #[error("{}", first_of(problems))]
    Invalid {
        /// All errors, at least one. Positions refer to the text that was not written.
        problems: Vec<Problem>,
    },
    /// The file does not exist (any more).
    #[error("{} is not there", file.display())]
    NotFound {
        /// Relative to the data folder.
        file: PathBuf,
    },
    /// The file exists already. It was not changed.
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
        /// The reason, as a predicate: "is taken".
        what: &'static str,
    },
    /// Another writer changed the file in the meantime. That change was kept.
    #[error("{} was changed by somebody else meanwhile: try again", file.display())]
    Changed {
        /// Relative to the data folder.
        file: PathBuf,
    },
    /// The frontmatter's layout allows no change that keeps the rest of the text.
    #[error("cannot set `{field}` in {} without rewriting what stands there: edit the file by hand", file.display())]
    Edit {
        /// Relative to the data folder.
        file: PathBuf,
        /// The field to set.
        field: String,
    },
    /// The caller is not allowed to write this. Nothing was written.
    #[error("{why}")]
    Refused {
        /// The reason, as a sentence.
        why: String,
    },
    /// The path is not that of a definition.
    #[error("{} is not a definition's file: those are routines/NAME.md, reminders/NAME.md and webhooks/NAME.md", file.display())]
    NotADefinition {
        /// The path.
        file: PathBuf,
    },
    /// A skill that a job names is missing, or its file is unusable.
    #[error("skill {} cannot be used: {message} ({hint})", super::problem::quoted(name))]
    Skill {
        /// Its name.
        name: String,
        /// The problem.
        message: String,
        /// What to do now.
        hint: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted operation: "write", "remove", …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The system returned no random numbers for a new identity.
    #[error("cannot make a new id: {0}")]
    Random(String),
    /// The file watcher could not be set up.
    #[error("cannot watch {}: {source}{}", path.display(), limit_hint(source))]
    Watch {
        /// The folder.
        path: PathBuf,
        /// The cause.
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

/// Names the kernel limit behind an error. The error message names none.
fn limit_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => " (too many watches: raise `sysctl fs.inotify.max_user_watches`)",
        _ if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            " (too many watchers: raise `sysctl fs.inotify.max_user_instances`)"
        }
        _ => "",
    }
}
