//! Turns errors of lower layers into refusals for the caller.

use std::fmt::Display;
use std::path::Path;

use super::NO_HOME;
use crate::config::ConfigError;
use crate::definition::{DefinitionError, Problem};
use crate::journal::JournalError;
use crate::refusal::Refusal;

/// Returns the refusal for an I/O error: `cannot write FILE: …`.
pub(super) fn cannot(what: &str, path: &Path, error: &dyn Display) -> Refusal {
    Refusal::environment(format!("cannot {what} {}: {error}", path.display()))
}

/// Uses the first problem as the reason. The others and their hints follow.
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
    /// Invalid, missing and conflicting files are the caller's to fix. Others are errors of the environment.
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
    /// The caller cannot fix an error of the journal with other input.
    fn from(error: JournalError) -> Self {
        match &error {
            JournalError::Sql(_)
            | JournalError::Database(_)
            | JournalError::Unable(_)
            | JournalError::Denied(_)
            | JournalError::Away(_) => Self::environment(format!("{error}: {}", error.cause())),
            _ => Self::environment(error.to_string()),
        }
    }
}
