//! Errors of the layers below, as whoever asked reads them.

use std::fmt::Display;
use std::path::Path;

use super::NO_HOME;
use crate::config::ConfigError;
use crate::definition::{DefinitionError, Problem};
use crate::journal::JournalError;
use crate::refusal::Refusal;

/// Something of the disk's: `cannot write FILE: …`.
pub(super) fn cannot(what: &str, path: &Path, error: &dyn Display) -> Refusal {
    Refusal::environment(format!("cannot {what} {}: {error}", path.display()))
}

/// The first problem is the reason; the others and their hints follow.
fn of_problems(problems: Vec<Problem>, with_place: bool) -> Refusal {
    let place = |problem: &Problem| format!("{}:{}:{}", problem.file.display(), problem.line, problem.column);
    let mut problems = problems.into_iter();
    let Some(first) = problems.next() else { return Refusal::user("") };
    let mut refusal = Refusal::user(&first.message);
    if with_place {
        refusal = refusal.at(place(&first));
    }
    refusal.hints.extend(first.hint);
    for problem in problems {
        let place = if with_place { format!(" ({})", place(&problem)) } else { String::new() };
        refusal.hints.push(format!("also: {}{place}", problem.message));
        refusal.hints.extend(problem.hint);
    }
    refusal
}

impl From<DefinitionError> for Refusal {
    /// What is invalid, missing or in the way is the person's to fix; the rest is the disk's.
    fn from(error: DefinitionError) -> Self {
        let message = error.to_string();
        match error {
            DefinitionError::NoHome { root } => {
                Self::user(format!("there is no data folder at {}", root.display())).hint(NO_HOME)
            }
            DefinitionError::Invalid { problems } => of_problems(problems, false),
            DefinitionError::Name { .. } => Self::user(message).hint("choose another with `--id NAME`"),
            DefinitionError::NotFound { .. }
            | DefinitionError::Exists { .. }
            | DefinitionError::Changed { .. }
            | DefinitionError::Edit { .. }
            | DefinitionError::Refused { .. }
            | DefinitionError::Skill { .. }
            | DefinitionError::NotADefinition { .. } => Self::user(message),
            DefinitionError::Io { .. } | DefinitionError::Random(_) | DefinitionError::Watch { .. } => {
                Self::environment(message)
            }
        }
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Invalid { problems } => of_problems(problems, true),
            ConfigError::Io { .. } => Self::environment(error.to_string()),
        }
    }
}

impl From<JournalError> for Refusal {
    /// Never the person's to fix by typing something else.
    fn from(error: JournalError) -> Self {
        match &error {
            JournalError::Sql(_) | JournalError::Database(_) | JournalError::Away(_) => {
                Self::environment(format!("{error}: {}", error.cause()))
            }
            _ => Self::environment(error.to_string()),
        }
    }
}
